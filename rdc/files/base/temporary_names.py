"""Names that rdc reserves: temporaries (`.tmp`), and files that were displaced while another took their name
(`.old`).

Every name of the form `.rdc-<16 hex digits>.tmp` or `.old` is reserved, and no sync carries it. A reserved
name alone proves nothing: rdc.files.base.own_temporary decides which entries rdc may remove.

`.rdc-undo` is reserved, too. It is the directory at the top of a destination with what rdc.undoing keeps.
"""

from __future__ import annotations

import os
from bisect import bisect_left

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "RESERVED_PATTERN",
    "RESERVED_RANGE",
    "UNDO_NAME",
    "has_reserved_name",
    "is_reserved",
    "is_temporary",
    "is_temporary_of",
    "make_aside",
    "reserved_rows",
    "temporary_name",
]

UNDO_NAME = b".rdc-undo"
"""The directory of what syncs keep to be undone (rdc.undoing)."""

RESERVED_PATTERN = rb"\.rdc-(?:[0-9a-f]{16}\.(?:tmp|old)|undo)"
"""A regular expression for the whole name. In a temporary, 8 of the 16 digits are the CRC-32 of the target's
name, 4 are random, and 4 check the others. O_EXCL detects two equal names."""

_PREFIX = b".rdc-"

RESERVED_RANGE = (_PREFIX, _PREFIX[:-1] + b".")
"""Bounds of reserved names in byte order: first (inclusive) and last (exclusive). '.' follows '-'."""

ATTEMPTS = 64
"""Names tried if a drawn name is taken. For each existing temporary of the target, that has a probability of
1 in 65,536."""


def is_reserved(name: bytes) -> bool:
    """Return whether `name` (one component) has the form that rdc reserves."""
    if not name.startswith(_PREFIX):
        return False
    import re

    return re.fullmatch(RESERVED_PATTERN, name) is not None


def reserved_rows(names: Sequence[bytes]) -> list[int]:
    """The rows of sorted names that are reserved. Without any, the cost is one binary search."""
    first = bisect_left(names, _PREFIX)
    if first == len(names) or not names[first].startswith(_PREFIX):
        return []
    last = bisect_left(names, RESERVED_RANGE[1])
    return [row for row in range(first, last) if is_reserved(names[row])]


def has_reserved_name(path: bytes) -> bool:
    """Return whether a component of the relative path is reserved."""
    return _PREFIX in path and any(map(is_reserved, path.split(b"/")))


def is_temporary(name: bytes) -> bool:
    """Return whether `temporary_name` can give `name` (one component): its check digits are right.

    1 in 65,536 other reserved names passes as well.
    """
    return is_reserved(name) and name.endswith(_end_of(name[:-8]))


def temporary_name(target: bytes) -> bytes:
    """Return a new name for a temporary that will become `target` (one component)."""
    head = _PREFIX + _mark(target) + os.urandom(2).hex().encode()
    return head + _end_of(head)


def is_temporary_of(name: bytes, target: bytes) -> bool:
    """Return whether `name` may be a temporary of `target`, left by an interrupted run."""
    return is_temporary(name) and name.startswith(_PREFIX + _mark(target))


def make_aside(target: bytes, make: Callable[[bytes], None]) -> bytes:
    """Call `make` with a new temporary name of `target`; return the name.

    `make` must raise FileExistsError if the name is taken. Raises OSError.
    """
    for attempt in range(ATTEMPTS):
        name = temporary_name(target)
        try:
            make(name)
        except FileExistsError:
            if attempt == ATTEMPTS - 1:
                raise
        else:
            return name
    raise AssertionError("unreachable")


def _mark(target: bytes) -> bytes:
    from zlib import crc32

    return b"%08x" % crc32(target)


def _end_of(head: bytes) -> bytes:
    """Return the check digits and suffix of a name that begins with `head`."""
    from zlib import crc32

    return b"%04x.tmp" % (crc32(head) & 0xFFFF)
