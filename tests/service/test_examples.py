"""The files in `examples/`, read without a cluster; tests/integration/test_examples.py applies them."""

import json
import re

import jsonschema
import pytest
import yaml

from charts.render import CHART, ROOT
from extender.settings import reading

EXAMPLES = ROOT / "examples"
FILES = sorted(EXAMPLES.glob("*.yaml"))
SETTINGS = ("queues.yaml", "queues-values.yaml")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_an_example_begins_with_what_it_shows_and_how_to_apply_it(path):
    comment = re.match(r"(?:#.*\n)+", path.read_text())
    assert comment is not None
    assert len(comment[0].splitlines()[0]) > 20
    assert re.search(r"^# Apply.*: ", comment[0], re.MULTILINE)
    assert f"examples/{path.name}" in comment[0]


def test_the_table_names_every_example_and_no_other():
    named = re.findall(r"^\| \[(\S+)\]\((\S+)\)", (EXAMPLES / "README.md").read_text(), re.MULTILINE)
    assert sorted(named) == [(path.name, path.name) for path in FILES]


def test_the_queues_are_settings_without_a_mistake():
    settings = reading.load(EXAMPLES / "queues.yaml")
    assert {queue.name for queue in settings.queues} == {"research", "batch", "training"}


def test_the_queues_as_values_of_the_chart_are_the_same():
    settings, values = (yaml.safe_load((EXAMPLES / name).read_text()) for name in SETTINGS)
    assert values == {"config": {key: settings[key] for key in ("queues", "undeclaredWeight")}}

    all_values = yaml.safe_load((CHART / "values.yaml").read_text())
    all_values["config"] |= values["config"]
    jsonschema.validate(all_values, json.loads((CHART / "values.schema.json").read_text()))


@pytest.mark.parametrize("path", [path for path in FILES if path.name not in SETTINGS], ids=lambda path: path.name)
def test_an_example_names_a_declared_queue_and_carries_the_gate(path):
    declared = {queue.name for queue in reading.load(EXAMPLES / "queues.yaml").queues}
    text = path.read_text()
    named = set(re.findall(r"^ +dovetail.dev/queue: (\S+)$", text, re.MULTILINE))
    assert named
    assert named <= declared
    assert "schedulerName: dovetail\n" in text
    assert "- name: dovetail.dev/hold\n" in text
