"""One run of `rdc unite`: both trees are listed, a plan is made, guards are asked, and the steps are done.

What the run is about to do is on disk at both roots before the first step, and the new ancestor after the
last one. A run that is killed in between costs nothing: the next one knows which paths are in doubt.
"""

from __future__ import annotations

import os
import time
from contextlib import ExitStack, suppress

from rdc.catalog.catalog import user_catalog
from rdc.errors import ExitCode, RdcError, UsageError, printable
from rdc.lean.records import Record
from rdc.model.preserved import nearest_time
from rdc.progress import Problem, Progressed
from rdc.tree import filter_list
from rdc.uniting.ancestor_file import AgreedAttributes, DamagedError, Head
from rdc.uniting.columns import EMPTY, Common, parents, table_of, with_parents
from rdc.uniting.deciding import Deciding, shared_row
from rdc.uniting.describe import (
    Listing,
    describe,
    digest_of,
    encode_next,
    in_doubt,
    last_undo,
    was_undone,
)
from rdc.uniting.file_systems import SideStorage, kept_of, opened_here
from rdc.uniting.guards import check_share, check_space
from rdc.uniting.journal import OpenPlan
from rdc.uniting.pair_rules import NO_RULES, KeptRules, chosen_rules, encode_rules
from rdc.uniting.plan import Planning
from rdc.uniting.records import UniteConflict, UniteOptions, UnitePair, UniteReport
from rdc.uniting.rings import check_ring, location_here, merged_edges, same_place
from rdc.uniting.rows import (
    LEFT,
    RIGHT,
    Ancestor,
    Row,
)
from rdc.uniting.state import PairDirectory, RootState, common_base, pair_name, pair_of_roots
from rdc.uniting.steps import SIDES, Steps, StepsProgress, cannot_undo, no_undo_notice, writable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rdc.files.root.root import Root
    from rdc.progress import StopSignal
    from rdc.uniting.ancestor_file import StoredAncestor
    from rdc.uniting.conflicts import Merged
    from rdc.uniting.describe import Described
    from rdc.uniting.plan import Plan, Undecided
    from rdc.uniting.records import UniteReporter
    from rdc.uniting.rows import Node
    from rdc.uniting.state import Base


class _Place(Record):
    """One of the two directories."""

    given: bytes
    """The text as the user wrote it."""
    path: bytes
    """Absolute, without links."""
    device: int
    inode: int


def unite(
    left: bytes, right: bytes, options: UniteOptions, reporter: UniteReporter, stop: StopSignal | None = None
) -> UniteReport:
    """Bring two local directories together. Raises RdcError if the run as a whole cannot go on."""
    if not options.merge:
        return _unite_once(left, right, options, reporter, stop, {})
    from rdc.uniting.merged_texts import Merging, near_text

    merging = Merging(left, LEFT, options, reporter)
    while True:
        report = _unite_once(left, right, merging.options, merging.report, stop, merging.merged)
        pair = pair_of_roots((left, right)) if not options.dry_run else b""
        if not merging.goes_on(report, pair, near_text(right)):
            return merging.total(report)


def _unite_once(
    left: bytes,
    right: bytes,
    options: UniteOptions,
    reporter: UniteReporter,
    stop: StopSignal | None,
    merged: Mapping[bytes, Merged],
) -> UniteReport:
    places = _places((left, right))
    with ExitStack() as stack:
        roots = (_opened(stack, left), _opened(stack, right))
        return _Run(stack, places, roots, options, reporter, stop, merged).run()


def is_bare(path: bytes) -> bool:
    """Return whether a directory has no entry at all. Raises RdcError if it cannot be listed."""
    try:
        return not os.listdir(path)
    except OSError as error:
        raise RdcError(
            f"{printable(path)}: cannot unite it: expected a directory that you can list, found"
            f" {error.strerror}; nothing was done: run as its owner, or give that user the rights",
            code=ExitCode.FILE_IO,
        ) from error


