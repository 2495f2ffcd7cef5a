"""One run of `rdc unite` with a directory of another machine, as the side that dials holds it.

One connection. The other side tells what it changed since what both had in common, this side makes the plan,
and contents come and go as in every sync, with the roles exchanged in turn. Each side does its own steps,
checks each against its own listing, and keeps its own journal. rdc.uniting.far_side is the other side.
"""

from __future__ import annotations

import os
import time
from contextlib import ExitStack, closing

from rdc.catalog.catalog import user_catalog
from rdc.catalog.signer import FileSigner
from rdc.catalog.store import FactsAlone
from rdc.errors import ExitCode, ProtocolError, RdcError, StreamError, TrustError, UsageError, printable
from rdc.lean.records import Record, replace
from rdc.lean.typed import TypeVar
from rdc.limits import DAEMON_TIMEOUT_SECONDS
from rdc.progress import Problem
from rdc.protocol.connection import Connection
from rdc.protocol.messages import Exchange, Met, Role
from rdc.protocol.messages.uniting import Subject, Told
from rdc.session.runtime.commands import Conversation, Flush, Send, entries_memory
from rdc.session.serve import greeting
from rdc.tree import filter_list
from rdc.uniting import exchanged
from rdc.uniting.ancestor_file import AgreedAttributes, DamagedError, Head, StoredAncestor
from rdc.uniting.columns import EMPTY, Common, parents, table_of, with_parents
from rdc.uniting.deciding import shared_row
from rdc.uniting.describe import (
    OwnContents,
    digest_of,
    drop_undone,
    encode_next,
    last_undo,
    node_of,
    was_undone,
)
from rdc.uniting.exchanged import (
    ADD,
    COPY,
    LINK,
    MAKE,
    PART,
    RELINK,
    REMOVE,
    RENAME,
    REPLACE,
    SET,
    TIE,
    Action,
    Agreed,
    Order,
)
from rdc.uniting.guards import Room, check_room, check_share, room_of
from rdc.uniting.journal import OpenPlan
from rdc.uniting.meeting import MEETINGS, Again, Ends, Meeting, NearMeeting, ends_of
from rdc.uniting.merging import TEXT_BYTES
from rdc.uniting.pages import (
    FilesEnd,
    do_late_steps,
    receive_page,
    send_page,
)
from rdc.uniting.pair_rules import NO_RULES
from rdc.uniting.plan import UNITS, Link, Part, Planning, Remove, SetFields, Write
from rdc.uniting.records import UniteItem, UniteOptions, UniteReport
from rdc.uniting.renames import CopyHere, MakeDirectory, Rename
from rdc.uniting.rings import check_ring, location_in, merged_edges, pack_edges, unpack_edges
from rdc.uniting.rows import ELSEWHERE, FILE, LEFT, SYMLINK, Ancestor, Doubt, Node, Row
from rdc.uniting.state import (
    MARK_DIGEST_BYTES,
    RootState,
)
from rdc.uniting.steps import SIDES, Steps, StepsProgress, cannot_undo, items_of, no_undo_notice, writable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence, Set

    from rdc.model.location import Location, RemoteShell
    from rdc.progress import StopSignal
    from rdc.session.far.far_host import FarHost
    from rdc.uniting.conflicts import Merged
    from rdc.uniting.plan import Plan, SetAttributes, Step
    from rdc.uniting.records import UniteReporter


T = TypeVar("T")


