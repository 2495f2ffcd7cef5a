"""What is left of a comparison by --update, --existing, --ignore-existing and --size-only, entry by entry."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.model.entries import Kind
from rdc.model.preserved import Granularity, Preserved, real_time
from rdc.model.sync import SyncOptions
from rdc.plan.compare import Change, Comparison, Difference, compare
from rdc.plan.skip_options import narrow
from rdc.tree.manifest import Entry
from tests.plan.directories import directories
from tests.support.trees.manifests import listing

SLOW = settings(deadline=None)


@dataclass(frozen=True)
class Step:
    """What is to be done about one entry."""

    change: Change
    difference: Difference


def steps(found: Comparison, *, checksum: bool) -> dict[int, Step]:
    """By row of the wanted directory: of the columns too."""
    all_ = {decision.row: Step(decision.change, decision.difference) for decision in found.decisions}
    assert list(all_) == sorted(all_)
    touched = Step(Change.CHECK if checksum else Change.CONTENT, Difference.TIME)
    columns = dict.fromkeys(found.touched, touched)
    columns |= dict.fromkeys(found.checked, Step(Change.CHECK, Difference.NONE))
    assert not all_.keys() & columns.keys()
    return all_ | columns


def by_rule(
    step: Step, new: Entry, old: Entry | None, options: SyncOptions, preserved: Preserved
) -> Step | None:
    """None: it stays as it is. The rules are those of rsync's manual."""
    same_kind = old is not None and old.kind == new.kind
    if options.existing and old is None:
        return None
    if options.ignore_existing and old is not None and not (same_kind and new.kind == Kind.DIRECTORY):
        return None
    if options.update and same_kind and old is not None and new.kind == Kind.FILE:
        mine, source_mtime = (real_time(preserved.mtime(found.metadata.mtime_ns)) for found in (old, new))
        if mine > source_mtime:
            return None
    if new.kind == Kind.FILE and not options.min_size <= new.size <= (options.max_size or new.size):
        return None
    unchanged = options.size_only and not options.checksum and new.kind == Kind.FILE
    if unchanged and step.change is Change.CONTENT and not step.difference & Difference.SIZE:
        return Step(Change.METADATA, step.difference)
    return step


@st.composite
def narrowing(draw: st.DrawFn) -> SyncOptions:
    flag = st.booleans()
    return SyncOptions(
        checksum=draw(flag),
        update=draw(flag),
        existing=draw(flag),
        ignore_existing=draw(flag),
        size_only=draw(flag),
        min_size=draw(st.sampled_from((0, 0, 2))),
        max_size=draw(st.sampled_from((None, None, 1, 3))),
    )


@SLOW
@given(directories(), narrowing(), st.sampled_from([1, 1_000_000_000]))
def test_each_entry_by_the_rules(
    pair: tuple[list[Entry], list[Entry]], options: SyncOptions, step: int
) -> None:
    wanted, existing = pair
    preserved = Preserved(True, Granularity(step))
    columns, ours = listing(wanted), listing(existing)
    before = compare(columns, ours, preserved=preserved, checksum=options.checksum)
    found = narrow(before, columns, ours, options=options, preserved=preserved)
    old = {entry.path: entry for entry in existing}
    asked = steps(before, checksum=options.checksum)
    left = {
        row: one
        for row, found_ in asked.items()
        if (one := by_rule(found_, wanted[row], old.get(wanted[row].path), options, preserved)) is not None
    }
    assert steps(found.comparison, checksum=options.checksum) == left
    assert found.comparison.extra == before.extra
    gone = {row for row in asked.keys() - left.keys() if wanted[row].kind == Kind.DIRECTORY}
    assert found.without == gone
    # Of entries that do not differ those are left alone that would be if they did.
    unfit = {
        row for row, new in enumerate(wanted) if new.kind == Kind.FILE and options.is_left_for_size(new.size)
    }
    unchanged = {row for row, new in enumerate(wanted) if row not in asked and options.ignore_existing
               and new.kind != Kind.DIRECTORY}  # fmt: skip
    differing = asked.keys() - left.keys() - set(() if options.ignore_existing else before.checked)
    assert sorted(found.left) == sorted(differing | unchanged | unfit)
    # What only would have been looked into does not differ, as far as is known.
    assert found.skipped == bool(asked.keys() - left.keys() - set(before.checked))
