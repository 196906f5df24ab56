"""The exception tree: what can be wrong, each naming the thing and what is accepted."""

from importlib.util import find_spec


class DovetailError(Exception):
    """Anything that Dovetail raises on purpose; its text is meant for the user."""


class SettingsError(DovetailError):
    """The settings file has a wrong key or value."""


class BadRequest(DovetailError):
    """A caller sent what cannot be understood."""


class BadQuantity(DovetailError, ValueError):
    """A quantity is malformed, negative, or too large to exist."""


class BadAnnotation(DovetailError):
    """An annotation of ours cannot be understood."""


class ClusterError(DovetailError):
    """The API server refused, with an HTTP status, or could not be reached."""

    status: int | None = None


class UsageError(DovetailError):
    """The use of the cluster could not be measured, and of which `kind` the failure is (one word, for a metric)."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class ControlPlaneError(DovetailError):
    """A local control plane could not be built, started or used."""


class TraceError(DovetailError):
    """A workload trace is malformed; says file, line and column."""


class GraphError(DovetailError):
    """The DAG of a job is malformed; says stage and field."""


class SpecError(DovetailError):
    """What names a workload or machines cannot be understood."""


class MissingExtra(DovetailError):
    """A library is missing that only trying out and measuring need."""

    @classmethod
    def unless_installed(cls, *modules: str) -> None:
        """Raise if one of the modules is missing, with the command that installs it."""
        for module in modules:
            if find_spec(module) is None:
                raise cls(f"{module} is missing; run `make setup` in the checkout, or there: pip install '.[lab]'")
