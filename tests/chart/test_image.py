"""The Dockerfile and the lock files, as far as they can be checked without a container engine."""

import re

import pytest

from charts.render import ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text()
LOCK = (ROOT / "requirements-dev.lock").read_text()


def test_the_build_installs_hatchling_and_all_that_it_needs():
    (names,) = re.findall(r"keep = /\^\(([^)]*)\)==/", DOCKERFILE)
    blocks = re.split(r"^(?=[a-z])", LOCK, flags=re.MULTILINE)
    needed = {
        block.partition("==")[0]
        for block in blocks
        if block.startswith("hatchling==") or re.search(r"^    #( via)? +hatchling$", block, re.MULTILINE)
    }

    assert set(names.split("|")) == needed


def test_the_build_context_holds_what_is_copied_and_no_more():
    copied = [word for line in re.findall(r"^COPY (?!--)(.*)$", DOCKERFILE, re.MULTILINE) for word in line.split()[:-1]]
    ignored = (ROOT / ".dockerignore").read_text()

    assert sorted(re.findall(r"^!(.*)$", ignored, re.MULTILINE)) == sorted(copied)
    assert all((ROOT / word).exists() for word in copied)


def test_the_image_runs_serve_as_a_numbered_user_that_is_not_root():
    last_stage = DOCKERFILE.rpartition("FROM ")[2]

    assert re.search(r"^USER 65532:65532$", last_stage, re.MULTILINE)
    assert 'ENTRYPOINT ["dovetail"]' in last_stage
    assert 'CMD ["serve"]' in last_stage


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock"])
def test_a_package_has_the_same_version_on_every_python(name):
    packages = re.findall(r"^([a-z][\w.-]*)==", (ROOT / name).read_text(), re.MULTILINE)

    assert packages == sorted(set(packages))
