"""The option --keep-undo of `rdc sync`: its words, and how its value is read."""

from __future__ import annotations

from rdc.cli.options.table import Option, Words
from rdc.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.sync import KeepUndo

__all__ = ["KEEP_UNDO", "read_keep_undo"]

KEEP_UNDO = Option(
    ("--keep-undo",),
    "keep what rdc undo needs to take this sync back: 10G for all syncs of DST, or 30d",
    "SIZE|DAYS",
)


_EXCLUDED = {
    "--backup": "both keep the old versions",
    "--backup-dir": "both keep the old versions",
    "--inplace": "it overwrites the old versions",
    "--append": "it overwrites the old versions",
    "--append-verify": "it overwrites the old versions",
}


def read_keep_undo(words: Words) -> KeepUndo | None:
    """Reads the value; None if the option is absent. Raises UsageError."""
    last = words.last("--keep-undo")
    if last is None:
        return None
    from rdc.model.undo import parse_keep_undo

    for other, why in _EXCLUDED.items():
        if words.has(other):
            raise UsageError(f"--keep-undo and {other} exclude each other: {why}")
    try:
        return parse_keep_undo(last.value)
    except ValueError as error:
        raise UsageError(f"--keep-undo={last.value}: {error}") from None
