"""Names that rdc reserves: temporaries (`.tmp`), and files that were displaced while another took their name
(`.old`).

Every name of the form `.rdc-<16 hex digits>.tmp` or `.old` is reserved, and no sync carries it. A reserved
name alone proves nothing: rdc.files.base.own_temporary decides which entries rdc may remove.

Three more names are reserved:

- `.rdc-undo`: the directory at the top of a destination with what rdc.undoing keeps.
- `.rdc-unite`: the same for what a sync in both directions keeps.
- `.rdc.parts`: the file in a directory of --partial-dir that says which parts rdc put there.

A file system may take other names for these: in another letter case, with characters that it ignores, or as
short names. No listing hides such a name, but no peer may use one: `stands_for_reserved` knows them.
"""

from __future__ import annotations

import os
from bisect import bisect_left

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "OWN_DIRECTORIES",
    "PARTS_NAME",
    "RESERVED_PATTERN",
    "RESERVED_RANGE",
    "UNDO_NAME",
    "UNITE_NAME",
    "is_reserved",
    "is_temporary",
    "is_temporary_of",
    "make_aside",
    "refused_component",
    "refused_rows",
    "reserved_rows",
    "stands_for_reserved",
    "temporary_name",
]

UNDO_NAME = b".rdc-undo"
"""The directory of what syncs keep to be undone (rdc.undoing)."""

UNITE_NAME = b".rdc-unite"
"""The directory of what syncs in both directions keep."""

PARTS_NAME = b".rdc.parts"
"""The record of a directory of --partial-dir (rdc.files.replace.partial_directory)."""

OWN_DIRECTORIES = (UNDO_NAME, UNITE_NAME)
"""Directories that only rdc works in, and that no option and no link may lead into."""

RESERVED_PATTERN = rb"\.rdc(?:-(?:[0-9a-f]{16}\.(?:tmp|old)|undo|unite)|\.parts)"
"""A regular expression for the whole name. In a temporary, 8 of the 16 digits are the CRC-32 of the target's
name, 4 are random, and 4 check the others. O_EXCL detects two equal names."""

_PREFIX = b".rdc-"

_START = b".rdc"
"""How all reserved names begin."""

RESERVED_RANGE = (_START + b"-", _START + b"/")
"""Bounds of reserved names in byte order: first (inclusive) and last (exclusive). '.' follows '-', and '/'
follows '.'."""

ATTEMPTS = 64
"""Names tried if a drawn name is taken. For each existing temporary of the target, that has a probability of
1 in 65,536."""


def is_reserved(name: bytes) -> bool:
    """Return whether `name` (one component) has the form that rdc reserves."""
    if not name.startswith(_START):
        return False
    import re

    return re.fullmatch(RESERVED_PATTERN, name) is not None


def reserved_rows(names: Sequence[bytes]) -> list[int]:
    """The rows of sorted names that are reserved. Without any, the cost is one binary search."""
    first = bisect_left(names, RESERVED_RANGE[0])
    if first == len(names) or names[first] >= RESERVED_RANGE[1]:
        return []
    last = bisect_left(names, RESERVED_RANGE[1])
    return [row for row in range(first, last) if is_reserved(names[row])]


# What is left of a non-ASCII name without these may be compared with their beginning: no letter of that
# is the folded form of another character.
_NOT_ASCII = bytes(range(0x80, 0x100))

_SHORT_PATTERN = rb"rd(?:c-(?:un|[0-9a-f]{2})|c|[0-9a-f]{4})~[0-9]{1,6}(?:\.(?:tmp|old|par))?"
"""Short names (8.3) that VFAT and NTFS give to reserved ones, and under which they find them."""


def stands_for_reserved(name: bytes) -> bool:
    """Return whether some file system takes `name` (one component) for a reserved name.

    Such names differ in letter case, have characters that file systems ignore (Unicode's default ignorable
    ones, dots and spaces at the end, what follows a colon), or are short names.
    """
    if name.isascii():
        return (_START in name.lower() or b"~" in name) and _folds_to_reserved(name)
    return _START in name.translate(None, _NOT_ASCII).lower() and _folds_to_reserved(_without_ignored(name))


def refused_rows(names: Sequence[bytes]) -> list[int]:
    """Return the rows of names that stand for reserved ones. Without any, it costs one search in all of
    them."""
    joined = b"\0".join(names)
    ascii_part = joined if joined.isascii() else joined.translate(None, _NOT_ASCII)
    if _START not in ascii_part.lower() and b"~" not in joined:
        return []
    return [row for row, name in enumerate(names) if stands_for_reserved(name)]


def refused_component(path: bytes) -> bytes | None:
    """Return the first component of a path that stands for a reserved name; None for none."""
    if _START in path.translate(None, _NOT_ASCII).lower() or b"~" in path:
        return next(filter(stands_for_reserved, path.split(b"/")), None)
    return None


def _folds_to_reserved(name: bytes) -> bool:
    import re

    folded = name.partition(b":")[0].lower().rstrip(b". ")
    return is_reserved(folded) or re.fullmatch(_SHORT_PATTERN, folded) is not None


def _without_ignored(name: bytes) -> bytes:
    """Return a name as file systems compare it that fold case by Unicode and ignore characters."""
    from unicodedata import category, normalize

    text = normalize("NFD", name.decode("utf-8", "replace"))
    kept = (each for each in text if category(each) != "Cf" and not _is_ignorable(ord(each)))
    return "".join(kept).casefold().encode()


def _is_ignorable(point: int) -> bool:
    """Return whether Unicode says of a code point that is no format character (Cf) that it is ignored."""
    ranges = (
        (0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x2065, 0x2065),
        (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0xE0000, 0xE0FFF),
    )  # fmt: skip
    return any(first <= point <= last for first, last in ranges)


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
