"""Where the programs come from: a folder that the user names, the cache, or a build from the pinned modules."""

import hashlib
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.controlplane.building import golang
from lab.controlplane.building.locking import locked
from lab.controlplane.pins import Part
from lab.controlplane.showing import Show, quietly
from lab.errors import ControlPlaneError

BUILT, CACHED, ASSETS = "built now", "cached", "KUBEBUILDER_ASSETS"

_SHOWN_LINES = 15
_ADVICE = (
    (
        r"SECURITY ERROR|checksum mismatch",
        "A module differs from its pinned sum: do not use it; ask where it came from",
    ),
    (r"no space left", "The disk is full: a first build takes about 6 GB; free some and run this again"),
    (
        r"dial tcp|GOPROXY|no such host|i/o timeout|proxyconnect|connection refused|TLS handshake",
        "The modules could not be downloaded: check the network or GOPROXY and run this again",
    ),
    (
        r"signal: killed|cannot allocate memory",
        "Memory ran out: a build takes about 4 GB; close something and run this again",
    ),
)


@dataclass(frozen=True)
class Program:
    """One program, ready to run, and how it was had."""

    name: str
    version: str
    origin: str
    path: Path


def default_cache(environment: Mapping[str, str]) -> Path:
    """Return the folder for built programs: under XDG_CACHE_HOME, else under the user's .cache."""
    named = environment.get("XDG_CACHE_HOME")
    return (Path(named) if named else Path.home() / ".cache") / "dovetail"


def provide(
    parts: Sequence[Part], *, cache: Path, assets: Path | None = None, show: Show = quietly
) -> dict[str, Program]:
    """Return the programs of `parts` by name, building what neither `assets` nor `cache` holds."""
    programs: dict[str, Program] = {}
    for number, part in enumerate(parts, 1):
        own = _from_assets(part, assets)
        if len(own) < len(part.packages):
            own = _from_cache(part, cache, show, f"{number} of {len(parts)}") | own
        programs.update(own)
    return programs


def cache_folder(part: Part, cache: Path) -> Path:
    """Return where the programs of `part` stay; it changes with whatever changes the programs."""
    digest = hashlib.sha256()
    for name in ("go.mod", "go.sum"):
        digest.update((part.folder / name).read_bytes())
    digest.update(f"{part.link_flags} {platform.system()} {platform.machine()}".encode())
    digest.update(part.tags.encode())
    return cache / f"{part.name.partition('-')[0]}-{part.version}-{digest.hexdigest()[:12]}"


def is_built(part: Part, cache: Path) -> bool:
    """Tell whether the cache holds every program of `part`."""
    return all((cache_folder(part, cache) / name).is_file() for name in part.packages)


def is_among(part: Part, assets: Path | None) -> bool:
    """Tell whether the folder that the user named holds every program of `part`."""
    return assets is not None and all((assets / name).is_file() for name in part.packages)


def _from_assets(part: Part, assets: Path | None) -> dict[str, Program]:
    if assets is None:
        return {}
    paths = {name: assets / name for name in part.packages}
    return {name: Program(name, _said_version(path), ASSETS, path) for name, path in paths.items() if path.is_file()}


def _said_version(path: Path) -> str:
    try:
        output = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, check=False).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ControlPlaneError(f"{path} does not run ({error}); repair it or unset {ASSETS}") from error
    match = re.search(r"v?(\d+\.\d+\.\d+\S*)", output)
    return f"v{match[1]}" if match else "unknown"


def _from_cache(part: Part, cache: Path, show: Show, which: str) -> dict[str, Program]:
    folder = cache_folder(part, cache)
    origin = CACHED
    if not is_built(part, cache):
        _require_writable(cache)
        with locked(folder.with_name(f"{folder.name}.lock")):
            if not is_built(part, cache):
                _build(part, folder, show, which)
                origin = BUILT
    return {name: Program(name, part.version, origin, folder / name) for name in part.packages}


def _require_writable(cache: Path) -> None:
    """Make the cache. Raises ControlPlaneError where nothing can be written there."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=cache).close()
    except OSError as error:
        raise ControlPlaneError(
            f"{cache}: {error.strerror}; programs are built there: set XDG_CACHE_HOME to a folder that can be written"
        ) from error


def _build(part: Part, folder: Path, show: Show, which: str) -> None:
    go = golang.find(part.go, cache=folder.parent, show=show)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{folder.name}-") as scratch:
        fresh = Path(scratch) / folder.name
        fresh.mkdir()
        with show(f"Building {part.name} {part.version} ({which}; minutes the first time)"):
            _run(build_command(part, go, fresh), part, folder.with_name(f"{folder.name}.log"))
        shutil.rmtree(folder, ignore_errors=True)
        fresh.replace(folder)


def build_command(part: Part, go: Path, target: Path) -> list[str]:
    """Return the command that builds `part` into `target`, to be run in the part's folder.

    The settings keep the machine's own Go settings out of it: same pins, same programs.
    """
    settings = ["CGO_ENABLED=0", "GOWORK=off", "GOTOOLCHAIN=local", "GOFLAGS="]
    command = ["env", *settings, str(go), "build", "-trimpath", "-mod=readonly", "-buildvcs=false"]
    if part.link_flags:
        command += ["-ldflags", part.link_flags]
    if part.tags:
        command += ["-tags", part.tags]
    if len(part.packages) == 1:
        ((name, package),) = part.packages.items()
        return [*command, "-o", str(target / name), package]
    return [*command, "-o", f"{target}/", *part.packages.values()]


def _run(command: list[str], part: Part, log: Path) -> None:
    with log.open("wb") as output:
        done = subprocess.run(command, cwd=part.folder, stdout=output, stderr=output, check=False)
    if done.returncode:
        raise ControlPlaneError(_failure(part, log.read_text(errors="replace"), log))
    log.unlink()


def _failure(part: Part, output: str, log: Path) -> str:
    advice = next((text for pattern, text in _ADVICE if re.search(pattern, output)), "Run this again")
    end = "\n".join(output.splitlines()[-_SHOWN_LINES:])
    return f"{part.name} {part.version} did not build; the end of {log}:\n{end}\n{advice}; what was built is kept"
