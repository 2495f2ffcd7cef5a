"""The table and the chart of bytes on the wire, from fixtures/bench/wire.json."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from scripts.manual.notes import TOP
from scripts.manual.svg import BLUE, GREY, Drawing


@cache
def wire() -> dict[str, Any]:
    """Return the measurement, with its date, machine, commit and command."""
    found: dict[str, Any] = json.loads((TOP / "fixtures" / "bench" / "wire.json").read_text())
    return found


def wire_table() -> str:
    """All pairs."""
    lines = [
        "| pair | mtimes | `rsync -a -z` | rdc | part | round trips | CPU, s: rsync, rdc | of which far |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for row in wire()["rows"]:
        part = row["rdc"] / row["rsync"]
        lines.append(
            f"| {row['pair']} | {row['mtimes']} | {row['rsync']:,} | {row['rdc']:,} | {part:.3f} |"
            f" {row['trips']} | {row['cpu_rsync']:.2f}, {row['cpu_rdc']:.2f} |"
            f" {row['far_rsync']:.2f}, {row['far_rdc']:.2f} |"
        )
    return "\n".join(lines)


SHOWN = {
    "Django 4.2.2 to 4.2.16": "Django, 14 releases later",
    "TypeScript 5.9.2 to 5.9.3": "TypeScript, next release",
    "MUI icons, 43,000 files": "43,000 icons, next release",
    "Linux 6.1.190 to 6.1.192": "Linux, 2 releases later",
    "a SQLite file, 1 % of its rows": "SQLite file, 1 % of rows",
    "a disk image (ext4), some files of it replaced": "disk image, files replaced",
    "an OpenCV wheel whose libraries were renamed": "OpenCV, libraries renamed",
    "LibreOffice's libraries, built anew": "LibreOffice, rebuilt",
}
"""The pairs of the chart, with short names: the best and the worst are among them."""


def wire_chart() -> str:
    """Draw the bytes of rdc in percent of those of rsync -a -z, pair by pair."""
    rows = [row for row in wire()["rows"] if row["pair"] in SHOWN and row["mtimes"] == "kept"]
    left, width, top = 190, 430, 62
    drawing = Drawing(740, top + 24 * len(rows) + 34, "Bytes on the wire, rdc in percent of rsync -a -z")
    drawing.text(14, 24, "Bytes on the wire to update a copy, in percent of rsync -a -z", size=15)
    drawing.text(
        14,
        44,
        "shorter is better; the grey bar is rsync; on the right, the bytes that rdc sent",
        size=11,
        fill="#666666",
    )
    for number, row in enumerate(rows):
        y, part = top + 24 * number, row["rdc"] / row["rsync"]
        drawing.text(left - 8, y + 12, SHOWN[row["pair"]], anchor="end")
        drawing.box(left, y + 2, width, 13, "#e6e6e6")
        drawing.box(left, y + 2, max(1.5, width * part), 13, BLUE)
        drawing.text(left + width * part + 5, y + 13, f"{100 * part:.2g} %", size=11)
        drawing.text(left + width + 8, y + 13, _size(row["rdc"]), size=11, fill="#666666")
    source = wire()
    measured = f"{source['date']}, commit {source['commit']}, {source['machine']}"
    foot = f"{measured}, rsync {source['rsync']}, bench/wire.py"
    drawing.text(14, top + 24 * len(rows) + 20, foot, size=10, fill="#666666")
    drawing.line(left, top - 4, left, top + 24 * len(rows), GREY)
    return drawing.markup()


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1_000_000 else f"{count / 1e3:.1f} KB"
