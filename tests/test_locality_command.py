import json

import pytest
from click.testing import CliRunner

from extender.cli import cli


def asked(*arguments):
    return CliRunner().invoke(cli, ["locality", *arguments])


def test_a_target_gives_the_papers_wait():
    # D = -(1000 / 3) x ln(1 / 2) = 231; 8 x 1000 slots / 20 s = 400 per second; 231 / 400 = 0.578 s
    found = json.loads(asked("--target", "0.95", "--nodes", "1000", "--json").stdout)
    assert found["rate"] == 400
    assert found["skips"] == pytest.approx(231.05, abs=0.01)
    assert found["wait_seconds"] == pytest.approx(0.578, abs=0.001)
    assert found["least"] == pytest.approx(0.95)
    assert found["expected"] >= 0.95


def test_a_wait_gives_the_papers_locality_at_facebook():
    arguments = ("--wait", "10", "--rate", "27", "--nodes", "620", "--tasks", "1", "--json")
    found = json.loads(asked(*arguments).stdout)
    assert found["skips"] == 270
    assert found["expected"] == pytest.approx(0.73, abs=0.005)


def test_people_read_d_the_wait_and_the_expected_locality():
    text = asked("--target", "0.95").stdout
    assert "D, chances to pass   23.1" in text
    assert "W1, the wait         0.578 s" in text


@pytest.mark.parametrize("arguments", [(), ("--target", "0.9", "--wait", "1"), ("--target", "1")])
def test_one_of_target_and_wait_is_needed_and_all_is_no_target(arguments):
    assert asked(*arguments).exit_code == 2
