"""The exception tree: what can be wrong, each naming the thing and what is accepted."""

_NOT_FOUND = 404


class DovetailError(Exception):
    """Anything that Dovetail raises on purpose; its text is meant for the user."""


class SettingsError(DovetailError):
    """The settings file has a wrong key or value."""


class BadRequest(DovetailError):
    """A caller sent what cannot be understood."""


class BadQuantity(DovetailError, ValueError):
    """A quantity is malformed, negative, or too large to exist."""


class TooLarge(BadQuantity):
    """A quantity is a number that nothing has so much of."""


class BadAnnotation(DovetailError):
    """An annotation of ours cannot be understood."""


class ClusterError(DovetailError):
    """The API server refused, with an HTTP status, or could not be reached."""

    status: int | None = None

    @property
    def is_not_found(self) -> bool:
        """Whether there is no such object, or no such kind."""
        return self.status == _NOT_FOUND


class AnswerTooLarge(ClusterError):
    """The API server's answer is larger than is read; of a list, a smaller page may be read."""


class UsageError(DovetailError):
    """The use of the cluster could not be measured, and of which `kind` the failure is (one word, for a metric)."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class TraceError(DovetailError):
    """A workload trace is malformed; says file, line and column."""


class GraphError(DovetailError):
    """The DAG of a job is malformed; says stage and field."""
