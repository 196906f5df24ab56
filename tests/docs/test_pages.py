"""What the documentation says is what the code says: generated pages, names, paths and links."""

import re
from pathlib import Path

import msgspec
import pytest
import yaml

from docs.generate.__main__ import WRITERS
from extender.adapters.kube.objects import PodAnnotations
from extender.cluster.model import HOLD_GATE
from extender.cluster.pods import identity
from extender.control.backlog.backlog import PodPhase
from extender.explain.wait_reasons import KINDS
from extender.settings import parse
from tests.service.control.scene import Scene, node, pod

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
OUTSIDE = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]
NAVIGATION = (ROOT / "mkdocs.yml").read_text()

LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
OUR_NAME = re.compile(r"dovetail\.dev/[a-z-]*[a-z]")
NAME = re.compile(r'"((?:[a-z0-9-]+\.)+[a-z0-9-]+/[a-z-]+)"')
CODE_PATH = re.compile(r"`((?:extender|lab|tests|charts)/[\w/.-]+?)/?`")


def text_of(path):
    return (DOCS / path).read_text()


@pytest.mark.parametrize("path", WRITERS)
def test_a_generated_page_is_what_the_code_would_write(path):
    assert text_of(path) == WRITERS[path](), "run `python -m docs.generate`"


@pytest.mark.parametrize("by_filter", [False, True], ids=["gates", "auto-and-filter"])
def test_an_alert_fires_where_kube_scheduler_refuses_pods_that_would_fit(by_filter):
    scene = Scene(node("n1"), by_filter=by_filter)
    scene.see(pod("refused", gates=(), unschedulable=True), pod("like-it", gates=() if by_filter else (HOLD_GATE,)))
    ungated = {found.uid for found in scene.backlog.at(PodPhase.UNGATED)}
    counted = {("ungated" if uid in ungated else "held", reason.kind) for uid, reason in scene.view().why.items()}
    alerts = re.findall(r'expr: dovetail_(held|ungated)_pods\{reason="([a-z-]+)"\} > 0', text_of("guide/monitoring.md"))
    assert counted & set(alerts)


def test_the_readme_has_at_most_a_thousand_words():
    assert len((ROOT / "README.md").read_text().split()) <= 1000


def test_the_readme_shows_one_picture_and_names_its_source():
    readme = (ROOT / "README.md").read_text()

    assert re.findall(r"!\[[^]]*\]\(([^)]+)\)", readme) == ["docs/img/two-panels.svg"]
    assert "*Source: `dovetail experiment cluster`" in readme


@pytest.mark.parametrize("page", OUTSIDE, ids=lambda page: page.name)
def test_links_outside_the_site_lead_to_files(page):
    links = [link for link in LINK.findall(page.read_text()) if not link.startswith("http")]

    assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_page_stands_in_the_navigation():
    assert [str(page.relative_to(DOCS)) for page in PAGES if str(page.relative_to(DOCS)) not in NAVIGATION] == []


