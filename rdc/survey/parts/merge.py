"""Adds parts of a scan up into one outcome, as if one scan had read all files."""

from __future__ import annotations

import os
from array import array
from itertools import pairwise

from rdc.errors import ExitCode, UsageError, one_line
from rdc.limits.survey import SCAN_PROBLEMS
from rdc.model.scan import FIXED_LEVELS, ScanOptions, ScanProblem
from rdc.records import dataclass
from rdc.signature.trait_column import TRAITS_BYTES, traits_at
from rdc.survey.count.compression_estimate import SAMPLE_CHUNKS
from rdc.survey.count.resembling_files import Candidate
from rdc.survey.parts.part_file import COUNTERS, METHOD
from rdc.survey.parts.sections import PartError, number, read_sections, unpacked, unpacked_names
from rdc.survey.scan.outcome import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO

    from rdc.survey.parts.sections import Section

__all__ = ["PartSource", "merge_parts"]

_REASONS = ("", "sample", "time", "interrupted")
"""From the least to the most severe. A merged outcome gets the most severe reason of its parts."""


@dataclass(frozen=True, slots=True)
class PartSource:
    name: str
    """The part's name in messages."""
    stream: BinaryIO


def merge_parts(sources: Iterable[PartSource], memory: int) -> Outcome:
    """The sum of all parts, with `memory` bytes of tables.

    Raises PartError for a damaged part, and UsageError for a part made with other parameters than the first.
    Both name the part.
    """
    outcome: Outcome | None = None
    first = ""
    for source in sources:
        sections = read_sections(source.stream, source.name)
        try:
            tag, head = next(sections, (b"", []))
            if tag != b"HEAD":
                raise PartError(f"{source.name}: damaged: expected a head, found {tag!r}")
            options = _options(head, source.name, memory)
            if outcome is None:
                outcome, first = Outcome(options), source.name
            _check_same(outcome.options, options, first, source.name)
            _Merger(outcome, source.name).run(head, sections)
        except (ValueError, TypeError, IndexError, KeyError, OverflowError, AttributeError) as error:
            raise PartError(
                f"{source.name}: damaged or forged: {error}; scan again on the machine it is from"
            ) from error
    if outcome is None:
        raise UsageError("nothing to merge: no part was given")
    return outcome


def _options(head: list[bytes], name: str, memory: int) -> ScanOptions:
    method, fixed, compress = head[0].decode(), tuple(head[1].decode().split()), number(head[2])
    if method != METHOD:
        raise UsageError(
            f"{name}: made with other parameters, so its chunks cannot be compared; expected {METHOD!r}, "
            f"found {method[:200]!r}; scan again with this version of rdc"
        )
    if not set(fixed) <= set(FIXED_LEVELS) or compress > 1:
        raise ValueError("levels that do not exist")
    return ScanOptions(fixed=fixed, compress=bool(compress), memory=memory)


def _check_same(first: ScanOptions, second: ScanOptions, one: str, other: str) -> None:
    for what, a, b in (
        ("--level", ", ".join(first.fixed), ", ".join(second.fixed)),
        ("compression", "on" if first.compress else "off", "on" if second.compress else "off"),
    ):
        if a != b:
            raise UsageError(
                f"{other}: made with other parameters than {one}: {what} differs"
                f" ({a or 'none'} there, {b or 'none'} here); scan again with the same options"
            )


