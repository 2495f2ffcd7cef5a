"""Roots of small files that were read to be compared, until the session ends: some are asked about twice."""

from __future__ import annotations

from array import array

from rdc.signature.digests import DIGEST_BYTES

__all__ = ["RootMemory"]


class RootMemory:
    """40 bytes for each of so many entries, whether they are asked about or not."""

    __slots__ = ("_ctimes", "_roots")

    def __init__(self, entries: int) -> None:
        self._roots = bytearray(DIGEST_BYTES * entries)
        self._ctimes = array("q", bytes(8 * entries))

    def put(self, file: int, ctime_ns: int, root: bytes) -> None:
        """The root of the entry with this row, when it had that ctime."""
        self._roots[DIGEST_BYTES * file : DIGEST_BYTES * (file + 1)] = root
        self._ctimes[file] = ctime_ns

    def of(self, file: int, ctime_ns: int) -> bytes:
        """b'' where the entry had another ctime then, or was not read.

        A change within one tick of the file system's clock has the same ctime. It is told of as if it came
        after the comparison, which is what a change a moment later would be.
        """
        if not ctime_ns or self._ctimes[file] != ctime_ns:
            return b""
        return bytes(self._roots[DIGEST_BYTES * file : DIGEST_BYTES * (file + 1)])
