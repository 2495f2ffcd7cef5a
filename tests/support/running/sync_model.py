"""The model of a sync: computes from two tree values what it must leave at the destination."""

from __future__ import annotations

from dataclasses import dataclass

from tests.support.trees.trees import Directory, File, Tree, parent_of

__all__ = ["Outcome", "outcome"]


@dataclass(frozen=True, slots=True)
class Outcome:
    tree: Tree
    blocked: frozenset[bytes]
    """Entries of the source that stayed away: a directory that holds something is in their place."""


def outcome(source: Tree, held: Tree, *, delete: bool = False, checksum: bool = False) -> Outcome:
    """`source` synced over `held`, both as contents of a directory, by somebody who may do everything."""
    result: Tree = {} if delete else dict(held)
    blocked: set[bytes] = set()
    parents = {parent_of(path) for path in held if path}
    for path, node in source.items():
        old = held.get(path)
        if not delete and isinstance(old, Directory) and not isinstance(node, Directory) and path in parents:
            blocked.add(path)
            continue
        # The quick check takes equal size and mtime for equal content; -c does not.
        result[path] = node
        if (
            not checksum
            and isinstance(node, File)
            and isinstance(old, File)
            and len(node.content) == len(old.content)
            and node.mtime_ns == old.mtime_ns
        ):
            result[path] = File(old.content, node.mode, node.mtime_ns)
    return Outcome(dict(sorted(result.items())), frozenset(blocked))
