"""Chooses the file of a set that stays.

The choice is a function of the set and the rules alone. The rules are compared one after the other. Files
that all rules find equal keep the order in which they were found: that of the PATHs. So two runs over
the same files choose the same.
"""

from __future__ import annotations

from rdc.instances.tree import is_below
from rdc.model.removal import KeepOrder
from rdc.model.times import real_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.instances.group import Inode
    from rdc.instances.tree import Tree
    from rdc.model.removal import KeepRule

__all__ = ["choose_survivor"]


def choose_survivor(inodes: Sequence[Inode], rules: Sequence[KeepRule], trees: Sequence[Tree]) -> Inode:
    """The file of a set (in the order found) with which the others are compared, and which stays.

    A protected file stays whatever the rules say. So it is taken before the others, and the rules choose only
    among protected files then.
    """
    candidates = [inode for inode in inodes if inode.protected] or list(inodes)
    for rule in rules:
        if rule.order is KeepOrder.FIRST:
            break
        ranks = [_rank(inode, rule, trees) for inode in candidates]
        best = min(ranks)
        candidates = [inode for inode, rank in zip(candidates, ranks, strict=True) if rank == best]
    return candidates[0]


def _rank(inode: Inode, rule: KeepRule, trees: Sequence[Tree]) -> int:
    """The lower, the rather it stays. A file with several names has the rank of its best one."""
    order = rule.order
    mtime = real_time(inode.facts.identity.mtime_ns)
    if order is KeepOrder.NEWEST:
        return -mtime
    if order is KeepOrder.OLDEST:
        return mtime
    if order is KeepOrder.IN:
        return -any(is_below(trees[name.root].real_path(name.path), rule.directory) for name in inode.names)
    lengths = [len(trees[name.root].root.shown(name.path)) for name in inode.names]
    return min(lengths) if order is KeepOrder.SHORTEST_PATH else -max(lengths)
