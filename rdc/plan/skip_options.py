"""Decisions that few runs need: what options leave alone, alternates, and directories as expected."""

from __future__ import annotations

from array import array
from bisect import bisect_left

from rdc.lean.enums import IntEnum
from rdc.lean.records import Record, replace
from rdc.model.entries import DEVICES, NUMBERS, Kind, Listing, PackedListing
from rdc.model.options import leads_outside
from rdc.model.preserved import Preserved, real_time
from rdc.plan.compare import Change, Comparison, Decision, Difference, row_difference

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from rdc.model.sync import SyncOptions


# What -u, --existing, --ignore-existing, --size-only, --append, --safe-links and bounds of sizes remove from
# a comparison.
#
# The rules are rsync's. A skipped entry stays unchanged, its metadata too. An entry of another kind at the
# destination never counts as newer. Directories that both sides have are never skipped.


class Narrowed(Record):
    """A comparison after the skip options."""

    comparison: Comparison
    without: frozenset[int]
    """Rows of directories that will not exist at the destination; their subtrees are skipped too."""
    skipped: bool
    """True if entries that differ stay unchanged."""
    left: Sequence[int]
    """Rows of entries that stay unchanged, existing or missing. Rows without a difference are listed only if
    an option would also keep a difference."""


def narrow(
    comparison: Comparison,
    wanted: Listing,
    existing: Listing,
    *,
    options: SyncOptions,
    preserved: Preserved,
    path: bytes = b"",
) -> Narrowed:
    """Return `comparison` of `existing` with `wanted` without the entries that `options` exclude. `path`: of
    the directory."""
    # long because each option of rsync is one test, in rsync's order
    unfit = _of_unfit_size(wanted, options) if options.bounds_sizes else frozenset()
    if options.safe_links:
        unfit |= _unsafe_links(wanted, path)
    checked = () if options.ignore_existing or options.append else comparison.checked
    if unfit:
        checked = tuple(row for row in checked if row not in unfit)
    if checked and (options.update or options.size_only) and not preserved.keeps_all_times:
        checked = _still_checked(checked, wanted, existing, options=options, preserved=preserved)
    decisions, touched = _not_skipped(
        comparison, wanted, existing, unfit, options=options, preserved=preserved
    )
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
        rows = {name: row for row, name in enumerate(existing.names)} if touched else {}
        by_time = [
            Decision(Change.METADATA, row, rows[wanted.names[row]], Difference.TIME) for row in touched
        ]
        files = (_by_size(one) if wanted.kinds[one.row] == Kind.FILE else one for one in decisions)
        decisions = sorted([*files, *by_time], key=lambda decision: decision.row)
        touched = ()
    found = Comparison(tuple(decisions), comparison.extra, tuple(touched), checked)
    return Narrowed(found, without, skipped, left)


def _not_skipped(
    comparison: Comparison,
    wanted: Listing,
    existing: Listing,
    unfit: frozenset[int],
    *,
    options: SyncOptions,
    preserved: Preserved,
) -> tuple[list[Decision], tuple[int, ...]]:
    """Return the decisions and the touched rows that no option excludes."""
    # long because each option of rsync is one test, in rsync's order
    decisions, touched = list(comparison.decisions), comparison.touched
    if unfit:
        touched = tuple(row for row in touched if row not in unfit)
        decisions = [decision for decision in decisions if decision.row not in unfit]
    if options.update and (touched or decisions):
        rows = {name: row for row, name in enumerate(existing.names)} if touched else {}
        touched = tuple(
            row for row in touched if not _newer(existing, rows[wanted.names[row]], wanted, row, preserved)
        )
        decisions = [
            decision for decision in decisions if not _is_newer(decision, wanted, existing, preserved)
        ]
    if options.append:
        touched = ()
        decisions = [decision for decision in decisions if not _as_long(decision, wanted, existing)]
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
    return decisions, touched


def _still_checked(
    checked: Sequence[int],
    wanted: Listing,
    existing: Listing,
    *,
    options: SyncOptions,
    preserved: Preserved,
) -> tuple[int, ...]:
    """Return the rows of files whose contents are compared: of those whose mtimes differ and prove nothing,
    none that is newer at the destination (-u), and none at all if equal sizes suffice (--size-only)."""
    rows = {name: row for row, name in enumerate(existing.names)}
    left = []
    for row in checked:
        other = rows[wanted.names[row]]
        equal = wanted.mtimes[row] == existing.mtimes[other]
        by_size = options.size_only and not options.checksum
        newer = options.update and _newer(existing, other, wanted, row, preserved)
        if equal or not (by_size or newer):
            left.append(row)
    return tuple(left)


def _is_newer(decision: Decision, wanted: Listing, existing: Listing, preserved: Preserved) -> bool:
    """Return whether the destination has a newer file than the decision would write."""
    return (
        wanted.kinds[decision.row] == Kind.FILE
        and decision.change not in (Change.CREATE, Change.REPLACE)
        and _newer(existing, decision.existing_row, wanted, decision.row, preserved)
    )


def _as_long(decision: Decision, wanted: Listing, existing: Listing) -> bool:
    """Return whether the destination has a file of other content that is not shorter than the new one."""
    return (
        wanted.kinds[decision.row] == Kind.FILE
        and decision.change in (Change.CONTENT, Change.CHECK)
        and existing.sizes[decision.existing_row] >= wanted.sizes[decision.row]
    )


