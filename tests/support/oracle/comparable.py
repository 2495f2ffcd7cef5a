"""Which cases rsync answers as rdc means to."""

from __future__ import annotations

import stat

from tests.support.oracle.cases import Case
from tests.support.oracle.operands import CONTENTS
from tests.support.oracle.options import DELETIONS
from tests.support.oracle.scenes import Side
from tests.support.trees.trees import Directory, File, Tree

__all__ = ["comparable"]

SET_ID = stat.S_ISUID | stat.S_ISGID
NO_OWNER = frozenset({"--no-owner", "--no-o"})
COARSE = 4 * 10**9
"""Nanoseconds: newer by less than two seconds is not newer to rsync -u --modify-window=-1."""


def comparable(case: Case) -> bool:
    """Whether rsync's answer is one that rdc means to give."""
    words = {word.partition("=")[0] for word in case.words}
    wanted, held = case.scene.source.tree, case.scene.destination.tree
    if words & NO_OWNER and (
        any("s" in word for word in case.words if word.startswith("--chmod")) or _has_set_id(wanted)
    ):
        return False  # --chmod with set-id bits: only where owners are kept
    if case.operands != CONTENTS and not _comparable_operands(case, words):
        return False
    if words & {"-A", "--acls"} and "--chmod" in words:
        return False
    if "--inplace" in words and words & {"-u", "--update", "--size-only"}:
        return False
    if not words & {"-H", "--hard-links"} and _set_in_turn(case):
        return False
    if words & {"-u", "--update"} and not (_coarse(wanted) and _coarse(held)):
        return False  # times are compared to the nanosecond, which rsync's -u does not do
    # rsync goes on below an entry that --ignore-existing keeps in a directory's way, and fails there.
    return "--ignore-existing" not in words or not any(
        isinstance(node, Directory) and not isinstance(held.get(path, node), Directory)
        for path, node in wanted.items()
    )


def _comparable_operands(case: Case, words: set[str]) -> bool:
    if words & {"-x", "--one-file-system"}:
        return False  # rdc takes one SRC then
    if "--no-implied-dirs" in case.operands.words and any(
        isinstance(node, Directory) and not isinstance(case.scene.destination.tree.get(path, node), Directory)
        for path, node in case.scene.source.tree.items()
    ):
        return False  # rsync works through a symlink in the place of such a directory
    # After a missing SRC rdc deletes nothing.
    missing = "missing" in {path.rpartition("/")[2] for path in case.operands.listed or case.operands.paths}
    return not (missing and words & set(DELETIONS))


def _has_set_id(tree: Tree) -> bool:
    return any(isinstance(node, File | Directory) and node.mode & SET_ID for node in tree.values())


def _coarse(tree: Tree) -> bool:
    return all(node.mtime_ns % COARSE == 0 for node in tree.values())


def _set_in_turn(case: Case) -> bool:
    """Whether names of one file at DST are to change: each run sets the file in an order of its own."""
    source, destination = case.scene.source, case.scene.destination
    groups: dict[bytes, list[bytes]] = {}
    for new, old in destination.links:
        groups.setdefault(old, [old]).append(new)
    chmod = any(word.startswith("--chmod") for word in case.words)
    for old, names in groups.items():
        wanted = {name: _metadata(source, name) for name in names}
        given = [each for each in wanted.values() if each]
        if len(given) > 1 and (chmod or {*given, _metadata(destination, old)} != {given[0]}):
            return True
    return False


def _metadata(side: Side, path: bytes) -> tuple[object, ...]:
    """Metadata of the file with that name, whichever of its names they were given to; () where it is none."""
    first = dict(side.links)
    path = first.get(path, path)
    node = side.tree.get(path)
    if not isinstance(node, File):
        return ()
    owners = {first.get(name, name): owner for name, owner in side.owners}
    attributes = {name: value for bearer, name, value in side.attributes if first.get(bearer, bearer) == path}
    return (node.mode, node.mtime_ns, owners.get(path, (0, 0)), tuple(sorted(attributes.items())))
