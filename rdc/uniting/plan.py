"""The plan of a two-way sync: what each side has to do so that both have all changes. Pure: no I/O.

Renames that both sides can follow are taken first (rdc.uniting.renames). Then each path is decided by three
rows: the ancestor's, the left one and the right one.

- A row that equals the ancestor's follows the other side: new content, another kind, a deletion.
- Without an ancestor an entry of one side is copied, equal ones are agreed, different ones are a conflict.
- An edit, or a new entry below a directory, stays against a deletion and comes back whole.
- A conflict touches neither version, and its ancestor's rows stay, so every later run finds it again.
- Modes and times are decided field by field where the content is. No clock decides anything.

An ancestor's row may be missing for any reason. That adds conflicts and entries that come back, and never a
deletion or a replacement; so whatever is in doubt is dropped from the ancestor.
"""

from __future__ import annotations

from rdc.lean.records import Record, replace
from rdc.lean.typed import NamedTuple
from rdc.uniting.file_systems import PLAIN, Kept
from rdc.uniting.renames import CopyHere, MakeDirectory, Rename, accept_renames, always
from rdc.uniting.rows import (
    BARRED,
    DIGEST_BYTES,
    DIRECTORY,
    ELSEWHERE,
    FILE,
    LEFT,
    MODE_BITS,
    NO_STAMP,
    RIGHT,
    SYMLINK,
    Ancestor,
    Doubt,
    Node,
    Row,
    required,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import TypeAlias

    from rdc.uniting.renames import Accepted, CanRename
    from rdc.uniting.rows import Stamp
    from rdc.uniting.ties import Tied

UNITS = frozenset({b".git", b".hg", b".svn", b".jj", b".bzr"})
"""Names of directories that are one unit: a repository of both sides' files would be damaged."""


class Write(NamedTuple):
    """A step: put the other side's entry at `path`, with the metadata of `row`.

    `row.listed` and `row.content` are the other side's. `replaced`: what is there; None: nothing.
    """

    path: bytes
    row: Row
    replaced: Row | None
    returns: bool
    """True if this side had deleted the entry, and the other side's change brings it back."""


class SetFields(NamedTuple):
    """A step: set mode and modification time of the entry at `path`, listed as `row`."""

    path: bytes
    row: Row
    mode: int
    mtime_ns: int


class SetAttributes(NamedTuple):
    """A step: give the entry at `path` exactly these extended attributes."""

    path: bytes
    row: Row
    """The entry as it was listed, or that of the other side which a step of this run puts there."""
    before: bytes | None
    """The digest of the set that it was listed with; None: a step of this run puts it there."""
    wanted: bytes
    """The digest of the set that it gets; b"" for none."""
    mode: int
    """The mode that it has with them."""
    is_told: bool
    """True if no other step tells of the entry."""
    replaces: bool
    """True if a step of this run replaces a file that has attributes, of which no other one has a copy."""


class Remove(NamedTuple):
    """A step: remove the entry at `path`, listed as `row`. A directory is empty by then, or it stays."""

    path: bytes
    row: Row


class Part(NamedTuple):
    """A step: give `path`, one of several names of the file `replaced`, an equal file of its own: `row`."""

    path: bytes
    row: Row
    replaced: Row


class Link(NamedTuple):
    """A step: make `path` a further name of the file at `source`, once all else is done.

    `origin`: that file as it was listed; None: a step of this run puts it there. `row`: what it is then.
    `replaced`: as in Write. `brings`: the content comes with the link. Otherwise `path` has it already.
    """

    path: bytes
    source: bytes
    origin: Row | None
    row: Row
    replaced: Row | None
    brings: bool


Step: TypeAlias = "MakeDirectory | Rename | CopyHere | Write | SetFields | Remove | Part | Link"


class Conflict(NamedTuple):
    """Two changes that exclude each other. Neither side's entry is touched."""

    path: bytes
    about: str
    """"content", "kind", "unit", "mode", "attributes" or "links"."""
    rows: tuple[Row, Row]


class Hold(NamedTuple):
    """A path at which a step would be needed and nothing is done."""

    path: bytes
    side: int
    """The side of the entry that takes no part."""
    reason: str


class Settled(NamedTuple):
    """The entry of both sides at a path once the steps are done, without the stamps that they get then."""

    kind: int
    content: bytes
    mode: int
    mtime_ns: int
    attributes: bytes | None
    """As in Ancestor."""


Intent: TypeAlias = "tuple[Stamp | None, Stamp | None]"
"""The intent of a run at a path: for each side that gets a step the stamp that its entry had, NO_STAMP
if it had none, ELSEWHERE if the journal of that side has it; None for a side without a step. Without any step
the agreed row is to change."""

NO_INTENT: Intent = (None, None)


class Plan(Record):
    """The steps to be done, and the common ancestor afterwards."""

    steps: tuple[tuple[int, Step], ...]
    """The side of each step, and the step, in order: renames of both sides, writes, removals, metadata. So
    what an interrupted run leaves is more than there was, not less."""
    conflicts: tuple[Conflict, ...]
    holds: tuple[Hold, ...]
    settled: Mapping[bytes, Settled]
    """The rows of the next ancestor, by paths after the renames."""
    kept: Mapping[bytes, Ancestor]
    """Rows that the next ancestor has from this one, by paths after the renames."""
    journal: Mapping[bytes, Intent]
    """The intents that must be on disk before the first step, by paths after the renames."""
    renames: frozenset[tuple[bytes, bytes]]
    """Old and new path of each rename that is repeated, for the journal."""
    journal_dropped: frozenset[bytes]
    """Paths whose ancestor's row an interrupted run made worthless."""
    renamed_twice: tuple[tuple[bytes, bytes], ...]
    """Left and right path of entries that both sides renamed differently. Both names appear."""
    stricter: int
    """Entries whose modes differed without an ancestor: both get the permissions that both have."""
    attributes: tuple[tuple[int, SetAttributes], ...] = ()
    """The steps that set extended attributes, after these: the side of each, and the step."""
    links: tuple[tuple[int, Link], ...] = ()
    tied: Tied | None = None
    """With hard links: the steps that make them, after all others, and what is decided about them."""

    @property
    def is_empty(self) -> bool:
        """Return whether no side has anything to do."""
        return not (self.steps or self.attributes or self.links)


class Choice(Record):
    """The solution of a conflict: the entry of the side `winner` goes to the other side."""

    winner: int
    copy: bytes | None = None
    """The path at which the other version is kept, renamed first; None: it is replaced."""


class Rules(Record):
    """The rules of one run's decisions, besides the rows."""

    units: frozenset[bytes] = UNITS
    kept: Kept = PLAIN
    """The metadata that both file systems keep."""
    choose: Callable[[bytes, str, Row, Row], Choice | None] | None = None
    """Is asked about each conflict: its path, what it is about, both rows. None: it stays a conflict."""
    merged: Collection[bytes] = frozenset()
    """Paths of files about which a choice depends on what both sides have there: they are read."""
    unfinished: Mapping[bytes, tuple[Intent, ...]] | None = None
    """The paths in the journals of interrupted runs, each with what every such run was about to do."""
    begun: frozenset[tuple[bytes, bytes]] = frozenset()
    """The renames in those journals: old and new path."""
    can_rename: CanRename = always
    """Where it is False, a rename of the other side is a deletion and a new entry."""
    attributes: bool = False
    """True if extended attributes take part."""
    guard: Callable[[bytes], int | None] | None = None
    """With ACLs: the rights of group and others before an entry has the access ACL of a set; None for a set
    without one. None: ACLs take no part."""
    tie: Callable[[Merge, Node, Rules], None] | None = None
    """With hard links: decides about them, where all else is decided (rdc.uniting.hard_links)."""


class Undecided(NamedTuple):
    """Files of both sides at one path of which nothing but their contents tells whether they are equal, or
    whether one is as the ancestor."""

    base: Node | None
    sides: tuple[Node, Node]

    @property
    def size(self) -> int:
        """Bytes of both files together."""
        return sum(required(_row_of(node)).stamp.size for node in self.sides)

    def settle(self, digests: tuple[bytes | None, bytes | None]) -> None:
        """Note the contents of both files, as they were read; None: it could not be read.

        The side that is as the ancestor tells the ancestor's content, too.
        """
        before = _ancestor_of(self.base)
        rows = required(_row_of(self.sides[LEFT])), required(_row_of(self.sides[RIGHT]))
        as_before = [before is not None and row.content == before.content for row in rows]
        both = None not in digests
        equal = both and digests[LEFT] == digests[RIGHT]
        for side, (node, row, digest) in enumerate(zip(self.sides, rows, digests, strict=True)):
            content = row.content
            if row.doubt is Doubt.UNLESS_DISPROVED and not equal and not (both and as_before[1 - side]):
                pass
            elif digest is not None:
                content = digest
            elif row.doubt is Doubt.UNTIL_PROVED:
                content = b"unproved, at side %d" % side
            node.row = row._replace(content=content, doubt=Doubt.NONE)
            if digest and before and as_before[side] and (row.doubt is Doubt.NONE or equal):
                required(self.base).row = before._replace(content=digest)


class Planning:
    """A plan in the making: renames are taken, and files whose contents have to be compared are found."""

    def __init__(self, base: Node, left: Node, right: Node, rules: Rules) -> None:
        """Take the renames: the three trees are relabelled."""
        self._trees = base, left, right
        self._rules = rules
        self._accepted = accept_renames(
            base, (left, right), _units(rules.units), rules.begun, rules.can_rename
        )
        self._uncertain: set[bytes] = set()
        self._decided: Merge | None = None
        """A pass that left nothing open, and nothing to choose."""

    def undecided(self) -> list[Undecided]:
        """Return the files whose contents decide something and are not known.

        A plan without knowing them takes them as different.
        """
        merge = self._merged(replace(self._rules, choose=None))
        if not (merge.undecided or merge.conflicts):
            self._decided = merge
        return merge.undecided

    def _merged(self, rules: Rules) -> Merge:
        base, left, right = self._trees
        merge = Merge(rules, (left, right), self._uncertain)
        merge.drop_uncertain(base)
        merge.visit_all(base, left, right)
        return merge

    def plan(self) -> Plan:
        """Return what brings both trees together."""
        merge = self._decided or self._merged(self._rules)
        if self._rules.tie is not None:
            self._rules.tie(merge, self._trees[0], self._rules)
        return _plan(self._trees[0], self._accepted, merge)


def make_plan(base: Node, left: Node, right: Node, rules: Rules = Rules()) -> Plan:  # noqa: B008 - frozen
    """Return what brings both trees together. The three trees are relabelled by the renames taken."""
    return Planning(base, left, right, rules).plan()


def _plan(base: Node, accepted: Accepted, merge: Merge) -> Plan:
    first = tuple([merge.guarded(step) for step in steps] for steps in accepted.steps)
    stages: tuple[tuple[Sequence[Step], ...], ...] = (
        first, merge.renames, merge.writes, merge.parts, merge.removals, merge.fields
    )  # fmt: skip
    return Plan(
        steps=tuple((side, step) for stage in stages for side in (LEFT, RIGHT) for step in stage[side]),
        conflicts=tuple(merge.conflicts),
        holds=tuple(merge.holds),
        settled=merge.settled,
        kept=merge.kept,
        journal=merge.journal(base),
        renames=frozenset(
            (step.old, step.new) for side in accepted.steps for step in side if isinstance(step, Rename)
        ),
        journal_dropped=frozenset(merge.uncertain),
        renamed_twice=tuple(accepted.twice),
        stricter=merge.stricter,
        attributes=tuple((side, step) for side in (LEFT, RIGHT) for step in merge.attributes[side]),
        links=tuple((side, step) for side in (LEFT, RIGHT) for step in merge.links[side]),
        tied=merge.tied,
    )


def _units(names: frozenset[bytes]) -> Callable[[bytes], bool]:
    def in_unit(path: bytes) -> bool:
        return not names.isdisjoint(path.split(b"/"))

    return in_unit


def _row_of(node: Node | None) -> Row | None:
    """Return the row of a node of a side's tree; None if there is no entry."""
    return node.row if node is not None and isinstance(node.row, Row) else None


def _ancestor_of(node: Node | None) -> Ancestor | None:
    return node.row if node is not None and isinstance(node.row, Ancestor) else None


def _names(*nodes: Node | None) -> list[bytes]:
    names: set[bytes] = set()
    for node in nodes:
        if node is not None:
            names.update(node.kids)
    return sorted(names, reverse=True)


def _kid(node: Node | None, name: bytes) -> Node | None:
    return node.kids.get(name) if node is not None else None


def _paths(node: Node, path: bytes) -> list[tuple[bytes, Row]]:
    """Return the paths and rows at and below a node of a side's tree, parents first."""
    found: list[tuple[bytes, Row]] = []
    todo = [(node, path)]
    while todo:
        at, where = todo.pop()
        if isinstance(at.row, Row):
            found.append((where, at.row))
        todo += [(at.kids[name], where + b"/" + name) for name in sorted(at.kids, reverse=True)]
    return found


def _is_untouched_since(was: Stamp, now: Row | None, before: Ancestor | None) -> bool:
    """Return whether no step was done at an entry since the journal noted it as `was`.

    Each step makes another entry of it, or gives it other permissions or another time. A new change time
    alone is of a second name, as one that is kept for an undo, or of an edit, which its content shows. The
    times of a directory are those of what came and went inside.
    """
    if now is None:
        return False
    if now.kind == DIRECTORY and before is not None and before.kind == DIRECTORY:
        return (was.mode, was.inode) == (now.stamp.mode, now.stamp.inode)
    return was[:4] == now.stamp[:4]


def _is_untouched(node: Node, base: Node | None) -> bool:
    """Return whether nothing at or below `node` is new, edited or of another kind since the ancestor, or has
    other extended attributes. Deletions, modes and times do not count, nor entries that take no part."""
    todo: list[tuple[Node, Node | None]] = [(node, base)]
    while todo:
        at, known = todo.pop()
        row, before = _row_of(at), _ancestor_of(known)
        if row is None or row.kind == BARRED:
            pass
        elif (
            before is None
            or (before.kind, before.content) != (row.kind, row.content)
            or (before.attributes or b"") != row.attributes  # None: those that it has are not known to both
        ):
            return False
        todo += [(kid, _kid(known, name)) for name, kid in at.kids.items()]
    return True


def _is_torn(base: Node | None, left: Node, right: Node) -> bool:
    """Return whether both sides changed a unit, and differently. What both have alike is no change of
    either."""
    changed = [False, False]
    todo: list[tuple[Node | None, Node | None, Node | None]] = [(base, left, right)]
    while todo:
        o, a, b = todo.pop()
        before = _ancestor_of(o)
        known = before[:2] if before is not None else None
        found = [row[:2] if row is not None else None for row in (_row_of(a), _row_of(b))]
        if found[LEFT] != found[RIGHT]:
            for side in (LEFT, RIGHT):
                changed[side] |= found[side] != known
            if all(changed):
                return True
        todo += [(_kid(o, name), _kid(a, name), _kid(b, name)) for name in _names(o, a, b)]
    return False


def _undecided_below(base: Node | None, left: Node, right: Node) -> list[Undecided]:
    """Return the files below a unit whose contents have to be known to tell which sides changed it."""
    found: list[Undecided] = []
    todo = [(base, left, right)]
    while todo:
        o, a, b = todo.pop()
        one, other = _row_of(a), _row_of(b)
        if one and other and one.kind == other.kind == FILE and _has_to_be_read(one, other):
            found.append(Undecided(o, (a, b)))
        todo += [(_kid(o, name), a.kids[name], b.kids[name]) for name in a.kids.keys() & b.kids.keys()]
    return found


class Merge:
    """One pass over three trees."""

    def __init__(self, rules: Rules, views: tuple[Node, Node], uncertain: set[bytes]) -> None:
        """`uncertain`: paths whose rows an earlier pass dropped; this one adds its own."""
        self._rules = rules
        self.views = views
        self._todo: list[tuple[bytes, Node | None, Node | None, Node | None]] = []
        self.renames: tuple[list[Rename | CopyHere], list[Rename | CopyHere]] = ([], [])
        self.writes: tuple[list[Write | Remove], list[Write | Remove]] = ([], [])
        self.removals: tuple[list[Remove], list[Remove]] = ([], [])
        self.fields: tuple[list[SetFields], list[SetFields]] = ([], [])
        self.attributes: tuple[list[SetAttributes], list[SetAttributes]] = ([], [])
        self.parts: tuple[list[Part], list[Part]] = ([], [])
        self.links: tuple[list[Link], list[Link]] = ([], [])
        self.shared: tuple[set[bytes], set[bytes]] = (set(), set())
        """Names at each side that change along with another name of their file."""
        self.tied: Tied | None = None
        self.conflicts: list[Conflict] = []
        self.holds: list[Hold] = []
        self.settled: dict[bytes, Settled] = {}
        self.kept: dict[bytes, Ancestor] = {}
        self.uncertain = uncertain
        self.undecided: list[Undecided] = []
        self.stricter = 0

    def drop_uncertain(self, base: Node) -> None:
        """Take the rows out of the ancestor of which an interrupted run leaves no trace to rely on.

        A row stays if every interrupted run had a step for its path, and each side that would have got one
        has the entry that the run found: then nothing has happened there, neither by the run nor by a user.
        """
        for path, intents in (self._rules.unfinished or {}).items():
            node = base.find(path)
            if node is None:
                continue
            before = _ancestor_of(node)
            found = [_row_of(view.find(path)) for view in self.views]
            # An entry that was missing and is missing may have come and gone, with all that came below it.
            if any(
                intent == NO_INTENT or NO_STAMP in intent or not all(
                    was in (None, ELSEWHERE) or _is_untouched_since(was, now, before)
                    for was, now in zip(intent, found, strict=True)
                )
                for intent in intents
            ):  # fmt: skip
                node.row = None
                self.uncertain.add(path)
            elif before is not None and before.attributes is not None and not all(
                was is None or (now is not None and was == now.stamp)
                for intent in intents
                for was, now in zip(intent, found, strict=True)
            ):  # fmt: skip
                # A step may have set attributes, of which a new change time is all that shows.
                node.row = before._replace(attributes=None)

    def _stamps(self, path: bytes) -> tuple[Stamp, Stamp]:
        left, right = (_row_of(view.find(path)) for view in self.views)
        return left.stamp if left else NO_STAMP, right.stamp if right else NO_STAMP

    def journal(self, base: Node) -> dict[bytes, Intent]:
        """Return the paths at which the ancestor's row is worth nothing once a part of the plan is done."""
        sides: dict[bytes, int] = {}
        brought: set[bytes] = set()
        for side in (LEFT, RIGHT):
            stages = self.writes, self.removals, self.fields, self.attributes, self.parts, self.links
            steps = [step for stage in stages for step in stage[side]]
            brought.update(step.path for step in steps if isinstance(step, (Write, Remove)))
            brought.update(step.path for step in self.links[side] if step.brings)
            for path in {step.path for step in steps} | self.shared[side]:
                sides[path] = sides.get(path, 0) | 1 << side
        intents: dict[bytes, Intent] = {}
        for path, mask in sides.items():
            left, right = self._stamps(path)
            intents[path] = left if mask & 1 else None, right if mask & 2 else None
        for path, settled in self.settled.items():
            node = base.find(path)
            if path in brought or not isinstance(row := node.row if node is not None else None, Ancestor):
                continue
            # Content that both sides have already is agreed without a step that would show it.
            others = row[:4] != settled[:4] or row.attributes not in (None, settled.attributes)
            if row[:2] != settled[:2] or (path not in sides and others):
                intents[path] = NO_INTENT
        intents.update(dict.fromkeys(self.uncertain, NO_INTENT))
        return intents

    def visit_all(self, base: Node, left: Node, right: Node) -> None:
        """Decide every path."""
        self._push(b"", base, left, right)
        while self._todo:
            path, o, a, b = self._todo.pop()
            if self._visit(path, o, a, b):
                self._push(path, o, a, b)

    def _push(self, path: bytes, o: Node | None, a: Node | None, b: Node | None) -> None:
        prefix = path + b"/" if path else b""
        self._todo += [
            (prefix + name, _kid(o, name), _kid(a, name), _kid(b, name)) for name in _names(o, a, b)
        ]

    def _visit(self, path: bytes, o: Node | None, a: Node | None, b: Node | None) -> bool:
        """Decide one path. Return whether what lies below is decided by itself."""
        base, left, right = _ancestor_of(o), _row_of(a), _row_of(b)
        if left is None and right is None:
            # Gone at both sides. A node without a row may still have something below it.
            return base is None
        for side, row, other in ((LEFT, left, right), (RIGHT, right, left)):
            if row is not None and row.kind == BARRED:
                if base is not None or (other is not None and other.kind != BARRED):
                    self._hold(path, o, side, row)
                return False
        if left is None or right is None or a is None or b is None:
            self._one_sided(path, o, required(a if right is None else b), LEFT if right is None else RIGHT)
            return False
        is_unit = left.kind == right.kind == DIRECTORY and path.rpartition(b"/")[2] in self._rules.units
        if is_unit:
            self.undecided += _undecided_below(o, a, b)
        if is_unit and _is_torn(o, a, b):
            self._conflict(path, "unit", o, a, b)
            return False
        if left.kind != right.kind:
            self._other_kind(path, o, a, b)
            return False
        if left.kind == FILE and (
            _has_to_be_read(left, right) or (path in self._rules.merged and not _are_known(left, right))
        ):
            self.undecided.append(Undecided(o, (a, b)))
        if left.content != right.content and (
            base is None or base.kind != left.kind or base.content not in (left.content, right.content)
        ):
            self._conflict(path, "content", o, a, b)
            return False
        self._same_kind(path, base, left, right)
        return left.kind == DIRECTORY

    # One path

    def _hold(self, path: bytes, o: Node | None, side: int, row: Row) -> None:
        self.holds.append(Hold(path, side, row.content.decode("utf-8", "replace")))
        self._keep(path, o)

    def _keep(self, path: bytes, o: Node | None) -> None:
        """Take the ancestor's rows at and below a path over as they are."""
        todo = [(o, path)]
        while todo:
            node, where = todo.pop()
            if node is None:
                continue
            if isinstance(node.row, Ancestor):
                self.kept[where] = node.row
            todo += [(kid, where + b"/" + name) for name, kid in node.kids.items()]

    def _settle(
        self, path: bytes, row: Row, mode: int, mtime_ns: int, attributes: bytes | None = None
    ) -> None:
        mode, mtime_ns = mode if row.kind != SYMLINK else 0, mtime_ns if row.kind == FILE else 0
        self.settled[path] = Settled(row.kind, row.content, mode, mtime_ns, attributes)

    def _write(self, side: int, path: bytes, row: Row, replaced: Row | None, *, returns: bool) -> None:
        """Put an entry of the other side at `path`, and its attributes afterwards."""
        before = row
        if self._rules.attributes and row.kind != SYMLINK:
            guard = self._rules.guard
            if guard is not None or row.attributes:
                # A new entry may have inherited an ACL from its directory.
                replaces = replaced is not None and bool(replaced.attributes)
                step = SetAttributes(path, row, None, row.attributes, row.mode, False, replaces)
                self.attributes[side].append(step)
            before = self.guarded_row(row)
        self.writes[side].append(Write(path, before, replaced, returns))

    def guarded(self, step: Rename | MakeDirectory) -> Rename | MakeDirectory:
        """Return a step in front of all others with the mode that its directory has until it has its ACL."""
        return step._replace(row=self.guarded_row(step.row)) if isinstance(step, MakeDirectory) else step

    def guarded_row(self, row: Row) -> Row:
        """Return a row with the mode that its entry has until it has its ACL."""
        bits = self._rules.guard(row.attributes) if self._rules.guard is not None else None
        return row if bits is None else row._replace(mode=row.mode & (~0o77 | bits))

    def _agreed(self, row: Row) -> bytes | None:
        """Return what both sides agree on of the attributes of an entry that both have as in `row`."""
        return row.attributes if self._rules.attributes else None

    def _one_sided(self, path: bytes, o: Node | None, node: Node, side: int) -> None:
        """Decide an entry that only `side` has."""
        if _ancestor_of(o) is not None and _is_untouched(node, o):
            self._drop(path, o, node, side)
        else:
            self._give(path, node, side, returns=_ancestor_of(o) is not None)

    def _other_kind(self, path: bytes, o: Node | None, a: Node, b: Node) -> None:
        if _ancestor_of(o) is not None:
            for side, loser, winner in ((LEFT, a, b), (RIGHT, b, a)):
                if _is_untouched(loser, o):
                    self._replace(path, o, loser, winner, side)
                    return
        self._conflict(path, "kind", o, a, b)

    def _replace(self, path: bytes, o: Node | None, loser: Node, winner: Node, side: int) -> None:
        """Put the entry of the other side in the place of one of another kind at `side`."""
        barred = next(
            ((where, row) for where, row in _paths(loser, path) if row.kind == BARRED), None
        )  # fmt: skip
        if barred is not None:
            self._hold(path, o, side, barred[1])
            return
        rows = _paths(loser, path)
        for where, row in reversed(rows):
            self.writes[side].append(Remove(where, row))
        self._give(path, winner, 1 - side, returns=False)

    def _give(self, path: bytes, node: Node, side: int, *, returns: bool) -> None:
        """Copy an entry of `side`, and all below it, to the other side."""
        for where, row in _paths(node, path):
            if row.kind == BARRED:
                continue
            self._write(1 - side, where, row, None, returns=returns)
            self._settle(where, row, row.mode, row.mtime_ns, self._agreed(row))

    def _drop(self, path: bytes, o: Node | None, node: Node, side: int) -> None:
        """Remove an entry of `side`, and all below it but what takes no part and the directories above."""
        rows = _paths(node, path)
        staying: set[bytes] = set()
        for where, row in rows:
            if row.kind != BARRED:
                continue
            self.holds.append(Hold(where, side, row.content.decode("utf-8", "replace")))
            above = where
            while len(above) >= len(path):
                staying.add(above)
                above = above.rpartition(b"/")[0]
        for where, row in reversed(rows):
            if where not in staying:
                self.removals[side].append(Remove(where, row))
        todo = [(o, path)]
        while staying and todo:
            at, where = todo.pop()
            if at is None or where not in staying:
                continue
            if isinstance(at.row, Ancestor):
                self.kept[where] = at.row
            todo += [(kid, where + b"/" + name) for name, kid in at.kids.items()]

    def _same_kind(self, path: bytes, base: Ancestor | None, left: Row, right: Row) -> None:
        """Settle a path of one kind on both sides whose content is decided."""
        if base is not None and base.kind != left.kind:
            base = None
        content = left.content
        if left.content != right.content and base is not None and left.content == base.content:
            content = right.content
        if self._has_acl(left, right):
            mode, agreed_mode, attributes, agreed = self._access(path, base, left, right)
        else:
            mode, agreed_mode = self._mode(path, base, left, right)
            attributes, agreed = self._attributes(path, base, left, right)
        mtime_ns, agreed_mtime_ns = self._mtime(base, left, right, content)
        for side, row, other in ((LEFT, left, right), (RIGHT, right, left)):
            wanted = row.mode if mode is None else mode
            final = other._replace(
                mode=wanted,
                mtime_ns=agreed_mtime_ns,
                attributes=row.attributes if attributes is None else attributes,
            )
            if row.content != content:
                self._write(side, path, final, row, returns=False)
            else:
                time = row.mtime_ns if mtime_ns is None else mtime_ns
                self._set(path, side, row, wanted, time, final.attributes)
        self._settle(path, left._replace(content=content), agreed_mode, agreed_mtime_ns, agreed)

    def _set(self, path: bytes, side: int, row: Row, mode: int, mtime_ns: int, attributes: bytes) -> None:
        """Set what differs. Times of directories and anything of symlinks take no part."""
        if row.kind == SYMLINK:
            return
        if row.kind != FILE:
            mtime_ns = row.mtime_ns
        is_other = row.attributes != attributes
        has_acl = is_other and self._has_acl(row, row._replace(attributes=attributes))
        # The mode comes with the ACL, or once it is gone: before that it would change the old one.
        first = row.mode if has_acl else mode
        differs = (row.mode, row.mtime_ns) != (first, mtime_ns)
        if differs:
            self.fields[side].append(SetFields(path, row, first, mtime_ns))
        if is_other:
            step = SetAttributes(path, row, row.attributes, attributes, mode, not differs, False)
            self.attributes[side].append(step)

    def _attributes(
        self, path: bytes, base: Ancestor | None, left: Row, right: Row
    ) -> tuple[bytes | None, bytes | None]:
        """Return the attributes that both sides get, None if each keeps its own; and those of the next
        ancestor, None if nothing is agreed.

        Where nothing is known of before, an entry without attributes gets those of the other side.
        """
        one, other = left.attributes, right.attributes
        if not self._rules.attributes:
            return None, None
        known = base.attributes if base is not None else None
        if one == other:
            return one, one
        if one == known or (known is None and not one):
            return other, other
        if other == known or (known is None and not other):
            return one, one
        choice = self._choice(path, "attributes", left, right)
        if choice is not None:
            found = (left, right)[choice.winner].attributes
            return found, found
        self.conflicts.append(Conflict(path, "attributes", (left, right)))
        return None, known

    def _has_acl(self, left: Row, right: Row) -> bool:
        """Return whether the permissions of an entry are more than a mode at a side."""
        guard = self._rules.guard
        return guard is not None and any(guard(row.attributes) is not None for row in (left, right))

    def _access(
        self, path: bytes, base: Ancestor | None, left: Row, right: Row
    ) -> tuple[int | None, int, bytes | None, bytes | None]:
        """Return what `_mode` and `_attributes` do, of an entry whose mode is a part of its access ACL: both
        are one field."""
        one, other = (left.mode, left.attributes), (right.mode, right.attributes)
        known = (base.mode, base.attributes) if base is not None and base.attributes is not None else None
        winner: Row | None = None
        if other in (one, known):
            winner = left
        elif one == known:
            winner = right
        elif (
            known is None
            and not (left.stamp.mode ^ right.stamp.mode) & MODE_BITS
            and not (left.attributes and right.attributes)
        ):
            winner = left if left.attributes else right
        if winner is None:
            choice = self._choice(path, "mode", left, right)
            winner = (left, right)[choice.winner] if choice is not None else None
        if winner is not None:
            return winner.mode, winner.mode, winner.attributes, winner.attributes
        self.conflicts.append(Conflict(path, "mode", (left, right)))
        if base is None:
            # Nothing was agreed. With a mode that neither side has, both have changed it in later runs, too.
            return None, next(mode for mode in range(3) if mode not in (left.mode, right.mode)), None, None
        return None, base.mode, None, base.attributes

    def _mode(self, path: bytes, base: Ancestor | None, left: Row, right: Row) -> tuple[int | None, int]:
        """Return the mode that both sides get, None if each keeps its own; and the mode of the next
        ancestor."""
        if left.mode == right.mode or left.kind == SYMLINK or not self._rules.kept.modes:
            mode = left.mode if left.mode == right.mode or base is None else base.mode
            return (left.mode, left.mode) if left.mode == right.mode else (None, mode)
        if base is None:
            self.stricter += 1
            return left.mode & right.mode, left.mode & right.mode
        if left.mode == base.mode:
            return right.mode, right.mode
        if right.mode == base.mode:
            return left.mode, left.mode
        choice = self._choice(path, "mode", left, right)
        if choice is not None:
            mode = (left, right)[choice.winner].mode
            return mode, mode
        self.conflicts.append(Conflict(path, "mode", (left, right)))
        return None, base.mode

    def _mtime(self, base: Ancestor | None, left: Row, right: Row, content: bytes) -> tuple[int | None, int]:
        """Return the time that both sides get of a file, None if each keeps its own; and that of the next
        ancestor.

        It is that of the content's side, else the changed one, else the older one, as a copy never looks
        newer than what it is a copy of.
        """
        if left.kind != FILE or left.mtime_ns == right.mtime_ns:
            return left.mtime_ns, left.mtime_ns
        older = min(left.mtime_ns, right.mtime_ns)
        if left.content != right.content:
            found = (left if left.content == content else right).mtime_ns
        elif self._rules.kept.alike(left.mtime_ns, right.mtime_ns):
            return None, older if base is None else base.mtime_ns
        elif base is not None and left.mtime_ns == base.mtime_ns:
            found = right.mtime_ns
        elif base is not None and right.mtime_ns == base.mtime_ns:
            found = left.mtime_ns
        else:
            found = older
        return found, found

    def _choice(self, path: bytes, about: str, left: Row, right: Row) -> Choice | None:
        choose = self._rules.choose
        return choose(path, about, left, right) if choose is not None else None

    def _conflict(self, path: bytes, about: str, o: Node | None, a: Node, b: Node) -> None:
        left, right = required(_row_of(a)), required(_row_of(b))
        choice, nodes = self._choice(path, about, left, right), (a, b)
        if (
            choice is None
            or any(row.kind == BARRED for row_node in nodes for _, row in _paths(row_node, path))
            or (choice.copy is not None and any(view.find(choice.copy) for view in self.views))
        ):
            self.conflicts.append(Conflict(path, about, (left, right)))
            self._keep(path, o)
            return
        loser, winning, losing = 1 - choice.winner, nodes[choice.winner], nodes[1 - choice.winner]
        if choice.copy is not None:
            row, after = (left, right)[loser], (left, right)[choice.winner]
            if row.is_linked or not self._rules.can_rename(loser):
                self.renames[loser].append(CopyHere(path, choice.copy, self.guarded_row(row)))
                if self._rules.attributes and (row.attributes or self._rules.guard is not None):
                    step = SetAttributes(choice.copy, row, None, row.attributes, row.mode, False, True)
                    self.attributes[loser].append(step)
                if after.kind == row.kind:
                    self._write(loser, path, after, row, returns=False)
                    self._settle(path, after, after.mode, after.mtime_ns, self._agreed(after))
                else:
                    self._replace(path, None, losing, winning, loser)
            else:
                self.renames[loser].append(Rename(path, choice.copy, row))
                self._give(path, winning, choice.winner, returns=False)
            self._give(choice.copy, losing, loser, returns=False)
            return
        # With the loser's rows as the ancestor, every difference is a change of the winner's.
        self._force(path, losing, winning, loser)

    def _force(self, path: bytes, losing: Node, winning: Node, loser: int) -> None:
        """Make the entry of the side `loser`, and all below it, what the other side has."""
        todo: list[tuple[bytes, Node | None, Node | None]] = [(path, losing, winning)]
        while todo:
            where, old, new = todo.pop()
            before, after = _row_of(old), _row_of(new)
            if before is None and after is None:
                continue
            if after is None:
                self._drop(where, None, required(old), loser)
            elif before is None:
                self._give(where, required(new), 1 - loser, returns=False)
            elif before.kind != after.kind:
                self._replace(where, None, required(old), required(new), loser)
            else:
                kept = self._rules.kept
                mode = after.mode if kept.modes else before.mode
                if before.content != after.content:
                    self._write(loser, where, after._replace(mode=mode), before, returns=False)
                else:
                    time = before.mtime_ns if kept.alike(before.mtime_ns, after.mtime_ns) else after.mtime_ns
                    self._set(where, loser, before, mode, time, after.attributes)
                self._settle(where, after, after.mode, after.mtime_ns, self._agreed(after))
                todo += [(where + b"/" + name, _kid(old, name), _kid(new, name)) for name in _names(old, new)]


def _has_to_be_read(left: Row, right: Row) -> bool:
    """Return whether nothing but their contents tells whether two files are equal, or as the ancestor."""
    if Doubt.UNTIL_PROVED in (left.doubt, right.doubt):
        return True
    if left.doubt is right.doubt is Doubt.NONE and left.content == right.content:
        return False
    return left.stamp.size == right.stamp.size and not _are_known(left, right)


def _are_known(left: Row, right: Row) -> bool:
    """Return whether the contents of both files are known."""
    return len(left.content) == len(right.content) == DIGEST_BYTES
