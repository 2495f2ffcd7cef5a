"""Paths of a table as one text: an object for each of them takes three times as much memory."""

from __future__ import annotations

from array import array
from itertools import accumulate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_CHUNK_BYTES = 64 << 10


def terminated(texts: Sequence[bytes]) -> bytes:
    """Return texts, each followed by NUL."""
    return b"\0".join([*texts, b""]) if texts else b""


class Paths:
    """A sequence of paths, each of which is an object only while it is used."""

    __slots__ = ("_count", "_ends", "text")

    def __init__(self, text: bytes, count: int) -> None:
        """`text`: `count` paths, each followed by NUL."""
        self.text = text
        self._count = count
        self._ends: array[int] | None = None

    @classmethod
    def of(cls, paths: Sequence[bytes]) -> Paths:
        """Return paths as one text."""
        return cls(terminated(paths), len(paths))

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, number: int) -> bytes:
        if not 0 <= number < self._count:
            raise IndexError(f"path {number} of {self._count}")
        return self.text[self._start(number) : self._start(number + 1) - 1]

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self.chunks():
            yield from chunk

    def chunks(self, start: int = 0, end: int | None = None) -> Iterator[list[bytes]]:
        """Yield the paths from number `start` to before `end`, some at a time."""
        at = self._start(start)
        last = len(self.text) if end is None else self._start(end)
        while at < last:
            after = self.text.find(b"\0", at + _CHUNK_BYTES, last) + 1 or last
            yield self.text[at : after - 1].split(b"\0")
            at = after

    def part(self, start: int, end: int) -> memoryview:
        """Return the paths from number `start` to before `end`, each followed by NUL, without a copy."""
        return memoryview(self.text)[self._start(start) : self._start(end)]

    def _start(self, number: int) -> int:
        """Return where in the text a path begins. Where each ends is found only if one in between is asked
        for."""
        if number == 0 or number >= self._count:
            return len(self.text) if number else 0
        if self._ends is None:
            ends = array("Q" if len(self.text) >> 32 else "I")
            for chunk in self.chunks():
                steps = [len(path) + 1 for path in chunk]
                steps[0] += ends[-1] if ends else 0
                ends.extend(accumulate(steps))
            self._ends = ends
        return self._ends[number - 1]
