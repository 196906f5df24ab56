"""What all tests share: the Kubernetes minor of the integration tests, and how examples are drawn.

The same code draws the same examples in each run, and no example is remembered from another. With
`--hypothesis-profile fuzz --hypothesis-seed N` others are drawn (`make fuzz`, docs/developing/fuzz.md). No clock
decides: a busy machine is not a wrong result, and drawn examples may take as long as they take.
"""

from collections.abc import Iterator

import pytest
import structlog
from hypothesis import HealthCheck, settings

from lab.controlplane import pins

settings.register_profile(
    "same", derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("fuzz", settings.get_profile("same"), derandomize=False, print_blob=True)
settings.load_profile("same")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--kubernetes",
        choices=pins.KUBERNETES_MINORS,
        default=pins.DEFAULT_KUBERNETES,
        help="Kubernetes minor of the integration tests (default: %(default)s)",
    )


@pytest.fixture(autouse=True)
def _logs_as_they_were(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever a test makes of logging is its own: commands that run in the process configure it.

    No module keeps its logger, which would go on with what was configured when it first wrote a line.
    """
    before, configure = structlog.get_config(), structlog.configure
    monkeypatch.setattr(
        structlog, "configure", lambda **options: configure(**options | {"cache_logger_on_first_use": False})
    )
    yield
    structlog.configure(**before)
