"""Names under which a file lies for the moment in which another takes its name."""

from __future__ import annotations

import os
import re
from zlib import crc32

__all__ = ["displaced_name", "is_displaced", "is_displaced_of"]

_PREFIX = b".rdc-"
_is_displaced = re.compile(rb"\.rdc-[0-9a-f]{16}\.old").fullmatch


def displaced_name(target: bytes) -> bytes:
    """A name beside `target` (one component), half of it saying so, half random.

    Not one of rdc.files.temporary: those are copies that a sweep may remove at any time. What lies here after
    a kill is, or was, somebody's only file, and goes only after a comparison with what has its name.
    """
    return _PREFIX + _mark(target) + os.urandom(4).hex().encode() + b".old"


def is_displaced(name: bytes) -> bool:
    """Whether `name` (one component) is a name that `displaced_name` gives."""
    return name.startswith(_PREFIX) and _is_displaced(name) is not None


def is_displaced_of(name: bytes, target: bytes) -> bool:
    """Whether `name` may be what was displaced from `target`."""
    return is_displaced(name) and name.startswith(_PREFIX + _mark(target))


def _mark(target: bytes) -> bytes:
    return b"%08x" % crc32(target)
