"""One run of `rdc unite`: both trees are listed, a plan is made, guards are asked, and the steps are done.

What the run is about to do is on disk at both roots before the first step, and the new ancestor after the
last one. A run that is killed in between costs nothing: the next one knows which paths are in doubt.
"""

from __future__ import annotations

import os
import secrets
import time
from contextlib import ExitStack

from rdc.errors import ExitCode, RdcError, UsageError, printable
from rdc.files.root.root import Root
from rdc.lean.records import dataclass
from rdc.progress import Problem
from rdc.tree import filter_list
from rdc.uniting.ancestor_file import DIGEST_BYTES, Head, SharedRow, encode
from rdc.uniting.conflicts import Choices
from rdc.uniting.describe import Listing, base_rows, describe, is_unchanged
from rdc.uniting.plan import UNITS, Remove, Rules, Write, make_plan
from rdc.uniting.records import UniteConflict, UniteOptions, UnitePair, UniteReport
from rdc.uniting.rows import DIRECTORY, FILE, LEFT, NO_STAMP, RIGHT, SYMLINK, Ancestor, Row, Stamp
from rdc.uniting.state import OpenConflict, OpenPlan, PairDirectory, RootState, common_base, pair_name
from rdc.uniting.steps import SIDES, Steps, items_of, under_any, writable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from rdc.progress import Event, StopSignal
    from rdc.uniting.describe import Described
    from rdc.uniting.plan import Conflict, Intent, Plan
    from rdc.uniting.records import UniteItem, UniteReporter
    from rdc.uniting.rows import Node
    from rdc.uniting.state import Base


GUARDED_ENTRIES = 100
"""A side with fewer entries is not guarded: half of ten files are soon deleted."""


@dataclass(frozen=True, slots=True)
class _Place:
    """One of the two directories."""

    given: bytes
    """As the user wrote it."""
    path: bytes
    """Absolute, without links."""
    device: int
    inode: int


def unite(
    left: bytes, right: bytes, options: UniteOptions, reporter: UniteReporter, stop: StopSignal | None = None
) -> UniteReport:
    """Bring two local directories together. Raises RdcError if the run as a whole cannot go on."""
    places = _places((left, right))
    with ExitStack() as stack:
        roots = (_opened(stack, left), _opened(stack, right))
        return _Run(stack, places, roots, options, reporter, stop).run()


