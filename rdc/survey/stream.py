"""One large or hollow file on its way into the census: its chunks at every level, those in holes left out."""

from __future__ import annotations

from array import array
from itertools import accumulate

from rdc.kernel.survey import Folder
from rdc.survey.levels import FILE_LEVEL, FOLD_MAX, FOLD_MIN, FOLDED, FOLLOWED, keys_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.survey.census import Census
    from rdc.survey.holes import Holes

__all__ = ["FileStream"]

PERIOD = FOLD_MAX ** (len(FOLDED) - 1)
"""Equal chunks after which a run of them looks the same at every level: groups of equal keys are as long as
they can be."""

LEAD_IN = 2 * PERIOD
"""Equal chunks after which every level's groups are full and equal: the first may end up to FOLD_MAX items
into the run, and the same again a level up."""


class FileStream:
    """A ChunkTaker that counts one file. After an error of the file, `finish` counts what had come.

    A chunk that lies wholly in a hole takes no space and is not counted, at no level.
    """

    def __init__(
        self,
        census: Census,
        place: int,
        read: Callable[[int, int], bytes | None],
        holes: Holes,
    ) -> None:
        self._census = census
        self._place = place
        self._read = read
        self._holes = holes
        self._folders = [Folder(FOLD_MIN, FOLD_MAX) for _ in FOLDED[1:]]
        self._offsets = [0] * len(FOLDED)
        """Of each level, where its next chunk begins."""
        self.size = 0
        """Bytes that came."""

    def add(self, digests: list[bytes], lengths: list[int], /) -> None:
        if not digests:
            return
        keys, sizes = keys_of(b"".join(digests)), array("Q", lengths).tobytes()
        self.size += sum(lengths)
        self._take(0, keys, sizes)

    def repeat(self, digest: bytes, length: int, count: int, /) -> None:
        """Counts a long run in constant time: its middle is a multiple of PERIOD chunks, of which each level
        has one group again and again; left out, they only move what follows."""
        middle = max(0, count - LEAD_IN) // PERIOD * PERIOD
        self.add([digest] * min(count, LEAD_IN), [length] * min(count, LEAD_IN))
        if middle:
            keys, sizes = keys_of(digest), array("Q", [length]).tobytes()
            self.size += middle * length
            for number, level in enumerate(FOLDED):
                if number:
                    scratch = Folder(FOLD_MIN, FOLD_MAX)
                    scratch.feed(keys * FOLD_MAX, sizes * FOLD_MAX)
                    keys, sizes = scratch.finish()
                self._count_run(number, level, keys, sizes, middle // FOLD_MAX**number)
        rest = count - min(count, LEAD_IN) - middle
        self.add([digest] * rest, [length] * rest)

    def finish(self, key: int, counted: int) -> None:
        """The stream is over: `key` names the whole file, `counted` are its bytes without holes."""
        for number, folder in enumerate(self._folders, 1):
            keys, sizes = folder.finish()
            self._take(number, keys, sizes)
        self._census.levels[FILE_LEVEL].add(array("Q", [key]).tobytes(), array("Q", [counted]).tobytes())
        self._census.places.count(self._place, counted)
        self._census.compress_file(key, self.size, self._read_data)

    def _read_data(self, offset: int, length: int) -> bytes | None:
        """What of a range is in no hole, None where that is nothing: zeros that take no space would make the
        rest look as if it shrank as well as they do."""
        if self._holes.cover(offset, offset + length):
            return None
        content = self._read(offset, length)
        return None if content is None else self._holes.data(content, offset)

    def _take(self, number: int, keys: bytes, sizes: bytes) -> None:
        if not keys:
            return
        census, level, start = self._census, FOLDED[number], self._offsets[number]
        lengths = memoryview(sizes).cast("Q")
        self._offsets[number] += sum(lengths)
        if number + 1 < len(FOLDED):
            self._take(number + 1, *self._folders[number].feed(keys, sizes))
        if self._holes:
            offsets = list(accumulate(lengths, initial=start))
            hollow = map(self._holes.cover, offsets, offsets[1:])
            kept = [row for row, left_out in enumerate(hollow) if not left_out]
            if len(kept) < len(lengths):
                column = memoryview(keys).cast("Q")
                keys = array("Q", [column[row] for row in kept]).tobytes()
                sizes = array("Q", [lengths[row] for row in kept]).tobytes()
                offsets = [offsets[row] for row in kept]
        else:
            offsets = []
        census.levels[level].add(keys, sizes)
        sample = census.compression.get(level)
        if sample is not None:
            column, lengths = memoryview(keys).cast("Q"), memoryview(sizes).cast("Q")
            for row in sample.wanted(keys):
                at = offsets[row] if offsets else start + sum(lengths[:row])
                content = self._read(at, lengths[row])
                if content is not None and column[row] not in sample.sizes:
                    sample.take(column[row], content)
        if level == FOLLOWED:
            census.references.add(keys, sizes, array("I", [self._place]) * (len(keys) // 8))

    def _count_run(self, number: int, level: str, keys: bytes, sizes: bytes, count: int) -> None:
        length, start = memoryview(sizes).cast("Q")[0], self._offsets[number]
        self._offsets[number] += length * count
        count -= self._holes.covered(start, length, count)
        counts = array("Q", [count]).tobytes()
        self._census.levels[level].add(keys, sizes, counts)
        if level == FOLLOWED and count:
            # Followed by two references at most: enough to see that it repeats, without a million rows.
            self._census.references.add(
                keys * min(count, 2), sizes * min(count, 2), array("I", [self._place]) * min(count, 2)
            )
