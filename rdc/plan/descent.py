"""The descent over two signature trees: which chunks of a wanted file the bases have, and which to fetch."""

from __future__ import annotations

from array import array
from operator import mul

from rdc.errors import ProtocolError
from rdc.kernel import LITERAL, copies_of_instructions, fetched_ranges
from rdc.kernel.blake3_many import equal_parts
from rdc.lean.records import Record
from rdc.lean.typed import NamedTuple
from rdc.limits import DESCENT_MAP_RECORDS
from rdc.model.entries import Clone
from rdc.signature.codec import NodeRecords, reference_column

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TypeAlias

    from rdc.signature.tree import Level, SignatureTree


class Reuse(Record):
    """All chunks of records [first, stop) of a base's level 0, `length` bytes, repeated `count` times as a
    whole."""

    base: int
    """Number of the base."""
    first: int
    stop: int
    length: int
    count: int


class ReuseChunk(Record):
    """One chunk of record `row` of a base's level 0, `length` bytes, repeated `count` times."""

    base: int
    row: int
    length: int
    count: int


class Fetch(Record):
    """A chunk of `length` bytes that no base has, repeated `count` times. `reference` verifies what arrives.
    It is empty for the only chunk of a file, which the file's root digest verifies."""

    reference: bytes
    length: int
    count: int


class Copy(Record):
    """`length` bytes of a chunk that a base has at `offset`, unless the block's fingerprint matched by
    chance."""

    base: int
    offset: int
    length: int


class Literal(Record):
    """`length` bytes of a chunk that have to be fetched."""

    length: int


class ChunkRecipe(Record):
    """The copies and literals that make up one chunk, in order.

    They are packed, because a rebuilt library has hundreds of thousands of them.
    """

    instructions: bytes
    """The kernel's rows of copy instructions."""
    fetched: int
    """Bytes of the chunk that are literals."""

    @classmethod
    def of(cls, *instructions: Copy | Literal) -> ChunkRecipe:
        numbers = array("Q")
        for instruction in instructions:
            source = (instruction.base, instruction.offset) if isinstance(instruction, Copy) else (LITERAL, 0)
            numbers.extend((*source, instruction.length))
        return cls(
            numbers.tobytes(),
            sum(instruction.length for instruction in instructions if isinstance(instruction, Literal)),
        )

    def __iter__(self) -> Iterator[Copy | Literal]:
        numbers = iter(array("Q", self.instructions))
        for base, offset, length in zip(numbers, numbers, numbers, strict=True):
            yield Literal(length) if base == LITERAL else Copy(base, offset, length)


class Patch(Record):
    """A chunk of `length` bytes rebuilt by `chunk_recipe`, repeated `count` times. `reference` verifies
    it."""

    reference: bytes
    length: int
    count: int
    chunk_recipe: ChunkRecipe


class Repeat(Record):
    """The parts, repeated `count` times as a whole: a run of equal nodes that no base has."""

    parts: tuple[Part, ...]
    length: int
    count: int


Part: TypeAlias = Reuse | ReuseChunk | Fetch | Patch | Repeat


class ByteRange(NamedTuple):
    """Bytes offset to offset + length of a file."""

    offset: int
    length: int


class _LevelOfBase(NamedTuple):
    base: int
    level: int


class _Unknown(Record, frozen=False):
    """A node that no base has. Its parts replace it when its records arrive."""

    level: int
    length: int
    count: int
    parts: list[Part | _Unknown] | None = None


