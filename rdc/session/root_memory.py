"""Roots of small files that were read to be compared, until the session ends: some are asked about twice."""

from __future__ import annotations

from array import array

from rdc.kernel import put_rows, take_rows
from rdc.signature.digests import DIGEST_BYTES

__all__ = ["RootMemory"]


class RootMemory:
    """40 bytes for each of so many entries, whether they are asked about or not.

    Rows and ctimes come as columns, typecodes 'Q' and 'q'.
    """

    __slots__ = ("_ctimes", "_roots")

    def __init__(self, entries: int) -> None:
        self._roots = bytearray(DIGEST_BYTES * entries)
        self._ctimes = array("q", bytes(8 * entries))

    def put(self, files: array[int], ctimes: array[int], roots: bytes) -> None:
        """The roots of the entries with these rows, DIGEST_BYTES each, when they had these ctimes."""
        put_rows(self._roots, DIGEST_BYTES, files, roots)
        put_rows(self._ctimes, 8, files, ctimes)

    def find(self, files: array[int], ctimes: array[int]) -> list[tuple[int, bytes]]:
        """Those of these entries that were read, and had the same ctime then: where they are among them, and
        their roots.

        A change within one tick of the file system's clock has the same ctime. It is told of as if it came
        after the comparison, which is what a change a moment later would be.
        """
        known = take_rows(self._ctimes, 8, files)
        if known == bytes(len(known)):
            return []
        return [
            (number, bytes(self._roots[DIGEST_BYTES * files[number] : DIGEST_BYTES * (files[number] + 1)]))
            for number, (then, now) in enumerate(zip(array("q", known), ctimes, strict=True))
            if then and then == now
        ]
