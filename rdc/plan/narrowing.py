"""What --update, --existing, --ignore-existing and --size-only take out of a comparison.

The rules are rsync's: a skipped entry stays as it is, its metadata too; another kind of entry in its place is
never newer; and directories that both sides have are never skipped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rdc.model.entries import Kind
from rdc.plan.compare import Change, Comparison, Decision, Difference
from rdc.records import dataclass, replace

if TYPE_CHECKING:
    from rdc.model.entries import Listing
    from rdc.model.kept import Kept
    from rdc.model.sync import SyncOptions

__all__ = ["Narrowed", "narrow"]


@dataclass(frozen=True, slots=True)
class Narrowed:
    comparison: Comparison
    without: frozenset[int]
    """Rows of directories that will not be there, nor what is below them."""
    skipped: bool
    """Entries that differ stay as they are."""


def narrow(
    comparison: Comparison, wanted: Listing, held: Listing, *, options: SyncOptions, kept: Kept
) -> Narrowed:
    """`comparison` of `held` with `wanted`, less what `options`, which narrow it, exclude."""
    decisions, touched = list(comparison.decisions), comparison.touched
    if options.update and (touched or decisions):
        rows = {name: row for row, name in enumerate(held.names)} if touched else {}
        touched = tuple(
            row for row in touched if not _newer(held, rows[wanted.names[row]], wanted, row, kept)
        )
        decisions = [
            decision
            for decision in decisions
            if wanted.kinds[decision.row] != Kind.FILE
            or decision.change in (Change.CREATE, Change.REPLACE)
            or not _newer(held, decision.held_row, wanted, decision.row, kept)
        ]
    if options.existing:
        decisions = [decision for decision in decisions if decision.change is not Change.CREATE]
    if options.ignore_existing:
        touched = ()
        decisions = [
            decision
            for decision in decisions
            if decision.change is Change.CREATE
            or (wanted.kinds[decision.row] == Kind.DIRECTORY and decision.change is Change.METADATA)
        ]
    left = {decision.row for decision in decisions}
    without = frozenset(
        decision.row
        for decision in comparison.decisions
        if decision.row not in left
        and wanted.kinds[decision.row] == Kind.DIRECTORY
        and decision.change is not Change.METADATA
    )
    skipped = len(touched) < len(comparison.touched) or len(decisions) < len(comparison.decisions)
    if options.size_only and not options.checksum:
        settled = [Decision(Change.METADATA, row, -1, Difference.TIME) for row in touched]
        files = (_by_size(found) if wanted.kinds[found.row] == Kind.FILE else found for found in decisions)
        decisions = sorted([*files, *settled], key=lambda decision: decision.row)
        touched = ()
    checked = () if options.ignore_existing else comparison.checked
    return Narrowed(Comparison(tuple(decisions), comparison.extra, tuple(touched), checked), without, skipped)


def _newer(a: Listing, row: int, b: Listing, other: int, kept: Kept) -> bool:
    return kept.mtime(a.mtimes[row]) > kept.mtime(b.mtimes[other])


def _by_size(decision: Decision) -> Decision:
    """A file that has its size has its content."""
    by_time = decision.change is Change.CONTENT and not decision.difference & Difference.SIZE
    return replace(decision, change=Change.METADATA) if by_time else decision
