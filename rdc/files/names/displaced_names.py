"""Names for files that lie aside while another file takes their name."""

from __future__ import annotations

import re
import struct
from zlib import crc32

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.entries import Metadata

__all__ = ["displaced_name", "is_displaced"]

_PREFIX = b".rdc-"
_is_displaced = re.compile(rb"\.rdc-[0-9a-f]{16}\.old").fullmatch


def displaced_name(target: bytes, size: int, metadata: Metadata) -> bytes:
    """Return a name beside `target` (one component). Half of it identifies the target, half the size and
    metadata that both files had.

    It is no temporary: a sweep may remove those at any time, but after a kill this entry may be the only file
    with its content. The name alone proves nothing, since anybody who can read the metadata can make it. Only
    a journal proves that a file was displaced (rdc.instances.leftovers).
    """
    return _PREFIX + _mark(target) + _state(size, metadata) + b".old"


def is_displaced(name: bytes) -> bool:
    """Return whether `name` (one component) has the form that `displaced_name` gives."""
    return name.startswith(_PREFIX) and _is_displaced(name) is not None


def _mark(target: bytes) -> bytes:
    return b"%08x" % crc32(target)


def _state(size: int, metadata: Metadata) -> bytes:
    mtime = metadata.mtime_ns & 0xFFFF_FFFF_FFFF_FFFF
    packed = struct.pack("<QQIII", size, mtime, metadata.mode, metadata.uid, metadata.gid)
    return b"%08x" % crc32(packed)