def _places(given: tuple[bytes, bytes]) -> tuple[_Place, _Place]:
    """Return the two directories. Raises UsageError if they are the same or nested, RdcError if one is
    missing."""
    found: list[_Place] = []
    for side, path in enumerate(given):
        try:
            stat = os.stat(path)
            real = os.path.realpath(path)
        except OSError as error:
            what = "nothing" if isinstance(error, FileNotFoundError) else error.strerror
            raise RdcError(
                f"{printable(path)}: cannot unite it: expected a directory at the {SIDES[side]}, found"
                f" {what}; nothing was done: mount or make it, then run again",
                code=ExitCode.FILE_IO,
            ) from error
        found.append(_Place(path, real, stat.st_dev, stat.st_ino))
    one, other = found
    if (one.device, one.inode) == (other.device, other.inode):
        raise UsageError(f"{printable(given[LEFT])} and {printable(given[RIGHT])} are the same directory")
    for inner, outer in ((one, other), (other, one)):
        if inner.path.startswith(outer.path.rstrip(b"/") + b"/"):
            raise UsageError(
                f"{printable(inner.given)} lies in {printable(outer.given)}: a directory cannot be united"
                " with one inside it"
            )
    return one, other


def _opened(stack: ExitStack, path: bytes) -> Root:
    root = opened_here(path)
    stack.callback(root.release)
    return root


class _Decided(Record):
    """A plan, and what it was made of."""

    sides: tuple[Listing, Listing]
    common: Common
    loaded: set[bytes]
    """The directories of which the plan has the entries."""
    original: dict[bytes, Ancestor]
    """The ancestor's rows in them."""
    described: Described
    plan: Plan
    unloaded: int
    """The number of entries of which the plan says nothing: both sides have them as they are."""