class RemoteRun(NearMeeting):
    """One session, seen from the dialling side."""

    def conversation(self) -> Conversation[UniteReport | Again]:
        """Hold this side of the session. Raises RdcError."""
        found = yield from self.meet()
        if isinstance(found, Again):
            return found
        return (yield from self._unite(found, self.round))

    # The plan

    def _unite(self, meeting: Meeting, round_: int) -> Conversation[UniteReport | Again]:
        ancestor, plans = self._ancestor(meeting)
        met = meeting.met
        self._find_attributes(met)
        self._find_links()
        if (
            ancestor is not None
            and met.told & Told.UNCHANGED
            and not plans
            and not meeting.related.notice
            and self._listing.is_as(ancestor)
            and self._attributes_are_as(ancestor)
            and (self._own_ties is None or ancestor.has_ties(self._own_ties))
        ):
            self._say_first(meeting)
            self._name_unmet()
            yield from self._close(meeting, round_, closes=self._keeps_rules(meeting))
            return UniteReport(0, 0, 0, 0, ancestor.count, 0, self._held, False, self._code(conflicts=False))
        if ancestor is not None:
            try:
                _ = ancestor.table
            except DamagedError:
                if met.told & Told.ROWS:
                    _, _, self.round = yield from self._told(ancestor.count)
                return replace(self._said, other=met.root, damaged=True)
        self._say_first(meeting)
        if ancestor is None and meeting.state.id is not None and met.root:
            round_ = yield from self._check_ring(meeting.state, meeting.state.id, met, round_)
        doubts = bool(plans or meeting.related.notice)
        trees, round_ = yield from self._trees(meeting, ancestor, doubts, round_)
        self._check_emptied(trees, meeting)
        plans = (*(plan.seen_from(self._near) for plan in plans), *trees.plans)

        def can_rename(side: int) -> bool:
            return meeting.state.can_rename() if side == self._near else trees.renames

        planning = Planning(trees.base, *trees.views, self._rules(plans, can_rename))
        round_ = yield from self._compare(planning, round_)
        plan = planning.plan()
        if ancestor is None:
            self._say_left_out(self._listing)
        self._name_holds(plan)
        if self._options.dry_run:
            # Before the guards: they tell the user to look at it with -n.
            self._rehearse(plan, {self._near: self._root})
        self._guard(plan, trees, met)
        steps = None
        if not self._options.dry_run:
            steps, round_ = yield from self._do(plan, trees, meeting, ancestor, round_)
            round_ = yield from self._read_texts(plan, round_)
        conflicts = self._name_conflicts(plan)
        entries = trees.unloaded + len(plan.settled) + len(plan.kept)
        if steps is not None:
            rows = self._next_rows(plan, trees.base, trees.views, steps, trees.original)
            entries = trees.unloaded + len(rows)
            pending = bool(plans) or bool(meeting.related.notice) or ancestor is None
            pending |= meeting.pair is None or not meeting.pair.has_noted(conflicts, self._near)
            if self._sets is not None and ancestor is not None:
                pending |= ancestor.head.attributes != self._sets.kinds
            ties = self._next_ties(plan, rows, steps)
            pending |= ties is not None and ancestor is not None and ties != ancestor.ties
            if pending or not plan.is_empty or self._is_news(rows, trees.original, plan):
                agreed = self._agreed(rows, plan, trees, ancestor, steps.failed[self._near])
                agreed = replace(agreed, conflicts=tuple(conflicts))
                yield from self._agree(agreed, rows, ties, meeting, trees, ancestor, round_)
            else:
                yield from self._close(meeting, round_, closes=self._keeps_rules(meeting))
            if meeting.pair is not None:
                meeting.pair.note_conflicts(conflicts, self._near)
        return self._result(plan, steps, entries, first=ancestor is None)

    def _attributes_are_as(self, ancestor: StoredAncestor) -> bool:
        if self._sets is None:
            return True
        from rdc.uniting.attributes import are_as

        return are_as(ancestor, self._sets, self._own_sets)

    def _check_ring(self, state: RootState, own: bytes, met: Met, round_: int) -> Conversation[int]:
        """Refuse a first meeting of two directories that other pairs connect."""
        other, edges = met.root, state.edges(self._shown[self._far], location_in(met.location))
        yield from send_page(Subject.EDGES, pack_edges(edges), round_)
        page, round_ = yield from receive_page(Subject.KNOWN)
        known = exchanged.checked("pairs of the other side", unpack_edges, page)
        edges = merged_edges(own, edges, other, known)
        if not self._options.ring:
            check_ring(self._shown, own, other, edges)
        self._edges = edges
        return round_

    def _say_first(self, meeting: Meeting) -> None:
        def known() -> int:
            return max(meeting.met.known, meeting.state.known_at(self._shown[self._far]))

        related = meeting.related
        self._say_base(related.notice, first=related.numbers is None, known=known)
        if self._rules_before != self._rules_now and self._kept_rules is not None:
            text = "other rules than before: what takes no part any more stays at both sides"
            self._report(Problem(ExitCode.OK, b"", text))

    def _ancestor(self, meeting: Meeting) -> tuple[StoredAncestor | None, tuple[OpenPlan, ...]]:
        """Return the ancestor in use, and this side's plans that began with it."""
        ancestor = meeting.memory.only(meeting.related, self._near)
        if ancestor is None:
            return None, ()
        generation = ancestor.head.generation
        plans = tuple(
            plan
            if plan.is_own
            else OpenPlan(generation, dict.fromkeys(plan.intents, (None, None)), plan.renames, True)
            for plan in meeting.memory.counting(generation)
        )
        return ancestor, plans

    def _trees(
        self, meeting: Meeting, ancestor: StoredAncestor | None, doubts: bool, round_: int
    ) -> Conversation[tuple[_Trees, int]]:
        """Both trees and what they had in common, ready for a plan. `doubts`: a run was interrupted, so every
        entry is looked at."""
        listing, near, far, met = self._listing, self._near, self._far, meeting.met
        table = ancestor.table if ancestor is not None else EMPTY
        sets = self._sets
        agreed = ancestor.attributes(sets.kinds) if ancestor is not None and sets is not None else None
        common = Common((table, table), agreed)
        told, same = None, False
        theirs: Mapping[bytes, bytes] = {}
        if met.told & Told.ROWS:
            told, theirs, round_ = yield from self._told(common.count)
        elif sets is not None:
            pass  # all of the tree is asked for below
        elif ancestor is not None:
            told = exchanged.Told((), (), (), {}, {}, ())
            self._far_ties = dict(ancestor.ties)
        elif not self._options.checksum and self._kept.is_plain and self._own_ties is None:
            same = met.tree == exchanged.tree_digest(listing)
        listed = ancestor.listed() if ancestor is not None else None
        if same:
            loaded = with_parents(listing.changing() | listing.in_doubt((), {}))
        elif told is None or listed is None or told.plans or doubts or sets is not None:
            loaded = with_parents(common.directories() | listing.directories.keys())
        else:
            loaded = listing.in_doubt(listed, listing.digests)
            loaded = with_parents(loaded | exchanged.told_directories(told, common))
        own_ties, before = self._own_ties, ancestor.ties if ancestor is not None else {}
        if own_ties is not None:
            names = own_ties.keys() | before.keys() | (self._far_ties or {}).keys()
            loaded |= with_parents(parents(names))
        original = common.load(loaded)
        base = dict(original)
        listing.load(loaded)
        if sets is not None:
            from rdc.uniting.attributes import give_rows

            give_rows(listing, self._own_sets, original)
        listing.settle_recent()
        listing.bar_hidden(base, filter_list(self._rules_now.filters))
        if was_undone(self._root, ancestor):
            drop_undone(base, listing, near)
        checksum = self._options.checksum or ancestor is not None
        retied: frozenset[bytes] = frozenset()
        if own_ties is not None:
            from rdc.uniting import ties

            retied = ties.retied(before, own_ties)
        OwnContents(base, listing, near, checksum=checksum, kept=self._kept, retied=retied).settle()
        if same:
            rows = {
                path: row._replace(inode=0, listed=None, doubt=Doubt.NONE)
                for path, row in listing.rows.items()
            }
            told = exchanged.Told((), (), (), rows, listing.barred, ())
        renames = True
        if self._options.keep_both or self._options.resolve or self._moved(original, near):
            yield from send_page(Subject.TRY, b"", round_)
            page, round_ = yield from receive_page(Subject.TRIED)
            renames = page == b"\1"
        if told is None:
            yield from send_page(Subject.TELL, b"", round_)
            told, theirs, round_ = yield from self._told(common.count)
        self._note_links(before)
        rows, stamped = exchanged.rows_of(
            told, original, common.numbers, far, keeps_inodes=bool(met.told & Told.KEEPS_INODES)
        )
        rows = exchanged.as_both_keep(rows, far, self._kept)
        for path, digest in theirs.items():
            if path not in rows or rows[path].kind == SYMLINK:
                raise ProtocolError(f"attributes of '{printable(path)}', which can have none")
            rows[path] = rows[path]._replace(attributes=digest)
        for path, reason in told.barred.items():
            if reason in ("it cannot be read", "its extended attributes cannot be read"):
                shown = printable(self._shown[far] + b"/" + path)
                self._report(
                    Problem(ExitCode.PARTIAL, path, f"{shown}: cannot read it: expected rights for it")
                )
        dropped = frozenset(told.dropped)
        top = Node(b"", None)
        for path, row in stamped.items():
            if path in base and common.numbers[path] not in dropped:
                top.make(path, row)
        nodes = (listing.node(), node_of(rows, told.barred))
        return (
            _Trees(
                top,
                nodes if near == LEFT else nodes[::-1],
                rows,
                stamped,
                tuple(plan.seen_from(far) for plan in told.plans),
                renames,
                common,
                loaded,
                listing.count - len(listing.rows),
            ),
            round_,
        )

    def _told(self, count: int) -> Conversation[tuple[exchanged.Told, dict[bytes, bytes], int]]:
        """Receive the other side's tree, and the digests of the sets of its entries."""
        page, round_ = yield from receive_page(Subject.ROWS)
        told = exchanged.checked("a tree", lambda data: exchanged.unpack_told(data, count), page)
        found: dict[bytes, bytes] = {}
        if (sets := self._sets) is not None:
            from rdc.uniting.exchanged_sets import unpack_sets

            page, round_ = yield from receive_page(Subject.SETS)
            found = exchanged.checked("attributes", lambda data: unpack_sets(data, sets), page)
        if self._options.hard_links:
            from rdc.uniting.exchanged_sets import unpack_ties

            page, round_ = yield from receive_page(Subject.LINKS)
            self._far_ties = exchanged.checked("hard links", unpack_ties, page)
        return told, found, round_

    def _note_links(self, before: Mapping[bytes, int]) -> None:
        """Note the hard links of both sides for the plan. `before`: those that both had."""
        own, other = self._own_ties, self._far_ties
        if own is None:
            return
        from rdc.uniting.hard_links import Links, no_links_notice

        if other is None:
            self._report(no_links_notice())
        else:
            self._links = Links(before, (own, other) if self._near == LEFT else (other, own))

    def _moved(self, original: Mapping[bytes, Ancestor], near: int) -> bool:
        """Return whether an entry of this side is where the ancestor has it not: it may have been renamed."""
        units = UNITS.union(self._rules_now.units)
        known = {row.inode(near) for path, row in original.items() if units.isdisjoint(path.split(b"/"))}
        # Several names may have had one file: one that still has it was not renamed.
        return any(
            row.inode in known
            and row.inode
            and (path not in original or original[path].inode(near) != row.inode)
            and units.isdisjoint(path.split(b"/"))
            for path, row in self._listing.rows.items()
        )

    def _check_emptied(self, trees: _Trees, meeting: Meeting) -> None:
        if self._options.force_empty:
            return
        for side, rows in ((self._near, self._listing.rows), (self._far, trees.rows)):
            if rows or trees.unloaded:
                continue
            known = meeting.met.known
            if side == self._far:
                known = meeting.state.known_at(self._shown[self._far])
            had = trees.common.count or known
            if had:
                raise self._emptied(side, had)

    def _compare(self, planning: Planning, round_: int) -> Conversation[int]:
        """Read the files whose contents decide something, at both sides."""
        undecided = planning.undecided()
        if not undecided:
            return round_
        paths = [each.sides[self._far].origin for each in undecided]
        yield from send_page(Subject.CONTENTS, exchanged.pack_paths(paths), round_)
        yield Flush()
        own: list[bytes | None] = []
        for each in undecided:
            node = each.sides[self._near]
            row = node.row
            own.append(digest_of(self._listing, node.origin, row) if isinstance(row, Row) else None)
        page, round_ = yield from receive_page(Subject.DIGESTS)
        others = exchanged.checked("digests", lambda data: exchanged.unpack_digests(data, len(paths)), page)
        for each, one, other in zip(undecided, own, others, strict=True):
            each.settle((one, other) if self._near == LEFT else (other, one))
        return round_

    def _guard(self, plan: Plan, trees: _Trees, met: Met) -> None:
        """Stop before a run that a guard or the other side does not allow."""
        entries = [0, 0]
        entries[self._near] = self._listing.count
        entries[self._far] = len(trees.rows) + trees.unloaded
        if not self._options.force_empty:
            check_share(plan, self._shown, entries, self._options.guard, self._reporter)
        far = [step for side, step in plan.steps if side == self._far]
        shown = printable(self._shown[self._far])
        if met.told & Told.NO_DELETIONS and any(isinstance(step, Remove) for step in far):
            raise TrustError(
                f"{shown}: the run would delete entries there, which it does not allow; nothing was done"
            )
        if met.told & Told.NO_CHANGES and not all(
            isinstance(step, MakeDirectory) or (isinstance(step, Write) and step.replaced is None)
            for step in far
        ):
            raise TrustError(
                f"{shown}: the run would change entries there, which it does not allow; nothing was done"
            )
        if met.told & Told.NO_CHANGES and (
            any(side == self._far and step.before is not None for side, step in plan.attributes)
            or any(side == self._far and step.replaced is not None for side, step in plan.links)
        ):
            raise TrustError(
                f"{shown}: the run would change entries there, which it does not allow; nothing was done"
            )
        check_room(
            plan, self._far, self._shown[self._far], Room(met.free_bytes, met.free_entries), self._root
        )
        check_room(plan, self._near, self._shown[self._near], room_of(self._root), None)

    def _read_texts(self, plan: Plan, round_: int) -> Conversation[int]:
        """Get the other side's versions of what may be merged."""
        paths = [
            conflict.path
            for conflict in plan.conflicts
            if conflict.about == "content"
            and all(row.kind == FILE and row.stamp.size <= TEXT_BYTES for row in conflict.rows)
        ]
        if not (paths and self._options.merge):
            return round_
        yield from send_page(Subject.READ, exchanged.pack_paths(paths), round_)
        page, round_ = yield from receive_page(Subject.TEXTS)
        texts = exchanged.checked(
            "texts", lambda data: exchanged.unpack_texts(data, len(paths), TEXT_BYTES), page
        )
        self.texts = dict(zip(paths, texts, strict=True))
        return round_

    # Doing it

    def _do(
        self,
        plan: Plan,
        trees: _Trees,
        meeting: Meeting,
        ancestor: StoredAncestor | None,
        round_: int,
    ) -> Conversation[tuple[Steps, int]]:
        near, far = self._near, self._far
        mine = [step for side, step in plan.steps if side == near]
        theirs: list[Step] = [step for side, step in (*plan.steps, *plan.links) if side == far]
        links = [step for side, step in plan.links if side == near]
        settings = [(side, step) for side, step in plan.attributes if side == near]
        given = [step for side, step in plan.attributes if side == far]
        self._listing.sweep(
            parents(step.path for step in mine if isinstance(step, Write) and step.row.kind == FILE)
        )
        if not plan.is_empty:
            self._storage.learn()
        self._storage.agree(meeting.met.keeps)
        if (mine or settings or links) and self._options.keep_undo is not None and cannot_undo(self._root):
            self._report(no_undo_notice(self._root))
        keep, fsync = self._options.keep_undo, self._options.fsync
        root = writable(self._root, keep, fsync=fsync, sheds_acls=self._has_acls)
        progress = StepsProgress((*plan.steps, *plan.links), self._report)
        steps = Steps(
            (root, root),
            self._report,
            self._stop,
            fsync=self._options.fsync,
            progress=progress,
            sets=self._sets,
        )
        self._stack.callback(steps.close)
        if plan.is_empty and not plan.journal:
            return steps, round_
        generation = ancestor.head.generation if ancestor is not None else bytes(8)
        if ancestor is not None and meeting.pair is not None:
            intents = {
                path: (intent[near], None if intent[far] is None else ELSEWHERE)
                for path, intent in plan.journal.items()
            }
            meeting.pair.begin(OpenPlan(generation, intents, plan.renames, True))
            self._has_begun = True
        first = 0
        while first < len(mine) and isinstance(mine[first], (MakeDirectory, Rename, CopyHere)):
            first += 1
        late = mine[first:]
        wanted = sorted(
            (step.path for step in late if isinstance(step, Write) and step.row.kind == FILE),
            key=lambda path: path.rpartition(b"/")[::2],
        )
        order = Order(
            generation,
            {
                path: (intent[far] is not None, intent[near] is not None)
                for path, intent in plan.journal.items()
            },
            plan.renames,
            tuple(_action(step) for step in theirs),
            tuple(wanted),
        )
        if given and self._sets is not None:
            from rdc.uniting.exchanged_sets import Given, pack_given

            named = [Given(step.path, step.before is None, step.wanted, step.mode) for step in given]
            yield from send_page(Subject.GIVE, pack_given(named, self._sets), round_)
        yield from send_page(Subject.STEPS, exchanged.pack_order(order), round_)
        steps.expect(settings)
        files = FilesEnd(steps.root(near), self._secret, self._signer, self._options_sent)
        with steps:
            steps.do([(near, step) for step in mine[:first]])
            if wanted:
                yield Send(Exchange(Role.SOURCE), round_)
            round_ = yield from do_late_steps(
                steps, near, late, files, self._listing.temporaries, self._report, round_, turn=bool(wanted)
            )
            if theirs or given:
                yield Send(Exchange(Role.DESTINATION), round_)
                views = trees.views[near]
                served: dict[bytes, Row] = {}
                for step in theirs:
                    if isinstance(step, Write) and step.row.kind == FILE:
                        node = views.find(step.path)
                        row = node.row if node is not None else None
                        served[step.path] = row if isinstance(row, Row) else step.row
                others = yield from files.serve(served, round_)
                steps.served(near, served, others)
                page, round_ = yield from receive_page(Subject.OUTCOME)
                outcome = exchanged.checked("an outcome", exchanged.unpack_outcome, page)
                self._take_outcome(outcome, theirs, steps)
                if given:
                    round_ = yield from self._take_unset(given, steps)
            steps.set_attributes(settings)
            if self._links is not None:
                from rdc.uniting.hard_links import files_in_play

                done = [*mine, *(step for _, step in settings), *links]
                view = trees.views[near]
                steps.link(near, links, files_in_play(done, self._links.sides[near], view))
            steps.finish()
        steps.close()
        self._storage.finish()
        return steps, round_

    def _take_unset(self, given: Sequence[SetAttributes], steps: Steps) -> Conversation[int]:
        """Report which attributes the other side set."""
        from rdc.uniting.exchanged_sets import unpack_unset

        page, round_ = yield from receive_page(Subject.UNSET)
        steps.unset.update(exchanged.checked("attributes that were not set", unpack_unset, page))
        for step in given:
            if step.is_told and step.path not in steps.unset:
                steps.changed[self._far] += 1
                self._report(UniteItem(SIDES[self._far], "metadata", step.path))
        return round_

    def _take_outcome(self, outcome: exchanged.Outcome, theirs: Sequence[Step], steps: Steps) -> None:
        """Report what became of the steps of the other side."""
        steps.failed[self._far].update(outcome.failed)
        steps.digests.update(outcome.digests)
        for path, text in outcome.problems:
            self._report(Problem(ExitCode.PARTIAL, path, text))
        for step in theirs:
            path = step.new if isinstance(step, (Rename, CopyHere)) else step.path
            if path not in steps.failed[self._far]:
                item = items_of(step, self._far)
                steps.changed[self._far] += 1
                steps.bytes[self._far] += item.copied
                self._report(item)
                if steps.progress is not None:
                    steps.progress.arrive(steps.progress.arrived + item.copied)
                    steps.progress.done(item)

    # The end

    def _is_news(self, rows: Mapping[bytes, Ancestor], before: Mapping[bytes, Ancestor], plan: Plan) -> bool:
        """Return whether both sides have other things in common than before.

        An entry whose modes are in conflict comes from the other side again in each run, with a stamp that
        means nothing here: it is no news if this side's and all that both share are as before.
        """
        if rows == before:
            return False
        if rows.keys() != before.keys():
            return True
        torn = {conflict.path for conflict in plan.conflicts if conflict.about == "mode"}
        near = self._near
        return any(
            path not in torn
            or row._replace(stamps=before[path].stamps) != before[path]
            or row.stamps[near] != before[path].stamps[near]
            for path, row in rows.items()
            if row != before[path]
        )

    def _agreed(
        self,
        rows: Mapping[bytes, Ancestor],
        plan: Plan,
        trees: _Trees,
        ancestor: StoredAncestor | None,
        failed: Set[bytes],
    ) -> Agreed:
        """Return what both sides have in common now, against what the other side expects. `failed`: paths of
        steps that this side did not do."""
        base = None
        if ancestor is not None:
            base = {path: shared_row(row) for path, row in trees.original.items()}
        moves = tuple(
            (node.origin, node.path)
            for node in trees.base.below()
            if node.was is not None and node.origin != node.path
        )
        expected = exchanged.expected_rows(base, moves, trees.rows)
        shared = {path: shared_row(row) for path, row in rows.items()}
        return Agreed(
            os.urandom(8),
            bytes(16),
            moves,
            tuple(sorted(path for path in expected if path not in shared)),
            {path: row for path, row in sorted(shared.items()) if expected.get(path) != row},
            tuple(
                path
                for path, row in rows.items()
                if row is plan.kept.get(path)
                or row is (was := trees.original.get(path))
                or (was is not None and path in failed and row == was._replace(stamps=row.stamps))
            ),
            tuple(conflict.path for conflict in plan.conflicts if conflict.about == "mode"),
            (),
        )

    def _agree(
        self,
        agreed: Agreed,
        rows: Mapping[bytes, Ancestor],
        ties: Mapping[bytes, int] | None,
        meeting: Meeting,
        trees: _Trees,
        ancestor: StoredAncestor | None,
        round_: int,
    ) -> Conversation[None]:
        """Have both sides keep what they have in common: the other one first, then this one."""
        pair, state, met = meeting.pair, meeting.state, meeting.met
        if pair is None or state.id is None:
            return
        if not self._has_begun and ancestor is not None:
            # A kill between the two ends is then known for what it is.
            pair.begin(OpenPlan(ancestor.head.generation, {}, frozenset(), True))
        paths = sorted(rows)
        head = Head(
            agreed.generation,
            state.id,
            met.root,
            state.inode,
            int(time.time()),
            self._shown[self._far],
            last_undo(self._root, self._options.keep_undo),
            location=location_in(met.location),
        )
        added = table_of(
            paths,
            [shared_row(rows[path]) for path in paths],
            [rows[path].stamps[self._near] for path in paths],
        )
        numbers = trees.common.numbers
        attributes = None
        if self._sets is not None:
            from rdc.uniting.exchanged_sets import pack_agreed_sets

            found = {path: row.attributes for path, row in rows.items() if row.attributes is not None}
            attributes = AgreedAttributes(self._sets.kinds, found)
            have = pack_agreed_sets([rows[path].attributes for path in paths])
            yield from send_page(Subject.HAVE, have, round_)
        if ties is not None:
            from rdc.uniting.exchanged_sets import pack_ties

            yield from send_page(Subject.TIED, pack_ties(ties), round_)
        encoded = encode_next(head, added, trees.loaded, ancestor, numbers, self._listing, attributes, ties)
        pair.prepare(encoded)
        page = exchanged.pack_agreed(replace(agreed, shared=encoded.shared[:MARK_DIGEST_BYTES]))
        yield from send_page(Subject.AGREE, page, round_)
        _, round_ = yield from receive_page(Subject.AGREED)
        if self._edges is not None:
            state.note_edges(self._edges)
        pair.commit()
        yield from self._close(meeting, round_, closes=True)

    def _keeps_rules(self, meeting: Meeting) -> bool:
        """Return whether the rules of this run are not what both sides keep. The other side's are known to be
        the same unless they were given."""
        if self._options.dry_run or self._rules_now == self._rules_before == NO_RULES:
            return False
        given = self._options.rules is not None or self._options.units is not None
        return given or self._kept_rules != self._line

    def _close(self, meeting: Meeting, round_: int, *, closes: bool) -> Conversation[None]:
        """End the journals. The other side needs its own until this side keeps what was agreed."""
        pair = meeting.pair
        self.round = round_
        if pair is not None and not self._options.dry_run:
            if self._keeps_rules(meeting) and self._kept_rules != self._line:
                pair.keep_rules(self._line)
            if closes:
                pair.end()
        if closes:
            yield from send_page(Subject.CLOSE, b"", round_)


