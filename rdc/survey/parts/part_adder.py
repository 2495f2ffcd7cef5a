"""PartAdder: adds one part to an outcome."""

from __future__ import annotations

from array import array

from rdc.errors import ExitCode, one_line, worse
from rdc.kernel.chunk_counts import left_after_rows
from rdc.limits.survey import SCAN_PROBLEMS
from rdc.limits.wire import SIZE_LIMIT
from rdc.model.scan import ScanProblem
from rdc.signature.trait_column import TRAITS_BYTES
from rdc.survey.count.compression_estimate import SAMPLE_CHUNKS
from rdc.survey.parts.part_head import COUNTERS, REASONS
from rdc.survey.parts.sections import number, unpacked, unpacked_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.survey.parts.merged_directories import MergedDirectories
    from rdc.survey.parts.part_head import PartHead
    from rdc.survey.parts.row_adder import RowAdder
    from rdc.survey.parts.sections import Section
    from rdc.survey.scan.outcome import Outcome

__all__ = ["PartAdder"]


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
        self._problems = 0
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
        for tag, fields in sections:
            if tag == b"ROWS":
                self._rows(*map(unpacked, fields))
                continue
            self._end_table()
            if tag == b"FAIL":
                self._problem(*fields)
            elif tag == b"TABL":
                self._begin_table(fields[0].decode(), *map(number, fields[1:]))
            elif tag == b"ZSTD":
                self._sample(fields[0].decode(), number(fields[1]), *map(unpacked, fields[2:]))
            elif tag == b"DIRS":
                self._add_directories(unpacked_names(fields[0]), *map(unpacked, fields[1:]))
            elif tag == b"TYPE":
                self._suffixes = unpacked_names(fields[0])
            elif tag == b"PLAC":
                self._add_locations(*map(unpacked, fields))
            elif tag == b"REFS":
                self._add_references(number(fields[0]), *map(unpacked, fields[1:]))
            elif tag == b"LIKE":
                keys, sizes, where = map(unpacked, fields[1:4])
                self._add_resembling(
                    number(fields[0]), keys, sizes, where, fields[4], unpacked_names(fields[5])
                )
            else:
                raise ValueError(f"an unknown section {tag!r}")
        self._end_table()

    def _add_head(self) -> None:
        outcome, head = self._outcome, self._head
        if self._merged is None:
            outcome.paths += [self._prefix + path for path in head.paths]
        outcome.reason = max(outcome.reason, head.reason, key=REASONS.index)
        outcome.code = worse(outcome.code, head.code)
        for name, value in zip(COUNTERS, head.counters, strict=True):
            setattr(outcome, name, getattr(outcome, name) + value)

    def _problem(self, path: bytes, message: bytes, code: bytes) -> None:
        self._problems += 1
        if self._problems > SCAN_PROBLEMS:
            raise ValueError("too many problems")
        text = one_line(message.decode())
        self._outcome.add_problem(ScanProblem(self._prefix + path, text, ExitCode(number(code))))

    def _begin_table(self, level: str, which: int, shift: int, chunks: int, total: int) -> None:
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
        sample = self._outcome.counters.compression[level]
        sample.thin(shift)
        if not len(keys) == len(before) == len(after) <= SAMPLE_CHUNKS:
            raise ValueError("a sample with other columns")
        rows = sample.selected(keys.tobytes())
        if not all(0 < after[row] <= before[row] for row in rows):
            raise ValueError("a chunk that grew")
        sample.put_many((keys[row], before[row], after[row]) for row in rows)

    def _add_directories(
        self, paths: list[bytes], above: array[int], walked: array[int], operands: array[int]
    ) -> None:
        locations, known = self._outcome.locations, self._directories
        first = len(known)
        columns = zip(paths, above, walked, operands, strict=True)
        for row, (path, parent, _, operand) in enumerate(columns):
            if parent > first + row:
                raise ValueError("a directory above itself")
            if self._merged is not None:
                known.append(self._merged.number(operand, path))
            else:
                over = known[parent - 1] if parent else -1
                known.append(locations.add_directory(self._prefix + path, over, self._operands + operand))

    def _add_locations(
        self, directories: array[int], suffixes: array[int], files: array[int], sizes: array[int]
    ) -> None:
        locations = self._outcome.locations
        for directory, suffix, count, size in zip(directories, suffixes, files, sizes, strict=True):
            if directory >= len(self._directories):
                raise ValueError("a place in no directory")
            number = locations.location(self._directories[directory], self._suffixes[suffix])
            locations.files[number] += count
            locations.bytes[number] += size
            self._locations.append(number)

    def _add_references(self, shift: int, keys: array[int], sizes: array[int], where: array[int]) -> None:
        references = self._outcome.counters.references
        references.thin(shift)
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
        if len(traits) != TRAITS_BYTES * len(keys):
            raise ValueError("traits of another length")
        if not len(keys) == len(sizes) == len(directories) == len(names):
            raise ValueError("files in columns of several lengths")
        if directories and max(directories) >= len(self._directories):
            raise ValueError("a file in no directory")
        numbers = list(map(self._directories.__getitem__, directories))
        resembling.add_column(keys, sizes, traits, numbers, names)
