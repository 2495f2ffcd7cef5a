"""The decisions and reports of a run, wherever its two sides are.

`Deciding` makes the rules of a plan, names what is held and what is in conflict, and says what both sides
have in common afterwards. How the steps of each side are done is in rdc.uniting.run and rdc.uniting.remote.
"""

from __future__ import annotations

from functools import cache

from rdc.errors import ExitCode, RdcError, printable
from rdc.files.base.paths import join
from rdc.model.preserved import is_known_time, nearest_time, packed_time
from rdc.progress import Problem
from rdc.tree import filter_list
from rdc.uniting.columns import SharedRow
from rdc.uniting.conflicts import Choices
from rdc.uniting.file_systems import PLAIN
from rdc.uniting.pair_rules import NO_RULES
from rdc.uniting.plan import UNITS, Rules
from rdc.uniting.records import UniteConflict, UniteReport
from rdc.uniting.rows import (
    DIGEST_BYTES,
    DIRECTORY,
    FILE,
    LEFT,
    NO_STAMP,
    RIGHT,
    SYMLINK,
    Ancestor,
    Row,
    Stamp,
    stamp_after_failure,
)
from rdc.uniting.state import OpenConflict
from rdc.uniting.steps import under_any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rdc.files.root.root import Root
    from rdc.progress import Event, StopSignal
    from rdc.uniting.attributes import AttributeSets
    from rdc.uniting.conflicts import Merged
    from rdc.uniting.describe import Listing
    from rdc.uniting.hard_links import Links
    from rdc.uniting.journal import OpenPlan
    from rdc.uniting.plan import Conflict, Intent, Plan
    from rdc.uniting.records import UniteEvent, UniteOptions, UniteReporter
    from rdc.uniting.rows import Node
    from rdc.uniting.steps import Steps
    from rdc.watching.records import WatchEvent


