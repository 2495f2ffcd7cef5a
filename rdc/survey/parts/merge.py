"""Adds parts of a scan up into one outcome, as if one scan had read all files."""

from __future__ import annotations

import contextlib
import os
from array import array
from collections import deque

from rdc.errors import ExitCode, UsageError, one_line, worse
from rdc.kernel import left_after_rows
from rdc.lean.records import Record
from rdc.lean.threads import Task, Threads
from rdc.limits import PART_PROBLEMS_BYTES, SCAN_PROBLEMS, SIZE_LIMIT
from rdc.model.scan import ScanProblem
from rdc.signature.tree import TRAITS_BYTES
from rdc.survey.container import PartError
from rdc.survey.count.chunk_locations import FILES, REFERENCES, ChunkLocations
from rdc.survey.count.counters import Outcome
from rdc.survey.count.identical import CONTENTS, NAMES, YEARS
from rdc.survey.parts.part_file import COUNTERS, REASONS, PartHead, check_one_scan, decode_head
from rdc.survey.parts.sections import SECTION_BYTES, Section, decode_fields, read_sections
from rdc.survey.read import usable_workers
from rdc.survey.slices import check_complete, joined_slices, tree_change

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import BinaryIO

    from rdc.kernel import ChunkTable


# MergedDirectories: the directories of all slices of one scan, numbered as one scan numbers them.

_Key = tuple[int, bytes]
"""Number of the path of the scan, and the directory's path."""


class MergedDirectories:
    """Equal paths are one directory. Its position in the walk decides its number.

    Slices that walked an unchanged tree agree in all positions. If the tree changed meanwhile, the least one
    counts. A directory still comes after the one above it: whichever slice met it first had met the one above
    before.
    """

    def __init__(self) -> None:
        self._walked: dict[_Key, int] = {}
        self._above: dict[_Key, _Key | None] = {}
        self._part: list[_Key] = []
        """The directories of the part that is being read, by number."""
        self._numbers: dict[_Key, int] = {}

    def begin_part(self) -> None:
        self._part = []

    def add(self, paths: list[bytes], above: array[int], walked: array[int], operands: array[int]) -> None:
        """Add directories of a part as it stores them. Raises ValueError for what no scan writes."""
        for path, parent, position, operand in zip(paths, above, walked, operands, strict=True):
            if parent > len(self._part):
                raise ValueError("a directory above itself")
            key = (operand, path)
            over = self._part[parent - 1] if parent else None
            known = self._walked.get(key)
            if over is not None and self._walked[over] >= position:
                raise ValueError("a directory that was walked before the one above it")
            if known is not None and self._above[key] != over:
                raise ValueError("a directory in two places")
            self._walked[key] = position if known is None else min(known, position)
            self._above[key] = over
            self._part.append(key)

    def number_all(self, locations: ChunkLocations) -> None:
        """Add all directories to `locations`, in the order of the walk."""
        self._part = []
        for key in sorted(self._walked, key=lambda key: (self._walked[key], key)):
            over = self._above[key]
            parent = -1 if over is None else self._numbers[over]
            operand, path = key
            self._numbers[key] = locations.add_directory(path, parent, operand, self._walked[key])
        self._walked, self._above = {}, {}

    def number(self, operand: int, path: bytes) -> int:
        """Return the number of a directory. Raises KeyError for one that was not added."""
        return self._numbers[operand, path]


# RowAdder: adds the rows of parts to tables in a thread, while the next rows are read and checked.

THREAD_ROWS = 16_384
"""From this many rows on, adding takes a millisecond, which is worth a thread."""

IN_FLIGHT = 2
"""Rows that wait, in sections: at most 1.5 MB each."""


class RowAdder:
    """Rows are added in the order in which they come. `wait_for` comes before anything else is done with a
    table, and `finish` before the end."""

    def __init__(self) -> None:
        self._threads: Threads | None = None
        self._added: deque[tuple[ChunkTable, Task[None]]] = deque()

    def add(self, table: ChunkTable, keys: array[int], sizes: array[int], counts: array[int]) -> None:
        """Add rows to a table. Raises MemoryError, also for rows of an earlier call."""
        if len(keys) < THREAD_ROWS or usable_workers() == 1:
            self.wait_for(table)
            table.add(keys, sizes, counts)
            return
        if self._threads is None:
            self._threads = Threads(1, "rdc merge")
        while len(self._added) >= IN_FLIGHT:
            self._next()
        self._added.append((table, self._threads.submit(table.add, keys, sizes, counts)))

    def wait_for(self, table: ChunkTable) -> None:
        """Return once no rows wait for `table`. Raises MemoryError."""
        while any(one is table for one, _ in self._added):
            self._next()

    def finish(self) -> None:
        """Return once all rows are in their tables. Raises MemoryError."""
        while self._added:
            self._next()

    def _next(self) -> None:
        _, task = self._added.popleft()
        task.result()

    def close(self) -> None:
        """End the thread, after the rows that wait."""
        if self._threads is not None:
            self._threads.close()
            self._threads = None


