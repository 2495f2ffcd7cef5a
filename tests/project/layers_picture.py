"""Draws the layers of rdc and the rooms of its packages as text, from the tables that the tests check.

rdc/ARCHITECTURE.md holds the drawing. This command puts the present one into it:

    .venv/bin/python -m tests.project.layers_picture
"""

from __future__ import annotations

from tests.project.test_layers import LAYERS, ROOMS
from tests.support.project_paths import TOP

ARCHITECTURE = TOP / "rdc" / "ARCHITECTURE.md"

BEGIN, END = "<!-- drawn by tests/project/layers_picture.py -->\n", "<!-- end of the drawing -->"


def layers_drawing() -> list[str]:
    """One row a layer, the highest on top."""
    rows = [f"{number:>2}  {'   '.join(names)}" for number, names in reversed(list(enumerate(LAYERS)))]
    width = max(map(len, rows))
    border = f"+{'-' * (width + 2)}+"
    return [border, *(f"| {row:<{width}} |" for row in rows), border]


def room_name(name: str) -> str:
    return name or "(other modules)"


def rooms_drawing() -> list[str]:
    """One line a package, its highest rooms first."""
    width = max(map(len, ROOMS))
    return [
        f"{package:<{width}}  {' > '.join(', '.join(map(room_name, names)) for names in reversed(ranks))}"
        for package, ranks in ROOMS.items()
    ]


def picture() -> str:
    """Both drawings as a block of Markdown."""
    rows = [*layers_drawing(), "", *rooms_drawing()]
    return "".join(f"    {row}".rstrip() + "\n" for row in rows)


def with_picture(text: str) -> str:
    """The document with the present picture between its marks."""
    before, _, rest = text.partition(BEGIN)
    _, mark, after = rest.partition(END)
    assert mark, "the document has no place for the drawing"
    return f"{before}{BEGIN}\n{picture()}\n{END}{after}"


def main() -> None:
    ARCHITECTURE.write_text(with_picture(ARCHITECTURE.read_text()))


if __name__ == "__main__":
    main()