def _of_unfit_size(wanted: Listing, options: SyncOptions) -> frozenset[int]:
    return frozenset(row for row in wanted.rows_of(Kind.FILE) if options.is_left_for_size(wanted.sizes[row]))


def _unsafe_links(wanted: Listing, path: bytes) -> frozenset[int]:
    """Return the rows of symlinks that lead out of the tree."""
    names = wanted.names
    return frozenset(
        row
        for row, target in wanted.links().items()
        if leads_outside(target, path + b"/" + names[row] if path else names[row])
    )


def _newer(a: Listing, row: int, b: Listing, other: int, preserved: Preserved) -> bool:
    """Return whether the destination's entry `a` is newer than the source's entry `b`."""
    mine, its = a.mtimes[row], b.mtimes[other]
    return real_time(mine) > real_time(its) and not preserved.same_time(its, mine)


def _by_size(decision: Decision) -> Decision:
    """Return the decision with --size-only, which takes a file of equal size for equal content."""
    contents = (Change.CONTENT, Change.CHECK)
    by_time = decision.change in contents and not decision.difference & Difference.SIZE
    return replace(decision, change=Change.METADATA) if by_time else decision


# Finds what alternate directories have of an entry of the source, by the rules of rsync(1), --link-dest.
#
# An entry of the same kind is a base. One that also has the same content, as far as size and mtime tell, need
# not be fetched. One with the same metadata, too, can stand for the new entry.


class Likeness(IntEnum):
    """The properties that an entry of an alternate directory has in common with the source's."""

    KIND = 1
    CONTENT = 2
    """Equal size and mtime, an equal link target, or an equal device number. Any two directories, fifos or
    sockets."""
    ALL = 3
    """The metadata are equal as well."""


class AlternateMatch(Record):
    """The entry that has most in common with the source's; among equals the first."""

    likeness: Likeness
    number: int
    """The number of its alternate directory."""
    row: int
    """Its row in the listing there."""
    difference: Difference

    @property
    def stands_for_all(self) -> bool:
        return self.likeness is Likeness.ALL


def best_match(
    wanted: Listing,
    row: int,
    listings: Sequence[Listing],
    *,
    preserved: Preserved,
    options: SyncOptions,
    same_attributes: Callable[[int], bool] | None = None,
) -> AlternateMatch | None:
    """Return the best match of the source's entry in `row` among the listings of the alternate directories.

    `same_attributes`: whether the entry in the directory of this number has the extended attributes that
    count; None if none count. None is returned if no directory has an entry of that name and kind.
    """
    name, kind = wanted.names[row], wanted.kinds[row]
    best: AlternateMatch | None = None
    for number, listing in enumerate(listings):
        at = bisect_left(listing.names, name)
        if at == len(listing) or listing.names[at] != name or listing.kinds[at] != kind:
            continue
        found = row_difference(wanted, row, listing, at, preserved)
        likeness = Likeness.KIND
        if _same_content(wanted, row, listing, at, found, options):
            likeness = Likeness.CONTENT
            if not found and (same_attributes is None or same_attributes(number)):
                likeness = Likeness.ALL
        if best is None or likeness > best.likeness:
            best = AlternateMatch(likeness, number, at, found)
        if likeness is Likeness.ALL:
            break
    return best


def _same_content(
    wanted: Listing, row: int, listing: Listing, at: int, found: Difference, options: SyncOptions
) -> bool:
    kind = wanted.kinds[row]
    if kind == Kind.SYMLINK:
        return wanted.target(row) == listing.target(at)
    if kind in DEVICES:
        return wanted.sizes[row] == listing.sizes[at]
    if kind != Kind.FILE:
        return True
    if found & Difference.SIZE:
        return False
    if options.rewrites:
        return False
    if options.checksum:
        return not wanted.sizes[row]
    return options.size_only or not found & Difference.TIME


def expected_directory(wanted: PackedListing, existing: PackedListing) -> PackedListing:
    """Return the source's entries, plus destination entries whose names the source lacks. Special files of
    the source are not created, so the destination's entries of their names stay."""
    if Kind.SPECIAL not in wanted.kinds and (not existing.count or wanted.names == existing.names):
        # Most directories of most trees take this path.
        return wanted
    source, destination = wanted.unpacked(), existing.unpacked()
    source = source.rows([row for row, kind in enumerate(source.kinds) if kind != Kind.SPECIAL])
    taken = frozenset(source.names)
    destination = destination.rows([row for row, name in enumerate(destination.names) if name not in taken])
    names, kinds = source.names + destination.names, source.kinds + destination.kinds
    links = {**source.links(), **{row + len(source): target for row, target in destination.links().items()}}
    order = sorted(range(len(names)), key=names.__getitem__)

    def column(name: str, typecode: str) -> array[int]:
        both = getattr(source, name) + getattr(destination, name)
        return array(typecode, [both[row] for row in order])

    columns: dict[str, Any] = {name: column(name, typecode) for name, typecode in NUMBERS.items()}
    return Listing(
        tuple([names[row] for row in order]),
        bytes([kinds[row] for row in order]),
        targets=tuple([links[row] for row in order if row in links]),
        **columns,
    ).packed()