class _Run(Deciding):
    """One run of two directories of this machine, from the locks to the new ancestor."""

    def __init__(
        self,
        stack: ExitStack,
        places: tuple[_Place, _Place],
        roots: tuple[Root, Root],
        options: UniteOptions,
        reporter: UniteReporter,
        stop: StopSignal | None,
        merged: Mapping[bytes, Merged],
    ) -> None:
        super().__init__((places[LEFT].given, places[RIGHT].given), options, reporter, stop, merged)
        self._stack = stack
        self._places = places
        self._roots = roots
        catalog = user_catalog(os.environ)
        stack.callback(catalog.close)
        writes = not options.dry_run
        self._storages = [SideStorage(root, catalog, self._report, writes=writes) for root in roots]
        self._has_begun = False
        self._edges: frozenset[bytes] | None = None
        """The other pairs that either side knows, in a first meeting."""
        self._filters = filter_list(())
        self._own_sets: tuple[dict[bytes, bytes], dict[bytes, bytes]] = ({}, {})
        """The digests of the sets of each side's entries, by path."""
        self._has_links = False
        """True if hard links take part."""

    def run(self) -> UniteReport:
        """Run once. Raises RdcError."""
        self._check_bare()
        states = self._states()
        pairs = self._pairs(states)
        self._choose_rules(pairs)
        inodes = [state.inode for state in states]
        base = common_base(pairs, states, inodes)
        self._say_first(base, states)
        self._check_ring(states, first=base.ancestors is None)
        self._find_kept()
        self._find_attributes()
        self._find_links()
        sides = self._listings(states)
        if (
            base.ancestors
            and not base.plans
            and not base.notice
            and _are_as(sides, base.ancestors)
            and self._attributes_are_as(base)
            and self._ties_are_as(sides, base)
        ):
            count = base.ancestors[LEFT].count
            self._name_unmet()
            self._keep_rules(pairs)
            return UniteReport(0, 0, 0, 0, count, 0, self._held, False, self._code(conflicts=False))
        if base.ancestors and not _has_rows(base.ancestors):
            base = common_base(pairs, states, inodes, rows=True)
            self._say_first(base, states)
            self._check_ring(states, first=base.ancestors is None)
        first = base.ancestors is None
        decided = self._decide(sides, base, states)
        if not (decided.plan.is_empty or self._options.dry_run) and self._learn():
            decided = self._decide(self._listings(states), base, states)
        plan, described = decided.plan, decided.described
        if first:
            self._say_left_out(*decided.sides)
        self._name_holds(plan)
        if self._options.dry_run:
            # Before the guards: they tell the user to look at it with -n.
            self._rehearse(plan, dict(enumerate(self._roots)))
        self._guard(plan, described)
        steps = None
        if not self._options.dry_run:
            self._keep_rules(pairs)
            for each in decided.sides:
                each.sweep()
            steps = self._do(plan, described.views, base, pairs)
        conflicts = self._name_conflicts(plan)
        unloaded = decided.unloaded
        entries = unloaded + len(plan.settled) + len(plan.kept)
        if steps is not None:
            ancestors = self._next_rows(plan, described.base, described.views, steps, decided.original)
            entries = unloaded + len(ancestors)
            kinds = self._sets.kinds if self._sets is not None else 0
            is_news = ancestors != decided.original or any(
                ancestor.head.attributes != kinds for ancestor in base.ancestors or () if kinds
            )
            ties = self._next_ties(plan, ancestors, steps)
            is_news |= ties is not None and base.ancestors is not None and ties != base.ancestors[LEFT].ties
            if first or is_news or base.plans or base.notice:
                self._commit(ancestors, ties, decided, base, states, pairs)
            for number, pair in enumerate(pairs):
                if pair is not None:
                    pair.note_conflicts(conflicts, number)
        return self._result(plan, steps, entries, first=first)

    def _decide(
        self, sides: tuple[Listing, Listing], base: Base, states: tuple[RootState, RootState]
    ) -> _Decided:
        """Return the plan of two trees as they were listed. Raises RdcError."""
        left, right = base.ancestors or (None, None)
        agreed = left.attributes(self._sets.kinds) if left and self._sets is not None else None
        common = Common((left.table, right.table) if left and right else (EMPTY, EMPTY), agreed)
        doubts = bool(base.plans or base.notice or self._sets is not None)
        if base.ancestors is None and self._sets is None:
            doubts = self._options.checksum or not self._kept.is_plain
        loaded = in_doubt(sides, base.ancestors, everything=doubts)
        self._links = None
        if self._has_links:
            from rdc.uniting.hard_links import Links

            self._links = Links(left.ties if left else {}, (sides[LEFT].ties(), sides[RIGHT].ties()))
            loaded |= with_parents(parents(self._links.names))
        rows = common.load(loaded)
        for listed in sides:
            listed.load(loaded)
        original = dict(rows)
        if self._sets is not None:
            from rdc.uniting.attributes import give_rows

            for listed, own in zip(sides, self._own_sets, strict=True):
                give_rows(listed, own, rows)
        self._check_emptied(states, common, sides)
        undone = was_undone(self._roots[LEFT], left), was_undone(self._roots[RIGHT], right)
        checksum = self._options.checksum or base.ancestors is not None
        described = describe(
            rows,
            sides,
            self._filters,
            checksum=checksum,
            undone=undone,
            kept=self._kept,
            links=self._links,
        )
        rules = self._rules(base.plans, lambda side: states[side].can_rename())
        planning = Planning(described.base, *described.views, rules)
        self._compare(planning.undecided(), sides)
        unloaded = common.unloaded if base.ancestors else sides[LEFT].count - len(sides[LEFT].rows)
        return _Decided(sides, common, loaded, original, described, planning.plan(), unloaded)

    # State

    def _say_first(self, base: Base, states: tuple[RootState, RootState]) -> None:
        """Report why there is no ancestor, or only an older one."""

        def known() -> int:
            return max(state.known_at(self._places[1 - side].path) for side, state in enumerate(states))

        self._say_base(base.notice, first=base.ancestors is None, known=known)

    def _states(self) -> tuple[RootState, RootState]:
        """Open and lock both sides, always in the same order, so that two runs cannot wait for each other."""
        found: dict[int, RootState] = {}
        for side in sorted(
            (LEFT, RIGHT), key=lambda each: (self._places[each].device, self._places[each].inode)
        ):
            learn = self._storages[side].learn
            state = RootState(self._roots[side], write=not self._options.dry_run, learn=learn)
            self._stack.callback(state.close)
            found[side] = state
        if found[LEFT].id is not None and found[LEFT].id == found[RIGHT].id:
            # One is a copy of the other, at the top of its file system: both have the same inode number.
            found[RIGHT].renew()
        return found[LEFT], found[RIGHT]

    def _other_place(self, side: int) -> tuple[bytes, bytes]:
        path = self._places[1 - side].path
        return path, location_here(path)

    def _check_ring(self, states: tuple[RootState, RootState], *, first: bool) -> None:
        """Refuse a first meeting of two directories that other pairs connect."""
        one, other = states[LEFT].id, states[RIGHT].id
        if not first or one is None or other is None:
            return
        edges = merged_edges(
            one,
            states[LEFT].edges(*self._other_place(LEFT)),
            other,
            states[RIGHT].edges(*self._other_place(RIGHT)),
        )
        if not self._options.ring:
            check_ring([place.given for place in self._places], one, other, edges)
        self._edges = edges

    def _pairs(self, states: tuple[RootState, RootState]) -> list[PairDirectory | None]:
        ids = [state.id for state in states if state.id is not None]
        if len(ids) < 2:
            return [None, None]
        name = pair_name(ids)
        pairs = [PairDirectory.open(state, name, make=not self._options.dry_run) for state in states]
        for pair in pairs:
            if pair is not None:
                self._stack.callback(pair.close)
        return pairs

    def _choose_rules(self, pairs: list[PairDirectory | None]) -> None:
        kept = [pair.rules() if pair is not None else None for pair in pairs]
        self._rules_now, self._rules_before = chosen_rules(self._options, kept)
        encode_rules(KeptRules(self._rules_now, 0))  # too many are refused before anything is done
        self._filters = filter_list(self._rules_now.filters)
        if any(kept) and self._rules_now != self._rules_before:
            text = "other rules than before: what takes no part any more stays at both sides"
            self._report(Problem(ExitCode.OK, b"", text))

    def _keep_rules(self, pairs: list[PairDirectory | None]) -> None:
        """Keep the rules at both sides. Nothing is written if both have them, or if there never were any."""
        if self._options.dry_run or self._rules_now == self._rules_before == NO_RULES:
            return
        kept = [pair.rules() if pair is not None else None for pair in pairs]
        if self._rules_now == self._rules_before and None not in kept and kept[LEFT] == kept[RIGHT]:
            return
        found = KeptRules(self._rules_now, int(time.time()))
        for pair in pairs:
            if pair is not None:
                pair.keep_rules(found)

    # File systems and trees

    def _find_kept(self) -> None:
        self._kept = kept_of(*(storage.facts.keeps for storage in self._storages))

    def _find_attributes(self) -> None:
        """Find out which extended attributes take part."""
        if not (self._options.xattrs or self._options.acls):
            return
        from rdc.uniting.attributes import AttributeSets, asked_kinds, kept_kinds, lost_notice

        asked = asked_kinds(xattrs=self._options.xattrs, acls=self._options.acls)
        kinds = kept_kinds(asked, self._roots, modes=self._kept.modes)
        if asked & ~kinds:
            self._report(lost_notice(asked & ~kinds))
        self._sets = AttributeSets(kinds) if kinds else None

    def _attributes_are_as(self, base: Base) -> bool:
        """Return whether the attributes of both sides are as what was agreed says."""
        if self._sets is None:
            return True
        from rdc.uniting.attributes import are_as

        if base.ancestors is None:
            return False
        left = base.ancestors[LEFT]
        return all(are_as(left, self._sets, own) for own in self._own_sets)

    def _find_links(self) -> None:
        """Find out whether hard links take part."""
        if not self._options.hard_links:
            return
        from rdc.uniting.hard_links import can_have_links, no_links_notice

        self._has_links = all(map(can_have_links, self._roots))
        if not self._has_links:
            self._report(no_links_notice())

    def _ties_are_as(self, sides: tuple[Listing, Listing], base: Base) -> bool:
        """Return whether the hard links of both sides are as what was agreed says."""
        if not self._has_links:
            return True
        return base.ancestors is not None and all(
            ancestor.has_ties(side.ties()) for side, ancestor in zip(sides, base.ancestors, strict=True)
        )

    def _learn(self) -> bool:
        """Find out what both file systems keep. Return whether that is not what was known: then the trees are
        listed again."""
        before = [storage.facts for storage in self._storages]
        for storage in self._storages:
            storage.learn()
        self._find_kept()
        if before == [storage.facts for storage in self._storages]:
            return False
        self._find_attributes()
        return True

    def _listings(self, states: tuple[RootState, RootState]) -> tuple[Listing, Listing]:
        left, right = (
            Listing(root, self._filters, self._report, state.clock)
            for root, state in zip(self._roots, states, strict=True)
        )
        for listing in (left, right):
            if not self._kept.links:
                listing.leave_links()
        if self._sets is not None:
            from rdc.uniting.attributes import read_sets

            self._own_sets = read_sets(left, self._sets), read_sets(right, self._sets)
        return left, right

    # Guards

    def _check_emptied(
        self,
        states: tuple[RootState, RootState],
        common: Common,
        sides: tuple[Listing, Listing],
    ) -> None:
        """Stop if a side is empty that had entries, or that the other side knows from its last run."""
        if self._options.force_empty:
            return
        for side in (LEFT, RIGHT):
            if sides[side].count:
                continue
            had = common.count or states[1 - side].known_at(self._places[side].path)
            if had:
                raise self._emptied(side, had)

    def _check_bare(self) -> None:
        """Stop before anything is written into a directory without any entry that the other side knows to
        have had some: a mount point without its file system."""
        if self._options.force_empty:
            return
        for side in (LEFT, RIGHT):
            if is_bare(self._places[side].path):
                with RootState(self._roots[1 - side], write=False) as other:
                    had = other.known_at(self._places[side].path)
                if had:
                    raise self._emptied(side, had)

    def _guard(self, plan: Plan, described: Described) -> None:
        """Stop before a run that the guard does not allow, or for which there is no room."""
        shown = [place.given for place in self._places]
        if not self._options.force_empty:
            check_share(plan, shown, described.entries, self._options.guard, self._reporter)
        check_space(plan, shown, self._roots)

    # The plan

    def _compare(self, undecided: Sequence[Undecided], sides: tuple[Listing, Listing]) -> None:
        """Read the files whose contents decide something."""
        total, done = sum(each.size for each in undecided), 0
        for each in undecided:
            digests: list[bytes | None] = []
            for side, node in zip(sides, each.sides, strict=True):
                row = node.row
                digest = digest_of(side, node.origin, row, self._stop) if isinstance(row, Row) else None
                digests.append(digest)
            each.settle((digests[LEFT], digests[RIGHT]))
            done += each.size
            self._report(Progressed("compare", done, total))

    # Doing it

    def _do(
        self, plan: Plan, views: tuple[Node, Node], base: Base, pairs: list[PairDirectory | None]
    ) -> Steps:
        if plan.journal or not plan.is_empty:
            self._begin(OpenPlan(base.generation, plan.journal, plan.renames), base, pairs)
        left, right = self._storages
        left.agree(right.facts.keeps)
        right.agree(left.facts.keeps)
        keep = self._options.keep_undo
        for side in {side for side, _ in (*plan.steps, *plan.attributes, *plan.links)}:
            if keep is not None and cannot_undo(self._roots[side]):
                self._report(no_undo_notice(self._roots[side]))
        roots = (
            writable(self._roots[LEFT], keep, fsync=self._options.fsync, sheds_acls=self._has_acls),
            writable(self._roots[RIGHT], keep, fsync=self._options.fsync, sheds_acls=self._has_acls),
        )
        for root in roots:
            if root.writes.undo is not None:
                self._stack.callback(root.writes.undo.close)
        progress = StepsProgress((*plan.steps, *plan.links), self._report)
        steps = Steps(
            roots, self._report, self._stop, fsync=self._options.fsync, progress=progress, sets=self._sets
        )
        if not plan.is_empty:
            steps.run(plan, self._files_in_play(plan, views))
        for root in roots:
            if root.writes.undo is not None:
                root.writes.undo.close()
        for storage in self._storages:
            storage.finish()
        return steps

    def _files_in_play(self, plan: Plan, views: tuple[Node, Node]) -> list[Mapping[bytes, Row]]:
        if self._links is None:
            return []
        from rdc.uniting.hard_links import files_in_play

        every = (*plan.steps, *plan.attributes, *plan.links)
        return [
            files_in_play([step for at, step in every if at == side], self._links.sides[side], views[side])
            for side in (LEFT, RIGHT)
        ]

    def _begin(self, plan: OpenPlan, base: Base, pairs: list[PairDirectory | None]) -> None:
        """Have the journals of both sides on disk. Without an ancestor there is nothing to be in doubt."""
        self._has_begun = True
        for pair in pairs:
            if pair is not None and base.ancestors is not None:
                pair.begin(plan)

    def _commit(
        self,
        rows: dict[bytes, Ancestor],
        ties: Mapping[bytes, int] | None,
        decided: _Decided,
        base: Base,
        states: tuple[RootState, RootState],
        pairs: list[PairDirectory | None],
    ) -> None:
        """Make what both sides have in common now the ancestor of both. The entries of directories that the
        plan says nothing of are as they were, or without an ancestor as both sides have them."""
        left, right = pairs
        if left is None or right is None:
            return
        if not self._has_begun:
            # A kill between the two ends is then known for what it is.
            self._begin(OpenPlan(base.generation, {}, frozenset()), base, pairs)
        paths = sorted(rows)
        shared = [shared_row(rows[path]) for path in paths]
        generation = os.urandom(8)
        attributes = None
        if self._sets is not None:
            digests = {path: row.attributes for path, row in rows.items() if row.attributes is not None}
            attributes = AgreedAttributes(self._sets.kinds, digests)
        for side, pair in ((LEFT, left), (RIGHT, right)):
            own, other = states[side].id, states[1 - side].id
            head = Head(
                generation, own or b"", other or b"", states[side].inode, int(time.time()),
                self._places[1 - side].path, last_undo(self._roots[side], self._options.keep_undo),
                location=location_here(self._places[1 - side].path),
            )  # fmt: skip
            added = table_of(paths, shared, [rows[path].stamps[side] for path in paths])
            ancestor = base.ancestors[side] if base.ancestors else None
            numbers = decided.common.numbers
            listed = decided.sides[side]
            encoded = encode_next(head, added, decided.loaded, ancestor, numbers, listed, attributes, ties)
            pair.prepare(encoded)
        for state in states if self._edges is not None else ():
            state.note_edges(self._edges or ())
        for pair in (left, right):
            pair.commit()
        for pair in (left, right):
            pair.end()


