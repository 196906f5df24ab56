"""What all tests share: the Kubernetes minor that the integration tests run on, and that no clock decides.

A busy machine is not a wrong result: drawn examples may take as long as they take.
"""

import pytest
from hypothesis import HealthCheck, settings

from extender.controlplane import pins

settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--kubernetes",
        choices=pins.KUBERNETES_MINORS,
        default=pins.DEFAULT_KUBERNETES,
        help="Kubernetes minor of the integration tests (default: %(default)s)",
    )
