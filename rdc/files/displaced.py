"""Names under which a file lies for the moment in which another takes its name."""

from __future__ import annotations

import re
import struct
from zlib import crc32

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.entries import Metadata

__all__ = ["displaced_name", "is_displaced", "is_displaced_of", "is_unchanged"]

_PREFIX = b".rdc-"
_is_displaced = re.compile(rb"\.rdc-[0-9a-f]{16}\.old").fullmatch


def displaced_name(target: bytes, size: int, metadata: Metadata) -> bytes:
    """A name beside `target` (one component), half of it saying so, half what both files had in common.

    Not one of rdc.files.temporary: those are copies that a sweep may remove at any time. What lies here after
    a kill is, or was, somebody's only file; the second half says whether it was written to since.
    """
    return _PREFIX + _mark(target) + _state(size, metadata) + b".old"


def is_unchanged(name: bytes, size: int, metadata: Metadata) -> bool:
    """Whether a file still has the size and metadata that were common to the two of this displaced name."""
    return is_displaced(name) and name.endswith(_state(size, metadata) + b".old")


def is_displaced(name: bytes) -> bool:
    """Whether `name` (one component) is a name that `displaced_name` gives."""
    return name.startswith(_PREFIX) and _is_displaced(name) is not None


def is_displaced_of(name: bytes, target: bytes) -> bool:
    """Whether `name` may be what was displaced from `target`."""
    return is_displaced(name) and name.startswith(_PREFIX + _mark(target))


def _mark(target: bytes) -> bytes:
    return b"%08x" % crc32(target)


def _state(size: int, metadata: Metadata) -> bytes:
    mtime = metadata.mtime_ns & 0xFFFF_FFFF_FFFF_FFFF
    packed = struct.pack("<QQIII", size, mtime, metadata.mode, metadata.uid, metadata.gid)
    return b"%08x" % crc32(packed)
