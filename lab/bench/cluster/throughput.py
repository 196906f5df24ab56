"""What runs of the cluster benchmark say: medians over interleaved runs, ratios of medians, where the time goes.

Row ids carry the number of nodes: `throughput.5000` is ours, `throughput.stock.5000` the stock scheduler's.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from rich.table import Table

from lab.report.rows import Report, Row

SCHEDULER, CLIENT, OTHERS = "kube-scheduler", "client", "others"

_COLUMNS = {
    "etcd": "etcd",
    "kube-apiserver": "apiserver",
    "kube-controller-manager": "managers",
    SCHEDULER: "scheduler",
    "dovetail": "serve",
    "dovetail-control": "control",
    "kwok": "kwok",
    CLIENT: "client",
    OTHERS: "others",
}
"""The processes, by what they are called in the table."""

_CAPTION = (
    "created: seconds from the first create call until the last was answered; bound: until the last pod was bound; "
    "managers: kube-controller-manager; client: this benchmark, which creates the pods and watches; others: whatever "
    "else used the machine meanwhile"
)


@dataclass(frozen=True, slots=True)
class Contender:
    """A way to schedule; `settings` are Dovetail's, None where it is not asked."""

    name: str
    about: str
    settings: Mapping[str, Any] | None = None
    sampled: bool = True
    gated: bool = False

    def row_id(self, figure: str, nodes: int) -> str:
        """Return the id of one of its figures; Dovetail as it is shipped goes without a name."""
        return f"{figure}.{nodes}" if self.gated else f"{figure}.{self.name}.{nodes}"


STOCK = Contender("stock", "kube-scheduler, asked about a sample of the nodes")
STOCK_ALL = Contender("stock_all", "kube-scheduler, asked about all nodes", sampled=False)
_CHOOSES: Mapping[str, Any] = {"placement": {"chosenBy": "filter"}}
GATES = Contender("gates", "Dovetail: gates and nominations", {"order": "gates", **_CHOOSES}, sampled=False, gated=True)
FILTER = Contender("filter", "Dovetail: `order: filter`, no control, a sample", {"order": "filter", **_CHOOSES})
RANKED = Contender("ranked", "Dovetail: no order, kube-scheduler chooses by our ranking, a sample", {})
CHOSEN = Contender("chosen", "Dovetail: no order, `filter` chooses, a sample", _CHOOSES)
CONTENDERS = (STOCK, STOCK_ALL, GATES, FILTER, RANKED, CHOSEN)


@dataclass(frozen=True, slots=True)
class Run:
    """One contender's run: `seconds` from the first create call to the last bind, `created` to the last create's end.

    `cpu` is each process's CPU time within that, in seconds, by component; `quiet` says whether nothing else was being
    done by the control plane when it began.
    """

    contender: Contender
    nodes: int
    pods: int
    seconds: float
    created: float
    cpu: Mapping[str, float]
    on_nominated: int
    over_allocated: int
    quiet: bool = True

    @property
    def per_second(self) -> float:
        """Pods bound a second."""
        return self.pods / self.seconds

    def cpu_millis(self, component: str) -> float:
        """CPU milliseconds a pod of one process; 0 where it did not run."""
        return self.cpu.get(component, 0.0) * 1000 / self.pods


def report(runs: Sequence[Run]) -> Report:
    """Return the rows and a table for each size."""
    sizes = sorted({run.nodes for run in runs})
    by_size = [(nodes, [run for run in runs if run.nodes == nodes]) for nodes in sizes]
    rows = [row for nodes, there in by_size for row in _rows(nodes, there)]
    return Report(rows, [_table(nodes, there) for nodes, there in by_size])


