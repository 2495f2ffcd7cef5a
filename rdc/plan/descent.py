"""The descent over two signature trees: what of a wanted file the base has, what to ask for and fetch."""

from __future__ import annotations

from array import array
from operator import mul

from rdc.errors import ProtocolError
from rdc.kernel.pieces import LITERAL, fetched_ranges
from rdc.limits import DESCENT_MAP_RECORDS
from rdc.records import dataclass
from rdc.signature.records import reference_column
from rdc.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import TypeAlias

    from rdc.signature.records import NodeRecords
    from rdc.signature.tree import Level, SignatureTree

__all__ = [
    "ByteRange",
    "Copy",
    "Descent",
    "Fetch",
    "Literal",
    "Part",
    "Patch",
    "Pieces",
    "Repeat",
    "Reuse",
    "ReuseChunk",
    "literal_rows",
]


@dataclass(frozen=True, slots=True)
class Reuse:
    """All chunks of records [first, stop) of a base's level 0, `length` bytes, the whole `count` times."""

    base: int
    """Number of the base."""
    first: int
    stop: int
    length: int
    count: int


@dataclass(frozen=True, slots=True)
class ReuseChunk:
    """One chunk of record `row` of a base's level 0, `length` bytes, `count` times over."""

    base: int
    row: int
    length: int
    count: int


@dataclass(frozen=True, slots=True)
class Fetch:
    """A chunk of `length` bytes that no base has, `count` times over; `reference` checks what arrives. Empty
    for the only chunk of a file, which the file's root checks."""

    reference: bytes
    length: int
    count: int


@dataclass(frozen=True, slots=True)
class Copy:
    """`length` bytes of a chunk that a base has at `offset`, if its fingerprint does not deceive."""

    base: int
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Literal:
    """`length` bytes of a chunk that are to be fetched."""

    length: int


@dataclass(frozen=True, slots=True)
class Pieces:
    """What a chunk is put together from, in order. Packed: a rebuilt library has hundreds of thousands."""

    tiles: bytes
    """Rows of the kernel's."""
    fetched: int
    """Bytes of them that are literals."""

    @classmethod
    def of(cls, *pieces: Copy | Literal) -> Pieces:
        numbers = array("Q")
        for piece in pieces:
            place = (piece.base, piece.offset) if isinstance(piece, Copy) else (LITERAL, 0)
            numbers.extend((*place, piece.length))
        return cls(numbers.tobytes(), sum(piece.length for piece in pieces if isinstance(piece, Literal)))

    def __iter__(self) -> Iterator[Copy | Literal]:
        numbers = iter(array("Q", self.tiles))
        for base, offset, length in zip(numbers, numbers, numbers, strict=True):
            yield Literal(length) if base == LITERAL else Copy(base, offset, length)


@dataclass(frozen=True, slots=True)
class Patch:
    """A chunk of `length` bytes put together from `pieces`, `count` times over; `reference` checks it."""

    reference: bytes
    length: int
    count: int
    pieces: Pieces


@dataclass(frozen=True, slots=True)
class Repeat:
    """The parts, the whole `count` times over (a run of equal nodes that no base has)."""

    parts: tuple[Part, ...]
    length: int
    count: int


Part: TypeAlias = Reuse | ReuseChunk | Fetch | Patch | Repeat


class ByteRange(NamedTuple):
    """Bytes offset to offset + length of a file."""

    offset: int
    length: int


class _Place(NamedTuple):
    base: int
    level: int


class _Unknown:
    """A node no base has; its parts replace it once its records arrive."""

    __slots__ = ("count", "length", "level", "parts")

    def __init__(self, level: int, length: int, count: int) -> None:
        self.level = level
        self.length = length
        self.count = count
        self.parts: list[Part | _Unknown] | None = None


