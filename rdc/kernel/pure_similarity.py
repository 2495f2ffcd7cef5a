"""What trait_index.c, trait_pairs.c and strongest_pairs.c compute, in plain Python, which defines the truth.

A row is 19 bytes, little-endian: key u64 | size code u16 | traits, 9 bytes of twelve 6-bit samples.
"""

from __future__ import annotations

import heapq
import struct
from array import array

from rdc.kernel.constants import TRAIT_COUNT
from rdc.limits import SIMILAR_FILES, SIMILAR_MATCHES
from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from _typeshed import ReadableBuffer

__all__ = ["CLASS_FILES", "ROW_BYTES", "TraitIndex", "TraitPairs", "joins", "matches"]

_ROW = struct.Struct("<QH9s")
ROW_BYTES = _ROW.size

CLASS_FILES = 16
"""Files of equal traits that all stand in pairs; of a larger class only the smallest key does."""

PAIR_KEYS = 1 << 30
"""Keys of files in packed pairs are below it."""

_STEP_PAIRS = 4096

_Pair = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class _File:
    size: int
    traits: bytes


def matches(a: bytes, b: bytes) -> int:
    """How many of the twelve 6-bit samples in 9 bytes agree."""
    differing = int.from_bytes(a, "little") ^ int.from_bytes(b, "little")
    return sum(differing >> 6 * t & 63 == 0 for t in range(TRAIT_COUNT))


def _records(packed: ReadableBuffer, each: int, what: str) -> bytes:
    data = bytes(packed)
    if len(data) % each:
        raise ValueError(f"{len(data)} bytes are no whole number of {each}-byte {what}")
    return data


def _checked(key: int) -> int:
    if not 0 <= key < 1 << 64:
        raise ValueError("keys are numbers of 64 bits")
    return key


class TraitIndex:
    """Files by key with their traits and sizes, and the ones most like a given file."""

    __slots__ = ("_files",)

    def __init__(self) -> None:
        self._files: dict[int, _File] = {}

    def __len__(self) -> int:
        return len(self._files)

    def __contains__(self, key: int, /) -> bool:
        return _checked(key) in self._files

    def put(self, rows: ReadableBuffer, /) -> None:
        """Adds rows; one whose key is there takes its place. ValueError past 2^26 files, or for a part of a
        row; rows before it are in."""
        for key, size, traits in _ROW.iter_unpack(_records(rows, ROW_BYTES, "rows")):
            if len(self._files) >= SIMILAR_FILES and key not in self._files:
                raise ValueError(f"an index holds at most {SIMILAR_FILES} files")
            self._files[key] = _File(size, traits)

    def remove(self, key: int, /) -> bool:
        """Whether the key was there."""
        return self._files.pop(_checked(key), None) is not None

    def keys(self) -> bytes:
        """Every key, ascending, as little-endian 64-bit numbers."""
        return struct.pack(f"<{len(self._files)}Q", *sorted(self._files))

    def rows(self, keys: ReadableBuffer, /) -> bytes:
        """The rows of packed keys in their order; KeyError for one that is not there."""
        found = []
        for (key,) in struct.iter_unpack("<Q", _records(keys, 8, "keys")):
            file = self._files[key]
            found.append(_ROW.pack(key, file.size, file.traits))
        return b"".join(found)

    def query(self, rows: ReadableBuffer, limit: int, min_matches: int, /) -> list[list[tuple[int, int]]]:
        """For each row the keys of at most `limit` files with at least `min_matches` traits like its own, and
        how many: most matches first, then the nearest size code, the nearest key, the smaller key.

        ValueError unless 1 <= limit <= 1024 and 1 <= min_matches <= 12.
        """
        if not (1 <= limit <= SIMILAR_MATCHES and 1 <= min_matches <= TRAIT_COUNT):
            raise ValueError(
                f"a query for {limit} files with {min_matches} matches: "
                f"need 1 to {SIMILAR_MATCHES} files, 1 to {TRAIT_COUNT} matches"
            )
        return [
            self._query(key, _File(size, traits), limit, min_matches)
            for key, size, traits in _ROW.iter_unpack(_records(rows, ROW_BYTES, "rows"))
        ]

    def _query(self, near: int, wanted: _File, limit: int, min_matches: int) -> list[tuple[int, int]]:
        found = []
        for key, file in self._files.items():
            count = matches(file.traits, wanted.traits)
            if count >= min_matches:
                found.append((-count, abs(file.size - wanted.size), abs(key - near), key))
        return [(key, -count) for count, _, _, key in heapq.nsmallest(limit, found)]

    @property
    def memory(self) -> int:
        """Bytes it holds, about."""
        return 250 * len(self._files)


def joins(min_matches: int) -> list[tuple[int, int]]:
    """Pairs of traits, one of which agrees in every two files with `min_matches` >= 2 traits alike.

    Whoever agrees in more traits than there are sections agrees in two of one section.
    """
    sections = max(s for s in (1, 2, 3, 4, 6) if s < min_matches)
    size = TRAIT_COUNT // sections
    return [
        (t, u)
        for begin in range(0, TRAIT_COUNT, size)
        for t in range(begin, begin + size)
        for u in range(t + 1, begin + size)
    ]


