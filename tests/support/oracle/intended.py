"""Where rdc differs from rsync by decision, and how a comparison looks past exactly that.

Each row of `INTENDED` names a row of the table in docs/explanation/rsync.md, which gives the reason.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from tests.support.oracle.cases import Case, Outcome
from tests.support.oracle.scenes import Scene
from tests.support.running.compared_trees import Seen
from tests.support.trees.trees import Directory, File, Tree

__all__ = ["INTENDED", "Intended", "adjusted", "comparable"]

SET_ID = stat.S_ISUID | stat.S_ISGID
NO_OWNER = frozenset({"--no-owner", "--no-o"})
BACKUP_DIRECTORIES = frozenset({b"old", b"o"})
COARSE = 4 * 10**9
"""Nanoseconds: newer by less than two seconds is not newer to rsync -u --modify-window=-1."""


@dataclass(frozen=True, slots=True)
class Intended:
    row: str
    """The first words of its row in docs/explanation/rsync.md."""
    concerns: Callable[[Case], bool]
    look_past: Callable[[Outcome], Outcome]
    """What is left of an outcome, of either program, without the difference."""


def _has(*names: str) -> Callable[[Case], bool]:
    return lambda case: bool(set(names) & {word.partition("=")[0] for word in case.words})


def _lines(change: Callable[[str], Iterable[str]]) -> Callable[[Outcome], Outcome]:
    def each(lines: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(sorted(new for line in lines for new in change(line)))

    return lambda outcome: replace(outcome, plan=each(outcome.plan), lines=each(outcome.lines))


def _without_flag(line: str, kind: str, flag: str) -> list[str]:
    """`line` without a letter of its code; none if that was all of it."""
    if line[1:2] != kind or flag not in line[2:11] or line[0] not in ".c>":
        return [line]
    code = line[:2] + line[2:11].replace(flag, ".") + line[11:]
    return [] if code[0] == "." and set(code[2:11]) == {"."} else [code]


def _renamed(line: str) -> list[str]:
    old, renamed, new = line.removeprefix("*renaming   ").partition(" -> ")
    if renamed and line.startswith("*renaming   "):
        return [f"*deleting   {old}", f">f+++++++++ {new}"]
    return [line]


def _sent_or_equal(line: str) -> list[str]:
    return ["." + line[1:] if re.match(r">f\.\.", line) else line]


def _attributes_apart(line: str) -> list[str]:
    """`line` without the letters of ACLs and attributes where it has others."""
    if re.match(r"[.c>]\S[.cstpog]{7}[.ax]{2} ", line) and set(line[2:9]) != {"."}:
        return [line[:9] + ".." + line[11:]]
    return [line]


def _seen(change: Callable[[Seen], Seen]) -> Callable[[Outcome], Outcome]:
    return lambda outcome: replace(outcome, tree={path: change(seen) for path, seen in outcome.tree.items()})


def _timeless_directories(outcome: Outcome) -> Outcome:
    outcome = _lines(lambda line: _without_flag(line, "d", "t"))(outcome)
    return _seen(lambda seen: replace(seen, mtime_ns=0) if seen.kind == stat.S_IFDIR else seen)(outcome)


def _backed_up(outcome: Outcome) -> Outcome:
    outcome = _timeless_directories(outcome)
    tree = {
        path: replace(seen, mode=0)
        if seen.kind == stat.S_IFDIR and path.partition(b"/")[0] in BACKUP_DIRECTORIES
        else seen
        for path, seen in outcome.tree.items()
    }
    # rsync -n says that it deletes directories, which then stay, since their backups are in them.
    plan = tuple(line for line in outcome.plan if not re.fullmatch(r"\*deleting .*/", line))
    return replace(outcome, tree=tree, plan=plan)


def _first_name(line: str) -> list[str]:
    """A new name of several, whichever of them the file is sent under."""
    return [re.sub(r"^hf\+{9} (.*) => .*$", r">f+++++++++ \1", line)]


INTENDED: tuple[Intended, ...] = (
    Intended("`-i` with `-A` or `-X`", _has("-A", "--acls", "-X", "--xattrs"), _lines(_attributes_apart)),
    Intended("moved file", lambda case: True, _lines(_renamed)),
    Intended("file with another time alone", lambda case: True, _lines(_sent_or_equal)),
    Intended("`-H`", _has("-H", "--hard-links"), _lines(_first_name)),
    Intended("`--backup`", _has("-b", "--backup", "--backup-dir"), _backed_up),
)


def adjusted(case: Case, outcome: Outcome) -> Outcome:
    """`outcome` without what is intended."""
    for intended in INTENDED:
        if intended.concerns(case):
            outcome = intended.look_past(outcome)
    return outcome


def comparable(case: Case) -> bool:
    """Whether rsync's answer is one that rdc means to give."""
    words = {word.partition("=")[0] for word in case.words}
    wanted, held = case.scene.source.tree, case.scene.destination.tree
    if words & NO_OWNER and (
        any("s" in word for word in case.words if word.startswith("--chmod")) or _has_set_id(wanted)
    ):
        return False  # --chmod with set-id bits: only where owners are kept
    if words & {"-A", "--acls"} and "--chmod" in words:
        return False
    if not words & {"-H", "--hard-links"} and _pulled_apart(case.scene):
        return False  # names of one file at DST that are to differ are set in place, one after the other
    if words & {"-u", "--update"} and not (_coarse(wanted) and _coarse(held)):
        return False  # times are compared to the nanosecond, which rsync's -u does not do
    # rsync goes on below an entry that --ignore-existing keeps in a directory's way, and fails there.
    return "--ignore-existing" not in words or not any(
        isinstance(node, Directory) and not isinstance(held.get(path, node), Directory)
        for path, node in wanted.items()
    )


def _has_set_id(tree: Tree) -> bool:
    return any(isinstance(node, File | Directory) and node.mode & SET_ID for node in tree.values())


def _coarse(tree: Tree) -> bool:
    return all(node.mtime_ns % COARSE == 0 for node in tree.values())


def _pulled_apart(scene: Scene) -> bool:
    """Whether names of one file at DST are to have different metadata."""
    owners = dict(scene.source.owners)

    def wanted(path: bytes) -> tuple[int, tuple[int, int]] | None:
        node = scene.source.tree.get(path)
        return (node.mode, owners.get(path, (0, 0))) if isinstance(node, File) else None

    return any(
        wanted(new) != wanted(old) for new, old in scene.destination.links if wanted(new) and wanted(old)
    )
