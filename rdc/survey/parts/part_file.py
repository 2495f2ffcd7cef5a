"""The head of a part, which says what was scanned and with which options, and the writer of parts
(SURVEY.md, "A part").
"""

from __future__ import annotations

import os
from array import array

from rdc.errors import ExitCode, UsageError, printable
from rdc.files.own.output_file import Output, write_output
from rdc.lean.records import Record
from rdc.limits import PART_ROWS, SCAN_SLICES
from rdc.model.scan import FIXED_LEVELS, ScanOptions
from rdc.survey.count.counters import FINE_PARAMS, FOLD_MAX, FOLD_MIN, FOLDED, FOLLOWED, Outcome
from rdc.survey.parts.sections import (
    MAGIC,
    NUMBER_LIMIT,
    SCAN_PART,
    decode_fields,
    encode_section,
    packed,
    packed_names,
)
from rdc.survey.slices import SCAN, SliceSet, WalkTotals, are_options, check_equal, check_slices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.survey.count.chunk_locations import ResemblingFiles
    from rdc.survey.count.identical import IdenticalFiles


# PartHead: the first section of a part. It says what was scanned and with which options.

METHOD = (
    f"rdc survey 1; {FINE_PARAMS.id.hex()}; {' '.join(FOLDED)} folded by winnowing {FOLD_MIN} {FOLD_MAX};"
    f" groups named by siphash; {FOLLOWED} followed"
)
"""The parameters that two parts must share, so that equal keys mean equal chunks."""

COUNTERS = (
    "files",
    "bytes",
    "allocated_bytes",
    "hardlinks",
    "holes_bytes",
    "already_shared_bytes",
    "found_files",
    "found_bytes",
    "known_bytes",
    "more_problems",
)
"""Counters of an Outcome, in the order in which they are written."""

REASONS = ("", "sample", "time", "interrupted")
"""From the least to the most severe. A merged outcome gets the most severe reason of its parts."""


class PartHead(Record):
    name: str
    """The part's name in messages."""
    fixed: tuple[str, ...]
    compress: bool
    paths: tuple[bytes, ...]
    reason: str
    counters: tuple[int, ...]
    """In the order of COUNTERS."""
    code: ExitCode
    slices: SliceSet | None

    @classmethod
    def empty(
        cls, name: str, paths: tuple[bytes, ...], options: ScanOptions, slices: SliceSet | None
    ) -> PartHead:
        """Return the head of a scan that has counted nothing yet."""
        nothing = (0,) * len(COUNTERS)
        return cls(name, options.fixed, options.compress, paths, "", nothing, ExitCode.OK, slices)

    @property
    def size(self) -> int:
        """Bytes of the files found, as listed."""
        return self.counters[COUNTERS.index("found_bytes")]

    def options(self, memory: int) -> ScanOptions:
        """Return the options of an outcome that this part can be added to, with `memory` bytes of tables."""
        return ScanOptions(fixed=self.fixed, compress=self.compress, memory=memory)


def encode_head(outcome: Outcome) -> bytes:
    numbers, options = array("Q"), ""
    slices = outcome.slices
    if slices is not None:
        # Totals of a walk are only compared with those of other slices: that of enough sparse files is cut.
        totals = [
            value
            for each in (slices.fewest, slices.most)
            for value in (each.files, min(each.bytes, NUMBER_LIMIT), each.directories, each.slice)
        ]
        numbers = array("Q", [slices.of, *totals, len(slices.roots), *slices.roots, *slices.numbers])
        options = slices.options
    counters = [getattr(outcome, name) for name in COUNTERS]
    return encode_section(
        b"HEAD",
        METHOD,
        " ".join(outcome.options.fixed),
        int(outcome.options.compress),
        packed_names(outcome.paths),
        outcome.reason,
        packed(array("Q", [*(one & NUMBER_LIMIT for one in counters), *(one >> 64 for one in counters)])),
        int(outcome.code),
        options,
        packed(numbers),
    )


def decode_head(fields: list[bytes], name: str) -> PartHead:
    """Decode the head of a part. Raises UsageError for a part of another method, ValueError for content that
    no scan writes."""
    if not fields or fields[0] != METHOD.encode():
        found = printable(fields[0][:200]) if fields else "nothing"
        raise UsageError(
            f"{name}: made with other parameters, so its chunks cannot be compared; expected {METHOD!r}, "
            f"found {found!r}; scan again with this version of rdc"
        )
    _, levels, compress, paths, reason, numbers, code, options, slices = decode_fields(b"HEAD", fields)
    fixed = tuple(levels.split())
    if not set(fixed) <= set(FIXED_LEVELS) or len(set(fixed)) < len(fixed):
        raise ValueError("levels that do not exist, or twice")
    if len(numbers) == len(COUNTERS):
        numbers.extend([0] * len(COUNTERS))  # version 2
    if reason not in REASONS or len(numbers) != 2 * len(COUNTERS):
        raise ValueError("a head with other fields")
    low, high = numbers[: len(COUNTERS)], numbers[len(COUNTERS) :]
    return PartHead(
        name=name,
        fixed=fixed,
        compress=bool(compress),
        paths=tuple(paths),
        reason=reason,
        counters=tuple([one | more << 64 for one, more in zip(low, high, strict=True)]),
        code=code,
        slices=_slices(options, slices, len(paths)) if slices else None,
    )


