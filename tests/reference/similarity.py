"""The index of traits and the pairs of similar files in plain Python: the definition for index.c, pairs.c and
strongest_pairs.c.

A row is 19 bytes, little-endian: key u64 | size code u16 | traits, 9 bytes of twelve 6-bit samples.
"""

from __future__ import annotations

import heapq
import operator
import struct
from array import array

from rdc.kernel.constants import SKETCH_BYTES, TRAIT_COUNT
from rdc.lean.records import Record
from rdc.limits import SIMILAR_FILES, SIMILAR_MATCHES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from _typeshed import ReadableBuffer


__all__ = ["CLASS_FILES", "ROW_BYTES", "TraitIndex", "TraitPairs", "joins", "matches"]

_ROW = struct.Struct("<QH9s")
ROW_BYTES = _ROW.size

CLASS_FILES = 16
"""Up to this many files of equal traits are all paired. Of a larger class only the smallest key is paired."""

PAIR_KEYS = 1 << 30
"""Keys in packed pairs are below this limit."""

_STEP_PAIRS = 4096

_Pair = tuple[int, int, int]


class _File(Record):
    size: int
    traits: bytes


def matches(a: bytes, b: bytes) -> int:
    """Returns how many of the twelve 6-bit samples in 9 bytes agree."""
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
    """Files by key with their traits and sizes. Queries return the files most similar to a given one."""

    __slots__ = ("_files",)

    def __init__(self) -> None:
        self._files: dict[int, _File] = {}

    def __len__(self) -> int:
        return len(self._files)

    def __contains__(self, key: int, /) -> bool:
        return _checked(key) in self._files

    def put(self, rows: ReadableBuffer, /) -> None:
        """Adds rows; a row replaces an earlier one of the same key. ValueError past 2^26 files, or for an
        incomplete row; the rows before it are added."""
        for key, size, traits in _ROW.iter_unpack(_records(rows, ROW_BYTES, "rows")):
            if len(self._files) >= SIMILAR_FILES and key not in self._files:
                raise ValueError(f"an index holds at most {SIMILAR_FILES} files")
            self._files[key] = _File(size, traits)

    def remove(self, key: int, /) -> bool:
        """Removes a key. Returns whether it was present."""
        return self._files.pop(_checked(key), None) is not None

    def keys(self) -> bytes:
        """Returns every key, ascending, as little-endian 64-bit numbers."""
        return struct.pack(f"<{len(self._files)}Q", *sorted(self._files))

    def rows(self, keys: ReadableBuffer, /) -> bytes:
        """Returns the rows of packed keys in their order. KeyError for an absent key."""
        found = []
        for (key,) in struct.iter_unpack("<Q", _records(keys, 8, "keys")):
            file = self._files[key]
            found.append(_ROW.pack(key, file.size, file.traits))
        return b"".join(found)

    def query(self, rows: ReadableBuffer, limit: int, min_matches: int, /) -> list[list[tuple[int, int]]]:
        """Returns for each row (key, matches) of at most `limit` files with at least `min_matches` equal
        traits.

        Files are ordered by most matches, nearest size code, nearest key, smaller key. ValueError unless 1 <=
        limit <= 1024 and 1 <= min_matches <= 12.
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
        """Bytes of memory used, approximately."""
        return 250 * len(self._files)


def joins(min_matches: int) -> list[tuple[int, int]]:
    """Returns pairs of traits so that any two files with `min_matches` >= 2 equal traits agree in one of the
    pairs.

    Files that agree in more traits than there are sections agree in two traits of one section.
    """
    sections = max(s for s in (1, 2, 3, 4, 6) if s < min_matches)
    size = TRAIT_COUNT // sections
    return [
        (t, u)
        for begin in range(0, TRAIT_COUNT, size)
        for t in range(begin, begin + size)
        for u in range(t + 1, begin + size)
    ]


class _Class(Record):
    """Files of equal traits."""

    samples: tuple[int, ...]
    keys: tuple[int, ...]
    """Ascending."""

    @property
    def paired_keys(self) -> tuple[int, ...]:
        """Keys that are paired with files of other classes."""
        return self.keys if len(self.keys) <= CLASS_FILES else self.keys[:1]


class TraitPairs:
    """All pairs of files with at least `min_matches` equal traits, in the index as it was at construction.

    Two limits keep the work linear in the number of files. If more than CLASS_FILES files have equal traits,
    only the smallest key is paired, with the other files of the class and with other classes. Among files
    that agree in two traits, each is compared with the next `window` files in the order of traits.

    `spanning` leaves out pairs whose files are already connected by pairs of as many matches or more. The
    remaining pairs connect the same groups for any number of matches. There are at most 12 per file.
    """

    __slots__ = ("_pairs", "flooded", "skipped")

    flooded: int
    """Files represented by another file with equal traits."""
    skipped: int
    """Comparisons left out because of the window so far. Most would have found nothing."""

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
        """Returns some more pairs (smaller key, larger key, matches), each once; possibly an empty list. None
        at the end."""
        found = [pair for _, pair in zip(range(_STEP_PAIRS), self._pairs, strict=False)]
        return found or None

    def strongest(self, most: int, sketches: ReadableBuffer, least: int) -> tuple[bytes, int]:
        """Returns the `most` remaining pairs with most matches, and the number of other remaining pairs.

        A pair is a native u64: number of differing traits << 60 | smaller key << 30 | larger key. Pairs
        ascend, so equally strong ones are ordered by key.

        `sketches`: nothing, or SKETCH_BYTES for each key, all 0 if they are unknown. Pairs of known sketches
        that agree in fewer than `least` bytes do not take part, and are not counted.

        ValueError unless most >= 1, for a key of at least 2^30, and for a key without a sketch.
        """
        if most < 1:
            raise ValueError(f"the {most} strongest pairs: need 1 or more")
        column = bytes(memoryview(sketches).cast("B"))
        if len(column) % SKETCH_BYTES:
            raise ValueError(f"{len(column)} bytes are no whole sketches of {SKETCH_BYTES}")
        keys = len(column) // SKETCH_BYTES or PAIR_KEYS
        packed = []
        while (found := self.step()) is not None:
            for first, second, alike in found:
                if second >= keys:
                    raise ValueError(f"pairs of keys from {keys} on")
                if column and _differ(_sketch_of(column, first), _sketch_of(column, second), least):
                    continue
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
        """Yields the pairs between two classes, unless an earlier join has given them."""
        alike = [x == y for x, y in zip(a.samples, b.samples, strict=True)]
        if sum(alike) < min_matches or any(alike[t] and alike[u] for t, u in seen):
            return
        for x in a.paired_keys:
            for y in b.paired_keys:
                yield min(x, y), max(x, y), sum(alike)


def _sketch_of(column: bytes, key: int) -> bytes:
    return column[SKETCH_BYTES * key : SKETCH_BYTES * (key + 1)]


def _differ(one: bytes, other: bytes, least: int) -> bool:
    return any(one) and any(other) and sum(map(operator.eq, one, other)) < least


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