def _rows(nodes: int, runs: Sequence[Run]) -> list[Row]:
    rows = []
    for contender in _contenders(runs):
        own = _of(contender, runs)
        rows.append(_median_row(contender.row_id("throughput", nodes), own, _rate, "pods/s"))
        rows.append(_median_row(contender.row_id("cpu_ms_per_pod", nodes), own, _scheduler_millis, "ms"))
        rows.append(_over_row(contender, nodes, own))
        rows += _process_rows(contender, nodes, own)
    pairs = [("ratio", ours, STOCK) for ours in (GATES, FILTER, RANKED, CHOSEN)] + [("vs_all", GATES, STOCK_ALL)]
    for figure, ours, other in pairs:
        if _of(ours, runs) and _of(other, runs):
            ratio = _median(_of(ours, runs), _rate) / _median(_of(other, runs), _rate)
            note = f"the medians: {ours.about}; over {other.about}"
            row_id = ours.row_id("throughput", nodes).replace(f".{nodes}", f".{figure}.{nodes}")
            rows.append(Row(row_id, round(ratio, 3), "times", note=note))
    if gated := _of(GATES, runs):
        note = "pods bound to the node that was nominated for them, of all runs"
        rows.append(Row(f"on_nominated_percent.{nodes}", round(_on_nominated(gated), 2), "%", note=note))
    return rows


def _median_row(row_id: str, runs: Sequence[Run], figure: Callable[[Run], float], unit: str) -> Row:
    note = f"{runs[0].contender.about}; median of {', '.join(f'{figure(run):.3g}' for run in runs)}"
    if loud := sum(not run.quiet for run in runs):
        note += f"; {loud} of the runs did not begin quiet"
    return Row(row_id, round(_median(runs, figure), 3), unit, note=note)


def _over_row(contender: Contender, nodes: int, runs: Sequence[Run]) -> Row:
    over = sum(run.over_allocated for run in runs)
    note = "(node, dimension) pairs, counted from the API server after each run"
    return Row(contender.row_id("over_allocated", nodes), over, "pairs", note=note)


def _process_rows(contender: Contender, nodes: int, runs: Sequence[Run]) -> list[Row]:
    """Return the CPU time a pod of every process that ran."""
    used = [(shown, name) for name, shown in _COLUMNS.items() if any(name in run.cpu for run in runs)]
    return [
        Row(contender.row_id(f"cpu_ms.{shown}", nodes), round(_median(runs, _millis_of(name)), 3), "ms a pod")
        for shown, name in used
    ]


def _table(nodes: int, runs: Sequence[Run]) -> Table:
    table = Table(title=f"{nodes:,} nodes, {runs[0].pods:,} pods: CPU milliseconds a pod (medians)")
    table.add_column("", no_wrap=True)
    for heading in ("pods/s", "created", "bound", *_COLUMNS.values()):
        table.add_column(heading, justify="right")
    for contender in _contenders(runs):
        own = _of(contender, runs)
        times = [f"{_median(own, lambda run: run.created):.2f}", f"{_median(own, lambda run: run.seconds):.2f}"]
        ran = [any(name in run.cpu for run in own) for name in _COLUMNS]
        millis = [f"{_median(own, _millis_of(name)):.2f}" for name in _COLUMNS]
        shown = [text if there else "" for text, there in zip(millis, ran, strict=True)]
        table.add_row(contender.name, f"{_median(own, _rate):.1f}", *times, *shown)
    table.caption = "; ".join(
        [_outcome(runs), *(f"{contender.name}: {contender.about}" for contender in _contenders(runs)), _CAPTION]
    )
    return table


def _outcome(runs: Sequence[Run]) -> str:
    over = ", ".join(
        f"{contender.name} {sum(run.over_allocated for run in _of(contender, runs))}" for contender in _contenders(runs)
    )
    nominated = (
        [f"on the nominated node: {_on_nominated(ours):.1f} % of the pods"] if (ours := _of(GATES, runs)) else []
    )
    return "; ".join([*nominated, f"over-allocated (node, dimension) pairs: {over}"])


def _on_nominated(runs: Sequence[Run]) -> float:
    """Return how many of the pods of all runs are on the node that was nominated for them, in percent."""
    return 100 * sum(run.on_nominated for run in runs) / sum(run.pods for run in runs)


def _contenders(runs: Sequence[Run]) -> list[Contender]:
    return [contender for contender in CONTENDERS if _of(contender, runs)]


def _of(contender: Contender, runs: Sequence[Run]) -> list[Run]:
    return [run for run in runs if run.contender is contender]


def _median(runs: Sequence[Run], figure: Callable[[Run], float]) -> float:
    return float(median(figure(run) for run in runs))


def _rate(run: Run) -> float:
    return run.per_second


def _scheduler_millis(run: Run) -> float:
    return run.cpu_millis(SCHEDULER)


def _millis_of(name: str) -> Callable[[Run], float]:
    return lambda run: run.cpu_millis(name)