class _Trees(Record):
    """Both trees and what they had in common."""

    base: Node
    views: tuple[Node, Node]
    rows: Mapping[bytes, Row]
    """The rows of the other side."""
    original: Mapping[bytes, Ancestor]
    """The ancestor's rows before any was dropped."""
    plans: tuple[OpenPlan, ...]
    """The plans in the journal of the other side, the left side's stamps first."""
    renames: bool
    """True if the other side can rename entries."""
    common: Common
    loaded: set[bytes]
    """The directories with entries in these trees; all others are the same at both sides."""
    unloaded: int
    """The number of entries in those others."""


def _action(step: Step) -> Action:
    """Return a step in the form in which the other side performs it."""
    match step:
        case MakeDirectory(path, row):
            return Action(MAKE, path, b"", row.kind, b"", row.mode, 0, 0, 0)
        case Rename(old, new, row):
            return Action(RENAME, old, new, row.kind, b"", row.mode, 0, 0, 0)
        case CopyHere(old, new, row):
            return Action(COPY, old, new, row.kind, b"", row.mode, 0, 0, 0)
        case Write(path, row, replaced, _):
            what = ADD if replaced is None else REPLACE
            target = row.content if row.kind == SYMLINK else b""
            stamp = row.stamp
            return Action(
                what, path, b"", row.kind, target, row.mode, row.mtime_ns, stamp.size * (row.kind == FILE),
                stamp.mtime_ns,
            )  # fmt: skip
        case SetFields(path, row, mode, mtime_ns):
            return Action(SET, path, b"", row.kind, b"", mode, mtime_ns, 0, 0)
        case Remove(path, row):
            return Action(REMOVE, path, b"", row.kind, b"", row.mode, 0, 0, 0)
        case Part(path, row, _):
            return Action(PART, path, b"", FILE, b"", row.mode, row.mtime_ns, 0, 0)
        case Link(path, source, _, row, replaced, brings):
            what = LINK if replaced is None else RELINK if brings else TIE
            return Action(what, path, source, FILE, b"", row.mode, row.mtime_ns, 0, 0)
    raise UsageError("a step of no known kind")