# PartAdder: adds one part to an outcome.

NOTHING = 0xFFFF_FFFF
"""The number of no directory."""


class PartAdder:
    """Adds one part to an outcome. Raises ValueError for content that no scan writes."""

    def __init__(
        self,
        outcome: Outcome,
        head: PartHead,
        prefix: bytes,
        merged: MergedDirectories | None,
        rows: RowAdder,
    ) -> None:
        """`prefix`: goes before each path of the part. `merged`: the directories of all slices, already
        numbered; None for a part of its own. `rows`: may still add some when `run` returns."""
        self._outcome = outcome
        self._row_adder = rows
        self._head = head
        self._prefix = prefix
        self._merged = merged
        self._operands = len(outcome.paths)
        self._directories: list[int] = []
        """The number in the outcome for each directory of the part."""
        self._suffixes: list[bytes] = []
        self._locations: list[int] = []
        """The number in the outcome for each location of the part."""
        self._table: tuple[str, int, int] | None = None
        """Level, number and shift of the table whose rows follow."""
        self._problems = self._problem_bytes = 0
        self._taken: set[tuple[str, int]] = set()
        """The tables and samples that came."""
        self._paths: list[bytes] = []
        """The paths of all directories of the part."""
        self._last_below: array[int] = array("I")
        """The last directory in each of them, NOTHING for none."""
        self._last_top = (-1, b"")
        """Number of the path of the scan, and path, of the last directory that is in none."""
        self._placed = bytearray()
        """By number of a location in the outcome: 1 if the part has it."""
        self._references = self._resembling = self._identical = 0
        """Rows that came."""
        self._least_key = 0
        """The least key that the next row may have."""
        self._left_chunks = 0
        self._table_bytes = 0
        """Bytes of all chunks of the table."""
        self._left_room = 0
        """The bound of the bytes of its rows, less those that came. A row has the most bytes that any copy of
        its chunk has, so rows of copies that differ in their holes have more bytes than the table."""

    def run(self, sections: Iterator[Section]) -> None:
        self._add_head()
        steps: dict[bytes, Callable[..., None]] = {
            b"DIRS": self._add_directories,
            b"FAIL": self._problem,
            b"TABL": self._begin_table,
            b"ROWS": self._rows,
            b"ZSTD": self._sample,
            b"TYPE": self._name_suffixes,
            b"PLAC": self._add_locations,
            b"REFS": self._add_references,
            b"LIKE": self._add_resembling,
            b"SAME": self._add_identical,
            b"AGES": self._add_ages,
        }
        order = list(steps)
        reached = b"DIRS"
        for tag, fields in sections:
            values = decode_fields(tag, fields)
            follows = tag == b"TABL" and reached == b"ROWS"
            if tag not in steps or not (follows or order.index(tag) >= order.index(reached)):
                raise ValueError(f"a section {tag!r} behind one of {reached!r}")
            reached = tag
            if tag != b"ROWS":
                self._end_table()
            steps[tag](*values)
        self._end_table()

    def _add_head(self) -> None:
        outcome, head = self._outcome, self._head
        if self._merged is None:
            outcome.paths += [self._prefix + path for path in head.paths]
        outcome.reason = max(outcome.reason, head.reason, key=REASONS.index)
        outcome.code = worse(outcome.code, head.code)
        for name, value in zip(COUNTERS, head.counters, strict=True):
            setattr(outcome, name, getattr(outcome, name) + value)

    def _problem(self, path: bytes, message: str, code: ExitCode) -> None:
        self._problems += 1
        self._problem_bytes += len(path) + len(message)
        if self._problems > SCAN_PROBLEMS or self._problem_bytes > PART_PROBLEMS_BYTES:
            raise ValueError("too many problems")
        self._outcome.add_problem(ScanProblem(self._prefix + path, one_line(message), code))

    def _begin_table(self, level: str, which: int, shift: int, chunks: int, total: int) -> None:
        self._take_once(level, which)
        table = self._outcome.counters.levels[level].tables[which]
        self._row_adder.wait_for(table)
        table.sample(shift)
        self._table, self._least_key = (level, which, shift), 0
        self._left_chunks, self._table_bytes, self._left_room = chunks, total, SIZE_LIMIT

    def _rows(self, keys: array[int], sizes: array[int], counts: array[int]) -> None:
        if self._table is None or not len(keys) == len(sizes) == len(counts) or not keys:
            raise ValueError("rows that belong to no table")
        level, which, shift = self._table
        self._left_chunks, self._left_room = left_after_rows(
            keys, sizes, counts, self._least_key, shift, self._left_chunks, self._left_room
        )
        self._least_key = keys[-1] + 1
        self._row_adder.add(self._outcome.counters.levels[level].tables[which], keys, sizes, counts)

    def _end_table(self) -> None:
        if self._table is None:
            return
        level, which, shift = self._table
        left_bytes = self._table_bytes - (SIZE_LIMIT - self._left_room)
        if not shift and (self._left_chunks or left_bytes > 0):
            raise ValueError("fewer chunks than the table has")
        self._outcome.counters.levels[level].add_unseen(which, self._left_chunks, left_bytes)
        self._table = None

    def _sample(
        self, level: str, shift: int, keys: array[int], before: array[int], after: array[int]
    ) -> None:
        self._take_once(level, -1)
        sample = self._outcome.counters.compression[level]
        sample.thin(shift)
        if not len(keys) == len(before) == len(after):
            raise ValueError("a sample with other columns")
        rows = sample.selected(keys.tobytes())
        if not all(0 < after[row] <= before[row] for row in rows):
            raise ValueError("a chunk that grew")
        sample.put_many((keys[row], before[row], after[row]) for row in rows)

    def _take_once(self, level: str, which: int) -> None:
        """Raise ValueError if the part had it. -1: the compression of a level."""
        if (level, which) in self._taken:
            raise ValueError("a level that the part has twice")
        self._taken.add((level, which))

    def _name_suffixes(self, suffixes: list[bytes]) -> None:
        if self._suffixes:
            raise ValueError("types of files that the part has twice")
        self._suffixes = suffixes

    def _add_directories(
        self, paths: list[bytes], above: array[int], walked: array[int], operands: array[int]
    ) -> None:
        locations, known = self._outcome.locations, self._directories
        first = len(known)
        columns = zip(paths, above, walked, operands, strict=True)
        for row, (path, parent, _, operand) in enumerate(columns):
            if parent > first + row or operand >= len(self._head.paths):
                raise ValueError("a directory above itself, or of no path")
            self._check_order(path, parent, operand)
            if self._merged is not None:
                known.append(self._merged.number(operand, path))
            else:
                over = known[parent - 1] if parent else -1
                known.append(locations.add_directory(self._prefix + path, over, self._operands + operand))

    def _check_order(self, path: bytes, parent: int, operand: int) -> None:
        """Check that the directory comes in a walk's order: each once, and those in one directory by name.

        Raises ValueError; otherwise a few bytes of a part could stand for many directories.
        """
        number = len(self._last_below)
        self._last_below.append(NOTHING)
        if parent:
            before, self._last_below[parent - 1] = self._last_below[parent - 1], number
            if before != NOTHING and not self._paths[before] < path:
                raise ValueError("a directory that was walked before")
        elif not self._last_top < (operand, path):
            raise ValueError("a directory that was walked before")
        else:
            self._last_top = operand, path
        self._paths.append(path)

    def _add_locations(
        self, directories: array[int], suffixes: array[int], files: array[int], sizes: array[int]
    ) -> None:
        locations = self._outcome.locations
        for directory, suffix, count, size in zip(directories, suffixes, files, sizes, strict=True):
            if directory >= len(self._directories) or suffix >= len(self._suffixes):
                raise ValueError("a place in no directory, or of no type")
            number = locations.location(self._directories[directory], self._suffixes[suffix])
            if len(self._placed) <= number:
                self._placed.extend(bytes(number + 1 - len(self._placed)))
            if self._placed[number]:
                raise ValueError("a place that the part has twice")
            self._placed[number] = 1
            locations.files[number] += count
            locations.bytes[number] += size
            self._locations.append(number)

    def _add_references(self, shift: int, keys: array[int], sizes: array[int], where: array[int]) -> None:
        references = self._outcome.counters.references
        references.thin(shift)
        self._references += len(keys)
        if self._references > REFERENCES:
            raise ValueError("more references than a scan keeps")
        if where and max(where) >= len(self._locations):
            raise ValueError("a reference to no place")
        numbers = array("I", map(self._locations.__getitem__, where))
        if not len(keys) == len(sizes) == len(numbers):
            raise ValueError("references of several lengths")
        references.add(keys.tobytes(), sizes.tobytes(), numbers)

    def _add_resembling(
        self,
        least: int,
        keys: array[int],
        sizes: array[int],
        directories: array[int],
        traits: bytes,
        names: list[bytes],
    ) -> None:
        resembling = self._outcome.counters.resembling
        resembling.drop(least)
        self._resembling += len(keys)
        if self._resembling > FILES:
            raise ValueError("more files than a scan compares")
        if len(traits) != TRAITS_BYTES * len(keys):
            raise ValueError("traits of another length")
        if not len(keys) == len(sizes) == len(directories) == len(names):
            raise ValueError("files in columns of several lengths")
        if directories and max(directories) >= len(self._directories):
            raise ValueError("a file in no directory")
        numbers = list(map(self._directories.__getitem__, directories))
        resembling.add_column(keys, sizes, traits, numbers, names)

    def _add_identical(
        self,
        least: int,
        keys: array[int],
        sizes: array[int],
        counts: array[int],
        directories: array[int],
        names: list[bytes],
    ) -> None:
        identical = self._outcome.counters.identical
        identical.drop(least)
        self._identical += len(keys)
        if self._identical > CONTENTS * NAMES:
            raise ValueError("more names of identical files than a scan keeps")
        if not len(keys) == len(sizes) == len(counts) == len(directories) == len(names):
            raise ValueError("identical files in columns of several lengths")
        if directories and max(directories) >= len(self._directories):
            raise ValueError("a file in no directory")
        if counts and not 1 <= min(counts) <= max(counts) <= self._outcome.files:
            raise ValueError("a file that is there less than once, or more often than there are files")
        numbers = map(self._directories.__getitem__, directories)
        identical.add_column(keys, sizes, numbers, names, counts)

    def _add_ages(self, files: array[int], sizes: array[int]) -> None:
        self._take_once("ages", -1)
        if not len(files) == len(sizes) == len(YEARS):
            raise ValueError("ages of other years")
        for number, (count, size) in enumerate(zip(files, sizes, strict=True)):
            self._outcome.counters.ages.add_year(number, count, size)