class _Merger:
    """Adds one part to an outcome. Raises ValueError for content that no scan writes."""

    def __init__(self, outcome: Outcome, name: str) -> None:
        self._outcome = outcome
        self._name = name
        self._prefix = b""
        locations = outcome.locations
        self._first_directory, self._directories = len(locations.directories), 0
        self._suffixes: list[bytes] = []
        self._locations: list[int] = []
        """The number in the outcome for each location of the part."""
        self._table: tuple[str, int, int] | None = None
        """Level, number and shift of the table whose rows follow."""
        self._problems = 0
        self._last_key = -1
        self._left_chunks = 0
        self._left_bytes = 0

    def run(self, head: list[bytes], sections: Iterator[Section]) -> None:
        self._head(head)
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
                self._add_directories(unpacked_names(fields[0]), unpacked(fields[1]))
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

    def _head(self, head: list[bytes]) -> None:
        outcome = self._outcome
        paths, reason, counters = unpacked_names(head[3]), head[4].decode(), unpacked(head[5])
        if reason not in _REASONS or len(head) != 6 or len(counters) != len(COUNTERS):
            raise ValueError("a head with other fields")
        if set(paths) & set(outcome.paths):
            # Trees with equal paths in two parts come from two machines.
            self._prefix = os.fsencode(self._name) + b":"
        outcome.paths += [self._prefix + path for path in paths]
        outcome.reason = max(outcome.reason, reason, key=_REASONS.index)
        for name, value in zip(COUNTERS, counters, strict=True):
            setattr(outcome, name, getattr(outcome, name) + value)

    def _problem(self, path: bytes, message: bytes, code: bytes) -> None:
        self._problems += 1
        if self._problems > SCAN_PROBLEMS:
            raise ValueError("too many problems")
        text = one_line(message.decode())
        self._outcome.add_problem(ScanProblem(self._prefix + path, text, ExitCode(number(code))))

    def _begin_table(self, level: str, which: int, shift: int, chunks: int, total: int) -> None:
        counter = self._outcome.counters.levels[level]
        counter.tables[which].sample(shift)
        self._table, self._last_key = (level, which, shift), -1
        self._left_chunks, self._left_bytes = chunks, total

    def _rows(self, keys: array[int], sizes: array[int], counts: array[int]) -> None:
        if self._table is None or not len(keys) == len(sizes) == len(counts) or not keys:
            raise ValueError("rows that belong to no table")
        level, which, shift = self._table
        if keys[0] <= self._last_key or any(a >= b for a, b in pairwise(keys)) or keys[-1] >> (64 - shift):
            raise ValueError("keys out of order")
        self._last_key = keys[-1]
        self._left_chunks -= sum(counts)
        self._left_bytes -= sum(size * count for size, count in zip(sizes, counts, strict=True))
        if self._left_chunks < 0 or self._left_bytes < 0 or not min(counts):
            raise ValueError("more chunks than the table has")
        self._outcome.counters.levels[level].tables[which].add(keys, sizes, counts)

    def _end_table(self) -> None:
        if self._table is None:
            return
        level, which, shift = self._table
        if not shift and (self._left_chunks or self._left_bytes):
            raise ValueError("fewer chunks than the table has")
        self._outcome.counters.levels[level].add_unseen(which, self._left_chunks, self._left_bytes)
        self._table = None

    def _sample(
        self, level: str, shift: int, keys: array[int], before: array[int], after: array[int]
    ) -> None:
        sample = self._outcome.counters.compression[level]
        sample.thin(shift)
        if not len(keys) == len(before) == len(after) <= SAMPLE_CHUNKS:
            raise ValueError("a sample with other columns")
        rows = sample.wanted(keys.tobytes())
        if not all(0 < after[row] <= before[row] for row in rows):
            raise ValueError("a chunk that grew")
        sample.put_many((keys[row], before[row], after[row]) for row in rows)

    def _add_directories(self, paths: list[bytes], above: array[int]) -> None:
        locations = self._outcome.locations
        for path, parent in zip(paths, above, strict=True):
            if parent > self._directories:
                raise ValueError("a directory above itself")
            locations.add_directory(self._prefix + path, self._first_directory + parent - 1 if parent else -1)
            self._directories += 1

    def _add_locations(
        self, directories: array[int], suffixes: array[int], files: array[int], sizes: array[int]
    ) -> None:
        locations = self._outcome.locations
        for directory, suffix, count, size in zip(directories, suffixes, files, sizes, strict=True):
            if directory >= self._directories:
                raise ValueError("a place in no directory")
            number = locations.location(self._first_directory + directory, self._suffixes[suffix])
            locations.files[number] += count
            locations.bytes[number] += size
            self._locations.append(number)

    def _add_references(self, shift: int, keys: array[int], sizes: array[int], where: array[int]) -> None:
        references = self._outcome.counters.references
        references.thin(shift)
        numbers = array("I", [self._locations[location] for location in where])
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
        rows = zip(keys, sizes, directories, names, strict=True)
        for row, (key, size, directory, name) in enumerate(rows):
            if directory >= self._directories:
                raise ValueError("a file in no directory")
            own = traits_at(traits, row)
            resembling.add(key, Candidate(size, own, self._first_directory + directory, name))