@pytest.mark.parametrize(
    "page",
    [
        page for page in (*PAGES, *OUTSIDE) if not page.name.startswith("add-a-")
    ],  # these have files that the reader makes
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_a_page_names_files_that_are_there(page):
    named = {path for path in CODE_PATH.findall(page.read_text()) if "*" not in path and "{" not in path}

    assert sorted(path for path in named if not (ROOT / path).exists()) == []


def test_pages_that_the_code_names_are_there():
    rooms = ("extender", "lab", "charts", "manifests", "tests")
    files = [
        path for room in rooms for path in (ROOT / room).rglob("*") if path.suffix in (".py", ".yaml", ".tpl", ".txt")
    ]
    named = {
        (str(path.relative_to(ROOT)), page)
        for path in [*files, ROOT / "Makefile", ROOT / "pyproject.toml", ROOT / "Dockerfile"]
        for page in re.findall(r"\bdocs/[\w/-]+\.md\b", path.read_text())
    }

    assert sorted((path, page) for path, page in named if not (ROOT / page).exists()) == []


def test_the_page_of_labels_has_every_name_of_ours():
    sources = [
        *(ROOT / "extender").rglob("*.py"),
        *(ROOT / "charts").rglob("*.yaml"),
        *(ROOT / "charts").rglob("*.tpl"),
    ]
    used = {name for source in sources for name in OUR_NAME.findall(source.read_text())} - {"dovetail.dev/v"}

    assert set(OUR_NAME.findall(text_of("reference/annotations-and-labels.md"))) - {"dovetail.dev/v"} == used


def test_the_page_of_labels_has_every_name_of_others_in_the_order_of_the_code():
    page = text_of("reference/annotations-and-labels.md")
    source = Path(identity.__file__).read_text()
    names = [name for name in dict.fromkeys(NAME.findall(source)) if not name.startswith("dovetail.dev/")]
    annotations = [field.encode_name for field in msgspec.structs.fields(PodAnnotations)]
    starred = set(re.findall(r"`([^`]+)`\\\*", page))

    assert [name for name in names if f"`{name}`" not in page] == []
    assert starred == {name for name in annotations if not name.startswith("dovetail.dev/")}


def test_the_page_of_metrics_has_every_metric():
    sources = [path.read_text() for path in (ROOT / "extender/adapters/metrics").glob("*.py")]
    page = text_of("reference/metrics.md")

    names = {name for source in sources for name in re.findall(r'"(dovetail_\w+)"', source)}
    assert [name for name in names if f"`{name}`" not in page and f"`{name}_total`" not in page] == []


def test_the_page_of_explain_has_every_kind_of_reason():
    table = text_of("guide/explain.md").partition("## Why a pod waits\n")[2].partition("\n## ")[0]

    assert set(re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE)) == set(KINDS)


def test_the_first_pod_of_the_guide_is_the_file_that_it_applies():
    assert f"```yaml\n{text_of('guide/pod.yaml')}```" in text_of("guide/pods.md")


@pytest.mark.parametrize("page", ["guide/queues.md", "guide/locality.md", "guide/pods.md", "guide/order-by-filter.md"])
def test_settings_that_the_guide_shows_are_accepted(page):
    shown = re.findall(
        r"^```yaml\n((?:queues|locality|cluster|order):.*?)^```$", text_of(page), re.MULTILINE | re.DOTALL
    )

    assert shown
    for block in shown:
        parse({"apiVersion": "dovetail.dev/v1alpha1", "kind": "DovetailConfiguration", **yaml.safe_load(block)})


def test_commands_for_the_playground_are_one_line_each():
    blocks = [
        block
        for page in (DOCS / "guide").glob("*.md")
        for block in re.findall(r"<!-- playground -->\n```console\n(.*?)```", page.read_text(), re.DOTALL)
    ]

    assert blocks
    assert all(line.startswith("$ ") for block in blocks for line in block.splitlines())


def test_the_page_of_the_chart_has_every_value_at_the_top():
    page = text_of("reference/helm-values.md")
    values = yaml.safe_load((ROOT / "charts" / "dovetail" / "values.yaml").read_text())

    assert [key for key in values if f"`{key}`" not in page and f"`{key}." not in page] == []


def test_the_page_of_the_chart_says_the_numbers_that_are_its_defaults():
    values = yaml.safe_load((ROOT / "charts" / "dovetail" / "values.yaml").read_text())
    told = re.findall(r"^\| `([\w.]+)` \| `?(\d+)`? \|", text_of("reference/helm-values.md"), re.MULTILINE)

    assert ("kubeScheduler.percentageOfNodesToScore", "2") in told
    assert [key for key, number in told if str(value_at(values, key)) != number] == []


def value_at(values, key):
    for part in key.split("."):
        values = values[part]
    return values
