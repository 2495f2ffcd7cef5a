"""Removes from a comparison what rdc does differently by intention with --link-dest and similar options."""

from __future__ import annotations

import re
import stat
from dataclasses import replace

from tests.support.oracle.backups import originals
from tests.support.oracle.cases import Case, Outcome
from tests.support.oracle.comparable import ALTERNATES
from tests.support.running.compared_trees import Seen

__all__ = [
    "FOUND",
    "INEXACT",
    "UNTIMED",
    "timeless_symlinks",
    "unlinked_backups",
    "unlinked_nodes",
    "unnamed_attributes",
    "unnamed_times",
]

FOUND = tuple(sorted(ALTERNATES))
UNTIMED = ("-O", "--omit-dir-times", "-J", "--omit-link-times")
INEXACT = (*UNTIMED, "--modify-window", "-@2")


def unnamed_attributes(line: str) -> list[str]:
    """`line` without the letters of access times, ACLs and attributes; none if those were all of it."""
    if not re.match(r"[.c>]\S[.cstpog]{6}[.u][.ax]{2} ", line):
        return [line]
    return [] if set(line[2:8]) == {"."} else [line[:8] + "..." + line[11:]]


def unnamed_times(line: str) -> list[str]:
    """`line` without the time of a new directory or symlink that is like one elsewhere; none if that was
    all."""
    if not re.match(r"c[dL][.cstpogaux]{9} ", line):
        return [line]
    line = line[:4] + "." + line[5:]
    return [] if set(line[2:11]) == {"."} else [line]


def unlinked_backups(case: Case, outcome: Outcome) -> Outcome:
    """Leave out the backups of files that became links to a file elsewhere, or are left to it. rsync has
    none."""
    left_out = case.scene.source.tree.keys() - outcome.tree.keys()
    lost = left_out.union(outcome.shared)
    tree = {path: seen for path, seen in outcome.tree.items() if originals(path).isdisjoint(lost)}
    return replace(outcome, tree=tree)


def unlinked_nodes(outcome: Outcome) -> Outcome:
    """Leave out which names are one special file: rsync's links are, if they are one elsewhere."""

    def unlinked(seen: Seen) -> Seen:
        return seen if seen.kind in {stat.S_IFREG, stat.S_IFDIR} else replace(seen, names=0)

    return replace(outcome, tree={path: unlinked(seen) for path, seen in outcome.tree.items()})


def timeless_symlinks(outcome: Outcome) -> Outcome:
    """Leave out the times of symlinks: rsync's symlinks have the times of those that it links to."""

    def timeless(seen: Seen) -> Seen:
        return replace(seen, mtime_ns=0) if seen.kind == stat.S_IFLNK else seen

    return replace(outcome, tree={path: timeless(seen) for path, seen in outcome.tree.items()})