class Descent:
    """Compares the wanted file's tree with the trees of the bases, level by level from the top.

    `level` counts down to 0, the level of chunks. `asking` lists the nodes of `level + 1` whose records are
    wanted next. A matching record resolves the whole subtree below it.

    The lengths of records must add up to the length of their node, otherwise ProtocolError is raised. So no
    recipe is longer than the file.
    """

    def __init__(self, bases: Sequence[SignatureTree], key: bytes, width: int, size: int) -> None:
        self._bases = bases
        self._key = key
        self._width = width
        self._top = _Unknown(0, size, 1)
        self._matched: dict[_LevelOfBase, set[int]] = {}
        self.level = 0
        self._asking: dict[int, _Unknown] = {}
        self._next: dict[int, _Unknown] = {}
        self._map: dict[bytes, int] = {}
        """From each reference of this level to one number: its row times the number of bases, plus the
        base."""

    def start(self, height: int, records: NodeRecords) -> None:
        """Take the records of the wanted file's top level."""
        self._enter(height)
        self._take(self._top, records)
        self._advance()

    @property
    def asking(self) -> list[int]:
        """Numbers of the nodes on `level + 1` to expand, ascending. Empty: the recipe is complete."""
        return sorted(self._asking)

    def answer(self, level: int, nodes: Sequence[int], records: Iterable[NodeRecords]) -> bool:
        """Take the records of some nodes of `asking`. Returns True when the level is complete. ProtocolError
        for records that were not asked for."""
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
        """Return the parts of the file in order. Valid once `asking` is empty."""
        return _merged(_resolved(self._top.parts or ()))

    def _enter(self, level: int) -> None:
        self.level = level
        self._map = {}
        # Earlier bases are indexed last, so that they win where several have the same reference.
        for number in reversed(range(len(self._bases))):
            if level < len(self._bases[number].levels):
                self._index(number, level)

    def _index(self, number: int, level: int) -> None:
        levels = self._bases[number].levels
        indexed, width, bases = levels[level], self._width, len(self._bases)
        rows = len(indexed.lengths)
        if rows <= DESCENT_MAP_RECORDS or level == len(levels) - 1:
            references = reference_column(indexed, self._key, width)
            rows_of = equal_parts(references, width)
            rows_of.reverse()  # of equal references the first row wins
            self._map.update(zip(rows_of, range((rows - 1) * bases + number, -1, -bases), strict=True))
            return
        # This level is too long to index as a whole. New matches can only lie under nodes that did not match,
        # so index only these.
        above, matched = levels[level + 1], self._matched.get(_LevelOfBase(number, level + 1), set())
        for parent in range(above.records):
            if parent not in matched and len(self._map) < DESCENT_MAP_RECORDS:
                for row in above.children(parent):
                    reference = reference_column(indexed, self._key, width, range(row, row + 1))
                    self._map.setdefault(reference, row * bases + number)

    def _take(self, unknown: _Unknown, records: NodeRecords) -> None:
        total = sum(map(mul, records.lengths, records.counts))
        if total != unknown.length:
            raise ProtocolError(f"records of {total} bytes for a node of {unknown.length}")
        parts: list[Part | _Unknown] = []
        find, level, bases = self._map.get, self.level, len(self._bases)
        # Neighbouring records that a base has one after another become one part: this is the way of nearly
        # every record, and a part for each would cost more than the comparison.
        # `size` bytes, records [first, stop) of level 0 of base `at`, are the part that grows; 0 bytes: none.
        at = first = stop = size = 0
        for i, (reference, length, count) in enumerate(
            zip(records.references, records.lengths, records.counts, strict=True)
        ):
            found = find(reference)
            row, base = (0, 0) if found is None else divmod(found, bases)
            if found is not None and self._bases[base].levels[level].lengths[row] == length:
                if level:
                    self._matched.setdefault(_LevelOfBase(base, level), set()).add(row)
                    begin, end = _chunk_rows(self._bases[base], level, row)
                else:
                    begin, end = row, row + 1
                if count == 1 if level else self._bases[base].levels[0].counts[row] == count:
                    if size and (at, stop) == (base, begin):
                        stop, size = end, size + length * count
                        continue
                    if size:
                        parts.append(Reuse(at, first, stop, size, 1))
                    at, first, stop, size = base, begin, end, length * count
                    continue
                part: Part | _Unknown = (
                    Reuse(base, begin, end, length, count) if level else ReuseChunk(base, row, length, count)
                )
            elif level == 0:
                part = Fetch(reference, length, count)
            else:
                part = _Unknown(level, length, count)
                if self._next.setdefault(records.first + i, part) is not part:
                    raise ProtocolError(f"record {records.first + i} of level {level} came twice")
            if size:
                parts.append(Reuse(at, first, stop, size, 1))
                size = 0
            parts.append(part)
        if size:
            parts.append(Reuse(at, first, stop, size, 1))
        unknown.parts = parts

    def _advance(self) -> None:
        self._asking, self._next = self._next, {}
        if self._asking:
            self._enter(self.level - 1)
        else:
            self._map = {}


def _chunk_rows(tree: SignatureTree, level: int, row: int) -> tuple[int, int]:
    """Return the records [first, stop) of level 0 under ONE item of record `row` of `level`."""
    first, last = row, row
    while level:
        above: Level = tree.levels[level]
        first, last = above.starts[first], above.starts[last] + above.sizes[last] - 1
        level -= 1
    return first, last + 1


def _resolved(parts: Iterable[Part | _Unknown]) -> list[Part]:
    resolved: list[Part] = []
    for part in parts:
        if not isinstance(part, _Unknown):
            resolved.append(part)
        elif part.count == 1:
            resolved += _resolved(part.parts or ())
        else:
            resolved.append(Repeat(_merged(_resolved(part.parts or ())), part.length, part.count))
    return resolved


