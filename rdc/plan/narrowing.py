"""What -u, --existing, --ignore-existing, --size-only, --max-size and --min-size take out of a comparison.

The rules are rsync's: an entry that is left alone stays as it is, its metadata too; another kind of entry in
its place is never newer; and directories that both sides have are never left alone.
"""

from __future__ import annotations

from rdc.model.entries import Kind
from rdc.plan.compare import Change, Comparison, Decision, Difference
from rdc.records import dataclass, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

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
    left: Sequence[int]
    """Rows of entries that stay as they are, here or missing; of those that do not differ only such as would
    stay so if they did."""


def narrow(
    comparison: Comparison, wanted: Listing, held: Listing, *, options: SyncOptions, kept: Kept
) -> Narrowed:
    """`comparison` of `held` with `wanted`, less what `options`, which narrow it, exclude."""
    decisions, touched = list(comparison.decisions), comparison.touched
    checked = () if options.ignore_existing else comparison.checked
    unfit = _of_unfit_size(wanted, options) if options.bounds_sizes else frozenset()
    if unfit:
        touched = tuple(row for row in touched if row not in unfit)
        checked = tuple(row for row in checked if row not in unfit)
        decisions = [decision for decision in decisions if decision.row not in unfit]
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
    decided = {decision.row for decision in decisions}
    without = frozenset(
        decision.row
        for decision in comparison.decisions
        if decision.row not in decided
        and wanted.kinds[decision.row] == Kind.DIRECTORY
        and decision.change is not Change.METADATA
    )
    if options.ignore_existing:
        directories = set(wanted.rows_of(Kind.DIRECTORY)) - without
        left = [row for row in range(len(wanted)) if row not in decided and row not in directories]
    else:
        decided.update(touched)
        differing = [*comparison.touched, *(decision.row for decision in comparison.decisions)]
        left = [*unfit, *(row for row in differing if row not in decided and row not in unfit)]
    skipped = len(touched) < len(comparison.touched) or len(decisions) < len(comparison.decisions)
    if options.size_only and not options.checksum:
        settled = [Decision(Change.METADATA, row, -1, Difference.TIME) for row in touched]
        files = (_by_size(one) if wanted.kinds[one.row] == Kind.FILE else one for one in decisions)
        decisions = sorted([*files, *settled], key=lambda decision: decision.row)
        touched = ()
    found = Comparison(tuple(decisions), comparison.extra, tuple(touched), checked)
    return Narrowed(found, without, skipped, left)


def _of_unfit_size(wanted: Listing, options: SyncOptions) -> frozenset[int]:
    return frozenset(row for row in wanted.rows_of(Kind.FILE) if options.is_left_for_size(wanted.sizes[row]))


def _newer(a: Listing, row: int, b: Listing, other: int, kept: Kept) -> bool:
    return kept.mtime(a.mtimes[row]) > kept.mtime(b.mtimes[other])


def _by_size(decision: Decision) -> Decision:
    """A file that has its size has its content."""
    by_time = decision.change is Change.CONTENT and not decision.difference & Difference.SIZE
    return replace(decision, change=Change.METADATA) if by_time else decision
