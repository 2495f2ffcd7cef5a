"""Renames of a two-way sync: which entries each side renamed, and which of that the other side can repeat.

A rename is found by an inode number that is at another path than before. It is accepted only if it can be
done at the other side as it is there; then the ancestor and that side's tree are relabelled, so that changes
below a renamed directory arrive there. What is not accepted is a deletion and a new entry, which the rules by
path decide. An inode number that lies therefore changes how content gets somewhere, and never which content.
"""

from __future__ import annotations

from rdc.lean.typed import NamedTuple
from rdc.uniting.rows import DIRECTORY, FILE, LEFT, RIGHT, Ancestor, Node, Row, is_below, required

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    Views: TypeAlias = "tuple[Node, Node]"

    CanRename: TypeAlias = Callable[[int], bool]
    """True if the file system of a side can rename an entry without replacing another one. Asked only where
    a rename would be a step."""


def always(_side: int) -> bool:
    """Return True: each file system can rename."""
    return True


class Renamed(NamedTuple):
    """One rename that a side made: the ancestor's node, and the same entry in that side's tree."""

    before: Node
    now: Node


class Rename(NamedTuple):
    """A step: rename the entry at `old`, listed as `row`, to the free path `new`."""

    old: bytes
    new: bytes
    row: Row


class CopyHere(NamedTuple):
    """A step in place of a rename that is impossible: copy the file at `old`, listed as `row`, to the free
    path `new` at the same side."""

    old: bytes
    new: bytes
    row: Row


class MakeDirectory(NamedTuple):
    """A step in front of a rename: make the directory that it leads into, as the other side has it."""

    path: bytes
    row: Row


def find_renames(
    base: Node,
    view: Node,
    side: int,
    in_unit: Callable[[bytes], bool],
    done: frozenset[tuple[bytes, bytes]] = frozenset(),
) -> list[Renamed]:
    """Return the renames of one side, each valid in the tree that the earlier ones leave.

    `in_unit`: whether a path is of a unit, in which nothing is taken for a rename. `done`: renames that an
    interrupted run began to repeat; their files may have been edited before.
    """
    top = base.copy()
    mates = _mates(top, view, side)
    waiting = [node for node in top.below() if node in mates and _moved(node, mates[node])]
    found: list[Renamed] = []
    while waiting:
        ordered = sorted(waiting, key=lambda node: ((path := node.path).count(b"/"), path))
        later: list[Node] = []
        waiting, arrived = [], False
        for node in ordered:
            verdict = _verdict(node, mates, top, view, side, in_unit, done)
            if verdict is None:
                waiting.append(node)
            elif verdict:
                arrived = True
                found.append(_take(node, mates[node], top))
                waiting += _moved_below(node, mates)
            else:
                later.append(node)
        if arrived:
            waiting += later
            continue
        # Their new parents are new themselves. A directory that arrives makes a parent known.
        for number, node in enumerate(later):
            if _verdict(node, mates, top, view, side, in_unit, done) is None:
                waiting.append(node)
                continue
            arrived = True
            found.append(_take(node, mates[node], top))
            if _row(node).kind == DIRECTORY:
                waiting += _moved_below(node, mates) + later[number + 1 :]
                break
        if not arrived:
            break
    return found


def _row(node: Node) -> Row | Ancestor:
    if node.row is None:
        raise ValueError(f"{node.path!r} has no row")
    return node.row


def _mates(top: Node, view: Node, side: int) -> dict[Node, Node]:
    """Return, for each ancestor's node, the node of `view` with its inode number, where exactly one has
    it."""
    by_inode: dict[tuple[int, int], Node | None] = {}
    for node in view.below():
        row = _row(node)
        if isinstance(row, Row) and row.inode:
            key = row.kind, row.inode
            by_inode[key] = None if key in by_inode else node
    mates: dict[Node, Node] = {}
    taken: set[tuple[int, int]] = set()
    for node in top.below():
        row = _row(node)
        if not isinstance(row, Ancestor) or not row.inode(side):
            continue
        key = row.kind, row.inode(side)
        mate = by_inode.get(key)
        if mate is not None and key not in taken:
            taken.add(key)
            mates[node] = mate
    return mates


def _moved(node: Node, mate: Node) -> bool:
    """Return whether the two nodes have other paths. Compares upwards, and makes no path."""
    one: Node | None = node
    other: Node | None = mate
    while one is not None and other is not None:
        if one.name != other.name:
            return True
        one, other = one.above, other.above
    return one is not None or other is not None


def _moved_below(node: Node, mates: dict[Node, Node]) -> list[Node]:
    return [kid for kid in node.below() if kid is not node and kid in mates and _moved(kid, mates[kid])]


def _verdict(
    node: Node,
    mates: dict[Node, Node],
    top: Node,
    view: Node,
    side: int,
    in_unit: Callable[[bytes], bool],
    done: frozenset[tuple[bytes, bytes]],
) -> bool | None:
    """Return whether a node was renamed to its mate's path: True, False if its new parent is new, too; None:
    no."""
    mate = mates[node]
    old, new = node.path, mate.path
    before, now = _row(node), _row(mate)
    if not (isinstance(before, Ancestor) and isinstance(now, Row)):
        return None
    there = view.find(old)
    # A file's path that goes on is the same file. A directory's is so only with its inode number.
    if (
        there is not None
        and isinstance(there.row, Row)
        and there.row.kind == before.kind
        and (before.kind != DIRECTORY or there.row.inode == before.inode(side))
    ):
        return None
    if old == new or top.find(new) is not None or is_below(new, old) or in_unit(old) or in_unit(new):
        return None
    parent = new.rpartition(b"/")[0]
    above = top.find(parent) if parent else top
    known = above is top or (above is not None and _row(above).kind == DIRECTORY)
    if not known and above is not None:
        return None
    if before.kind == DIRECTORY:
        kids = [kid for kid in node.kids.values() if kid.row is not None]
        with_it = 0
        for kid in kids:
            other, row = mate.kids.get(kid.name), _row(kid)
            if other is not None and isinstance(other.row, Row) and isinstance(row, Ancestor):
                with_it += bool(other.row.inode) and other.row.inode == row.inode(side)
        if kids and 2 * with_it < len(kids):
            return None
    elif (old, new) not in done and (
        now.content != before.content or (before.kind == FILE and now.mtime_ns != before.mtime_ns)
    ):
        return None
    return known


