"""Folds help texts to the terminal's width. Prose is filled; options and examples keep their columns."""

from __future__ import annotations

import os
import re
import textwrap
from itertools import groupby

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import TextIO


USUAL_WIDTH = 80
"""The width of help texts in pipes and files, in columns."""

WIDEST = 110
"""The widest line, in columns. Longer lines are hard to read."""

NARROWEST = 20
"""The narrowest line, in columns. A narrower line would hold hardly a word."""

EXPLANATION_WIDTH = 28
"""The least width of an explanation beside its term. A narrower one stands below the term."""

BELOW = 6
"""The column of an explanation that stands below its term."""

_ROW = re.compile(r"(?P<term> +\S(?:.*\S)?)(?P<gap> {2,})(?P<explanation>[^\s#].*)")
_CONTINUED = re.compile(r"(?P<gap> {12,})(?P<explanation>[^\s#].*)")
"""An explanation on its own line, below a term that reaches into the column of explanations."""


def page_width(stdout: TextIO, environ: Mapping[str, str]) -> int:
    """Return the width in columns: COLUMNS, else the terminal's width, else USUAL_WIDTH."""
    columns = environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(stdout.fileno()).columns or USUAL_WIDTH
    except (OSError, ValueError):  # stdout is no terminal, or has no descriptor
        return USUAL_WIDTH


def folded(text: str, width: int) -> str:
    """Return `text` in lines of at most `width` columns. Commands and settings stay whole, for copying."""
    width = max(NARROWEST, min(width, WIDEST))
    lines: list[str] = []
    for kind, block in groupby(text.split("\n"), _kind):
        rows = list(block)
        if kind == "prose":
            lines += _filled(" ".join(rows), width)
        elif kind == "usage":
            for row in rows:
                lines += _filled(row, width, hanging=len("Usage: rdc "))
        elif kind == "rows":
            lines += _in_columns(rows, width)
        else:
            lines += rows
    return "\n".join(lines)


def _kind(line: str) -> str:
    if not line:
        return "empty"
    if line.startswith(("Usage: ", "       rdc ")):
        return "usage"
    return "rows" if line.startswith(" ") else "prose"


def _in_columns(rows: Sequence[str], width: int) -> Iterator[str]:
    """Fold rows of terms and explanations. Explanations share one column, or stand below their terms."""
    found = [_ROW.fullmatch(row) or _CONTINUED.fullmatch(row) for row in rows]
    column = max([match.start("explanation") for match in found if match is not None], default=0)
    beside = width - column >= EXPLANATION_WIDTH
    for row, match in zip(rows, found, strict=True):
        if match is None or len(row) <= width:
            yield row
            continue
        term = match.groupdict().get("term")
        if beside:
            indent = match.start("explanation")
            lines = _filled(match["explanation"], width - indent)
            yield row[:indent] + lines[0]
        else:
            indent = BELOW
            lines = ["", *_filled(match["explanation"], width - indent)]
            if term is not None:
                yield term
        yield from (" " * indent + line for line in lines[1:])


def _filled(text: str, width: int, *, hanging: int = 0) -> list[str]:
    return textwrap.wrap(
        text,
        width,
        subsequent_indent=" " * hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )
