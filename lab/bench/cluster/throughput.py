"""What runs of the cluster benchmark say: medians over interleaved runs, ratios within a round, where the time goes.

Row ids carry the number of nodes: `throughput.5000` is ours, `throughput.stock.5000` the stock scheduler's.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from rich.table import Table

from lab.bench.cluster.contenders import (
    AUTO,
    CHOSEN,
    CONTENDERS,
    FILTER,
    GATES,
    RANKED,
    STOCK,
    STOCK_ALL,
    BenchContender,
)
from lab.bench.cluster.latency import WAYS
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
class ThroughputRun:
    """One contender's run: `seconds` from the first create call to the last bind, `created` to the last create's end.

    `cpu` is each process's CPU time within that, in seconds, by component; `quiet` says whether nothing else was being
    done by the control plane when it began. `writes` counts what the API server answered meanwhile of pods and events,
    by what it is; `latency` is the mean from creation to binding in seconds, by how the pods came (`latency`).
    """

    contender: BenchContender
    nodes: int
    pods: int
    seconds: float
    created: float
    cpu: Mapping[str, float]
    off_nominated: int
    over_allocated: int
    quiet: bool = True
    writes: Mapping[str, int] = field(default_factory=dict)
    latency: Mapping[str, float] = field(default_factory=dict)

    @property
    def per_second(self) -> float:
        """Pods bound a second."""
        return self.pods / self.seconds

    def cpu_millis(self, component: str) -> float:
        """CPU milliseconds a pod of one process; 0 where it did not run."""
        return self.cpu.get(component, 0.0) * 1000 / self.pods


def report(runs: Sequence[ThroughputRun]) -> Report:
    """Return the rows and a table for each size."""
    sizes = sorted({run.nodes for run in runs})
    by_size = [(nodes, [run for run in runs if run.nodes == nodes]) for nodes in sizes]
    rows = [row for nodes, there in by_size for row in _rows(nodes, there)] + _latency_rows(runs)
    return Report(rows, [*(_table(nodes, there) for nodes, there in by_size), *_latency_tables(runs)])


def _rows(nodes: int, runs: Sequence[ThroughputRun]) -> list[Row]:
    rows = []
    for contender in _contenders(runs):
        own = _of(contender, runs)
        rows.append(_median_row(contender.row_id("throughput", nodes), own, _rate, "pods/s"))
        rows.append(_median_row(contender.row_id("cpu_ms_per_pod", nodes), own, _scheduler_millis, "ms"))
        rows.append(_over_row(contender, nodes, own))
        rows += _process_rows(contender, nodes, own)
        rows.append(_writes_row(contender, nodes, own))
    pairs = [("ratio", ours, STOCK) for ours in (AUTO, GATES, FILTER, RANKED, CHOSEN)] + [("vs_all", GATES, STOCK_ALL)]
    for figure, ours, other in pairs:
        if _of(ours, runs) and _of(other, runs):
            # Of one round: what a machine does differs by a fifth within minutes, and less within the same one.
            ratios = [
                _rate(run) / _rate(beside) for run, beside in zip(_of(ours, runs), _of(other, runs), strict=False)
            ]
            note = f"{ours.about}; over {other.about}; median of the rounds' {_shown(ratios)}"
            row_id = ours.row_id("throughput", nodes).replace(f".{nodes}", f".{figure}.{nodes}")
            rows.append(Row(row_id, round(median(ratios), 3), "times", note=note))
    if gated := _of(GATES, runs):
        note = "pods bound to another node than the one that was nominated for them, of all runs"
        rows.append(Row(f"off_nominated.{nodes}", _off_nominated(gated), "pods", note=note))
    return rows


def _median_row(row_id: str, runs: Sequence[ThroughputRun], figure: Callable[[ThroughputRun], float], unit: str) -> Row:
    note = f"{runs[0].contender.about}; median of {_shown([figure(run) for run in runs])}"
    if loud := sum(not run.quiet for run in runs):
        note += f"; {loud} of the runs did not begin quiet"
    return Row(row_id, round(_median(runs, figure), 3), unit, note=note)


def _over_row(contender: BenchContender, nodes: int, runs: Sequence[ThroughputRun]) -> Row:
    over = sum(run.over_allocated for run in runs)
    note = "(node, dimension) pairs, counted from the API server after each run"
    return Row(contender.row_id("over_allocated", nodes), over, "pairs", note=note)


def _process_rows(contender: BenchContender, nodes: int, runs: Sequence[ThroughputRun]) -> list[Row]:
    """Return the CPU time a pod of every process that ran."""
    used = [(shown, name) for name, shown in _COLUMNS.items() if any(name in run.cpu for run in runs)]
    return [
        Row(contender.row_id(f"cpu_ms.{shown}", nodes), round(_median(runs, _millis_of(name)), 3), "ms a pod")
        for shown, name in used
    ]


def _writes_row(contender: BenchContender, nodes: int, runs: Sequence[ThroughputRun]) -> Row:
    """Return the writes a pod, by whomever: its creation is one of them."""
    counted = sum((Counter(run.writes) for run in runs), Counter[str]())
    pods = sum(run.pods for run in runs)
    parts = ", ".join(f"{what} {count / pods:.2f}" for what, count in counted.most_common() if count >= pods / 50)
    note = f"by the API server's count, of pods and their events: {parts or 'none'}"
    return Row(contender.row_id("writes_per_pod", nodes), round(counted.total() / pods, 2), "writes", note=note)


def _latency_rows(runs: Sequence[ThroughputRun]) -> list[Row]:
    """Return how long pods take from creation to binding; for ours, over the stock scheduler, the worst of all."""
    rows = []
    for contender in _contenders(runs):
        worst = 0.0
        for nodes, way in sorted({(run.nodes, way) for run in _of(contender, runs) for way in run.latency}):
            taken = _latencies(contender, nodes, way, runs)
            note = f"{contender.about}; creation to binding, mean, {WAYS[way]}; median of {_shown(taken)}"
            rows.append(Row(f"latency.{contender.name}.{way}.{nodes}", round(median(taken), 4), "s", note=note))
            if contender is not STOCK and (stock := _latencies(STOCK, nodes, way, runs)):
                ratio = median(taken) / median(stock)
                rows.append(Row(f"latency.{contender.name}.{way}_vs_stock.{nodes}", round(ratio, 3), "times"))
                worst = max(worst, ratio)
        if worst:
            note = "the largest of the ratios above, over ways and sizes"
            rows.append(Row(f"latency.{contender.name}.mean_vs_stock", round(worst, 3), "times", note=note))
    return rows


def _latency_tables(runs: Sequence[ThroughputRun]) -> list[Table]:
    """Return one table of how long pods take, empty where that was not measured."""
    cases = sorted({(run.nodes, way) for run in runs for way in run.latency})
    if not cases:
        return []
    table = Table(title="Seconds from creation to binding (medians of means), and how many times the stock scheduler's")
    table.add_column("", no_wrap=True)
    for nodes, way in cases:
        table.add_column(f"{nodes:,} nodes, {WAYS[way]}", justify="right")
    for contender in _contenders([run for run in runs if run.latency]):
        table.add_row(contender.name, *(_latency_cell(contender, nodes, way, runs) for nodes, way in cases))
    return [table]


def _latency_cell(contender: BenchContender, nodes: int, way: str, runs: Sequence[ThroughputRun]) -> str:
    taken, stock = (_latencies(one, nodes, way, runs) for one in (contender, STOCK))
    if not taken:
        return ""
    ratio = f" ({median(taken) / median(stock):.2f})" if stock and contender is not STOCK else ""
    return f"{median(taken):.2f}{ratio}"


def _latencies(contender: BenchContender, nodes: int, way: str, runs: Sequence[ThroughputRun]) -> list[float]:
    return [run.latency[way] for run in _of(contender, runs) if run.nodes == nodes and way in run.latency]


def _shown(figures: Sequence[float]) -> str:
    return ", ".join(f"{figure:.3g}" for figure in figures)


def _table(nodes: int, runs: Sequence[ThroughputRun]) -> Table:
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


def _outcome(runs: Sequence[ThroughputRun]) -> str:
    over = ", ".join(
        f"{contender.name} {sum(run.over_allocated for run in _of(contender, runs))}" for contender in _contenders(runs)
    )
    ours = _of(GATES, runs)
    nominated = [f"bound elsewhere than nominated: {_off_nominated(ours)} pods"] if ours else []
    return "; ".join([*nominated, f"over-allocated (node, dimension) pairs: {over}"])


def _off_nominated(runs: Sequence[ThroughputRun]) -> int:
    return sum(run.off_nominated for run in runs)


def _contenders(runs: Sequence[ThroughputRun]) -> list[BenchContender]:
    return [contender for contender in CONTENDERS if _of(contender, runs)]


def _of(contender: BenchContender, runs: Sequence[ThroughputRun]) -> list[ThroughputRun]:
    return [run for run in runs if run.contender is contender]


def _median(runs: Sequence[ThroughputRun], figure: Callable[[ThroughputRun], float]) -> float:
    return float(median(figure(run) for run in runs))


def _rate(run: ThroughputRun) -> float:
    return run.per_second


def _scheduler_millis(run: ThroughputRun) -> float:
    return run.cpu_millis(SCHEDULER)


def _millis_of(name: str) -> Callable[[ThroughputRun], float]:
    return lambda run: run.cpu_millis(name)