def _slices(options: str, numbers: array[int], paths: int) -> SliceSet:
    if len(numbers) < 10 or not are_options(options):
        raise ValueError("slices that no scan has")
    of, roots = numbers[0], numbers[9]
    chosen = tuple(numbers[10 + roots :])
    if not 1 <= of <= SCAN_SLICES or roots != paths or not chosen or sorted(set(chosen)) != list(chosen):
        raise ValueError("slices that no scan has")
    if chosen[0] < 1 or chosen[-1] > of:
        raise ValueError("slices that no scan has")
    return SliceSet(
        of,
        chosen,
        options,
        tuple(numbers[10 : 10 + roots]),
        WalkTotals(*numbers[1:5]),
        WalkTotals(*numbers[5:9]),
    )


def check_one_scan(heads: Sequence[PartHead]) -> None:
    """Raise UsageError, with the part's name, unless the parts have the same levels and are all whole scans
    or all different slices of one scan."""
    first = heads[0]
    for head in heads:
        for what, a, b in (
            ("--level", ", ".join(first.fixed), ", ".join(head.fixed)),
            ("compression", _on(first.compress), _on(head.compress)),
        ):
            check_equal(first.name, head.name, what, a, b, SCAN)
    check_slices(heads, SCAN)


def _on(value: bool) -> str:
    return "on" if value else "off"


ROWS = PART_ROWS
"""Rows in one section of a table, at most 1.5 MB."""


def write_part(outcome: Outcome, path: str, *, overwrite: bool = False) -> None:
    """Write the part file completely or not at all. `overwrite`: replace a file of another kind, too. Raises
    RdcError."""
    write_output(Output(os.fsencode(path), SCAN_PART, overwrite), encode_part(outcome))


def encode_part(outcome: Outcome) -> Iterator[bytes]:
    """Yield the encoded part, in pieces of at most some megabytes."""
    counters = outcome.counters
    yield MAGIC
    yield encode_head(outcome)
    locations = counters.locations
    for start in range(0, len(locations.directories), ROWS):
        part = slice(start, start + ROWS)
        # Parent numbers are stored plus 1; 0 means none.
        above = array("Q", [number + 1 for number in locations.parents[part]])
        where_walked = (above, locations.walked[part], array("Q", locations.operands[part]))
        yield encode_section(b"DIRS", packed_names(locations.directories[part]), *map(packed, where_walked))
    for problem in outcome.problems:
        yield encode_section(b"FAIL", problem.path_bytes, problem.message, int(problem.code))
    for name, counter in counters.levels.items():
        for which, table in enumerate(counter.tables):
            chunks, total = counter.totals(which)
            yield encode_section(b"TABL", name, which, table.shift, chunks, total)
            for columns in counter.entries(which):
                yield encode_section(b"ROWS", *map(packed, columns))
    for name, sample in counters.compression.items():
        keys = array("Q", sorted(sample.sizes))
        before, after = (array("Q", [sample.sizes[key][i] for key in keys]) for i in (0, 1))
        yield encode_section(b"ZSTD", name, sample.shift, *map(packed, (keys, before, after)))
    yield encode_section(b"TYPE", packed_names(locations.suffixes))
    for start in range(0, len(locations.files), ROWS):
        part = slice(start, start + ROWS)
        wide = (array("Q", locations.directory_of[part]), array("Q", locations.suffix_of[part]))
        yield encode_section(b"PLAC", *map(packed, (*wide, locations.files[part], locations.bytes[part])))
    references = counters.references
    for start in range(0, max(1, len(references.keys)), ROWS):
        part = slice(start, start + ROWS)
        where = array("Q", references.locations[part])
        rows = map(packed, (references.keys[part], references.sizes[part], where))
        yield encode_section(b"REFS", references.shift, *rows)
    yield from _encode_resembling(counters.resembling)
    yield from _encode_identical(counters.identical)
    yield encode_section(b"AGES", packed(counters.ages.files), packed(counters.ages.bytes))
    yield encode_section(b"LAST")


def _encode_identical(identical: IdenticalFiles) -> Iterator[bytes]:
    files = identical.rows()
    for start in range(0, max(1, len(files)), ROWS):
        part = files[start : start + ROWS]
        columns: tuple[tuple[int, ...], ...] = (
            tuple(zip(*(row[:4] for row in part), strict=True)) or ((),) * 4
        )
        numbers = [packed(array("Q", column)) for column in columns]
        yield encode_section(b"SAME", identical.least, *numbers, packed_names([row[4] for row in part]))


def _encode_resembling(resembling: ResemblingFiles) -> Iterator[bytes]:
    files = sorted(resembling.files.items())
    for start in range(0, max(1, len(files)), ROWS):
        part = files[start : start + ROWS]
        columns = [
            array("Q", column)
            for column in (
                [key for key, _ in part],
                [file.size for _, file in part],
                [file.directory for _, file in part],
            )
        ]
        yield encode_section(
            b"LIKE",
            resembling.least,
            *map(packed, columns),
            b"".join([file.traits for _, file in part]),
            packed_names([file.name for _, file in part]),
        )
