"""Adds parts of a scan up into one outcome, as if one scan had read all files."""

from __future__ import annotations

import contextlib
import os

from rdc.errors import UsageError
from rdc.lean.records import dataclass
from rdc.survey.container import PartError
from rdc.survey.parts.merged_directories import MergedDirectories
from rdc.survey.parts.part_adder import PartAdder
from rdc.survey.parts.part_head import PartHead, check_one_scan, decode_head
from rdc.survey.parts.row_adder import RowAdder
from rdc.survey.parts.section_fields import SECTION_BYTES, decode_fields
from rdc.survey.parts.sections import read_sections
from rdc.survey.scan.outcome import Outcome
from rdc.survey.slices import check_complete, joined_slices, tree_change

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import BinaryIO

    from rdc.survey.parts.sections import Section

__all__ = ["PartSource", "merge_parts", "read_head"]


@dataclass(frozen=True, slots=True)
class PartSource:
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
    """The sum of all parts, with `memory` bytes of tables.

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
    """The sections of a part. What no scan writes becomes a PartError."""
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
    """Reads the head of a part, and its directories into `merged` if the part has slices. Raises as
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