def _are_as(sides: tuple[Listing, Listing], ancestors: tuple[StoredAncestor, StoredAncestor]) -> bool:
    """Return whether both sides are as their own stamps say: then there is nothing to decide."""
    return all(side.is_as(ancestor) for side, ancestor in zip(sides, ancestors, strict=True))


def _has_rows(ancestors: tuple[StoredAncestor, StoredAncestor]) -> bool:
    """Return whether the rows of both can be read."""
    try:
        return all(ancestor.table.size == ancestor.count for ancestor in ancestors)
    except DamagedError:
        return False


def known_pair(path: bytes, place: bytes, other: bytes | None) -> UnitePair | None:
    """Return what the directory at `path` remembers of another one; None: nothing. Raises RdcError.

    `other`: its path, if it is on this machine. Then both ids prove the pair, whatever either was called in
    the last run, and from which machine. Without them, as where a disk is not mounted, its `place` counts.
    """
    with ExitStack() as stack:
        state = RootState(_opened(stack, path), write=False)
        stack.callback(state.close)
        ids = (state.id, _id_at(other) if other is not None else None)
        if None not in ids:
            pair = PairDirectory.open(state, pair_name([each for each in ids if each is not None]))
            if pair is not None:
                stack.callback(pair.close)
                found = _remembered(pair)
                if found is not None:
                    return found[0]
        for pair in state.pairs():
            stack.callback(pair.close)
            found = _remembered(pair)
            if found is not None and any(same_place(place, each) for each in found[1]):
                return found[0]
    return None


