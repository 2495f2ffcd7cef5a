"""The options --max-memory, --depth and --max-rate: how much of a machine a run may take."""

from __future__ import annotations

from rdc.cli.options.table import Option, Words
from rdc.errors import UsageError
from rdc.limits.sessions import DEPTH_LIMIT, ENTRIES_MEMORY_LEAST, RATE_LEAST
from rdc.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.sync import SyncOptions

__all__ = [
    "DEPTH",
    "MAX_MEMORY",
    "MAX_RATE",
    "read_depth",
    "read_max_memory",
    "read_max_rate",
    "with_resources",
]

MAX_MEMORY = Option(
    ("--max-memory", "--max-alloc"),
    "use so much memory for SRC's entries here; 0: all there is (default: half)",
    "SIZE",
)

DEPTH = Option(
    ("--depth",), "have N calls to storage in flight (default: 0, up to 32 where storage is slow)", "N"
)

MAX_RATE = Option(("--max-rate",), "read at most so much a second, for storage that others need", "SIZE")


def with_resources(options: SyncOptions, words: Words) -> SyncOptions:
    """Returns `options` with both. Raises UsageError."""
    return replace(options, max_memory=read_max_memory(words), depth=read_depth(words))


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


def read_depth(words: Words) -> int:
    """Returns the number of --depth, or 0 if it is absent. Raises UsageError."""
    last = words.last("--depth")
    if last is None:
        return 0
    if not (last.value.isascii() and last.value.isdecimal()) or int(last.value[:9]) > DEPTH_LIMIT:
        raise UsageError(
            f"--depth={last.value}: a number up to {DEPTH_LIMIT} is expected, 0 for as many as help"
        )
    return int(last.value)


def read_max_rate(words: Words) -> int:
    """Returns the bytes a second of --max-rate, or 0 if it is absent or 0. Raises UsageError."""
    last = words.last("--max-rate")
    if last is None:
        return 0
    from rdc.cli.options.sizes import read_size

    rate = read_size("--max-rate", last.value)
    if 0 < rate < RATE_LEAST:
        raise UsageError(
            f"--max-rate={last.value}: {RATE_LEAST >> 20}M a second at least is expected, or 0 for no bound"
        )
    return rate
