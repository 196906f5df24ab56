"""The picture of the README: two panels, drawn from the figures in docs/results/."""

from collections.abc import Iterable

_WIDTH, _HEIGHT = 960, 400
_TOP, _BOTTOM = 76, 300
_STOCK, _DOVETAIL, _INK, _GRID = "#c8553d", "#1f6fb2", "#222222", "#dddddd"

SECONDS = (
    ("makespan", "seed 1", 469, 378),
    ("makespan", "seed 2", 489, 364),
    ("mean job time", "seed 1", 305, 196),
    ("mean job time", "seed 2", 323, 187),
)
"""What, which seed, stock, Dovetail: docs/results/cluster.md."""

SHARES = (
    ("research", "weight 3", 29, 44, 50),
    ("analytics", "weight 2", 30, 34, 33),
    ("reports", "weight 1", 41, 22, 17),
)
"""Queue, weight, percent by the stock scheduler, by Dovetail, and fair: docs/results/demo.md."""


def picture() -> str:
    """Return the SVG."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" font-family="sans-serif" '
        f'font-size="13" fill="{_INK}">',
        "<title>Jobs end sooner, and queues come nearer to their shares</title>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        *_left(),
        *_right(),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _left() -> Iterable[str]:
    yield from _panel(60, "Jobs end sooner", "seconds, less is better", (0, 100, 200, 300, 400, 500), 500, "")
    for number, (what, seed, stock, dovetail) in enumerate(SECONDS):
        x = 72 + number * 101
        yield _bar(x, stock, 500, _STOCK, str(stock))
        yield _bar(x + 38, dovetail, 500, _DOVETAIL, str(dovetail))
        yield _text(x + 36, _BOTTOM + 20, what)
        yield _text(x + 36, _BOTTOM + 37, seed)
    yield from _legend(270)
    yield from _source(
        60,
        "some 2,000 tasks on 100 simulated nodes, a real control plane",
        "dovetail experiment cluster, seeds 1 and 2",
    )


def _right() -> Iterable[str]:
    yield from _panel(560, "Queues come nearer to their shares", "of what all queues hold", (0, 20, 40, 60), 60, " %")
    for number, (queue, weight, stock, dovetail, fair) in enumerate(SHARES):
        x = 578 + number * 116
        yield _bar(x, stock, 60, _STOCK, f"{stock} %")
        yield _bar(x + 42, dovetail, 60, _DOVETAIL, f"{dovetail} %")
        y = _y(fair, 60)
        yield _dashes(x - 6, x + 84, y)
        yield _text(x + 38, _BOTTOM + 20, queue)
        yield _text(x + 38, _BOTTOM + 37, weight)
    yield from _source(560, "mean while pods of every queue waited", "dovetail demo, one run")
    yield _dashes(738, 762, 62)
    yield '<text x="767" y="66" font-size="12">fair share, by weight</text>'
    yield from _legend(738)


def _panel(x: int, title: str, unit: str, ticks: Iterable[int], top: int, suffix: str) -> Iterable[str]:
    yield f'<text x="{x}" y="26" font-size="18" font-weight="bold">{title}</text>'
    yield f'<text x="{x}" y="46">{unit}</text>'
    for tick in ticks:
        y = _y(tick, top)
        yield f'<line x1="{x}" x2="{x + 400 if x < 500 else x + 360}" y1="{y:.1f}" y2="{y:.1f}" stroke="{_GRID}"/>'
        yield f'<text x="{x - 6}" y="{y + 4:.1f}" text-anchor="end">{tick}{suffix}</text>'


def _bar(x: int, value: float, top: int, colour: str, label: str) -> str:
    y = _y(value, top)
    return (
        f'<rect x="{x}" y="{y:.1f}" width="34" height="{_BOTTOM - y:.1f}" fill="{colour}"/>'
        f'<text x="{x + 17}" y="{y + 16:.1f}" text-anchor="middle" font-size="11" fill="#ffffff">{label}</text>'
    )


def _text(x: int, y: int, text: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="middle">{text}</text>'


def _source(x: int, *lines: str) -> Iterable[str]:
    for number, line in enumerate(lines):
        yield f'<text x="{x}" y="{_BOTTOM + 62 + 17 * number}" font-size="12" fill="#666666">{line}</text>'


def _dashes(x1: int, x2: int, y: float) -> str:
    line = f'<line x1="{x1}" x2="{x2}" y1="{y:.1f}" y2="{y:.1f}"'
    return f'{line} stroke="{_INK}" stroke-width="2" stroke-dasharray="5 4"/>'


def _legend(x: int) -> Iterable[str]:
    for left, colour, name in ((x, _STOCK, "stock scheduler"), (x + 118, _DOVETAIL, "Dovetail")):
        yield f'<rect x="{left}" y="36" width="11" height="11" fill="{colour}"/>'
        yield f'<text x="{left + 15}" y="46" font-size="12">{name}</text>'


def _y(value: float, top: int) -> float:
    """Return the height on the page of a value on an axis from 0 to `top`."""
    return _BOTTOM - (_BOTTOM - _TOP) * value / top
