"""The hand-written half of the reference: what the code has no words for, in docs/notes/*.toml."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parents[2]
DOCS = TOP / "docs"


class MissingNoteError(Exception):
    """The code has something of which docs/notes says nothing, or the other way round."""


@cache
def notes(name: str) -> dict[str, Any]:
    """The tables of docs/notes/NAME.toml."""
    return tomllib.loads((DOCS / "notes" / f"{name}.toml").read_text())
