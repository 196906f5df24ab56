"""`config:` in values.yaml is the service's settings file, key by key."""

import json

import jsonschema
import pytest
import yaml

from charts.render import CHART
from extender.settings import defaults

VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA = json.loads((CHART / "values.schema.json").read_text())


def test_values_are_the_defaults_but_for_the_address_that_the_kubelet_must_reach_and_for_who_chooses():
    expected = {key: value for key, value in defaults().items() if key not in ("apiVersion", "kind")}
    assert expected["server"]["address"] == "127.0.0.1"
    expected["server"]["address"] = "0.0.0.0"
    assert expected["placement"]["chosenBy"] == "kube-scheduler"
    expected["placement"]["chosenBy"] = "filter"

    assert VALUES["config"] == json.loads(json.dumps(expected))


def test_the_schema_requires_exactly_the_keys_of_values():
    def compare(schema, values, path):
        if "properties" not in schema or not isinstance(values, dict):
            return
        assert schema["additionalProperties"] is False, path
        if path not in ("/resources", "/scheduler/resources"):
            assert sorted(schema["required"]) == sorted(values), path
        for key, value in values.items():
            compare(schema["properties"][key], value, f"{path}/{key}")

    compare(SCHEMA, VALUES, "")


@pytest.mark.parametrize(
    ("tag", "accepted"),
    [
        ("", True),
        ("0.1.0", True),
        (f"0.1.0@sha256:{64 * 'a'}", True),
        (f"sha256:{64 * 'a'}", False),  # the image would be dovetail:sha256:..., which is no reference
        (f"@sha256:{64 * 'a'}", False),
        ("0.1.0@sha256:abc", False),
        ("a/b", False),
    ],
)
def test_an_image_tag_makes_a_reference_of_an_image_or_is_refused(tag, accepted):
    assert jsonschema.Draft202012Validator(SCHEMA["properties"]["image"]["properties"]["tag"]).is_valid(tag) == accepted


def test_the_charts_versions_are_the_packages():
    from importlib.metadata import version

    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())

    assert chart["version"] == chart["appVersion"] == version("dovetail")
