"""The rules by path once more, slow and without renames: what the plan is compared with.

A tree is a dict of paths. An entry is (kind, content, mode, mtime), where the content of a directory is b"".
It goes path by path, and shares nothing with rdc.unite but the names of kinds.
"""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    kind: str
    content: bytes
    mode: int
    mtime: int


Tree = dict[bytes, Entry]


class Outcome(NamedTuple):
    left: Tree
    right: Tree
    conflicts: set[tuple[bytes, str]]
    base: Tree


def at_or_below(tree: Tree, path: bytes) -> set[bytes]:
    return {each for each in tree if each == path or each.startswith(path + b"/")}


def differs(one: Entry | None, other: Entry | None) -> bool:
    return (one and one[:2]) != (other and other[:2])


def touched(tree: Tree, base: Tree, path: bytes) -> bool:
    """Return whether something at or below `path` is not as in the base. Missing entries do not count."""
    return any(differs(tree[each], base.get(each)) for each in at_or_below(tree, path))


def merge(base: Tree, left: Tree, right: Tree) -> Outcome:
    a, b, conflicts, agreed = dict(left), dict(right), set[tuple[bytes, str]](), dict[bytes, Entry]()
    closed: list[bytes] = []

    def copy(source: Tree, target: Tree, path: bytes) -> None:
        for each in at_or_below(target, path):
            del target[each]
        for each in at_or_below(source, path):
            target[each] = agreed[each] = source[each]

    for path in sorted(base.keys() | left.keys() | right.keys(), key=lambda each: each.split(b"/")):
        if any(path == each or path.startswith(each + b"/") for each in closed):
            continue
        o, one, other = base.get(path), left.get(path), right.get(path)
        if one is None and other is None:
            if o is not None:
                closed.append(path)
            continue
        if one is None or other is None:
            source, target = (left, b) if other is None else (right, a)
            closed.append(path)
            if o is None or touched(source, base, path):
                copy(source, target, path)
            else:
                for each in at_or_below(source, path):
                    (a if source is left else b).pop(each)
            continue
        if one.kind != other.kind:
            closed.append(path)
            if o is not None and not touched(left, base, path):
                copy(right, a, path)
            elif o is not None and not touched(right, base, path):
                copy(left, b, path)
            else:
                conflicts.add((path, "kind"))
                agreed.update({each: base[each] for each in at_or_below(base, path)})
            continue
        known = o if o is not None and o.kind == one.kind else None
        if one.content != other.content and (
            known is None or known.content not in (one.content, other.content)
        ):
            conflicts.add((path, "content"))
            agreed.update({each: base[each] for each in at_or_below(base, path)})
            closed.append(path)
            continue
        if one.kind != "d":
            closed.append(path)
        content = other.content if known is not None and one.content == known.content else one.content
        modes, mode = {one.mode, other.mode}, None
        if len(modes) == 1:
            mode = one.mode
        elif known is None:
            mode = one.mode & other.mode
        elif known.mode in modes:
            (mode,) = modes - {known.mode}
        else:
            conflicts.add((path, "mode"))
        mtime = one.mtime
        if one.content != other.content:
            mtime = (one if content == one.content else other).mtime
        elif one.mtime != other.mtime:
            if known is not None and known.mtime in (one.mtime, other.mtime):
                mtime = other.mtime if one.mtime == known.mtime else one.mtime
            else:
                mtime = min(one.mtime, other.mtime)
        for tree, row in ((a, one), (b, other)):
            tree[path] = Entry(row.kind, content, row.mode if mode is None else mode, mtime)
        if mode is None:
            mode = known.mode if known is not None else one.mode
        agreed[path] = Entry(one.kind, content, mode, mtime)
    return Outcome(a, b, conflicts, agreed)