def _places(given: tuple[bytes, bytes]) -> tuple[_Place, _Place]:
    """Return the two directories. Raises UsageError if they are the same or nested, RdcError if one is
    missing."""
    found: list[_Place] = []
    for side, path in enumerate(given):
        try:
            stat = os.stat(path)
            real = os.path.realpath(path)
        except OSError as error:
            raise RdcError(
                f"{printable(path)}: cannot unite it: expected a directory at the {SIDES[side]}, found"
                f" {error.strerror}; nothing was done: mount or make it, then run again",
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
    root = Root.open(path)
    stack.callback(root.release)
    return root


class _Run:
    """One run, from the locks to the new ancestor."""

    def __init__(
        self,
        stack: ExitStack,
        places: tuple[_Place, _Place],
        roots: tuple[Root, Root],
        options: UniteOptions,
        reporter: UniteReporter,
        stop: StopSignal | None,
    ) -> None:
        self._stack = stack
        self._places = places
        self._roots = roots
        self._options = options
        self._reporter = reporter
        self._stop = stop
        self._held = 0
        self._has_begun = False
        self._filters = filter_list(options.rules)

    def _report(self, event: UniteItem | UniteConflict | Event, /) -> None:
        if isinstance(event, Problem) and event.code is not ExitCode.OK:
            self._held += 1
        self._reporter(event)

    def run(self) -> UniteReport:
        """Run once. Raises RdcError."""
        self._check_bare()
        states = self._states()
        pairs = self._pairs(states)
        base = common_base(pairs, states, [place.inode for place in self._places])
        first = base.ancestors is None
        if base.notice:
            what = (
                "nothing is deleted, and what differs is a conflict" if first else "what is in doubt is left"
            )
            self._report(Problem(ExitCode.OK, b"", f"{base.notice}; {what}"))
        elif first:
            self._report(
                Problem(ExitCode.OK, b"", "first time: nothing is deleted; what differs is a conflict")
            )
        rows = base_rows(base.ancestors)
        original = dict(rows)
        sides = (self._listing(LEFT), self._listing(RIGHT))
        self._check_emptied(states, rows, sides)
        if base.ancestors and not base.plans and not base.notice and is_unchanged(rows, sides):
            return UniteReport(0, 0, 0, 0, len(rows), 0, self._held, first, self._code(conflicts=False))
        undone = (self._was_undone(base, LEFT), self._was_undone(base, RIGHT))
        described = describe(rows, sides, self._filters, checksum=self._options.checksum, undone=undone)
        plan = make_plan(described.base, *described.views, self._rules(base))
        self._name_holds(plan)
        self._guard(plan, described)
        steps = None
        if self._options.dry_run:
            for side, step in plan.steps:
                self._report(items_of(step, side))
        else:
            for each in sides:
                each.sweep()
            steps = self._do(plan, base, pairs)
        conflicts = self._name_conflicts(plan)
        entries = len(plan.settled) + len(plan.kept)
        if steps is not None:
            ancestors = self._next_rows(plan, described, steps, original)
            entries = len(ancestors)
            self._commit(ancestors, original, base, states, pairs)
            for pair in pairs:
                if pair is not None:
                    pair.note_conflicts(conflicts)
        return self._result(plan, steps, entries, first=first)

    # State

    def _states(self) -> tuple[RootState, RootState]:
        """Open and lock both sides, always in the same order, so that two runs cannot wait for each other."""
        found: dict[int, RootState] = {}
        for side in sorted(
            (LEFT, RIGHT), key=lambda each: (self._places[each].device, self._places[each].inode)
        ):
            state = RootState(self._roots[side], write=not self._options.dry_run)
            self._stack.callback(state.close)
            found[side] = state
        if found[LEFT].id is not None and found[LEFT].id == found[RIGHT].id:
            # One is a copy of the other, at the top of its file system: both have the same inode number.
            found[RIGHT].renew()
        return found[LEFT], found[RIGHT]

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

    def _listing(self, side: int) -> Listing:
        return Listing(self._roots[side], self._filters, self._report)

    def _was_undone(self, base: Base, side: int) -> bool:
        """Whether what the last run changed at `side` was taken back by rdc undo since."""
        if base.ancestors is None:
            return False
        number = base.ancestors[side].head.undo
        if not number:
            return False
        from rdc.undoing.undo import list_syncs

        kept = {sync.number: sync.left_alone for sync in list_syncs(self._places[side].path)}
        return number not in kept or kept[number] is not None

    def _last_undo(self, side: int) -> int:
        if self._options.keep_undo is None:
            return 0
        from rdc.undoing.undo import list_syncs

        return max((sync.number for sync in list_syncs(self._places[side].path)), default=0)

    # Guards

    def _check_emptied(
        self,
        states: tuple[RootState, RootState],
        rows: Mapping[bytes, Ancestor],
        sides: tuple[Listing, Listing],
    ) -> None:
        """Stop if a side is empty that had entries, or that the other side knows from its last run."""
        if self._options.force_empty:
            return
        for side in (LEFT, RIGHT):
            if sides[side].rows:
                continue
            had = len(rows) or self._known_entries(states[1 - side], side)
            if had:
                raise self._emptied(side, had)

    def _check_bare(self) -> None:
        """Stop before anything is written into a directory without any entry that the other side knows to
        have had some: a mount point without its file system."""
        if self._options.force_empty:
            return
        for side in (LEFT, RIGHT):
            if not os.listdir(self._places[side].path):
                with RootState(self._roots[1 - side], write=False) as other:
                    had = self._known_entries(other, side)
                if had:
                    raise self._emptied(side, had)

    def _emptied(self, side: int, had: int) -> RdcError:
        entries = "1 entry" if had == 1 else f"{had:,} entries"
        return RdcError(
            f"{printable(self._places[side].given)}: expected {entries}, as in the last run, found an empty"
            " directory; nothing was done: mount it, or use --force-empty to go on with it as it is",
            code=ExitCode.FILE_IO,
        )

    def _known_entries(self, state: RootState, side: int) -> int:
        """How many entries the other side remembers of a directory at the place of `side`."""
        known = 0
        for pair in state.pairs():
            try:
                ancestors, _ = pair.ancestors()
            finally:
                pair.close()
            if ancestors and ancestors[0].head.place == self._places[side].path:
                known = max(known, len(ancestors[0].paths))
        return known

    def _guard(self, plan: Plan, described: Described) -> None:
        """Stop before a run that deletes or replaces more of a side than the guard allows."""
        if self._options.force_empty:
            return
        for side in (LEFT, RIGHT):
            removed = sum(at == side and isinstance(step, Remove) for at, step in plan.steps)
            replaced = sum(
                at == side and isinstance(step, Write) and step.replaced is not None
                for at, step in plan.steps
            )
            total = described.entries[side]
            for count, doing in ((removed, "delete"), (replaced, "replace")):
                if total >= GUARDED_ENTRIES and 100 * count > self._options.guard * total:
                    self._show_largest(plan, side)
                    raise RdcError(
                        f"{printable(self._places[side].given)}: would {doing} {count:,} of {total:,} entries"
                        f" at the {SIDES[side]}, more than {self._options.guard}%; nothing was done: look at"
                        " it with -n, or allow it with --guard=100",
                        code=ExitCode.MAX_DELETE,
                    )

    def _show_largest(self, plan: Plan, side: int) -> None:
        counts: dict[bytes, int] = {}
        for at, step in plan.steps:
            if at == side and isinstance(step, (Remove, Write)):
                top = step.path.split(b"/")[0]
                counts[top] = counts.get(top, 0) + 1
        for top, count in sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:10]:
            self._reporter(Problem(ExitCode.OK, top, f"{printable(top)}: {count:,} entries"))

    # The plan

    def _rules(self, base: Base) -> Rules:
        unfinished: dict[bytes, tuple[Intent, ...]] = {}
        begun: set[tuple[bytes, bytes]] = set()
        for plan in base.plans:
            begun |= plan.renames
            for path, intent in plan.intents.items():
                unfinished[path] = (*unfinished.get(path, ()), intent)
        return Rules(
            units=UNITS.union(self._options.units),
            choose=Choices(self._options).choose,
            unfinished=unfinished,
            begun=frozenset(begun),
        )

    def _name_holds(self, plan: Plan) -> None:
        for hold in plan.holds:
            shown = printable(self._roots[hold.side].shown(hold.path))
            self._report(
                Problem(ExitCode.PARTIAL, hold.path, f"{shown}: nothing was done here: {hold.reason}")
            )
        for left, right in plan.renamed_twice:
            text = f"renamed twice: {printable(left)} at the left, {printable(right)} at the right; both stay"
            self._report(Problem(ExitCode.OK, left, text))
        if plan.stricter:
            text = f"{plan.stricter:,} entries had different permissions: both sides get those that both had"
            self._report(Problem(ExitCode.OK, b"", text))

    def _name_conflicts(self, plan: Plan) -> list[OpenConflict]:
        found: list[OpenConflict] = []
        for conflict in plan.conflicts:
            event = conflict_event(conflict)
            self._report(event)
            found.append(
                OpenConflict(
                    event.path,
                    event.about,
                    (event.left_size, event.right_size),
                    (event.left_mtime_ns, event.right_mtime_ns),
                )
            )
        return found

    # Doing it

    def _do(self, plan: Plan, base: Base, pairs: list[PairDirectory | None]) -> Steps:
        if plan.steps or plan.journal:
            self._begin(OpenPlan(base.generation, plan.journal, plan.renames), base, pairs)
        keep = self._options.keep_undo
        roots = (
            writable(self._roots[LEFT], keep, fsync=self._options.fsync),
            writable(self._roots[RIGHT], keep, fsync=self._options.fsync),
        )
        for root in roots:
            if root.writes.undo is not None:
                self._stack.callback(root.writes.undo.close)
        steps = Steps(roots, self._report, self._stop, fsync=self._options.fsync)
        if plan.steps:
            steps.run(plan)
        for root in roots:
            if root.writes.undo is not None:
                root.writes.undo.close()
        return steps

    def _begin(self, plan: OpenPlan, base: Base, pairs: list[PairDirectory | None]) -> None:
        """Have the journals of both sides on disk. Without an ancestor there is nothing to be in doubt."""
        self._has_begun = True
        for pair in pairs:
            if pair is not None and base.ancestors is not None:
                pair.begin(plan)

    def _next_rows(
        self, plan: Plan, described: Described, steps: Steps, original: Mapping[bytes, Ancestor]
    ) -> dict[bytes, Ancestor]:
        """Return what both sides have in common now, with each side's own stamps."""
        failed = steps.failed[LEFT] | steps.failed[RIGHT]
        rows = {path: row for path, row in plan.kept.items() if not under_any(path, failed)}
        torn = {conflict.path for conflict in plan.conflicts if conflict.about == "mode"}
        for path, settled in plan.settled.items():
            if under_any(path, failed):
                continue
            stamps = [
                self._stamp(described.views[side], steps.stamps[side], path, settled.kind)
                for side in (LEFT, RIGHT)
            ]
            if path in torn:
                # Both modes have to be changes in the next run, too.
                stamps = _with_former_modes(stamps, described.base.find(path))
            content = steps.digests.get(path, settled.content)
            rows[path] = Ancestor(*settled._replace(content=content), (stamps[LEFT], stamps[RIGHT]))
        if failed:
            for path, row in original.items():
                if under_any(path, failed) and path not in rows and path not in plan.journal_dropped:
                    rows[path] = row
        _drop_orphans(rows)
        return rows

    @staticmethod
    def _stamp(view: Node, changed: Mapping[bytes, Stamp], path: bytes, kind: int) -> Stamp:
        stamp = changed.get(path)
        if stamp is None:
            node = view.find(path)
            stamp = node.row.stamp if node is not None and isinstance(node.row, Row) else NO_STAMP
        # Times of a directory say nothing: each entry that comes or goes changes them.
        return stamp if kind != DIRECTORY else Stamp(0, stamp.mode, 0, stamp.inode, 0)

    def _commit(
        self,
        rows: dict[bytes, Ancestor],
        original: Mapping[bytes, Ancestor],
        base: Base,
        states: tuple[RootState, RootState],
        pairs: list[PairDirectory | None],
    ) -> None:
        """Make what both sides have in common now the ancestor of both. Nothing is written if it is so."""
        left, right = pairs
        if left is None or right is None:
            return
        if base.ancestors is not None and rows == original and not base.plans and not base.notice:
            return
        if not self._has_begun:
            # A kill between the two ends is then known for what it is.
            self._begin(OpenPlan(base.generation, {}, frozenset()), base, pairs)
        paths = sorted(rows)
        shared = [_shared(rows[path]) for path in paths]
        generation = secrets.token_bytes(8)
        for side, pair in ((LEFT, left), (RIGHT, right)):
            own, other = states[side].id, states[1 - side].id
            head = Head(
                generation, own or b"", other or b"", self._places[side].inode, int(time.time()),
                self._places[1 - side].path, self._last_undo(side),
            )  # fmt: skip
            pair.prepare(encode(head, paths, shared, [rows[path].stamps[side] for path in paths]))
        for pair in (left, right):
            pair.commit()
        for pair in (left, right):
            pair.end()

    def _result(self, plan: Plan, steps: Steps | None, entries: int, *, first: bool) -> UniteReport:
        if steps is not None:
            changed, copied = steps.changed, steps.bytes
        else:
            items = [items_of(step, side) for side, step in plan.steps]
            changed = [sum(item.side == side for item in items) for side in SIDES]
            copied = [sum(item.copied for item in items if item.side == side) for side in SIDES]
        code = self._code(conflicts=bool(plan.conflicts))
        return UniteReport(
            changed[LEFT], changed[RIGHT], copied[LEFT], copied[RIGHT], entries, len(plan.conflicts),
            self._held, first, code,
        )  # fmt: skip

    def _code(self, *, conflicts: bool) -> ExitCode:
        if self._held:
            return ExitCode.PARTIAL
        return ExitCode.CONFLICTS if conflicts else ExitCode.OK


