"""Write every generated page and the picture of the README."""

from pathlib import Path

from docs.generate.metrics import metrics_page
from docs.generate.picture import picture
from docs.generate.settings import settings_page

DOCS = Path(__file__).parents[1]

WRITERS = {
    "reference/settings.md": settings_page,
    "reference/metrics.md": metrics_page,
    "img/two-panels.svg": picture,
}
"""Path below docs/ -> the function that returns its text."""


def main() -> None:
    """Write each page."""
    for path, write in WRITERS.items():
        (DOCS / path).write_text(write())


if __name__ == "__main__":
    main()
