"""The option --max-memory of all verbs that can receive a tree from another side."""

from __future__ import annotations

from rdc.cli.options.table import Option, Words
from rdc.errors import UsageError
from rdc.limits.sessions import ENTRIES_MEMORY_LEAST

__all__ = ["MAX_MEMORY", "read_max_memory"]

MAX_MEMORY = Option(
    ("--max-memory", "--max-alloc"),
    "use so much memory for SRC's entries here; 0: all there is (default: half)",
    "SIZE",
)


def read_max_memory(words: Words) -> int | None:
    """Returns the bytes of --max-memory, 0 for all of the machine's, or None if it is absent. Raises
    UsageError."""
    last = words.last("--max-memory")
    if last is None:
        return None
    from rdc.cli.options.sizes import read_size

    size = read_size("--max-memory", last.value)
    if 0 < size < ENTRIES_MEMORY_LEAST:
        least = ENTRIES_MEMORY_LEAST >> 20
        raise UsageError(f"--max-memory={last.value}: {least}M at least is expected, or 0 for all there is")
    return size
