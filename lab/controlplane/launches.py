"""The command line of each component."""

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.controlplane.certs import Authority, Pair
from lab.controlplane.component import Launch

ETCD, APISERVER, CONTROLLERS, KWOK = "etcd", "kube-apiserver", "kube-controller-manager", "kwok"
EXTENDER = "dovetail"
CONTROL = "dovetail-control"
SCHEDULER = "kube-scheduler"

_NEVER = "24h"
_UNGUARDED = "/healthz,/livez,/readyz,/metrics"


@dataclass(frozen=True)
class Ground:
    """What the command lines share: programs, folders, certificates, ports, and flags that the caller adds."""

    programs: Mapping[str, Path]
    folder: Path
    cluster: Authority
    storage: Authority
    serving: Pair
    context: ssl.SSLContext
    ports: dict[str, int]
    added: Mapping[str, Sequence[str]]

    def launch(self, name: str, program: str, flags: Mapping[str, object], health: str) -> Launch:
        """Return how to start `program` under `name`; a flag that the caller added replaces ours."""
        command = [str(self.programs[program]), *(f"--{key}={value}" for key, value in flags.items())]
        return Launch(
            name=name,
            command=[*command, *self.added.get(name, ())],
            log=self.folder / "logs" / f"{name}.log",
            health=health,
            context=self.context if health.startswith("https") else None,
        )


def etcd(ground: Ground) -> Launch:
    """Return etcd's launch. It may lose data in a power cut (no fsync): the data is thrown away at the end anyway.

    As kubeadm has it, watches of what does not change make progress: else the API server sends them no bookmarks.
    """
    pair = ground.storage.issue_server()
    client, peer, metrics = (ground.ports[name] for name in ("etcd", "etcd-peer", "etcd-metrics"))
    flags = {
        "name": "dovetail",
        "data-dir": ground.folder / "etcd",
        "unsafe-no-fsync": "true",
        "watch-progress-notify-interval": "5s",
        "listen-client-urls": f"https://127.0.0.1:{client}",
        "advertise-client-urls": f"https://127.0.0.1:{client}",
        "listen-peer-urls": f"https://127.0.0.1:{peer}",
        "initial-advertise-peer-urls": f"https://127.0.0.1:{peer}",
        "initial-cluster": f"dovetail=https://127.0.0.1:{peer}",
        "listen-metrics-urls": f"http://127.0.0.1:{metrics}",
        "client-cert-auth": "true",
        "trusted-ca-file": ground.storage.certificate,
        "cert-file": pair.certificate,
        "key-file": pair.key,
        "peer-client-cert-auth": "true",
        "peer-trusted-ca-file": ground.storage.certificate,
        "peer-cert-file": pair.certificate,
        "peer-key-file": pair.key,
        "log-level": "warn",
    }
    return ground.launch(ETCD, ETCD, flags, f"http://127.0.0.1:{metrics}/health")


def apiserver(ground: Ground) -> Launch:
    """Return the API server's launch: RBAC on, client certificates, nothing but loopback."""
    storage = ground.storage.issue_client("kube-apiserver")
    port = ground.ports[APISERVER]
    flags = {
        "etcd-servers": f"https://127.0.0.1:{ground.ports['etcd']}",
        "etcd-cafile": ground.storage.certificate,
        "etcd-certfile": storage.certificate,
        "etcd-keyfile": storage.key,
        "bind-address": "127.0.0.1",
        "advertise-address": "127.0.0.1",
        "endpoint-reconciler-type": "none",
        "secure-port": port,
        "tls-cert-file": ground.serving.certificate,
        "tls-private-key-file": ground.serving.key,
        "client-ca-file": ground.cluster.certificate,
        "authorization-mode": "RBAC",
        "service-cluster-ip-range": "10.96.0.0/16",
        "service-account-issuer": f"https://127.0.0.1:{port}",
        "service-account-key-file": ground.serving.key,
        "service-account-signing-key-file": ground.serving.key,
        "allow-privileged": "true",
        "delete-collection-workers": 8,
        "profiling": "false",
    }
    return ground.launch(APISERVER, APISERVER, flags, f"https://127.0.0.1:{port}/readyz")


def controllers(ground: Ground, kubeconfig: Path) -> Launch:
    """Return the controller manager's launch.

    Simulated kubelets send no heartbeats, so silence never makes a node unready here. The client's rate is raised:
    at the default of 20 requests a second, the not-ready taints of 5,000 new nodes would stay for minutes. The ttl
    controller is left out: it writes to every new node what only real kubelets read.
    """
    port = ground.ports[CONTROLLERS]
    flags = {
        **_client_flags(ground, kubeconfig, port),
        "service-account-private-key-file": ground.serving.key,
        "use-service-account-credentials": "true",
        "root-ca-file": ground.cluster.certificate,
        "leader-elect": "false",
        "controllers": "*,-ttl-controller",
        "kube-api-qps": 1000,
        "kube-api-burst": 2000,
        "node-monitor-grace-period": _NEVER,
    }
    return ground.launch(CONTROLLERS, CONTROLLERS, flags, f"https://127.0.0.1:{port}/healthz")


def scheduler(ground: Ground, name: str, port: int, kubeconfig: Path, configuration: Path) -> Launch:
    """Return the launch of one kube-scheduler, known here as `name`."""
    flags = {**_client_flags(ground, kubeconfig, port), "config": configuration}
    del flags["kubeconfig"]
    return ground.launch(name, SCHEDULER, flags, f"https://127.0.0.1:{port}/healthz")


def kwok(ground: Ground, kubeconfig: Path, configuration: Path) -> Launch:
    """Return KWOK's launch: it plays the kubelets of every node."""
    port = ground.ports[KWOK]
    flags = {
        "kubeconfig": kubeconfig,
        "config": configuration,
        "server-address": f"127.0.0.1:{port}",
    }
    return ground.launch(KWOK, KWOK, flags, f"http://127.0.0.1:{port}/healthz")


def _client_flags(ground: Ground, kubeconfig: Path, port: int) -> dict[str, object]:
    return {
        "kubeconfig": kubeconfig,
        "bind-address": "127.0.0.1",
        "secure-port": port,
        "tls-cert-file": ground.serving.certificate,
        "tls-private-key-file": ground.serving.key,
        "authorization-always-allow-paths": _UNGUARDED,
    }


def service(ground: Ground, name: str, kubeconfig: Path, settings: Path, command: Sequence[str]) -> Launch:
    """Return how to start `dovetail serve` or `control`, as `command` runs it, under `name`."""
    flags = [f"--config={settings}", f"--kubeconfig={kubeconfig}"]
    health = f"http://127.0.0.1:{ground.ports[name]}/readyz"
    return Launch(name, [*command, *flags], ground.folder / "logs" / f"{name}.log", health)