@dataclass(frozen=True, slots=True)
class _Class:
    """Files of equal traits."""

    samples: tuple[int, ...]
    keys: tuple[int, ...]
    """Ascending."""

    @property
    def standing(self) -> tuple[int, ...]:
        """Those that stand in pairs with files of other classes."""
        return self.keys if len(self.keys) <= CLASS_FILES else self.keys[:1]


class TraitPairs:
    """All pairs of files in an index, as it was when this was made, with `min_matches` traits alike or more.

    Two bounds keep the work linear in the files. Of more than CLASS_FILES files with equal traits only the
    one with the smallest key stands in pairs: with each of the others, and with files of other traits. And
    among files that agree in two traits each is compared with the `window` that follow in the order of
    traits.

    With `spanning`, pairs are left out whose files are connected already by pairs of as many matches or more.
    The rest connects the same groups, whatever number of matches counts, and is at most 12 pairs a file.
    """

    __slots__ = ("_pairs", "flooded", "skipped")

    flooded: int
    """Files that another one with equal traits stands for."""
    skipped: int
    """Comparisons that the window left out so far; of most, nothing would have come."""

    def __init__(self, index: TraitIndex, min_matches: int, window: int, *, spanning: bool = False) -> None:
        """ValueError unless 2 <= min_matches <= 12 and window >= 1."""
        if not (2 <= min_matches <= TRAIT_COUNT and window >= 1):
            raise ValueError(
                f"pairs with {min_matches} matches in a window of {window}: "
                f"need 2 to {TRAIT_COUNT}, and 1 or more"
            )
        by_traits: dict[int, list[int]] = {}
        for key, _, traits in _ROW.iter_unpack(index.rows(index.keys())):
            by_traits.setdefault(int.from_bytes(traits, "little"), []).append(key)
        classes = [
            _Class(tuple(traits >> 6 * t & 63 for t in range(TRAIT_COUNT)), tuple(keys))
            for traits, keys in sorted(by_traits.items())
        ]
        self.flooded = sum(len(c.keys) - 1 for c in classes if len(c.keys) > CLASS_FILES)
        self.skipped = 0
        found = self._search(classes, min_matches, window)
        self._pairs = _spanning(found, min_matches) if spanning else found

    def step(self) -> list[_Pair] | None:
        """Some more pairs (smaller key, larger key, matches), each given once; maybe none yet. None at the
        end."""
        found = [pair for _, pair in zip(range(_STEP_PAIRS), self._pairs, strict=False)]
        return found or None

    def strongest(self, most: int) -> tuple[bytes, int]:
        """Of all pairs that are left, the `most` with most matches, and how many others there were.

        Native-endian u64, ascending: traits that differ << 60 | smaller key << 30 | larger key; so equally
        strong ones come by key. ValueError unless most >= 1, or for a key from 2^30 on.
        """
        if most < 1:
            raise ValueError(f"the {most} strongest pairs: need 1 or more")
        packed = []
        while (found := self.step()) is not None:
            for first, second, alike in found:
                if second >= PAIR_KEYS:
                    raise ValueError(f"pairs of keys from {PAIR_KEYS} on")
                packed.append((TRAIT_COUNT - alike) << 60 | first << 30 | second)
        packed.sort()
        return array("Q", packed[:most]).tobytes(), max(0, len(packed) - most)

    def _search(self, classes: list[_Class], min_matches: int, window: int) -> Iterator[_Pair]:
        for one in classes:
            flood = len(one.keys) > CLASS_FILES
            for i, key in enumerate(one.keys[:1] if flood else one.keys):
                for other in one.keys[i + 1 :]:
                    yield key, other, TRAIT_COUNT
        seen: list[tuple[int, int]] = []
        for t, u in joins(min_matches):
            buckets: dict[tuple[int, int], list[_Class]] = {}
            for one in classes:
                buckets.setdefault((one.samples[t], one.samples[u]), []).append(one)
            for bucket in buckets.values():
                for i, a in enumerate(bucket):
                    near = bucket[i + 1 : i + 1 + window]
                    self.skipped += len(bucket) - i - 1 - len(near)
                    for b in near:
                        yield from self._pair(a, b, min_matches, seen)
            seen.append((t, u))

    @staticmethod
    def _pair(a: _Class, b: _Class, min_matches: int, seen: list[tuple[int, int]]) -> Iterator[_Pair]:
        """The pairs between two classes, unless an earlier join has given them."""
        alike = [x == y for x, y in zip(a.samples, b.samples, strict=True)]
        if sum(alike) < min_matches or any(alike[t] and alike[u] for t, u in seen):
            return
        for x in a.standing:
            for y in b.standing:
                yield min(x, y), max(x, y), sum(alike)


def _spanning(pairs: Iterator[_Pair], min_matches: int) -> Iterator[_Pair]:
    forests: dict[int, dict[int, int]] = {m: {} for m in range(min_matches, TRAIT_COUNT + 1)}

    def top(matches: int, key: int) -> int:
        above = forests[matches]
        while key in above:
            key = above[key]
        return key

    for first, second, matches in pairs:
        if top(matches, first) == top(matches, second):
            continue
        for fewer in range(min_matches, matches + 1):
            x, y = top(fewer, first), top(fewer, second)
            if x != y:
                forests[fewer][max(x, y)] = min(x, y)
        yield first, second, matches
