"""SimilarityIndex: finds the files most similar to a given one among millions, by traits; all pairs of
them, and an index at rest (INDEX.md, "An index at rest").
"""

from __future__ import annotations

import struct
from array import array

from blake3 import blake3

from rdc.errors import RdcError
from rdc.kernel import TraitIndex, TraitPairs
from rdc.kernel.constants import TRAIT_COUNT
from rdc.lean.checks import check_argument, checked_count
from rdc.lean.records import Record
from rdc.limits import SIMILAR_BATCH, SIMILAR_FILES, SIMILAR_WINDOW, SIZE_LIMIT, SPANNING_WINDOW
from rdc.model.entries import little_endian_integers
from rdc.signature.tree import TRAITS_BYTES
from rdc.similarity.traits import Traits, estimate_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import BinaryIO

    from _typeshed import ReadableBuffer


# SimilarPairs: all pairs of similar files in an index, as a stream in bounded memory.


class SimilarPair(Record):
    """Two files that may have much in common. It is a hint, not a measurement."""

    first: int
    """The smaller key."""
    second: int
    matches: int
    """Traits that agree, of twelve."""

    @property
    def jaccard(self) -> float:
        return estimate_of(self.matches).jaccard


class SimilarPairs:
    """An iterator over SimilarPair. Each pair comes once, in no particular order.

    It covers the index as it was when the iterator was made, and takes about 60 bytes per file. A million
    unrelated files take 3 s. That is less than comparing all half a million million pairs: two files with
    more than s matches agree in two traits of one of s sections, so only such files are compared.

    Unrelated files agree by accident: of a million files, 13 million pairs have 4 matches and some 6,000 have
    6. Six matches find a resemblance of 0.8 in 998 of 1,000 cases, and of 0.6 in 85 of 100.

    Groups of related files that would take quadratic time are bounded; `flooded` and `skipped` count what is
    left out.
    """

    __slots__ = ("_found", "_pairs")

    def __init__(self, index: TraitIndex, min_matches: int, *, spanning: bool = False) -> None:
        """`spanning`: return only as many pairs as connect the same files as all pairs would, for every
        number of matches. That is at most 12 per file. Each file is then compared with at most 4,096 others
        that agree with it in two traits. Raises ValueError unless 2 <= min_matches <= 12."""
        window = SPANNING_WINDOW if spanning else SIMILAR_WINDOW
        self._pairs = TraitPairs(index, min_matches, window, spanning=spanning)
        self._found = self._search()

    @property
    def flooded(self) -> int:
        """Files that appear in one pair only, with the smallest key among the files that share all their
        traits. This applies where more than 16 files share them."""
        return self._pairs.flooded

    @property
    def skipped(self) -> int:
        """Comparisons left out so far: those of files that agree in two traits with more than 65,536 others
        (4,096 for spanning pairs). Few of them would have given a pair."""
        return self._pairs.skipped

    def __iter__(self) -> Iterator[SimilarPair]:
        return self._found

    def __next__(self) -> SimilarPair:
        return next(self._found)

    def strongest(
        self, most: int, sketches: ReadableBuffer = b"", least_agreeing: int = 0
    ) -> tuple[array[int], int]:
        """Return the `most` remaining pairs with the most matches, and the number of other pairs.

        Typecode 'Q', most matches first, then by key; `keys_of` unpacks one. Hundreds of millions of pairs
        take seconds, and 16 bytes for each of `most`. Raises ValueError for a key of 2^30 or more.

        `sketches` has 32 bytes for each key, in order, all 0 if they are unknown. Pairs of known sketches
        that agree in fewer than `least_agreeing` bytes are left out, and not counted.
        """
        packed, others = self._pairs.strongest(most, sketches, least_agreeing)
        return array("Q", packed), others

    def _search(self) -> Iterator[SimilarPair]:
        while (found := self._pairs.step()) is not None:
            for first, second, matches in found:
                yield SimilarPair(first, second, matches)


def keys_of(packed: int) -> tuple[int, int]:
    """Return the smaller and the larger key of a pair from `strongest`."""
    return packed >> 30 & 0x3FFF_FFFF, packed & 0x3FFF_FFFF


# An index at rest: the writer, and a reader that checks everything (INDEX.md, "An index at rest").

MAGIC = b"RDCX"
VERSION = 1

_HEAD = struct.Struct("<4sBQ")
_KEY_AND_SIZE = struct.Struct("<QH9x")
_ROW_BYTES = _KEY_AND_SIZE.size
_SAVED_ROWS = 65_536
_SIZE_CODE_MAX = (52 << 10) + 2047
"""The size code of 2^63 - 1 bytes (rdc.similarity.index.size_code)."""


class SimilarityIndexError(RdcError):
    """Bytes that should be an index are not one, are damaged, or were written by another version."""


