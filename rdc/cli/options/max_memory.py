"""The option --max-memory of all verbs that can receive a tree from another side."""

from __future__ import annotations

from rdc.cli.options.table import Option, Words
from rdc.errors import UsageError
from rdc.limits.sessions import ENTRIES_MEMORY_LEAST

__all__ = ["MAX_MEMORY", "read_max_memory"]

MAX_MEMORY = Option(
    ("--max-memory",), "use so much memory for SRC's entries here (default: half of what there is)", "SIZE"
)


def read_max_memory(words: Words) -> int | None:
    """Returns the bytes of --max-memory, or None if it is absent. Raises UsageError."""
    last = words.last("--max-memory")
    if last is None:
        return None
    from rdc.cli.options.sizes import read_size

    size = read_size("--max-memory", last.value)
    if size < ENTRIES_MEMORY_LEAST:
        raise UsageError(f"--max-memory={last.value}: {ENTRIES_MEMORY_LEAST >> 20}M at least is expected")
    return size
