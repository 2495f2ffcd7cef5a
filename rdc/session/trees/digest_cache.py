"""Caches the roots of small files for one session, because some are needed twice."""

from __future__ import annotations

from array import array

from rdc.kernel import put_rows, take_rows
from rdc.signature.tree import DIGEST_BYTES

__all__ = ["DigestCache"]


class DigestCache:
    """Stores 40 bytes per entry of a tree. Rows and ctimes come as columns, typecodes 'Q' and 'q'."""

    __slots__ = ("_ctimes", "_roots")

    def __init__(self, entries: int) -> None:
        self._roots = bytearray(DIGEST_BYTES * entries)
        self._ctimes = array("q", bytes(8 * entries))

    def put(self, files: array[int], ctimes: array[int], roots: bytes) -> None:
        """Stores the roots (DIGEST_BYTES each) that the files at these rows had at these ctimes."""
        put_rows(self._roots, DIGEST_BYTES, files, roots)
        put_rows(self._ctimes, 8, files, ctimes)

    def find(self, files: array[int], ctimes: array[int]) -> list[tuple[int, bytes]]:
        """The cached roots of files whose ctimes have not changed, each with its index in `files`.

        A change within one tick of the file system's clock leaves the ctime equal. It counts as a change
        after the comparison, like any change a moment later.
        """
        known = take_rows(self._ctimes, 8, files)
        if known == bytes(len(known)):
            return []
        return [
            (number, bytes(self._roots[DIGEST_BYTES * files[number] : DIGEST_BYTES * (files[number] + 1)]))
            for number, (then, now) in enumerate(zip(array("q", known), ctimes, strict=True))
            if then and then == now
        ]
