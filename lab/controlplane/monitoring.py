"""How to start a real Prometheus and a real node-exporter on loopback."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from lab.controlplane.component import Launch


def prometheus(
    program: Path, folder: Path, port: int, jobs: Sequence[Mapping[str, Any]], *, flags: Sequence[str] = ()
) -> Launch:
    """Return Prometheus' launch: it scrapes `jobs` (its `scrape_configs`) and keeps its data below `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    configuration = folder / "prometheus.yaml"
    configuration.write_text(yaml.safe_dump({"scrape_configs": [dict(job) for job in jobs]}))
    command = [
        str(program),
        f"--config.file={configuration}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
        *flags,
    ]
    return Launch("prometheus", command, folder / "prometheus.log", f"http://127.0.0.1:{port}/-/ready")


def node_exporter(program: Path, folder: Path, port: int) -> Launch:
    """Return node-exporter's launch: it says what this machine uses."""
    folder.mkdir(parents=True, exist_ok=True)
    address = f"127.0.0.1:{port}"
    command = [str(program), f"--web.listen-address={address}", "--log.level=warn"]
    return Launch("node_exporter", command, folder / "node_exporter.log", f"http://{address}/")


def scraped(name: str, targets: Sequence[str], seconds: float, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - YAML
    """Return a job of Prometheus: these targets ("host:port"), every so many seconds."""
    interval = f"{round(seconds * 1000)}ms"
    return {
        "job_name": name,
        "scrape_interval": interval,
        "scrape_timeout": interval,
        "static_configs": [{"targets": list(targets)}],
        **more,
    }
