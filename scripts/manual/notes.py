"""The hand-written half of the reference: what the code has no words for, in docs/notes and rdc/cli/notes."""

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
    """Return the tables of NAME.toml: those in rdc/cli/notes are in the man pages, too."""
    packaged = TOP / "rdc" / "cli" / "notes" / f"{name}.toml"
    return tomllib.loads((packaged if packaged.exists() else DOCS / "notes" / f"{name}.toml").read_text())