def conflict_event(conflict: Conflict) -> UniteConflict:
    """Return the event of a conflict."""
    left, right = conflict.rows
    return UniteConflict(
        conflict.path,
        conflict.about,
        left.stamp.size,
        right.stamp.size,
        left.stamp.mtime_ns,
        right.stamp.mtime_ns,
    )


def _with_former_modes(stamps: list[Stamp], node: Node | None) -> list[Stamp]:
    """The stamps of an entry whose modes are in conflict, with the modes that both sides agreed on."""
    known = node.row if node is not None else None
    if not isinstance(known, Ancestor):
        return stamps
    return [
        stamp._replace(mode=before.mode, ctime_ns=0)
        for stamp, before in zip(stamps, known.stamps, strict=True)
    ]


def _drop_orphans(rows: dict[bytes, Ancestor]) -> None:
    """Drop rows whose directory has no row: no ancestor can have them."""
    for path in sorted(rows):
        parent = path.rpartition(b"/")[0]
        if parent and (parent not in rows or rows[parent].kind != DIRECTORY):
            del rows[path]


def _shared(row: Ancestor) -> SharedRow:
    known = row.kind == FILE and len(row.content) == DIGEST_BYTES
    target = row.content if row.kind == SYMLINK else b""
    return SharedRow(row.kind, row.content if known else None, target, row.mode, row.mtime_ns)


def pairs_of(path: bytes) -> list[UnitePair]:
    """Return what the directory at `path` remembers of its pairs. Raises RdcError."""
    found: list[UnitePair] = []
    with ExitStack() as stack:
        root = _opened(stack, path)
        state = RootState(root, write=False)
        stack.callback(state.close)
        for pair in state.pairs():
            stack.callback(pair.close)
            ancestors, _ = pair.ancestors()
            if not ancestors:
                continue
            latest = ancestors[0]
            plans, readable = pair.plans()
            conflicts = tuple(
                UniteConflict(each.path, each.about, *each.sizes, *each.mtimes_ns)
                for each in pair.open_conflicts()
            )
            found.append(
                UnitePair(
                    latest.head.place,
                    latest.head.seconds,
                    len(latest.paths),
                    bool(plans) or not readable,
                    conflicts,
                )
            )
    return found


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
