"""What people get to see: the table on the terminal, and one HTML file that loads nothing."""

import html
from collections.abc import Mapping, Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from extender.demo.rows import Row

_HEADS = ("", "stock scheduler", "Dovetail", "change")

MEASURE = (
    "* mean over the time until the last pod started. A resource is used as far as pods make progress with it; memory "
    "as long as they hold it."
)
SHARING = (
    "KWOK's nodes are simulated, so both runs share the same machine room: pods that over-allocate a node's disk or "
    "network share it in proportion to demand, run that much slower, and end when their work is done (Tetris, "
    "equation 5). That contention also wastes capacity is left out, in favour of who over-allocates."
)
EQUAL = (
    "Both runs: a fresh control plane, the same nodes, the same pods submitted in the same order, and 500 requests a "
    "second for kube-scheduler's client (its default of 50 would limit both). All else is Kubernetes' default in the "
    "one, and what Dovetail's chart ships in the other."
)

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Dovetail: the demo's report</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; color: #222; background: #fff; }}
body {{ max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
th, td {{ padding: .2rem 1rem .2rem 0; text-align: right; border-bottom: 1px solid #e6e6e6; }}
th:first-child, td:first-child {{ text-align: left; }}
svg {{ width: 100%; height: auto; }}
figure {{ margin: 0; }}
</style>
</head>
<body>
<h1>The same workload, twice</h1>
<p>{about}</p>
<table>
<thead><tr>{heads}</tr></thead>
<tbody>
{rows}
</tbody>
</table>
<p>{measure}</p>
<p>{slowed}</p>
<p>{sharing}</p>
<p>{equal}</p>
{plots}
</body>
</html>
"""


def slowed(stock: float, dovetail: float) -> str:
    """Return the sentence that says what sharing did to pods; takes the mean slow-down of each run."""
    return (
        f"Without that slow-down every pod would run as long under both. With it, the stock scheduler's pods ran "
        f"{stock:.2f} times as long as their work needs (mean), Dovetail's {dovetail:.2f} times."
    )


def table(console: Console, rows: Sequence[Row]) -> None:
    """Print the rows side by side."""
    made = Table(*_HEADS, box=box.SIMPLE_HEAD)
    for column in made.columns[1:]:
        column.justify = "right"
    for row in rows:
        made.add_row(*row.shown())
    console.print(made)


def page(about: str, rows: Sequence[Row], slowed: str, plots: Mapping[str, str]) -> str:
    """Return the report as one HTML document; `plots` are SVG elements by title."""
    drawn = [
        f'<h2>{html.escape(title)}</h2>\n<figure role="img" aria-label="{html.escape(title)}">{svg}</figure>'
        for title, svg in plots.items()
    ]
    return _PAGE.format(
        about=html.escape(about),
        heads="".join(f"<th>{html.escape(head)}</th>" for head in _HEADS),
        rows="\n".join(_html_row(row) for row in rows),
        measure=html.escape(MEASURE),
        slowed=html.escape(slowed),
        sharing=html.escape(SHARING),
        equal=html.escape(EQUAL),
        plots="\n".join(drawn),
    )


def _html_row(row: Row) -> str:
    return "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row.shown()) + "</tr>"