def unite_remote(
    left: Location,
    right: Location,
    options: UniteOptions,
    reporter: UniteReporter,
    stop: StopSignal | None,
    shell: RemoteShell,
    keys: str | os.PathLike[str] | None,
) -> UniteReport:
    """Bring a directory of this machine together with one of another. One of the locations has a host.

    Raises RdcError if the run as a whole cannot go on.
    """
    from rdc.session.far.far_host import far_host

    ends = ends_of(left, right)
    far = right if left.host is None else left
    host = far_host(far, shell, keys, reporter)
    timed = far.port is not None
    if not options.merge:
        return _sessions(ends, host, options, reporter, stop, {}, timed=timed)[0]
    from rdc.uniting.merged_texts import Merging

    merging = Merging(ends.path, ends.near, options, reporter)
    while True:
        report, run = _sessions(
            ends, host, merging.options, merging.report, stop, merging.merged, timed=timed
        )
        if not merging.goes_on(report, run.pair, run.texts.get):
            return merging.total(report)


def _sessions(
    ends: Ends,
    host: FarHost,
    options: UniteOptions,
    reporter: UniteReporter,
    stop: StopSignal | None,
    merged: Mapping[bytes, Merged],
    *,
    timed: bool,
) -> tuple[UniteReport, RemoteRun]:
    """Dial until both sides know how to meet, and run once."""
    said = Again()
    for _ in range(MEETINGS):
        found, run = _session(ends, host, options, reporter, stop, said, merged, timed=timed)
        if isinstance(found, UniteReport):
            return found, run
        said = found
    raise ProtocolError("the sides came to no agreement on how to meet")