def write_index(index: TraitIndex, stream: BinaryIO) -> None:
    digest = blake3()

    def write(data: bytes) -> None:
        digest.update(data)
        stream.write(data)

    keys = index.keys()
    write(_HEAD.pack(MAGIC, VERSION, len(keys) // 8))
    for at in range(0, len(keys), 8 * _SAVED_ROWS):
        write(index.rows(keys[at : at + 8 * _SAVED_ROWS]))
    stream.write(digest.digest())


def read_index(index: TraitIndex, stream: BinaryIO) -> None:
    """Fill an empty index. After SimilarityIndexError, the index holds the rows before the damage."""
    digest = blake3()
    head = _read(stream, _HEAD.size)
    magic, version, files = _HEAD.unpack(head)
    if magic != MAGIC or version != VERSION:
        raise SimilarityIndexError(f"expected an index of version {VERSION}, found {head[:5]!r}")
    if files > SIMILAR_FILES:
        raise SimilarityIndexError(f"an index of {files} files: at most {SIMILAR_FILES} are allowed")
    digest.update(head)
    before = -1
    while files:
        # Read in parts, so memory for a claimed but missing length is never allocated.
        rows = _read(stream, min(files, _SAVED_ROWS) * _ROW_BYTES)
        digest.update(rows)
        for key, size in _KEY_AND_SIZE.iter_unpack(rows):
            if key <= before or size > _SIZE_CODE_MAX:
                raise SimilarityIndexError(f"file {key} with size code {size} after file {before}")
            before = key
        index.put(rows)
        files -= len(rows) // _ROW_BYTES
    if _read(stream, digest.digest_size) != digest.digest():
        raise SimilarityIndexError("the index does not have its checksum; it is damaged: create it again")
    if stream.read(1):
        raise SimilarityIndexError("there is something after the index; it is damaged: create it again")


def _read(stream: BinaryIO, size: int) -> bytes:
    """Read exactly `size` bytes. Raises SimilarityIndexError if fewer are left."""
    parts = []
    while size:
        part = stream.read(size)
        if not part:
            raise SimilarityIndexError(
                f"the index ends {size} bytes too early; it is damaged: create it again"
            )
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


# UnionFind: sets of connected numbers, built pair by pair.


class UnionFind:
    """Disjoint sets of numbers. A number that was never joined is a set of its own and takes no memory."""

    def __init__(self) -> None:
        self._above: dict[int, int] = {}

    def top(self, number: int) -> int:
        """Return the smallest number of its set. Path halving keeps later searches short."""
        above = self._above
        while (up := above.get(number, number)) != number:
            above[number] = above.get(up, up)
            number = up
        return number

    def join(self, first: int, second: int) -> bool:
        """Unite the sets of two numbers. Returns whether they were different sets."""
        one, other = self.top(first), self.top(second)
        if one != other:
            self._above[max(one, other)] = min(one, other)
        return one != other


# SimilarityIndex: finds the files most similar to a given one among millions, by traits.

_ROW = struct.Struct("<QH9s")
_ROWS_AT_ONCE = 4096


class Match(Record):
    """One file that a query found. It is a hint that only a comparison of chunks confirms."""

    key: int
    matches: int
    """Traits that agree, of twelve."""

    @property
    def jaccard(self) -> float:
        """The resemblance that this number of matches suggests."""
        return estimate_of(self.matches).jaccard


def size_code(size: int) -> int:
    """Return a size in bytes as a 16-bit code that keeps the order. It is exact below 2,048 and has eleven
    bits of precision above.

    The distance of two codes measures the ratio of the sizes: 1,024 apart is a factor of two. Raises
    ValueError below 0 and above 2^63 - 1.
    """
    if not 0 <= size <= SIZE_LIMIT:
        raise ValueError(f"a size of {size} bytes: need 0 to {SIZE_LIMIT}")
    shift = max(0, size.bit_length() - 11)
    return (shift << 10) + (size >> shift)


class SimilarityIndex:
    """Files by number, with their traits and sizes. A million files take 28 MB, and a query of them 0.3 ms.

    The caller numbers the files, 0 to 2^64 - 1. The index keeps every file's nine bytes of traits as bit
    planes, and a query reads them all. This is faster than inverted lists and takes the same time for any
    files (measured in rdc/similarity/INDEX.md). It holds at most 2^26 files. Threads may share one.

        >>> import rdc
        >>> index = rdc.SimilarityIndex()
        >>> index.add(4711, rdc.Traits(bytes(9)), size=100)
        >>> index.query(rdc.Traits(bytes(9)))
        [Match(key=4711, matches=12)]
    """

    def __init__(self) -> None:
        self._index = TraitIndex()

    def __len__(self) -> int:
        return len(self._index)

    def __contains__(self, key: int) -> bool:
        return key in self._index

    def keys(self) -> Sequence[int]:
        """Return all keys in ascending order."""
        return little_endian_integers("Q", self._index.keys())

    def traits(self, key: int) -> Traits:
        """Return the traits of a file. Raises KeyError if it is not in the index."""
        _, _, traits = _ROW.unpack(self._index.rows(_packed_key(key)))
        return Traits(traits)

    @property
    def memory(self) -> int:
        """Bytes in use: 25 to 30 per file, once there are thousands."""
        return self._index.memory

    def add(self, key: int, traits: Traits, size: int = 0) -> None:
        """Add or replace the file `key`. `size`, in bytes, decides between equally similar files. Raises
        ValueError for a number out of range and for more than 2^26 files."""
        if not isinstance(traits, Traits):
            check_argument("SimilarityIndex.add", "traits", traits, Traits)
        self._index.put(_pack(key, size, traits.packed))

    def add_many(self, keys: Iterable[int], traits: Iterable[bytes], sizes: Iterable[int]) -> None:
        """Like `add` for columns of equal length; a million files per second. Files whose traits are b"" have
        no features and are left out. Raises ValueError as `add` does; the files before the bad one may be in
        the index."""
        rows: list[bytes] = []
        for key, packed, size in zip(keys, traits, sizes, strict=True):
            if not packed:
                continue
            if len(packed) != TRAITS_BYTES:
                raise ValueError(f"traits are {TRAITS_BYTES} bytes, found {len(packed)}")
            rows.append(_pack(key, size, packed))
            if len(rows) >= _ROWS_AT_ONCE:
                self._index.put(b"".join(rows))
                rows = []
        self._index.put(b"".join(rows))

    def remove(self, key: int) -> None:
        """Remove a file. Raises KeyError if it is not in the index."""
        if not self._index.remove(key):
            raise KeyError(key)

    def query(
        self, traits: Traits, limit: int = 8, min_matches: int = 4, *, size: int = 0, near: int = 0
    ) -> list[Match]:
        """Return the files most similar to one with these traits. At most `limit` (1 to 1024) files with at
        least `min_matches` (1 to 12) equal traits, the most equal traits first.

        Among equally similar files, those with the size nearest to `size` come first, then those with the
        number nearest to `near`, then the lowest numbers. (If files are numbered in order of their paths,
        near numbers are neighbours.) With four matches, a resemblance of 0.6 is found 99 times of 100, and 27
        of a million unrelated files pass. Raises ValueError for a number out of range.
        """
        if not isinstance(traits, Traits):
            check_argument("SimilarityIndex.query", "traits", traits, Traits)
        _check_query("SimilarityIndex.query", limit, min_matches)
        (found,) = self._index.query(_pack(near, size, traits.packed), limit, min_matches)
        return [Match(key, matches) for key, matches in found]

    def query_many(
        self, traits: Iterable[Traits], sizes: Iterable[int], limit: int = 8, min_matches: int = 4
    ) -> Iterator[list[Match]]:
        """Like `query` for many files at once: 0.16 ms per query among a million files."""
        _check_query("SimilarityIndex.query_many", limit, min_matches)
        waiting: list[bytes] = []
        for one, size in zip(traits, sizes, strict=True):
            waiting.append(_pack(0, size, one.packed))
            if len(waiting) >= SIMILAR_BATCH:
                yield from self._answers(waiting, limit, min_matches)
                waiting = []
        yield from self._answers(waiting, limit, min_matches)

    def _answers(self, rows: list[bytes], limit: int, min_matches: int) -> Iterator[list[Match]]:
        for found in self._index.query(b"".join(rows), limit, min_matches):
            yield [Match(key, matches) for key, matches in found]

    def pairs(self, min_matches: int = 6, *, spanning: bool = False) -> SimilarPairs:
        """Return all pairs of similar files in the index now; with `spanning`, as many as connect them (see
        SimilarPairs)."""
        min_matches = checked_count("SimilarityIndex.pairs", "min_matches", min_matches, 2, TRAIT_COUNT)
        return SimilarPairs(self._index, min_matches, spanning=spanning)

    def save(self, stream: BinaryIO) -> None:
        """Write the index as INDEX.md defines it: 19 bytes per file. Equal indices give equal bytes."""
        write_index(self._index, stream)

    @classmethod
    def load(cls, stream: BinaryIO) -> SimilarityIndex:
        """Read what `save` wrote. Raises SimilarityIndexError for anything else or anything after it. It
        reads and allocates no more than there is."""
        loaded = cls()
        read_index(loaded._index, stream)
        return loaded


def _check_query(function: str, limit: object, min_matches: object) -> None:
    checked_count(function, "limit", limit, 1, 1024)
    checked_count(function, "min_matches", min_matches, 1, TRAIT_COUNT)


def _pack(key: int, size: int, traits: bytes) -> bytes:
    if type(key) is not int or type(size) is not int:
        check_argument("SimilarityIndex", "key", key, int)
        check_argument("SimilarityIndex", "size", size, int)
    try:
        return _ROW.pack(key, size_code(size), traits)
    except struct.error as e:
        raise ValueError(f"file number {key}: need 0 to 2^64 - 1") from e


def _packed_key(key: int) -> bytes:
    try:
        return struct.pack("<Q", key)
    except struct.error as e:
        raise ValueError(f"file number {key}: need 0 to 2^64 - 1") from e
