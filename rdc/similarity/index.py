"""SimilarityIndex: finds the files most similar to a given one among millions, by traits."""

from __future__ import annotations

import struct

from rdc.kernel import TraitIndex
from rdc.kernel.constants import TRAIT_COUNT
from rdc.lean.checks import check_argument, checked_count
from rdc.lean.records import dataclass
from rdc.limits.searches import SIMILAR_BATCH
from rdc.limits.wire import SIZE_LIMIT
from rdc.model.entries import little_endian_integers
from rdc.signature.tree import TRAITS_BYTES
from rdc.similarity.pairs import SimilarPairs
from rdc.similarity.saved import read_index, write_index
from rdc.similarity.traits import Traits, estimate_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import BinaryIO

__all__ = ["Match", "SimilarityIndex", "size_code"]

_ROW = struct.Struct("<QH9s")
_ROWS_AT_ONCE = 4096


@dataclass(frozen=True, slots=True)
class Match:
    """One file that a query found. It is a hint that only a comparison of chunks confirms."""

    key: int
    matches: int
    """Traits that agree, of twelve."""

    @property
    def jaccard(self) -> float:
        """The resemblance that this number of matches suggests."""
        return estimate_of(self.matches).jaccard


def size_code(size: int) -> int:
    """A size in bytes as a 16-bit code that keeps the order. It is exact below 2,048 and has eleven bits of
    precision above.

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
        """All keys in ascending order."""
        return little_endian_integers("Q", self._index.keys())

    def traits(self, key: int) -> Traits:
        """The traits of a file. Raises KeyError if it is not in the index."""
        _, _, traits = _ROW.unpack(self._index.rows(_packed_key(key)))
        return Traits(traits)

    @property
    def memory(self) -> int:
        """Bytes in use: 25 to 30 per file, once there are thousands."""
        return self._index.memory

    def add(self, key: int, traits: Traits, size: int = 0) -> None:
        """Adds or replaces the file `key`. `size`, in bytes, decides between equally similar files. Raises
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
        """Removes a file. Raises KeyError if it is not in the index."""
        if not self._index.remove(key):
            raise KeyError(key)

    def query(
        self, traits: Traits, limit: int = 8, min_matches: int = 4, *, size: int = 0, near: int = 0
    ) -> list[Match]:
        """The files most similar to one with these traits. At most `limit` (1 to 1024) files with at least
        `min_matches` (1 to 12) equal traits, the most equal traits first.

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
        """All pairs of similar files in the index now; with `spanning`, as many as connect them (see
        SimilarPairs)."""
        min_matches = checked_count("SimilarityIndex.pairs", "min_matches", min_matches, 2, TRAIT_COUNT)
        return SimilarPairs(self._index, min_matches, spanning=spanning)

    def save(self, stream: BinaryIO) -> None:
        """Writes the index as INDEX.md defines it: 19 bytes per file. Equal indices give equal bytes."""
        write_index(self._index, stream)

    @classmethod
    def load(cls, stream: BinaryIO) -> SimilarityIndex:
        """Reads what `save` wrote. Raises SimilarityIndexError for anything else or anything after it. It
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
