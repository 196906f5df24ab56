"""What all tests share: the Kubernetes minor that the integration tests run on."""

import pytest

from extender.controlplane import pins


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--kubernetes",
        choices=pins.KUBERNETES_MINORS,
        default=pins.DEFAULT_KUBERNETES,
        help="Kubernetes minor of the integration tests (default: %(default)s)",
    )
