"""The option --depth of all verbs that read or write many files."""

from __future__ import annotations

from rdc.cli.options.table import Option, Words
from rdc.errors import UsageError
from rdc.limits.sessions import DEPTH_LIMIT

__all__ = ["DEPTH", "read_depth"]

DEPTH = Option(
    ("--depth",), "have N calls to storage in flight (default: 0, up to 32 where storage is slow)", "N"
)


def read_depth(words: Words) -> int:
    """Returns the value of --depth, or 0 if it is absent. Raises UsageError."""
    last = words.last("--depth")
    if last is None:
        return 0
    if not (last.value.isascii() and last.value.isdecimal()) or int(last.value[:9]) > DEPTH_LIMIT:
        raise UsageError(
            f"--depth={last.value}: a number up to {DEPTH_LIMIT} is expected, 0 for what the storage bears"
        )
    return int(last.value)