def _merged(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Join neighbouring parts that reuse neighbouring records."""
    merged: list[Part] = []
    joined: Reuse | None = None
    for part in parts:
        if isinstance(part, Reuse) and part.count == 1:
            if joined is not None and (joined.base, joined.stop) == (part.base, part.first):
                joined = Reuse(joined.base, joined.first, part.stop, joined.length + part.length, 1)
            else:
                if joined is not None:
                    merged.append(joined)
                joined = part
            continue
        if joined is not None:
            merged.append(joined)
            joined = None
        merged.append(part)
    if joined is not None:
        merged.append(joined)
    return tuple(merged)


def literal_rows(parts: Sequence[Part]) -> array[int]:
    """Return every range of the wanted file that has to be fetched: offset and length alternate, in file
    order. Adjacent ranges are joined. Repeated content counts the first time only."""
    return array("Q", fetched_ranges(b"".join(_copy_instructions(parts)), 0))


def _copy_instructions(parts: Sequence[Part]) -> Iterator[bytes]:
    """Yield copy instructions: literals for what is fetched, and copies that only skip everything else."""
    for part in parts:
        skipped = part.length * part.count
        if isinstance(part, Patch):
            yield part.chunk_recipe.instructions
            skipped -= part.length
        elif isinstance(part, Fetch):
            yield array("Q", (LITERAL, 0, part.length)).tobytes()
            skipped -= part.length
        elif isinstance(part, Repeat):
            yield from _copy_instructions(part.parts)
            skipped -= part.length
        if skipped:
            yield array("Q", (0, 0, skipped)).tobytes()


CLONE_BYTES = 64 << 10
"""Bytes of the shortest clone. A shorter range is written in less time, and would split the file further."""

BRIDGED_BYTES = 1 << 20
"""Most bytes between two ranges of one clone. What lies between is cloned as well, and written over."""


NO_BASE = -1
"""In place of a base: content that comes from none."""


def plan_clones(
    parts: Sequence[Part],
    trees: Sequence[SignatureTree],
    offset: Callable[[int, int], int],
    block: int,
) -> list[Clone]:
    """Return the ranges to clone for a new version made of `parts`, in order, without overlap.

    `trees`: of the bases. `offset`: returns where the chunk of a base's row begins. `block`: all limits are
    multiples of it, but for an end that is the end of both files.
    """
    found: list[Clone] = []
    run: Clone | None = None
    reach = 0
    for copy, repeated in _copies(parts, trees, offset):
        if run is not None and copy.start <= reach:
            longer = _joined(run, copy, repeated, trees)
            if longer is not run:
                run, reach = longer, copy.stop + BRIDGED_BYTES
                continue
            if copy.stop - copy.start < CLONE_BYTES <= run.stop - run.start:
                continue  # not worth to end the clone
        if copy.base != NO_BASE and copy.shift % block == 0 and copy.stop - copy.start >= block:
            found += () if run is None else (run,)
            run, reach = copy, copy.stop + BRIDGED_BYTES
    found += () if run is None else (run,)
    size = sum(part.length * part.count for part in parts)
    aligned = [_aligned(run, block, size, trees[run.base].size) for run in found]
    return [clone for clone in aligned if clone.stop - clone.start >= CLONE_BYTES]


def _joined(run: Clone, copy: Clone, repeated: bool, trees: Sequence[SignatureTree]) -> Clone:
    """Return `run` with a range that follows, or the same `run` if the range does not belong to it."""
    if (copy.base, copy.shift) == (run.base, run.shift):
        return run._replace(stop=copy.stop)
    if not repeated:
        return run
    # The base may end before, or have something else there: then it is written.
    return run._replace(stop=max(run.stop, min(copy.stop, trees[run.base].size - run.shift)))


def _aligned(run: Clone, block: int, size: int, base_size: int) -> Clone:
    """Return the whole blocks of a range. `size`, `base_size`: of the files, whose last block may be
    short."""
    stop = run.stop
    if stop != size or stop + run.shift != base_size:
        stop = stop // block * block
    return run._replace(start=-(-run.start // block) * block, stop=stop)


def _copies(
    parts: Sequence[Part], trees: Sequence[SignatureTree], offset: Callable[[int, int], int]
) -> Iterator[tuple[Clone, bool]]:
    """Yield every range that `parts` copy from a base, in file order. Of repeated ones, the first.

    True beside it: a run of equal chunks, most often zeros. They may be there whatever is cloned.
    """
    at = 0
    for part in parts:
        if isinstance(part, Reuse):
            repeated = part.stop == part.first + 1 and trees[part.base].levels[0].counts[part.first] > 1
            yield Clone(at, at + part.length, part.base, offset(part.base, part.first) - at), repeated
        elif isinstance(part, ReuseChunk):
            # The base may hold the chunk several times in a row as well.
            times = min(part.count, trees[part.base].levels[0].counts[part.row])
            shift = offset(part.base, part.row) - at
            yield Clone(at, at + part.length * times, part.base, shift), part.count > 1
        elif isinstance(part, Fetch):
            if part.count > 1:
                yield Clone(at, at + part.length * part.count, NO_BASE, 0), True
        elif isinstance(part, Patch):
            rows = iter(array("Q", copies_of_instructions(part.chunk_recipe.instructions, at)))
            for start, base, base_offset, length in zip(rows, rows, rows, rows, strict=True):
                yield Clone(start, start + length, base, base_offset - start), False
        at += part.length * part.count
