"""How to start a real Prometheus and a real node-exporter on loopback, and what KWOK says that nodes and pods use."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from lab.controlplane.building import build
from lab.controlplane.component import Component, Launch
from lab.controlplane.guard import Guard
from lab.controlplane.pins import Part

KWOK_USAGE = Path(__file__).parent / "kwok-usage.yaml"
"""A further configuration of KWOK, by which it serves what its pods use (`kwok --config`)."""

_HEALTHY_SECONDS = 60.0


def program(part: Part) -> Path:
    """Return the path of a part's only program, built once."""
    return build.provide([part], cache=build.default_cache(os.environ))[part.name].path


@contextmanager
def starting() -> Iterator[Callable[[Launch], Component]]:
    """Give what starts a program by its launch and waits until it is healthy; all are stopped at the end."""
    guard, running = Guard(), list[Component]()

    def start(launch: Launch) -> Component:
        component = Component(launch, guard)
        component.start()
        running.append(component)
        component.wait_healthy(_HEALTHY_SECONDS)
        return component

    try:
        yield start
    finally:
        for component in running:
            component.stop()
        guard.close()


def prometheus(program: Path, folder: Path, port: int, jobs: Sequence[Mapping[str, Any]]) -> Launch:
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


def discovered(name: str, port: int, seconds: float) -> dict[str, Any]:
    """Return a job of Prometheus: the nodes that KWOK serves the use of on this port, every so many seconds."""
    job = scraped(name, [], seconds)
    del job["static_configs"]
    address = f"http://127.0.0.1:{port}/discovery/prometheus"
    return {**job, "http_sd_configs": [{"url": address, "refresh_interval": "2s"}]}