class Descent:
    """Compares a wanted file's tree, level by level from the top, with the trees of the bases held here.

    `level` counts down to 0 (chunks); `asking` are the node numbers on `level + 1` whose records are wanted
    next. A matched record settles all below it. Every part's bytes are accounted for: records that do not add
    up to their node's length end in a ProtocolError, so that no recipe is longer than the file.
    """

    def __init__(self, bases: Sequence[SignatureTree], key: bytes, width: int, size: int) -> None:
        self._bases = bases
        self._key = key
        self._width = width
        self._top = _Unknown(0, size, 1)
        self._matched: dict[_Place, set[int]] = {}
        self.level = 0
        self._asking: dict[int, _Unknown] = {}
        self._next: dict[int, _Unknown] = {}
        self._map: dict[bytes, int] = {}
        """Of the level's references: the row times the number of bases, and the base."""

    def start(self, height: int, records: NodeRecords) -> None:
        """Takes the wanted file's top level."""
        self._enter(height)
        self._take(self._top, records)
        self._advance()

    @property
    def asking(self) -> list[int]:
        """Numbers of the nodes on `level + 1` to be expanded, increasing; none: the recipe is complete."""
        return sorted(self._asking)

    def answer(self, level: int, nodes: Sequence[int], records: Sequence[NodeRecords]) -> bool:
        """Takes the records of some of `asking`; True once the level is complete."""
        if level != self.level:
            raise ProtocolError(f"records of level {level}: asked for level {self.level}")
        for node, part in zip(nodes, records, strict=True):
            unknown = self._asking.pop(node, None)
            if unknown is None:
                raise ProtocolError(f"records of node {node} that was not asked for")
            self._take(unknown, part)
        if self._asking:
            return False
        self._advance()
        return True

    def recipe(self) -> tuple[Part, ...]:
        """The parts of the file, in order, once nothing is asked any more."""
        return tuple(_merged(_settled(self._top.parts or ())))

    def _enter(self, level: int) -> None:
        self.level = level
        self._map = {}
        # What an earlier base has is taken from there.
        for number in reversed(range(len(self._bases))):
            if level <= self._bases[number].height:
                self._index(number, level)

    def _index(self, number: int, level: int) -> None:
        base = self._bases[number]
        held, width, bases = base.levels[level], self._width, len(self._bases)
        if held.records <= DESCENT_MAP_RECORDS or level == base.height:
            references = reference_column(held, self._key, width)
            names = [references[at : at + width] for at in range(0, len(references), width)]
            names.reverse()  # of equal ones the first row is what stays
            self._map.update(zip(names, range((held.records - 1) * bases + number, -1, -bases), strict=True))
            return
        # A level too long to index whole: only what lies under nodes that did not match can be new here.
        above, matched = base.levels[level + 1], self._matched.get(_Place(number, level + 1), set())
        for parent in range(above.records):
            if parent not in matched and len(self._map) < DESCENT_MAP_RECORDS:
                for row in above.children(parent):
                    name = reference_column(held, self._key, width, range(row, row + 1))
                    self._map.setdefault(name, row * bases + number)

    def _take(self, unknown: _Unknown, records: NodeRecords) -> None:
        total = sum(map(mul, records.lengths, records.counts))
        if total != unknown.length:
            raise ProtocolError(f"records of {total} bytes for a node of {unknown.length}")
        parts: list[Part | _Unknown] = []
        find, level, bases = self._map.get, self.level, len(self._bases)
        for i, (reference, length, count) in enumerate(
            zip(records.references, records.lengths, records.counts, strict=True)
        ):
            found = find(reference)
            if found is not None:
                row, base = divmod(found, bases)
                if self._bases[base].levels[level].lengths[row] == length:
                    parts.append(self._reuse(base, row, length, count))
                    continue
            if level == 0:
                parts.append(Fetch(reference, length, count))
            else:
                child = _Unknown(level, length, count)
                if self._next.setdefault(records.first + i, child) is not child:
                    raise ProtocolError(f"record {records.first + i} of level {level} came twice")
                parts.append(child)
        unknown.parts = parts

    def _reuse(self, base: int, row: int, length: int, count: int) -> Part:
        tree = self._bases[base]
        if self.level == 0:
            if tree.levels[0].counts[row] != count:
                return ReuseChunk(base, row, length, count)
            return Reuse(base, row, row + 1, length * count, 1)
        self._matched.setdefault(_Place(base, self.level), set()).add(row)
        first, stop = _chunk_rows(tree, self.level, row)
        return Reuse(base, first, stop, length, count)

    def _advance(self) -> None:
        self._asking, self._next = self._next, {}
        if self._asking:
            self._enter(self.level - 1)
        else:
            self._map = {}


def _chunk_rows(tree: SignatureTree, level: int, row: int) -> tuple[int, int]:
    """Records [first, stop) of level 0 under ONE item of record `row` of `level`."""
    first, last = row, row
    while level:
        above: Level = tree.levels[level]
        first, last = above.children(first).start, above.children(last)[-1]
        level -= 1
    return first, last + 1


def _settled(parts: Iterable[Part | _Unknown]) -> list[Part]:
    settled: list[Part] = []
    for part in parts:
        if not isinstance(part, _Unknown):
            settled.append(part)
        elif part.count == 1:
            settled += _settled(part.parts or ())
        else:
            settled.append(Repeat(tuple(_merged(_settled(part.parts or ()))), part.length, part.count))
    return settled


def _merged(parts: Iterable[Part]) -> Iterator[Part]:
    """Neighbouring reuse of neighbouring records as one part."""
    held: Reuse | None = None
    for part in parts:
        if isinstance(part, Reuse) and part.count == 1:
            if held is not None and (held.base, held.stop) == (part.base, part.first):
                held = Reuse(held.base, held.first, part.stop, held.length + part.length, 1)
            else:
                if held is not None:
                    yield held
                held = part
            continue
        if held is not None:
            yield held
            held = None
        yield part
    if held is not None:
        yield held


def literal_rows(parts: Sequence[Part]) -> array[int]:
    """Every range of the wanted file to be fetched, offset and length by turns, in order, neighbours joined,
    of repeats the first only."""
    return array("Q", fetched_ranges(b"".join(_tiles(parts)), 0))


def _tiles(parts: Sequence[Part]) -> Iterator[bytes]:
    """What is to be fetched, between tiles that say no more than how much is not."""
    for part in parts:
        skipped = part.length * part.count
        if isinstance(part, Patch):
            yield part.pieces.tiles
            skipped -= part.length
        elif isinstance(part, Fetch):
            yield _tile(LITERAL, part.length)
            skipped -= part.length
        elif isinstance(part, Repeat):
            yield from _tiles(part.parts)
            skipped -= part.length
        if skipped:
            yield _tile(0, skipped)


def _tile(base: int, length: int) -> bytes:
    return array("Q", (base, 0, length)).tobytes()
