"""The tables of a scan in plain Python. This file is the definition; the C code equals it.

Columns are buffers of native 64-bit numbers, such as array('Q'). A chunk's key is 64 bits of its digest.
"""

from __future__ import annotations

from array import array

from tests.reference.siphash import siphash

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["ChunkTable", "Folder", "left_after_rows", "select_chunks"]

_MASK = (1 << 64) - 1

_GROUP_KEY = b"rdc survey group"

FOLD_MAX = 64


def _numbers(column: ReadableBuffer) -> memoryview:
    return memoryview(column).cast("B").cast("Q")


def _column(numbers: list[int]) -> bytes:
    return array("Q", numbers).tobytes()


class ChunkTable:
    """Counts how often each chunk occurs: exactly, or for a sample of the keys.

    A key is sampled if its first `shift` bits are 0. The sample is consistent: it has all occurrences of a
    chunk or none, so its counts are exact. Every unique chunk is in it with probability 2^-shift.
    """

    ENTRY_BYTES = 24
    """Bytes that an entry counts against the limit here. The C code takes 18.9 to 22.6 bytes."""

    def __init__(self, limit: int) -> None:
        """`limit`: bytes after which the sample is halved, repeatedly."""
        if limit < 0:
            raise ValueError("the limit is a number of bytes")
        self._limit = limit
        self._seen: dict[int, list[int]] = {}
        self.chunks = 0
        """Number of chunks added, sampled or not."""
        self.bytes = 0
        """Bytes of all chunks added."""
        self.shift = 0
        """One key in 2^shift is sampled."""

    def add(self, keys: ReadableBuffer, sizes: ReadableBuffer, counts: ReadableBuffer | None = None) -> None:
        """Counts each chunk once, or `counts` times. Of several sizes (bytes) of a key the largest stays, in
        whatever order they come. They are of files with one content, which differ in their holes."""
        column, lengths = _numbers(keys), _numbers(sizes)
        times = [1] * len(column) if counts is None else _numbers(counts)
        for key, size, count in zip(column, lengths, times, strict=True):
            if not count:
                continue
            self.chunks += count
            self.bytes += count * size
            if key << self.shift > _MASK:
                continue
            entry = self._seen.get(key)
            if entry is not None:
                entry[0], entry[1] = max(entry[0], size), entry[1] + count
                continue
            while (len(self._seen) + 1) * self.ENTRY_BYTES > self._limit and self.shift < 63 and self._seen:
                self.sample(self.shift + 1)
            if key << self.shift <= _MASK:
                self._seen[key] = [size, count]

    def sample(self, shift: int) -> None:
        """Keeps one key in 2^shift. A shift not larger than before changes nothing. ValueError unless 0 <=
        shift <= 63."""
        if not 0 <= shift <= 63:
            raise ValueError(f"a sample of one in 2^{shift}: 2^0 to 2^63 is expected")
        if shift > self.shift:
            self.shift = shift
            self._seen = {key: entry for key, entry in self._seen.items() if key << shift <= _MASK}

    def find(self, key: int) -> tuple[int, int]:
        """Returns (count, size in bytes) of a key; zeros if it was not seen or not sampled."""
        size, count = self._seen.get(key, (0, 0))
        return count, size

    def entries(self, position: int, most: int) -> tuple[bytes, bytes, bytes, int]:
        """Returns keys, sizes and counts of at most `most` chunks in order of keys, and the position of the
        next call.

        The first position is 0. No keys means that all were returned. Positions are valid until something is
        added.
        """
        if position < 0 or most < 0:
            raise ValueError("entries are read from a position >= 0, at most 2^32 at a time")
        rows = sorted(self._seen.items())[position : position + most]
        return (
            _column([key for key, _ in rows]),
            _column([entry[0] for _, entry in rows]),
            _column([entry[1] for _, entry in rows]),
            position + len(rows),
        )

    def summary(
        self,
    ) -> tuple[int, int, float, int, int, int, int, list[tuple[int, int, int]], list[tuple[int, int, int]]]:
        """Returns statistics of the sampled chunks.

        The items are: number of chunks, their bytes, sum of their squared bytes, number of non-empty chunks
        seen at least twice, bytes of all but one occurrence of each, largest size, largest count. Two
        histograms follow, of sizes and of counts, as rows (bits, chunks, bytes): the chunks whose value has
        that many bits.
        """
        entries = list(self._seen.values())
        twice = [(size, count) for size, count in entries if count > 1 and size]
        return (
            len(entries),
            sum(size for size, _ in entries),
            float(sum(size * size for size, _ in entries)),
            len(twice),
            sum(size * (count - 1) for size, count in twice),
            max((size for size, _ in entries), default=0),
            max((count for _, count in entries), default=0),
            _bins([(size, size) for size, _ in entries]),
            _bins([(count, size) for size, count in entries]),
        )

    def __len__(self) -> int:
        return len(self._seen)

    @property
    def memory(self) -> int:
        """Bytes of memory used."""
        return len(self._seen) * self.ENTRY_BYTES


