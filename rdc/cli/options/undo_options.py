"""The options of `rdc undo`: their table, and the request they are read into."""

from __future__ import annotations

import os

from rdc.cli.options.table import Option, OptionGroup, Words, parse_words
from rdc.errors import UsageError
from rdc.lean.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["UNDO_OPTIONS", "UndoRequest", "parse_undo", "read_undo"]

UNDO_OPTIONS = (
    OptionGroup(
        "What is done",
        (
            Option(("-n", "--dry-run"), "only show what would be done"),
            Option(("--list",), "list syncs that can be undone, most recent last"),
            Option(("--no-fsync",), "do not wait for the disk; a power cut may undo only a part"),
        ),
    ),
    OptionGroup(
        "What is shown",
        (
            Option(("-q", "--quiet"), "show nothing but errors"),
            Option(("-v", "--verbose"), "name each entry that is taken back"),
            Option(("--json",), "one JSON event a line on stdout instead"),
            Option(("--help",), "show this text"),
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class UndoRequest:
    """The checked command line of `rdc undo`."""

    path: bytes
    """A directory that was synced, or a journal."""
    dry_run: bool
    list: bool
    fsync: bool
    quiet: bool
    verbose: bool
    json: bool


def parse_undo(words: Sequence[str]) -> Words:
    """Parse the words after `rdc undo`. Raises UsageError."""
    return parse_words(words, UNDO_OPTIONS, {}, command="rdc undo")


def read_undo(words: Words) -> UndoRequest:
    """Read the request. Raises UsageError."""
    if len(words.operands) != 1:
        found = "nothing was" if not words.operands else f"{len(words.operands)} were"
        raise UsageError(f"one DST or JOURNAL is needed, {found} given (see rdc undo --help)")
    (operand,) = words.operands
    if not operand or "\0" in operand:
        raise UsageError("DST is empty or has a NUL character; for the current directory, write .")
    from rdc.model.location import parse_location

    host = parse_location(operand).host
    if host is not None and not os.path.exists(operand):
        raise UsageError(f"{operand}: rdc undo works on the machine of DST; run it there, as by ssh {host}")
    if words.has("--list") and words.has("--dry-run"):
        raise UsageError("--list and --dry-run exclude each other: --list undoes nothing anyway")
    return UndoRequest(
        path=os.fsencode(operand),
        dry_run=words.has("--dry-run"),
        list=words.has("--list"),
        fsync=not words.has("--no-fsync"),
        quiet=words.has("--quiet"),
        verbose=words.has("--verbose"),
        json=words.has("--json"),
    )
