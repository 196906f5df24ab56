"""The chart, rendered in both modes by the pinned helm."""

import os
from pathlib import Path

import pytest
import yaml

from charts.render import GATING_API, VALUES, template
from lab.controlplane import pins
from lab.controlplane.building import build

MODES = ("scheduler", "existing")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs helm."""
    for item in items:
        if "helm" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.chart)


@pytest.fixture(scope="session")
def helm() -> Path:
    return build.provide([pins.helm()], cache=build.default_cache(os.environ))["helm"].path


@pytest.fixture(params=MODES)
def mode(request):
    return request.param


@pytest.fixture(scope="session")
def rendered(helm):
    return {mode: list(yaml.safe_load_all(template(helm, VALUES[mode]))) for mode in MODES}


@pytest.fixture(scope="session")
def gating(helm):
    """Every object of each mode, on a cluster that has MutatingAdmissionPolicies."""
    flags = ("--api-versions", GATING_API)
    return {mode: list(yaml.safe_load_all(template(helm, VALUES[mode], *flags))) for mode in MODES}


@pytest.fixture
def objects(rendered, mode):
    """Every object of one mode."""
    return rendered[mode]