def known_places(path: bytes) -> list[bytes]:
    """Return the places of the directories that the one at `path` remembers. Raises RdcError."""
    with ExitStack() as stack:
        state = RootState(_opened(stack, path), write=False)
        stack.callback(state.close)
        found = set()
        for pair in state.pairs():
            stack.callback(pair.close)
            found |= pair.places() or set()
    return sorted(found)


def _id_at(path: bytes) -> bytes | None:
    """Return the id of a directory; None: it has none, or cannot be looked at now."""
    with suppress(RdcError), ExitStack() as stack:
        state = RootState(_opened(stack, path), write=False)
        stack.callback(state.close)
        return state.id
    return None


def _remembered(pair: PairDirectory) -> tuple[UnitePair, tuple[bytes, bytes]] | None:
    """Return what is known of a pair, and both names of the other directory's place; None: nothing."""
    latest = pair.latest()
    if latest is None:
        return None
    head = latest.head
    plans, readable = pair.plans()
    conflicts = tuple(
        UniteConflict(each.path, each.about, *each.sizes, *map(nearest_time, each.mtimes_ns))
        for each in pair.open_conflicts()
    )
    found = UnitePair(
        head.place,
        head.seconds,
        latest.count,
        bool(plans) or not readable,
        kept.rules.lines if (kept := pair.rules()) is not None else (),
        conflicts,
    )
    return found, (head.place, head.location)


def forget(left: bytes, right: bytes) -> int:
    """Remove what two directories remember of each other. Return at how many of them something was. Raises
    RdcError."""
    removed = 0
    with ExitStack() as stack:
        roots = (_opened(stack, left), _opened(stack, right))
        states = [RootState(root, write=True) for root in roots]
        for state in states:
            stack.callback(state.close)
        ids = [state.id for state in states if state.id is not None]
        for state in states:
            pair = PairDirectory.open(state, pair_name(ids))
            if pair is not None:
                pair.forget()
                pair.close()
                removed += 1
    return removed


def forget_place(path: bytes, place: bytes) -> int:
    """Remove what the directory at `path` remembers of one at another place, and what is so damaged that it
    could be of any. Return how many pairs that were. Raises RdcError."""
    removed = 0
    with ExitStack() as stack:
        state = RootState(_opened(stack, path), write=True)
        stack.callback(state.close)
        for pair in state.pairs():
            places = pair.places()
            if places is None or any(same_place(place, each) for each in places):
                pair.forget()
                removed += 1
            pair.close()
    return removed