class Deciding:
    """One run, as far as it does not matter where the sides are."""

    def __init__(
        self,
        shown: tuple[bytes, bytes],
        options: UniteOptions,
        reporter: UniteReporter,
        stop: StopSignal | None,
        merged: Mapping[bytes, Merged],
    ) -> None:
        """`shown`: both directories as the user wrote them. `merged`: as for Choices."""
        self._shown = shown
        self._options = options
        self._reporter = reporter
        self._stop = stop
        self._merged = merged
        self._choices = Choices(options, merged)
        self._held = 0
        self._rules_now = self._rules_before = NO_RULES
        self._rehearsed = [0, 0], [0, 0]
        """Entries that a dry run would change at each side, and bytes."""
        self._kept = PLAIN
        """The metadata that both file systems keep."""
        self._sets: AttributeSets | None = None
        """The extended attributes of both sides; None: they take no part."""
        self._links: Links | None = None
        """The hard links of both sides and of what they had in common; None: they take no part."""

    @property
    def _has_acls(self) -> bool:
        """Return whether ACLs take part."""
        return self._sets is not None and self._sets.has_acls

    def _report(self, event: UniteEvent | Event | WatchEvent, /) -> None:
        if isinstance(event, Problem) and event.code is not ExitCode.OK:
            self._held += 1
        self._reporter(event)

    def _rules(self, plans: Sequence[OpenPlan], can_rename: Callable[[int], bool]) -> Rules:
        """Return what the plan depends on. `plans`: of interrupted runs, the left side's stamps first."""
        self._choices = Choices(self._options, self._merged)
        unfinished: dict[bytes, tuple[Intent, ...]] = {}
        begun: set[tuple[bytes, bytes]] = set()
        for plan in plans:
            begun |= plan.renames
            for path, intent in plan.intents.items():
                unfinished[path] = (*unfinished.get(path, ()), intent)
        return Rules(
            units=UNITS.union(self._rules_now.units),
            kept=self._kept,
            choose=self._choices.choose,
            merged=self._merged.keys(),
            unfinished=unfinished,
            begun=frozenset(begun),
            can_rename=cache(can_rename),
            attributes=self._sets is not None,
            guard=self._sets.guard if self._has_acls and self._sets is not None else None,
            tie=self._links.tie if self._links is not None else None,
        )

    def _say_base(self, notice: str, *, first: bool, known: Callable[[], int]) -> None:
        """Report why there is no ancestor, or only an older one. `known`: the entries that a side remembers
        of a directory at the other one's place."""
        what = "nothing is deleted, and what differs is a conflict" if first else "what is in doubt is left"
        if notice:
            self._report(Problem(ExitCode.OK, b"", f"{notice}; {what}"))
        elif first and known():
            text = (
                "first time with this directory: what is remembered is of another one at its place, or lost"
            )
            self._report(Problem(ExitCode.OK, b"", f"{text}; {what}"))
        elif first:
            text = "first time: nothing is deleted; what differs is a conflict"
            self._report(Problem(ExitCode.OK, b"", text))

    def _say_left_out(self, *sides: Listing) -> None:
        """Report, in a first meeting, the entries that take no part: later runs pass them over in silence."""
        for listing in sides:
            for text in listing.left_out():
                self._report(Problem(ExitCode.OK, b"", text))

    def _name_holds(self, plan: Plan) -> None:
        for hold in plan.holds:
            shown = printable(join(self._shown[hold.side], hold.path))
            self._report(
                Problem(ExitCode.PARTIAL, hold.path, f"{shown}: nothing was done here: {hold.reason}")
            )
        for left, right in plan.renamed_twice:
            text = f"renamed twice: {printable(left)} at the left, {printable(right)} at the right; both stay"
            self._report(Problem(ExitCode.OK, left, text))
        if plan.stricter:
            entries = "1 entry" if plan.stricter == 1 else f"{plan.stricter:,} entries"
            text = f"{entries} had different permissions: both sides get those that both had"
            self._report(Problem(ExitCode.OK, b"", text))

    def _name_unmet(self) -> None:
        # A run that merges is repeated, and then has no conflict where the one before solved it.
        for path in () if self._options.merge else sorted(self._choices.unmet):
            text = f"{printable(path or b'.')}: --resolve found no conflict there"
            self._report(Problem(ExitCode.OK, path, text))

    def _name_conflicts(self, plan: Plan) -> list[OpenConflict]:
        self._name_unmet()
        found: list[OpenConflict] = []
        for conflict in plan.conflicts:
            event = conflict_event(conflict)
            self._report(event)
            found.append(
                OpenConflict(
                    event.path_bytes,
                    event.about,
                    (event.left_size, event.right_size),
                    (packed_time(event.left_mtime_ns), packed_time(event.right_mtime_ns)),
                )
            )
        return found

    def _emptied(self, side: int, had: int) -> RdcError:
        entries = "1 entry" if had == 1 else f"{had:,} entries"
        return RdcError(
            f"{printable(self._shown[side])}: expected {entries}, as in the last run, found an empty"
            " directory; nothing was done: mount it, or use --force-empty to go on with it as it is",
            code=ExitCode.FILE_IO,
        )

    def _next_rows(
        self,
        plan: Plan,
        base: Node,
        views: tuple[Node, Node],
        steps: Steps,
        original: Mapping[bytes, Ancestor],
    ) -> dict[bytes, Ancestor]:
        """Return what both sides have in common now, with each side's own stamps."""
        failed = steps.failed[LEFT] | steps.failed[RIGHT]
        rows = {path: row for path, row in plan.kept.items() if not under_any(path, failed)}
        torn = {conflict.path for conflict in plan.conflicts if conflict.about == "mode"}
        digests = dict(steps.digests)
        if plan.tied is not None:
            from rdc.uniting.hard_links import share_digests

            share_digests(plan.tied, plan.settled, digests)
        for path, planned in plan.settled.items():
            if under_any(path, failed):
                continue
            settled = planned
            stamps = [
                self._stamp(views[side], steps.stamps[side], path, settled.kind) for side in (LEFT, RIGHT)
            ]
            if path in torn:
                # Both modes have to be changes in the next run, too.
                stamps = [stamp._replace(mode=settled.mode, ctime_ns=0) for stamp in stamps]
            settled = settled._replace(content=digests.get(path, settled.content))
            if path in steps.unset:
                known = base.find(path)
                row = known.row if known is not None and steps.unset[path] else None
                attributes = row.attributes if isinstance(row, Ancestor) else None
                settled = settled._replace(attributes=attributes)
            if not is_known_time(settled.mtime_ns) and settled[:4] != (original.get(path) or ())[:4]:
                # Another machine cannot be told the stamp of an unknown time, so what is news has none.
                settled = settled._replace(mtime_ns=nearest_time(settled.mtime_ns))
            rows[path] = Ancestor(*settled[:4], (stamps[LEFT], stamps[RIGHT]), settled.attributes)
        if failed:
            for path, row in original.items():
                if under_any(path, failed) and path not in rows and path not in plan.journal_dropped:
                    rows[path] = self._after_failure(path, row, views, steps)
        _drop_orphans(rows)
        return rows

    @staticmethod
    def _after_failure(path: bytes, row: Ancestor, views: tuple[Node, Node], steps: Steps) -> Ancestor:
        """Return what is in common of an entry whose step failed: the same as before."""
        stamps = []
        for side, before in enumerate(row.stamps):
            node = views[side].find(path)
            listed = node.row.stamp if node is not None and isinstance(node.row, Row) else NO_STAMP
            stamps.append(stamp_after_failure(before, listed, steps.stamps[side].get(path)))
        return row._replace(stamps=(stamps[LEFT], stamps[RIGHT])) if tuple(stamps) != row.stamps else row

    @staticmethod
    def _stamp(view: Node, changed: Mapping[bytes, Stamp], path: bytes, kind: int) -> Stamp:
        stamp = changed.get(path)
        if stamp is None:
            node = view.find(path)
            stamp = node.row.stamp if node is not None and isinstance(node.row, Row) else NO_STAMP
        # Times of a directory say nothing: each entry that comes or goes changes them.
        return stamp if kind != DIRECTORY else Stamp(0, stamp.mode, 0, stamp.inode, 0)

    def _next_ties(self, plan: Plan, rows: Mapping[bytes, Ancestor], steps: Steps) -> dict[bytes, int] | None:
        """Return the names that share a file in the next ancestor, whose rows are `rows`; None: hard links
        take no part."""
        if plan.tied is None:
            return None
        from rdc.uniting.ties import next_ties

        failed = steps.failed[LEFT] | steps.failed[RIGHT]
        files = {path for path, row in rows.items() if row.kind == FILE}
        return next_ties(plan.tied, files, lambda path: under_any(path, failed))

    def _rehearse(self, plan: Plan, roots: Mapping[int, Root]) -> None:
        """Report what the run would do. `roots`: the sides that this machine can look at."""
        from rdc.uniting.rehearsal import rehearse

        filters = filter_list(self._rules_now.filters)
        self._rehearsed = rehearse(plan, roots, filters, self._report)

    def _result(self, plan: Plan, steps: Steps | None, entries: int, *, first: bool) -> UniteReport:
        changed, copied = (steps.changed, steps.bytes) if steps is not None else self._rehearsed
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
    # The time of a directory changes with each entry in it, and says nothing.
    times = [nearest_time(row.stamp.mtime_ns) if row.kind != DIRECTORY else 0 for row in (left, right)]
    return UniteConflict(conflict.path, conflict.about, left.stamp.size, right.stamp.size, *times)


def _drop_orphans(rows: dict[bytes, Ancestor]) -> None:
    """Drop rows whose directory has no row: no ancestor can have them."""
    for path in sorted(rows):
        parent = path.rpartition(b"/")[0]
        if parent and (parent not in rows or rows[parent].kind != DIRECTORY):
            del rows[path]


def shared_row(row: Ancestor) -> SharedRow:
    """Return what both sides have of an entry."""
    known = row.kind == FILE and len(row.content) == DIGEST_BYTES
    target = row.content if row.kind == SYMLINK else b""
    return SharedRow(row.kind, row.content if known else None, target, row.mode, row.mtime_ns)
