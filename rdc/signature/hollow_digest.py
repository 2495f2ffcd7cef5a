"""HollowDigest: the digest of a file with holes, to whose time its holes add nothing (PROTOCOL.md, Holes)."""

from __future__ import annotations

import struct

from blake3 import blake3

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["HollowDigest"]

SEGMENT_BYTES = 64 << 10
"""Bytes that are looked at at once. Only whole segments of zeros are left out, so the digest of a content
is the same wherever its holes are."""

_ZEROS = bytes(SEGMENT_BYTES)
_RUN = struct.Struct("<QQ")
"""Bytes of a run of other segments, and zeros after it. With them no two contents are one message."""


class HollowDigest:
    """Takes a content in order: `update` its bytes, `skip` its holes."""

    __slots__ = ("_data", "_hasher", "_partial", "_zeros")

    def __init__(self) -> None:
        self._hasher = blake3()
        self._partial = bytearray()
        """The begun segment."""
        self._data = 0
        """Bytes of the run of segments that was hashed last."""
        self._zeros = 0
        """Bytes of the segments of zeros after it."""

    def update(self, content: Buffer) -> None:
        """Take the next bytes."""
        view = memoryview(content).cast("B")
        if self._partial:
            taken = min(SEGMENT_BYTES - len(self._partial), len(view))
            self._partial += view[:taken]
            view = view[taken:]
            if len(self._partial) == SEGMENT_BYTES:
                self._take(self._partial)
                self._partial = bytearray()
        whole = len(view) - len(view) % SEGMENT_BYTES
        for at in range(0, whole, SEGMENT_BYTES):
            self._take(view[at : at + SEGMENT_BYTES])
        self._partial += view[whole:]

    def skip(self, length: int) -> None:
        """Take `length` zeros."""
        if self._partial:
            taken = min(SEGMENT_BYTES - len(self._partial), length)
            self.update(_ZEROS[:taken])
            length -= taken
        self._zeros += length - length % SEGMENT_BYTES
        self._partial += _ZEROS[: length % SEGMENT_BYTES]

    def digest(self) -> bytes:
        """Return the digest of everything that was taken, 32 bytes. Nothing may be taken afterwards."""
        if self._partial:
            self._take(self._partial)
        self._hasher.update(_RUN.pack(self._data, self._zeros))
        return self._hasher.digest()

    def _take(self, segment: memoryview | bytearray) -> None:
        # Converted to bytes, because bytes compare in one step and memoryviews item by item.
        if not segment[0] and not segment[-1] and bytes(segment) == _ZEROS[: len(segment)]:
            self._zeros += len(segment)
            return
        if self._zeros:
            self._hasher.update(_RUN.pack(self._data, self._zeros))
            self._data = self._zeros = 0
        self._hasher.update(segment)
        self._data += len(segment)