def _take(node: Node, mate: Node, top: Node) -> Renamed:
    node.detach()
    node.attach(top, mate.path)
    return Renamed(required(node.twin), mate)


class Accepted(NamedTuple):
    """The renames that can be repeated. The ancestor and both trees are relabelled."""

    steps: tuple[list[Rename | MakeDirectory], list[Rename | MakeDirectory]]
    """For each side, in order."""
    twice: list[tuple[bytes, bytes]]
    """The paths that one entry has at the left and at the right, because both sides renamed it."""


def accept_renames(
    base: Node,
    views: Views,
    in_unit: Callable[[bytes], bool],
    begun: frozenset[tuple[bytes, bytes]] = frozenset(),
    can_rename: CanRename = always,
) -> Accepted:
    """Relabel `base` and `views` by each rename that the other side can repeat. `begun`: as `done` of
    find_renames."""
    pending = tuple(find_renames(base, views[side], side, in_unit, begun) for side in (LEFT, RIGHT))
    done = Accepted(([], []), [])
    progress = True
    while progress and (pending[LEFT] or pending[RIGHT]):
        progress = _accept_of_both(base, pending)
        awaited = tuple({renamed.before for renamed in pending[side]} for side in (LEFT, RIGHT))
        order = sorted(
            (number, renamed.before.path, renamed.now.path, side)
            for side in (LEFT, RIGHT)
            for number, renamed in enumerate(pending[side])
        )
        left: tuple[list[Renamed], list[Renamed]] = ([], [])
        for number, _, _, side in order:
            renamed = pending[side][number]
            if (
                renamed.before not in awaited[1 - side]
                and _accept(base, views, side, renamed, done.steps, can_rename)
            ):  # fmt: skip
                awaited[side].discard(renamed.before)
                progress = True
            else:
                left[side].append(renamed)
        pending = left
    right = {renamed.before: renamed.now for renamed in pending[RIGHT]}
    for renamed in pending[LEFT]:
        if renamed.before in right:
            done.twice.append((renamed.now.path, right[renamed.before].path))
    return done


def _accept_of_both(base: Node, pending: tuple[list[Renamed], ...]) -> bool:
    """Relabel the ancestor by renames that both sides made alike. They are pending no more."""
    right = {renamed.before: renamed for renamed in pending[RIGHT]}
    progress = False
    for renamed in list(pending[LEFT]):
        other = right.get(renamed.before)
        if other is None or other.now.path != (new := renamed.now.path):
            continue
        pending[LEFT].remove(renamed)
        pending[RIGHT].remove(other)
        old = renamed.before.path
        if base.find(new) is None and not is_below(new, old):
            renamed.before.detach()
            renamed.before.attach(base, new)
            progress = True
    return progress


def _accept(
    base: Node,
    views: Views,
    side: int,
    renamed: Renamed,
    steps: tuple[list[Rename | MakeDirectory], list[Rename | MakeDirectory]],
    can_rename: CanRename,
) -> bool:
    """Repeat one rename at the other side, if that is possible there. Return whether it is."""
    other = views[1 - side]
    old, new = renamed.before.path, renamed.now.path
    kind = _row(renamed.before).kind
    mine, there = views[side].find(new), other.find(old)
    if mine is not renamed.now or _row(mine).kind != kind or there is None or not isinstance(there.row, Row):
        return False
    if there.row.kind != kind or base.find(new) is not None or other.find(new) is not None:
        return False
    if old == new or is_below(new, old):
        return False
    missing = _missing_parents(new, base, views[side], other)
    if missing is None or there.row.is_linked or not can_rename(1 - side):
        return False
    for path, row in missing:
        # It is made without extended attributes, so these are still to be decided.
        other.make(path, row._replace(inode=0, listed=None, attributes=b""))
        steps[1 - side].append(MakeDirectory(path, row))
    steps[1 - side].append(Rename(old, new, there.row))
    for node, top in ((there, other), (renamed.before, base)):
        node.detach()
        node.attach(top, new)
    return True


def _missing_parents(new: bytes, base: Node, mine: Node, other: Node) -> list[tuple[bytes, Row]] | None:
    """Return the directories that a rename to `new` needs at the other side, topmost first; None: it cannot
    be.

    Only new directories of the side that renamed are made: one that the other side removed stays removed.
    """
    missing: list[tuple[bytes, Row]] = []
    parent = new.rpartition(b"/")[0]
    while parent:
        here, there = mine.find(parent), other.find(parent)
        if here is None or not isinstance(here.row, Row) or here.row.kind != DIRECTORY:
            return None
        if there is not None:
            if _row(there).kind != DIRECTORY:
                return None
            break
        if base.find(parent) is not None:
            return None
        missing.append((parent, here.row))
        parent = parent.rpartition(b"/")[0]
    return missing[::-1]
