"""LargeFile: counts one large file, or one with holes, chunk by chunk at every level."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from itertools import accumulate
from operator import eq

from rdc.catalog.signer import replayed
from rdc.kernel import Folder
from rdc.signature.tree import DIGEST_BYTES, SignatureTree
from rdc.survey.count.granularities import FILE_LEVEL, FOLD_MAX, FOLD_MIN, FOLDED, FOLLOWED, keys_of, root_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.survey.count.counters import Counters
    from rdc.survey.count.holes import Holes

__all__ = ["LargeFile", "count_tree", "rows_with_long_runs"]

PERIOD = FOLD_MAX ** (len(FOLDED) - 1)
"""Equal chunks after which a run repeats itself at every level. Groups of equal keys have the maximal
length."""

LEAD_IN = 2 * PERIOD
"""Equal chunks after which the groups of every level are full and equal. The first group may end up to
FOLD_MAX items into the run, and likewise on the level above."""


def rows_with_long_runs(counts: Sequence[int], digests: bytes) -> list[int]:
    """The files that have a run of equal chunks so long that LargeFile counts a part of it by number, and
    perhaps others. Columns: chunks of each file, digests of all chunks."""
    # Of such a run's LEAD_IN + PERIOD chunks, one is at a multiple of LEAD_IN, and the next one is equal.
    column, step = memoryview(digests).cast("Q"), LEAD_IN * DIGEST_BYTES // 8
    same = map(eq, column[::step], column[DIGEST_BYTES // 8 :: step])
    found = [number * LEAD_IN for number, equal in enumerate(same) if equal]
    if not found:
        return []
    ends = list(accumulate(counts))
    rows = sorted({bisect_right(ends, chunk) for chunk in found})
    return [row for row in rows if counts[row] >= LEAD_IN + PERIOD]


class LargeFile:
    """A ChunkTaker that counts one file. After an error, `finish` counts the part that came.

    A chunk that lies wholly in a hole takes no space and is not counted at any level.
    """

    def __init__(
        self,
        counters: Counters,
        location: int,
        read: Callable[[int, int], bytes | None],
        holes: Holes,
    ) -> None:
        self._counters = counters
        self._location = location
        self._read = read
        self._holes = holes
        self._folders = [Folder(FOLD_MIN, FOLD_MAX) for _ in FOLDED[1:]]
        self._offsets = [0] * len(FOLDED)
        """Where the next chunk of each level begins."""
        self.size = 0
        """Bytes received so far."""

    def add(self, digests: list[bytes], lengths: list[int], /) -> None:
        if not digests:
            return
        keys, sizes = keys_of(b"".join(digests)), array("Q", lengths).tobytes()
        self.size += sum(lengths)
        self._take(0, keys, sizes)

    def repeat(self, digest: bytes, length: int, count: int, /) -> None:
        """Counts a long run in constant time. The middle of the run is a multiple of PERIOD chunks; in it,
        each level repeats one group. So these groups are counted by number, and leaving them out only shifts
        what follows."""
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
        """Ends the file. `key`: of the whole file. `counted`: its bytes without holes."""
        for number, folder in enumerate(self._folders, 1):
            keys, sizes = folder.finish()
            self._take(number, keys, sizes)
        self._counters.levels[FILE_LEVEL].add(array("Q", [key]).tobytes(), array("Q", [counted]).tobytes())
        self._counters.locations.count(self._location, counted)
        self._counters.compress_file(key, self.size, self._read_data, self._holes)

    def _read_data(self, offset: int, length: int) -> bytes | None:
        """A range's content outside of holes; None if there is none. Zeros of holes would make the rest seem
        to compress well."""
        if self._holes.cover(offset, offset + length):
            return None
        content = self._read(offset, length)
        return None if content is None else self._holes.data(content, offset)

    def _take(self, number: int, keys: bytes, sizes: bytes) -> None:
        # long because it counts each chunk in one pass, and a call for each would cost more than the work
        if not keys:
            return
        counters, level, start = self._counters, FOLDED[number], self._offsets[number]
        lengths = memoryview(sizes).cast("Q")
        self._offsets[number] += sum(lengths)
        if number + 1 < len(FOLDED):
            self._take(number + 1, *self._folders[number].feed(keys, sizes))
        if self._holes:
            offsets = list(accumulate(lengths, initial=start))
            hollow = map(self._holes.cover, offsets, offsets[1:])
            remaining = [row for row, left_out in enumerate(hollow) if not left_out]
            if len(remaining) < len(lengths):
                column = memoryview(keys).cast("Q")
                keys = array("Q", [column[row] for row in remaining]).tobytes()
                sizes = array("Q", [lengths[row] for row in remaining]).tobytes()
                offsets = [offsets[row] for row in remaining]
        else:
            offsets = []
        counters.levels[level].add(keys, sizes)
        sample = counters.compression.get(level)
        if sample is not None:
            column, lengths = memoryview(keys).cast("Q"), memoryview(sizes).cast("Q")
            for row in sample.wanted(keys):
                at = offsets[row] if offsets else start + sum(lengths[:row])
                content = self._read(at, lengths[row])
                if content is not None and column[row] not in sample.sizes:
                    sample.take(column[row], content)
        if level == FOLLOWED:
            counters.references.add(keys, sizes, array("I", [self._location]) * (len(keys) // 8))

    def _count_run(self, number: int, level: str, keys: bytes, sizes: bytes, count: int) -> None:
        length, start = memoryview(sizes).cast("Q")[0], self._offsets[number]
        self._offsets[number] += length * count
        count -= self._holes.covered(start, length, count)
        counts = array("Q", [count]).tobytes()
        self._counters.levels[level].add(keys, sizes, counts)
        if level == FOLLOWED and count:
            # At most two references: they show that the chunk repeats, without a million rows.
            self._counters.references.add(
                keys * min(count, 2), sizes * min(count, 2), array("I", [self._location]) * min(count, 2)
            )


def count_tree(
    counters: Counters,
    tree: SignatureTree,
    location: int,
    read: Callable[[int, int], bytes | None],
    holes: Holes,
) -> None:
    """Counts a whole file by its signature. `read`: reads content again, given offset and length in bytes."""
    stream = LargeFile(counters, location, read, holes)
    for _ in replayed(tree, stream):
        pass
    stream.finish(root_key(tree.root), tree.size - holes.total(tree.size))
