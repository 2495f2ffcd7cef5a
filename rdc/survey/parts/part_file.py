"""Writes a scan's outcome as a part, for `rdc merge` to add up (SURVEY.md, "A part")."""

from __future__ import annotations

import os
from array import array

from rdc.files.own.output_file import Output, write_output
from rdc.limits.searches import PART_ROWS
from rdc.survey.parts.part_head import encode_head
from rdc.survey.parts.sections import MAGIC, SCAN_PART, encode_section, packed, packed_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.survey.count.resembling_files import ResemblingFiles
    from rdc.survey.scan.outcome import Outcome

__all__ = ["encode_part", "write_part"]

ROWS = PART_ROWS
"""Rows in one section of a table, at most 1.5 MB."""


def write_part(outcome: Outcome, path: str, *, overwrite: bool = False) -> None:
    """Write the part file completely or not at all. `overwrite`: replace a file of another kind, too. Raises
    RdcError."""
    write_output(Output(os.fsencode(path), SCAN_PART, overwrite), encode_part(outcome))


def encode_part(outcome: Outcome) -> Iterator[bytes]:
    """The encoded part, in pieces of at most some megabytes."""
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
        yield encode_section(b"FAIL", problem.path, problem.message, int(problem.code))
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
    yield encode_section(b"LAST")


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
