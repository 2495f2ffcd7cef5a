"""Names of temporary files: recognisable, unguessable, the same length whatever they will become."""

from __future__ import annotations

import os

__all__ = ["TEMPORARY_PATTERN", "TEMPORARY_RANGE", "is_temporary", "is_temporary_of", "temporary_name"]

TEMPORARY_PATTERN = rb"\.rdc-[0-9a-f]{16}\.tmp"
"""A regular expression for the whole name: hidden, ours, 32 bits of the target's name and 32 random ones. Two
that meet all the same are told apart by O_EXCL."""

_PREFIX = b".rdc-"

TEMPORARY_RANGE = (_PREFIX, _PREFIX[:-1] + b".")
"""Every temporary's name sorts at or after the first, and before the second ('.' follows '-')."""


def is_temporary(name: bytes) -> bool:
    """Whether `name` (one component) is a name that `temporary_name` gives."""
    if not name.startswith(_PREFIX):
        return False
    import re

    return re.fullmatch(TEMPORARY_PATTERN, name) is not None


def temporary_name(target: bytes) -> bytes:
    """A name for what is to become `target` (one component): half of it says so, half is random."""
    return _PREFIX + _mark(target) + os.urandom(4).hex().encode() + b".tmp"


def is_temporary_of(name: bytes, target: bytes) -> bool:
    """Whether `name` may be a temporary of `target`: what an interrupted run left of it."""
    return is_temporary(name) and name.startswith(_PREFIX + _mark(target))


def _mark(target: bytes) -> bytes:
    from zlib import crc32

    return b"%08x" % crc32(target)