def _session(
    ends: Ends,
    host: FarHost,
    options: UniteOptions,
    reporter: UniteReporter,
    stop: StopSignal | None,
    said: Again,
    merged: Mapping[bytes, Merged],
    *,
    timed: bool,
) -> tuple[UniteReport | Again, RemoteRun]:
    """Hold one session. `timed`: silence ends it, as that of a daemon."""
    from rdc.session.far.far_host import resumable
    from rdc.session.runtime.driver import RefusedError

    timeout = DAEMON_TIMEOUT_SECONDS if timed else 0
    has_met = False

    def conversation(signer: FileSigner) -> Conversation[tuple[UniteReport | Again, RemoteRun]]:
        nonlocal has_met
        with ExitStack() as stack:
            run = RemoteRun(
                stack, ends, options, reporter, stop, signer, said, timeout=timeout, merged=merged
            )
            try:
                return (yield from run.conversation()), run
            finally:
                has_met = run.round > 0

    try:
        return hold_session(host, conversation, stop)
    except RefusedError as error:
        if has_met or error.code is not ExitCode.PARTIAL:
            raise
        # The other side could not open its directory. That ends the run, as with one of this machine.
        text = str(error).removesuffix("; check the spelling and run again")
        text = f"{text}; nothing was done: mount or make it, then run again"
        raise RdcError(text, code=ExitCode.FILE_IO) from error
    except (StreamError, TrustError) as error:
        raise resumable(error, dry_run=options.dry_run) from error


def hold_session(
    host: FarHost,
    conversation: Callable[[FileSigner], Conversation[T]],
    stop: StopSignal | None,
    *,
    explained: Callable[[], bool] = lambda: True,
) -> T:
    """Dial, and hold this side of one session, whose value is returned.

    Raises RdcError. `explained`: whether the host is asked why its line ended, which may wait for the exit
    status of a remote shell.
    """
    from rdc.session.runtime import driver

    with (
        closing(FileSigner(catalog=FactsAlone(user_catalog(os.environ)))) as signer,
        closing(host.dial()) as wire,
    ):
        connection = Connection(True, greeting(signer.params))
        connection.entries.limit = entries_memory(None)
        try:
            return driver.run(conversation(signer), connection, wire, stop=stop)
        except (StreamError, TrustError) as error:
            raise (host.explained(error, wire) if explained() else error) from error
