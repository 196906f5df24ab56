"""One HTML file that loads nothing: parts of a page, and the page."""

import html
from collections.abc import Iterable, Sequence

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; color: #222; background: #fff; }}
body {{ max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
th, td {{ padding: .2rem 1rem .2rem 0; text-align: right; border-bottom: 1px solid #e6e6e6; }}
th:first-child, td:first-child, .text {{ text-align: left; }}
.wide {{ overflow-x: auto; }}
.note {{ color: #555; font-size: .9em; }}
svg {{ width: 100%; height: auto; }}
figure {{ margin: 0; }}
</style>
</head>
<body>
{body}
</body>
</html>
"""


def page(title: str, parts: Iterable[str]) -> str:
    """Return one HTML document of these parts, each made by a function of this module."""
    return _PAGE.format(title=html.escape(title), body="\n".join(parts))


def heading(text: str, level: int = 1) -> str:
    """Return a heading; level 1 is the page's own."""
    return f"<h{level}>{html.escape(text)}</h{level}>"


def paragraph(text: str, *, note: bool = False) -> str:
    """Return a paragraph; a note is smaller."""
    opening = '<p class="note">' if note else "<p>"
    return f"{opening}{html.escape(text)}</p>"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, text: Sequence[int] = ()) -> str:
    """Return a table; columns are numbers, to the right, but the first and those in `text`."""
    head = _line("th", heads, text)
    body = "\n".join(_line("td", row, text) for row in rows)
    return f'<div class="wide"><table>\n<thead>{head}</thead>\n<tbody>\n{body}\n</tbody>\n</table></div>'


def figure(title: str, svg: str, note: str = "", *, level: int = 2) -> str:
    """Return a plot (an SVG element) under its title, with a note on how to read it."""
    escaped = html.escape(title)
    drawn = f'<h{level}>{escaped}</h{level}>\n<figure role="img" aria-label="{escaped}">{svg}</figure>'
    return f"{drawn}\n{paragraph(note, note=True)}" if note else drawn


def _line(cell: str, texts: Sequence[str], left: Sequence[int]) -> str:
    left_opening = f'<{cell} class="text">'
    cells = (
        f"{left_opening if number in left else f'<{cell}>'}{html.escape(text)}</{cell}>"
        for number, text in enumerate(texts)
    )
    return f"<tr>{''.join(cells)}</tr>"
