"""A control plane that runs: started whole, each component stoppable and restartable, stopped without a trace."""

import re
import shutil
import ssl
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml
from kubernetes.client import ApiClient

from lab.controlplane import access, launches, ports, rest
from lab.controlplane.certs import Authority
from lab.controlplane.component import Component, Launch, Starter, start_process
from lab.controlplane.guard import Guard
from lab.controlplane.launches import APISERVER, CONTROL, CONTROLLERS, ETCD, EXTENDER, KWOK, SCHEDULER, Ground
from lab.controlplane.pins import OLDEST_KUBERNETES
from lab.errors import ControlPlaneError

ADMIN = "dovetail-admin"
KWOK_CONFIGURATION = Path(__file__).parent / "kwok.yaml"
THIS_CHECKOUT = (sys.executable, "-m", "extender")
"""How to run the `dovetail` that we are part of."""

_HEALTHY_SECONDS = 180
"""One that ends is seen at once. One that is slow, on a busy machine, must not fail all that needs it."""
_PORTS = ("etcd", "etcd-peer", "etcd-metrics", APISERVER, CONTROLLERS, KWOK)


class ControlPlane:
    """etcd, kube-apiserver, kube-controller-manager, KWOK and any number of kube-schedulers, on loopback.

    A context manager: entering starts it, leaving stops exactly what was started. The folder with logs, data and
    kubeconfigs is removed at the end, except after an error (or once `keep` is set): then `folder` stays.

    `programs` maps program names to paths (`build.provide`), `flags` adds command line flags per component, `starter`
    starts the processes.
    """

    def __init__(
        self,
        programs: Mapping[str, Path],
        *,
        flags: Mapping[str, Sequence[str]] | None = None,
        starter: Starter = start_process,
    ) -> None:
        self.keep = False
        self.folder = Path(tempfile.mkdtemp(prefix="dovetail-"))
        (self.folder / "logs").mkdir()
        self._clients: dict[tuple[str, str | None], ApiClient] = {}
        self._components: dict[str, Component] = {}
        self._guard = Guard()
        self._starter = starter
        self._ground = self._lay_ground(programs, flags or {})

    def __enter__(self) -> Self:
        """Start it."""
        try:
            self.start()
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop it, whatever happened; keep the folder after an error, though not after Ctrl-C."""
        self.keep = self.keep or (kind is not None and issubclass(kind, Exception))
        self.stop()

    @property
    def url(self) -> str:
        """Return the API server's address."""
        return f"https://127.0.0.1:{self._ground.ports[APISERVER]}"

    @property
    def ports(self) -> dict[str, int]:
        """Return the port of each component that listens."""
        return dict(self._ground.ports)

    @property
    def pids(self) -> dict[str, int]:
        """Return the process number of each component that runs."""
        return {name: component.pid for name, component in self._components.items() if component.pid is not None}

    @property
    def admin(self) -> Path:
        """Return the path of a kubeconfig that may do everything."""
        return self.kubeconfig(ADMIN, "system:masters")

    def start(self, component: str | None = None, *, seconds: float = _HEALTHY_SECONDS) -> None:
        """Start the whole control plane, or one component that was stopped or killed; wait until healthy."""
        if component is not None:
            self._component(component).start()
            self._component(component).wait_healthy(seconds)
            return
        self._run(launches.etcd(self._ground)).wait_healthy(seconds)
        self._run(launches.apiserver(self._ground)).wait_healthy(seconds)
        self._check_version()
        others = [
            launches.controllers(self._ground, self.kubeconfig("system:kube-controller-manager")),
            launches.kwok(self._ground, self.admin, KWOK_CONFIGURATION),
        ]
        for started in [self._run(launch) for launch in others]:
            started.wait_healthy(seconds)
        self._wait_default_account(seconds)

    def stop(self, component: str | None = None) -> None:
        """Stop one component; or everything, in reverse order, and remove the folder unless it is kept."""
        if component is not None:
            self._component(component).stop()
            return
        try:
            for running in reversed(self._components.values()):
                running.stop() if running.name in (ETCD, APISERVER) else running.terminate()
            for running in self._components.values():
                running.wait_gone()
        finally:
            self._guard.close()
            for client in self._clients.values():
                client.rest_client.pool_manager.clear()
            if not self.keep:
                shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self, component: str) -> None:
        """Kill one component (SIGKILL)."""
        self._component(component).kill()

    def restart(self, component: str) -> None:
        """Stop one component and start it again, with the same port and data; wait until healthy."""
        self.stop(component)
        self.start(component)

    def start_stopped(self) -> None:
        """Start again whatever was stopped, was killed or ended by itself."""
        for name, component in self._components.items():
            if component.pid is None:
                component.wait_gone()
                self.start(name)

    def log(self, component: str) -> Path:
        """Return the log file of one component."""
        return self._component(component).launch.log

    def add_scheduler(
        self,
        configuration: Mapping[str, Any] | None = None,
        *,
        user: str = "system:kube-scheduler",
        group: str | None = None,
        name: str = SCHEDULER,
    ) -> str:
        """Start a kube-scheduler with this KubeSchedulerConfiguration as `user`; return its component name.

        The kubeconfig is filled in. Leader election is off unless the configuration turns it on.
        """
        if name in self._components:
            raise ControlPlaneError(f"there is a component {name!r} already; choose another name")
        document: dict[str, Any] = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            **(configuration or {}),
        }
        kubeconfig = self.kubeconfig(user, group)
        document["clientConnection"] = {**document.get("clientConnection", {}), "kubeconfig": str(kubeconfig)}
        document.setdefault("leaderElection", {"leaderElect": False})
        path = self.folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(document))
        (port,) = ports.pick(1)
        self._ground.ports[name] = port
        self._run(launches.scheduler(self._ground, name, port, kubeconfig, path)).wait_healthy(_HEALTHY_SECONDS)
        return name

    def add_extender(
        self,
        settings: Mapping[str, Any] | None = None,
        *,
        user: str = ADMIN,
        name: str = EXTENDER,
        program: Sequence[str] = THIS_CHECKOUT,
        with_control: bool = False,
    ) -> str:
        """Start `dovetail serve` with these settings as `user`; return its address, the extender's urlPrefix.

        The address and the port are filled in; returns once it is ready. `program` is the `dovetail` to run. With
        `with_control` the same process is `dovetail control`, whose metrics are at the next port.
        """
        command = [*program, "serve", *(["--with-control"] if with_control else [])]
        return self._add_service(command, settings, self._login(user), name)

    def add_control(
        self,
        settings: Mapping[str, Any] | None = None,
        *,
        user: str = ADMIN,
        group: str | None = None,
        name: str = CONTROL,
        program: Sequence[str] = THIS_CHECKOUT,
    ) -> str:
        """Start `dovetail control` with these settings as `user`; return the address of its metrics."""
        return self._add_service([*program, "control"], settings, self._login(user, group), name)

    def _login(self, user: str, group: str | None = None) -> Path:
        return self.admin if user == ADMIN else self.kubeconfig(user, group)

    def _add_service(
        self, command: Sequence[str], settings: Mapping[str, Any] | None, kubeconfig: Path, name: str
    ) -> str:
        if name in self._components:
            raise ControlPlaneError(f"there is a component {name!r} already; choose another name")
        port = ports.pick_pair()
        document: dict[str, Any] = {"apiVersion": "dovetail.dev/v1alpha1", "kind": "DovetailConfiguration"}
        document |= settings or {}
        document["server"] = {**document.get("server", {}), "address": "127.0.0.1", "port": port}
        path = self.folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(document))
        self._ground.ports[name] = port
        self._run(launches.service(self._ground, name, kubeconfig, path, command)).wait_healthy(_HEALTHY_SECONDS)
        return f"http://127.0.0.1:{port}"

    def remove_scheduler(self, name: str = SCHEDULER) -> None:
        """Stop a scheduler or an extender and forget it, so that its name is free; its log stays."""
        self._component(name).stop()
        del self._components[name]

    def kubeconfig(self, user: str, group: str | None = None) -> Path:
        """Return the path of a kubeconfig with a client certificate for `user`; RBAC decides what it may do."""
        return access.kubeconfig(self.url, self._ground.cluster, user, group)

    def client(self, user: str = ADMIN, group: str | None = None) -> ApiClient:
        """Return a client of the API server as `user`; by default as one that may do everything."""
        if user == ADMIN:
            group = "system:masters"
        if (user, group) not in self._clients:
            self._clients[user, group] = access.client(self.url, self._ground.cluster, user, group)
        return self._clients[user, group]

    def apply(self, manifests: Iterable[Mapping[str, Any]], **query: object) -> list[dict[str, Any]]:
        """Apply manifests as the administrator; `dryRun="All"` only has them checked."""
        return rest.apply(self.client(), manifests, **query)

    def resources(self, group: str) -> set[str]:
        """Return the names of the resources that the API server has at a path like `/apis/batch/v1`."""
        listed = rest.request(self.client(), "GET", group)["resources"]
        return {str(resource["name"]) for resource in listed}

    def version(self) -> str:
        """Return the version that the API server reports."""
        return str(rest.request(self.client(), "GET", "/version")["gitVersion"])

    def _lay_ground(self, programs: Mapping[str, Path], flags: Mapping[str, Sequence[str]]) -> Ground:
        cluster = Authority(self.folder / "certificates")
        admin = cluster.issue_client(ADMIN, "system:masters")
        context = _trusting(cluster.certificate)
        context.load_cert_chain(admin.certificate, admin.key)
        return Ground(
            programs=programs,
            folder=self.folder,
            cluster=cluster,
            storage=Authority(self.folder / "storage-certificates"),
            serving=cluster.issue_server(),
            context=context,
            ports=dict(zip(_PORTS, ports.pick(len(_PORTS)), strict=True)),
            added=flags,
        )

    def _component(self, name: str) -> Component:
        if name not in self._components:
            known = ", ".join(self._components) or "none: it is not started"
            raise ControlPlaneError(f"no component {name!r}; there are {known}")
        return self._components[name]

    def _run(self, launch: Launch) -> Component:
        component = self._components[launch.name] = Component(launch, self._guard, self._starter)
        component.start()
        return component

    def _check_version(self) -> None:
        version = rest.request(self.client(), "GET", "/version")
        minor = int(version["major"]), int(re.sub(r"\D.*", "", version["minor"]) or 0)
        if minor < OLDEST_KUBERNETES:
            oldest = ".".join(map(str, OLDEST_KUBERNETES))
            path = self._ground.programs[APISERVER]
            raise ControlPlaneError(
                f"{path} is Kubernetes {version['gitVersion']}; Dovetail needs {oldest} or later (resize of pods)"
            )

    def _wait_default_account(self, seconds: float) -> None:
        """Pods are refused until the controller manager has made the namespace's service account."""
        limit = time.monotonic() + seconds
        while True:
            try:
                rest.request(self.client(), "GET", "/api/v1/namespaces/default/serviceaccounts/default")
            except rest.RequestRefused as error:
                if time.monotonic() > limit:
                    raise ControlPlaneError(
                        f"no default service account after {seconds:g} s; see {self.folder}"
                    ) from error
                time.sleep(0.05)
            else:
                return


def _trusting(authority: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(authority))
