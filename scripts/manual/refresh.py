"""Runs the examples of all pages, draws the pictures and writes data/ again: scripts/docs --refresh."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from scripts.manual import pictures, recording, screens, wire_figures
from scripts.manual.data_files import write_data_files
from scripts.manual.notes import DOCS, TOP
from scripts.manual.stub import write_stub
from scripts.manual.transcripts import comparable, has_examples, pages, refreshed

PROGRAM = Path(sys.executable).parent
"""The directory of the rdc of this checkout."""

PICTURES: dict[str, Callable[[], str]] = {
    "cuts.svg": pictures.cuts,
    "tree.svg": pictures.tree,
    "descent.svg": pictures.descent,
    "wire.svg": wire_figures.wire_chart,
    "terminal.svg": lambda: recording.drawn(recording.recorded(PROGRAM)),
}
"""The pictures that are drawn here, in docs/pictures."""


def main() -> None:
    """Write what differs in more than figures."""
    for name in write_data_files():
        print("written", f"data/{name}")
    write_stub()
    for path in pages():
        page = path.read_text()
        if has_examples(page):
            now = refreshed(page, PROGRAM)
            if now != page:
                path.write_text(now)
                print("refreshed", path.relative_to(TOP))
    drawn = {name: draw() for name, draw in PICTURES.items()}
    of_screens = screens.screens(PROGRAM) | screens.moments(PROGRAM)
    drawn |= {f"screens/{name}": text for name, text in of_screens.items()}
    (DOCS / "pictures" / "screens").mkdir(exist_ok=True)
    for name, now in drawn.items():
        path = DOCS / "pictures" / name
        if not path.exists() or comparable(path.read_text()) != comparable(now):
            path.write_text(now)
            print("drawn", path.relative_to(TOP))
    # No two builds of a browser draw the same bytes, so a picture of a page is drawn again if it is removed.
    if not list((DOCS / "pictures" / "screens").glob("*-page-*.png")):
        screens.pages(PROGRAM, DOCS / "pictures" / "screens")


if __name__ == "__main__":
    main()