def _bins(measured: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    bins: dict[int, tuple[int, int]] = {}
    for measure, size in measured:
        chunks, total = bins.get(measure.bit_length(), (0, 0))
        bins[measure.bit_length()] = (chunks + 1, total + size)
    return [(bits, *bins[bits]) for bits in sorted(bins)]


class Folder:
    """Groups neighbouring chunks, cut like the levels of a signature (rdc/signature/FORMAT.md).

    While more than `max_items` are left, the next group ends after the rightmost item in (min_items,
    max_items] with the smallest key. A group's key is SipHash-2-4 of its members' keys.
    """

    def __init__(self, min_items: int, max_items: int) -> None:
        if not 1 <= min_items < max_items <= FOLD_MAX:
            raise ValueError(f"groups of {min_items} to {max_items}: need 1 <= min < max <= {FOLD_MAX}")
        self._min = min_items
        self._max = max_items
        self._waiting: list[tuple[int, int]] = []

    def feed(self, keys: ReadableBuffer, sizes: ReadableBuffer) -> tuple[bytes, bytes]:
        """Takes the next chunks of a stream. Returns keys and sizes of the groups they complete."""
        groups: list[tuple[int, int]] = []
        for item in zip(_numbers(keys), _numbers(sizes), strict=True):
            if len(self._waiting) == self._max:
                window = range(self._min, self._max)
                groups.append(self._group(min(window, key=lambda i: (self._waiting[i][0], -i)) + 1))
            self._waiting.append(item)
        return _column([key for key, _ in groups]), _column([size for _, size in groups])

    def finish(self) -> tuple[bytes, bytes]:
        """Ends the stream and returns its rest, at most one group. The next chunk begins another stream."""
        groups = [self._group(len(self._waiting))] if self._waiting else []
        return _column([key for key, _ in groups]), _column([size for _, size in groups])

    def streams(
        self, keys: ReadableBuffer, sizes: ReadableBuffer, ends: ReadableBuffer
    ) -> tuple[bytes, bytes, bytes]:
        """Folds whole streams that lie one after another; `ends` has the number of chunks up to the end of
        each. Returns keys, sizes and ends of their groups. ValueError if a stream is unfinished or the ends
        do not fit."""
        if self._waiting:
            raise ValueError("a stream is not finished")
        column, lengths, stops = _numbers(keys), _numbers(sizes), _numbers(ends).tolist()
        if [0, *stops] != sorted([0, *stops]) or (stops[-1] if stops else 0) != len(column):
            raise ValueError("streams end in order, the last with the last row")
        folded, sized, marks, begin = b"", b"", [], 0
        for stop in stops:
            for more in (self.feed(column[begin:stop], lengths[begin:stop]), self.finish()):
                folded += more[0]
                sized += more[1]
            marks.append(len(folded) // 8)
            begin = stop
        return folded, sized, _column(marks)

    def _group(self, count: int) -> tuple[int, int]:
        group, self._waiting = self._waiting[:count], self._waiting[count:]
        name = b"".join(key.to_bytes(8, "little") for key, _ in group)
        return siphash(_GROUP_KEY, name), sum(size for _, size in group)


def left_after_rows(
    keys: ReadableBuffer,
    sizes: ReadableBuffer,
    counts: ReadableBuffer,
    least: int,
    shift: int,
    chunks: int,
    total: int,
) -> tuple[int, int]:
    """Checks rows of a part's table, of which `chunks` of `total` bytes are left. Returns what is left after
    them.

    Keys ascend, from `least` on, and their first `shift` bits are 0. `chunks` and `total` are at most 2^63 -
    1. Raises ValueError for rows that no scan writes, in whatever numbers.
    """
    column, lengths, times = _numbers(keys), _numbers(sizes), _numbers(counts)
    if not len(column) == len(lengths) == len(times):
        raise ValueError(f"columns of {len(column)}, {len(lengths)} and {len(times)} rows")
    if not 0 <= shift <= 63:
        raise ValueError(f"a sample of one in 2^{shift}: 2^0 to 2^63 is expected")
    for key in column:
        if key < least or key >> (64 - shift):
            raise ValueError("keys out of order")
        least = key + 1
    chunks -= sum(times)
    total -= sum(size * count for size, count in zip(lengths, times, strict=True))
    if 0 in times.tolist() or chunks < 0 or total < 0:
        raise ValueError("more chunks than the table has")
    return chunks, total


def select_chunks(keys: ReadableBuffer, salt: int, shift: int) -> bytes:
    """Returns, as a column, the rows of a pseudo-random sample of one key in 2^shift. Different salts give
    independent samples. ValueError unless 0 <= shift <= 63."""
    if not 0 <= shift <= 63:
        raise ValueError(f"a choice of one in 2^{shift}: 2^0 to 2^63 is expected")
    chosen = []
    for row, key in enumerate(_numbers(keys)):
        x = (key + salt) & _MASK
        x = (x ^ x >> 30) * 0xBF58_476D_1CE4_E5B9 & _MASK
        x = (x ^ x >> 27) * 0x94D0_49BB_1331_11EB & _MASK
        if (x ^ x >> 31) << shift <= _MASK:
            chosen.append(row)
    return _column(chosen)
