"""Who may reach the API server: a kubeconfig or a client for a user, each with a certificate of the cluster."""

from pathlib import Path

import yaml
from kubernetes.client import ApiClient, Configuration

from lab.controlplane.certs import Authority

_CONNECTIONS = 32
_NAME = "dovetail"


def kubeconfig(url: str, authority: Authority, user: str, group: str | None) -> Path:
    """Return the path of a kubeconfig for `user`; it is written beside the user's key when first asked for."""
    pair = authority.issue_client(user, group)
    path = pair.key.with_suffix(".kubeconfig")
    if not path.exists():
        cluster = {"server": url, "certificate-authority": str(authority.certificate)}
        login = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": _NAME, "cluster": cluster}],
            "users": [{"name": user, "user": login}],
            "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": user}}],
            "current-context": _NAME,
        }
        path.write_text(yaml.safe_dump(document))
    return path


def client(url: str, authority: Authority, user: str, group: str | None) -> ApiClient:
    """Return a client as `user`; no proxy stands between it and loopback."""
    pair = authority.issue_client(user, group)
    configuration = Configuration(host=url)
    configuration.proxy = None
    configuration.ssl_ca_cert = str(authority.certificate)
    configuration.cert_file, configuration.key_file = str(pair.certificate), str(pair.key)
    configuration.connection_pool_maxsize = _CONNECTIONS
    return ApiClient(configuration)
