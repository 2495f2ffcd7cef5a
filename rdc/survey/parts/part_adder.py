"""PartAdder: adds one part to an outcome."""

from __future__ import annotations

from array import array

from rdc.errors import ExitCode, one_line, worse
from rdc.kernel import left_after_rows
from rdc.limits.searches import PART_PROBLEMS_BYTES, SCAN_PROBLEMS
from rdc.limits.wire import SIZE_LIMIT
from rdc.model.scan import ScanProblem
from rdc.signature.tree import TRAITS_BYTES
from rdc.survey.count.chunk_references import REFERENCES
from rdc.survey.count.resembling_files import FILES
from rdc.survey.parts.part_head import COUNTERS, REASONS
from rdc.survey.parts.section_fields import decode_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rdc.survey.parts.merged_directories import MergedDirectories
    from rdc.survey.parts.part_head import PartHead
    from rdc.survey.parts.row_adder import RowAdder
    from rdc.survey.parts.sections import Section
    from rdc.survey.scan.outcome import Outcome

__all__ = ["PartAdder"]

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
        """Those of all directories of the part."""
        self._last_below: array[int] = array("I")
        """The last directory in each of them, NOTHING for none."""
        self._last_top = (-1, b"")
        """Number of the path of the scan, and path, of the last directory that is in none."""
        self._placed = bytearray()
        """By number of a location in the outcome: 1 if the part has it."""
        self._references = self._resembling = 0
        """Rows that came."""
        self._least_key = 0
        """The least key that the next row may have."""
        self._left_chunks = 0
        self._table_bytes = 0
        """Bytes of all chunks of the table."""
        self._left_room = 0
        """What bounds the bytes of its rows, less those that came. A row has the most bytes that any copy of
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
        """Raises ValueError if the part had it. -1: the compression of a level."""
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
        """A walk meets each directory once, and those in one directory by name. Raises ValueError: else a few
        bytes of a part could be many directories."""
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
