"""Each property over a few draws, the same in each run; `make fuzz` draws others."""

import pytest
import structlog

from tests.fuzz.properties import GROUPS, PROPERTIES, draw

pytestmark = pytest.mark.slow

DRAWS = {"decoding": 150, "books": 40, "order": 40, "graph": 500, "scenes": 16, "http": 2}


@pytest.fixture(autouse=True)
def quiet():
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    yield
    structlog.configure(**before)


@pytest.mark.parametrize("name", PROPERTIES)
def test_a_property_holds(name):
    (group,) = (group for group, names in GROUPS.items() if name in names)
    for number in range(DRAWS[group]):
        draw(name, number)