class PartSource(Record):
    name: str
    """The part's name in messages."""
    open: Callable[[], BinaryIO]
    """Opens the part at its start. It is opened twice, and one part at a time."""


def merge_parts(
    sources: Sequence[PartSource],
    memory: int,
    *,
    incomplete: bool = False,
    before: Callable[[int], None] = lambda _: None,
) -> Outcome:
    """Return the sum of all parts, with `memory` bytes of tables.

    The heads of all parts are read and compared before anything is added. `incomplete`: slices may be
    missing, and the outcome says which ones it has. `before` is called with the number of each part before
    it is added.

    Raises PartError for a damaged part, and UsageError for parts that do not belong together. Both name the
    part.
    """
    if not sources:
        raise UsageError("nothing to merge: no part was given")
    merged = MergedDirectories()
    heads = [read_head(source, merged) for source in sources]
    check_one_scan(heads)
    if not incomplete:
        check_complete(heads)
    outcome = Outcome(heads[0].options(memory))
    is_sliced = heads[0].slices is not None
    if is_sliced:
        outcome.paths = list(heads[0].paths)
        outcome.slices = joined_slices(heads)
        merged.number_all(outcome.locations)
    known: set[bytes] = set()
    rows = RowAdder()
    try:
        for number, (source, head) in enumerate(zip(sources, heads, strict=True)):
            before(number)
            # Trees with equal paths in two whole scans come from two machines.
            prefix = b"" if is_sliced or known.isdisjoint(head.paths) else os.fsencode(source.name) + b":"
            known.update(head.paths)
            with _sections(source) as sections:
                if decode_head(_first(sections, source.name), source.name) != head:
                    raise PartError(f"{source.name}: it changed while it was read; merge again")
                PartAdder(outcome, head, prefix, merged if is_sliced else None, rows).run(sections)
        rows.finish()
    finally:
        rows.close()
    finished = all(head.reason not in ("time", "interrupted") for head in heads)
    change = tree_change(heads) if outcome.slices is None and finished else None
    if change is not None:
        outcome.add_problem(change)
    return outcome


@contextlib.contextmanager
def _sections(source: PartSource) -> Iterator[Iterator[Section]]:
    """Yield the sections of a part. What no scan writes becomes a PartError."""
    with source.open() as stream:
        try:
            yield read_sections(stream, source.name, SECTION_BYTES)
        except (ValueError, TypeError, IndexError, KeyError, OverflowError, AttributeError) as error:
            raise PartError(
                f"{source.name}: damaged or forged: {error}; scan again on the machine it is from"
            ) from error


def _first(sections: Iterator[Section], name: str) -> list[bytes]:
    tag, fields = next(sections, (b"", []))
    if tag != b"HEAD":
        raise PartError(f"{name}: damaged: expected a head, found {tag!r}")
    return fields


def read_head(source: PartSource, merged: MergedDirectories | None = None) -> PartHead:
    """Read the head of a part, and its directories into `merged` if the part has slices. Raises as
    merge_parts does."""
    with _sections(source) as sections:
        head = decode_head(_first(sections, source.name), source.name)
        if head.slices is not None and merged is not None:
            merged.begin_part()
            for tag, fields in sections:
                if tag != b"DIRS":
                    break
                merged.add(*decode_fields(tag, fields))
    return head
