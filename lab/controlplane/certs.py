"""Certificates of one control plane: made when it starts, thrown away with it."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

import trustme


@dataclass(frozen=True)
class Pair:
    """A certificate and its private key, as files."""

    certificate: Path
    key: Path


class Authority:
    """A certificate authority that keeps what it issues in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._authority = trustme.CA()
        folder.mkdir(parents=True)
        self.certificate = folder / "ca.crt"
        self._authority.cert_pem.write_to_path(str(self.certificate))

    def issue_server(self) -> Pair:
        """Return a pair to serve the loopback address with; it serves as a client's too."""
        return self._issue("server", common_name="server", group=None)

    def issue_client(self, user: str, group: str | None = None) -> Pair:
        """Return a pair that Kubernetes takes for `user`, member of `group`."""
        readable = re.sub(r"[^a-z0-9]+", "-", user.lower())
        digest = hashlib.sha256(f"{user}\n{group}".encode()).hexdigest()[:8]
        return self._issue(f"{readable}-{digest}", common_name=user, group=group)

    def _issue(self, name: str, *, common_name: str, group: str | None) -> Pair:
        pair = Pair(self._folder / f"{name}.crt", self._folder / f"{name}.key")
        if not pair.key.exists():
            issued = self._authority.issue_cert(
                "127.0.0.1", "localhost", common_name=common_name, organization_name=group or "none"
            )
            issued.cert_chain_pems[0].write_to_path(str(pair.certificate))
            issued.private_key_pem.write_to_path(str(pair.key))
            pair.key.chmod(0o600)
        return pair
