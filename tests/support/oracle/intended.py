"""The intended differences between rdc and rsync, and how a comparison leaves out exactly these.

Each row of `INTENDED` names a row of the table in docs/explanation/rsync.md, which gives the reason.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from tests.support.oracle.backups import BACKUP_DIRECTORIES, originals
from tests.support.oracle.cases import Case, Outcome
from tests.support.oracle.found_elsewhere import (
    FOUND,
    INEXACT,
    UNTIMED,
    timeless_symlinks,
    unlinked_backups,
    unlinked_nodes,
    unnamed_attributes,
    unnamed_times,
)
from tests.support.oracle.operands import CONTENTS
from tests.support.oracle.scenes import Side
from tests.support.running.compared_trees import Seen, View
from tests.support.trees.trees import Directory, Link

__all__ = ["INTENDED", "Intended", "adjusted"]

FILTERS = ("--exclude", "--include", "--filter", "-f", "-C", "--cvs-exclude", "-F", "-FF")
ATTRIBUTES = ("-A", "--acls", "-X", "--xattrs", "-U", "-UU", "--atimes")
BACKUPS = ("-b", "--backup", "--backup-dir")
EXIT_PARTIAL, EXIT_MAX_DELETE = 23, 25
IN_THE_WAY = re.compile(
    r"^could not make way for [^:]*: (.*)$|^rdc: (.*): a directory is in the way", re.MULTILINE
)
"""The entry that a directory is in the way of, as both programs print it to stderr."""
SET_ID = stat.S_ISUID | stat.S_ISGID


@dataclass(frozen=True, slots=True)
class Intended:
    row: str
    """The first words of its row in docs/explanation/rsync.md."""
    concerns: Callable[[Case], bool]
    look_past: Callable[[Case, Outcome], Outcome]
    """Returns an outcome, of either program, without the difference."""


def _has(*names: str) -> Callable[[Case], bool]:
    return lambda case: bool(set(names) & {word.partition("=")[0] for word in case.words})


def _both(some: Iterable[str], others: Iterable[str]) -> Callable[[Case], bool]:
    return lambda case: _has(*some)(case) and _has(*others)(case)


def _always(look_past: Callable[[Outcome], Outcome]) -> Callable[[Case, Outcome], Outcome]:
    """`look_past`, whatever the case is."""
    return lambda _, outcome: look_past(outcome)


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


def _moved(outcome: Outcome) -> Outcome:
    news = {
        os.fsencode(line.partition(" -> ")[2]) for line in outcome.lines if line.startswith("*renaming   ")
    }
    tree = {
        path: replace(seen, attributes=(), access=()) if path in news else seen
        for path, seen in outcome.tree.items()
    }
    return replace(_lines(_renamed)(outcome), tree=tree)


def _renamed(line: str) -> list[str]:
    old, renamed, new = line.removeprefix("*renaming   ").partition(" -> ")
    if renamed and line.startswith("*renaming   "):
        return [f"*deleting   {old}", f">f+++++++++ {new}"]
    return [line]


def _sent_or_equal(line: str) -> list[str]:
    return ["." + line[1:] if re.match(r">f\.\.", line) else line]


def _not_sent(line: str) -> list[str]:
    """No line for a file that -I found equal, and the same code whether or not a file was sent."""
    return [] if re.match(r"[.>]f\.{9} ", line) else _sent_or_equal(line)


def _still_linked(case: Case, outcome: Outcome) -> Outcome:
    """No line for a name that becomes a link once more, since rsync made the file anew that it was one of."""
    names = {os.fsdecode(path) for pair in case.scene.destination.links for path in pair}

    def without(line: str) -> list[str]:
        link = re.fullmatch(r"hf {9} (.*) => .*", line)
        return [] if link is not None and link[1] in names else [line]

    return _lines(without)(outcome)


def _changed_alone(line: str) -> list[str]:
    """No line for an unchanged entry, which a second -i lists."""
    return [] if re.match(r"[.hc][fdLDS] {9} ", line) else [line]


def _attributes_apart(line: str) -> list[str]:
    """`line` without the letters of ACLs and attributes where it has others."""
    if re.match(r"[.c>h]\S[.cstpog]{6}[.u][.ax]{2} ", line) and set(line[2:8]) != {"."}:
        return [line[:8] + "..." + line[11:]]
    return [line]


def _seen(change: Callable[[Seen], Seen]) -> Callable[[Outcome], Outcome]:
    return lambda outcome: replace(outcome, tree={path: change(seen) for path, seen in outcome.tree.items()})


def _timeless_directories(outcome: Outcome) -> Outcome:
    outcome = _lines(lambda line: _without_flag(line, "d", "t"))(outcome)
    # What is left of it is unchanged, which a second -i names.
    outcome = _lines(lambda line: [] if line.startswith(".d          ") else [line])(outcome)
    return _seen(lambda seen: replace(seen, mtime_ns=0) if seen.kind == stat.S_IFDIR else seen)(outcome)


def _is_taken_in_part(case: Case) -> bool:
    return case.operands != CONTENTS


def _timeless_tops(outcome: Outcome) -> Outcome:
    """Leave out the times of directories, also above SRC: an entry that is sent again sets that of its
    directory to now."""
    tops = {
        path: replace(seen, mtime_ns=0) for path, seen in outcome.tree.items() if seen.kind == stat.S_IFDIR
    }
    return replace(outcome, tree={**outcome.tree, **tops})


def _backed_up(outcome: Outcome) -> Outcome:
    outcome = _timeless_directories(outcome)
    tree = {
        path: replace(seen, mode=0, owners=(0, 0)) if _holds_backups(path, seen) else seen
        for path, seen in outcome.tree.items()
        if not _needless(path, outcome.tree)
    }
    tree = {
        path: seen for path, seen in tree.items() if not _holds_backups(path, seen) or _has_below(tree, path)
    }
    # rsync -n says that it deletes directories, which then stay, since their backups are in them; and that it
    # makes what these are in the way of.
    stays = {theirs or ours for theirs, ours in IN_THE_WAY.findall(outcome.said)}
    plan = tuple(
        line
        for line in outcome.plan
        if not re.fullmatch(r"\*deleting .*/", line) and line[12:].partition(" -> ")[0] not in stays
    )
    planned_code = EXIT_PARTIAL if stays else outcome.planned_code
    return replace(outcome, tree=tree, plan=plan, planned_code=planned_code)


def _holds_backups(path: bytes, seen: Seen) -> bool:
    """Return whether it is a directory of backups, or leads to one."""
    within = path + b"/"
    return seen.kind == stat.S_IFDIR and any(
        within.startswith(top) or top.startswith(within) for top in BACKUP_DIRECTORIES
    )


def _has_below(tree: View, path: bytes) -> bool:
    """Return whether there is anything but directories below it."""
    return any(other.startswith(path + b"/") and seen.kind != stat.S_IFDIR for other, seen in tree.items())


def _needless(path: bytes, tree: View) -> bool:
    """Return whether it is a backup of content that is still there: the metadata alone was another."""
    mine = tree[path]
    return mine.kind == stat.S_IFREG and any(
        old in tree and (tree[old].kind, tree[old].said) == (mine.kind, mine.said) for old in originals(path)
    )


def _emptied(outcome: Outcome) -> Outcome:
    """rsync -n says that it deletes directories, which then stay, since a rule protects what is in them."""
    return replace(
        outcome, plan=tuple(line for line in outcome.plan if not re.fullmatch(r"\*deleting .*/", line))
    )


def _stopped(outcome: Outcome) -> Outcome:
    """Reduce deletions that stopped at their limit to their number."""

    def counted(lines: tuple[str, ...]) -> tuple[str, ...]:
        rest = [line for line in lines if not line.startswith("*deleting")]
        return (*rest, f"{len(lines) - len(rest)} deletions")

    named = re.search(r"--max-delete limit|\(--max-delete\)", outcome.said)
    if outcome.code != EXIT_MAX_DELETE and not named:
        return outcome
    return replace(outcome, plan=counted(outcome.plan), lines=counted(outcome.lines), tree={})


def _unnamed_owners(outcome: Outcome) -> Outcome:
    """The run without owners and permissions that it set: after chown(2), which may clear set-id bits, rsync
    looks again, and compares that with SRC."""
    lines = [new for line in outcome.lines for new in _without_owners(line)]
    return replace(outcome, lines=tuple(sorted(lines)))


def _without_owners(line: str) -> list[str]:
    for kind in "fdLDS":
        for flag in "pog":
            found = _without_flag(line, kind, flag)
            if not found:
                return []
            (line,) = found
    # An ACL comes with permissions, of which rsync then sees nothing new.
    return [] if re.match(r"\.\S\.{7}a\. ", line) else [line]


def _has_set_id(case: Case) -> bool:
    nodes = case.scene.destination.tree.values()
    return any(not isinstance(node, Link) and node.mode & SET_ID for node in nodes)


def _first_names(outcome: Outcome) -> Outcome:
    """`outcome` with each name of a file as a file of its own, whichever of them is sent."""
    return replace(outcome, plan=_unlinked(outcome.plan), lines=_unlinked(outcome.lines))


def _unlinked(lines: tuple[str, ...]) -> tuple[str, ...]:
    """`lines` where a link to a new name is what it would be as a file: with that name sent instead."""
    new = {line.removeprefix(">f+++++++++ ") for line in lines if line.startswith(">f+++++++++ ")}
    return tuple(sorted(found for line in lines for found in _unlinked_line(line, new)))


def _unlinked_line(line: str, new: set[str]) -> list[str]:
    link = re.fullmatch(r"hf([.cstpogaux]{9}| {9}) (.*) => (.*)", line)
    if link is None or link[3] not in new:
        return [line]
    if link[1].isspace():
        return []  # as a file it is right
    return [f"{'.' if link[1].startswith('..') else '>'}f{link[1]} {link[2]}"]


def _first_name(line: str) -> list[str]:
    """A new name of several, whichever of them the file is sent under."""
    line = re.sub(r"^h([SD])\+{9} (.*) => .*$", r"c\1+++++++++ \2", line)
    return [re.sub(r"^hf\+{9} (.*) => .*$", r">f+++++++++ \1", line)]


def _timeless_new_entries(line: str) -> list[str]:
    """Leave out the time of a symlink or a device that is re-created."""
    return _without_flag(line, line[1], "t") if line.startswith(("cL", "cD")) else [line]


def _names_over_others(case: Case) -> frozenset[str]:
    """The names of files with several names that are another kind of entry at DST."""
    source, destination = case.scene.source, case.scene.destination
    first = dict(source.links)
    pairs = {
        path: (_kind(destination, path), _kind(source, first.get(path, path)))
        for pair in source.links
        for path in pair
    }
    return frozenset(os.fsdecode(path) for path, (held, new) in pairs.items() if held not in (None, new))


def _kind(side: Side, path: bytes) -> object:
    """Return what tells kinds of entries apart; None if there is no entry."""
    path = dict(side.links).get(path, path)
    special = dict(side.specials).get(path)
    if special is not None:
        return special.kind, special.device
    return type(side.tree[path]) if path in side.tree else None


def _named_anew(case: Case, outcome: Outcome) -> Outcome:
    """A link that rsync compares with another kind of entry as what it becomes: a new name."""
    names = _names_over_others(case)

    def anew(line: str) -> list[str]:
        link = re.fullmatch(r"h([fSD])[.cstpogaux]{9} (.*) => .*", line)
        if link is None or link[2] not in names:
            return [line]
        return [f"{'>' if link[1] == 'f' else 'c'}{link[1]}+++++++++ {link[2]}"]

    return _lines(anew)(outcome)


def _nodes_below_others(case: Case) -> bool:
    """Return whether one of several names of a special file is below a directory that DST has as another
    kind."""
    source, destination = case.scene.source, case.scene.destination
    specials = dict(source.specials)
    names = {path for pair in source.links if pair[1] in specials for path in pair}
    return _has("-H", "--hard-links")(case) and any(
        _kind(destination, above) not in (None, Directory) for path in names for above in _above(path)
    )


def _above(path: bytes) -> Iterable[bytes]:
    while path := path.rpartition(b"/")[0]:
        yield path


def _planned_without_nodes(outcome: Outcome) -> Outcome:
    """The plan without special files, and the exit code of the run: rsync -n looks behind that entry."""
    plan = tuple(line for line in outcome.plan if not re.match(r"[hc][SD]", line))
    return _as_the_run_ends(replace(outcome, plan=plan))


def _as_the_run_ends(outcome: Outcome) -> Outcome:
    """The exit code of the run for that of -n, where this failed in part."""
    failed = outcome.planned_code == EXIT_PARTIAL
    return replace(outcome, planned_code=outcome.code if failed else outcome.planned_code)


def _read_otherwise(case: Case) -> bool:
    """Return whether unchanged entries are to be listed where contents, links or attributes are compared."""
    compared = ("-c", "--checksum", "-I", "--ignore-times", "-H", "--hard-links", *ATTRIBUTES, *FOUND)
    return _has("-i", "--itemize-changes")(case) and _has(*compared)(case)


def _overwrites_below_old_times(case: Case) -> bool:
    return _has("-O", "--omit-dir-times")(case) and _has("--inplace", "--append", "--append-verify")(case)


def _timeless_where_written(outcome: Outcome) -> Outcome:
    """Leave out the times of directories in which an existing file has new content."""
    found = (re.match(r">f[.c].{8} (.*)", line) for line in outcome.lines)
    above = {os.fsencode(line[1]).rpartition(b"/")[0] for line in found if line}
    tree = {p: replace(seen, mtime_ns=0) if p in above else seen for p, seen in outcome.tree.items()}
    return replace(outcome, tree=tree)


INTENDED: tuple[Intended, ...] = (
    Intended(
        "`-i` with `-A`, `-X` or `-U`",
        _has(*ATTRIBUTES),
        _always(_lines(_attributes_apart)),
    ),
    Intended("moved file", lambda case: True, _always(_moved)),
    Intended("file whose mtime alone differs", lambda case: True, _always(_lines(_sent_or_equal))),
    Intended("file whose mtime alone differs", _is_taken_in_part, _always(_timeless_tops)),
    Intended("`-O` with `--inplace`", _overwrites_below_old_times, _always(_timeless_where_written)),
    Intended("`-I`", _has("-I", "--ignore-times"), _always(_lines(_not_sent))),
    Intended("`-I`", _has("-I", "--ignore-times"), _still_linked),
    Intended("`--modify-window`", _has("--modify-window", "-@2"), _always(_timeless_directories)),
    Intended("`--modify-window`", _has("--modify-window", "-@2"), _always(_lines(_timeless_new_entries))),
    Intended("`-ii`", _read_otherwise, _always(_lines(_changed_alone))),
    Intended("`-H`, where another kind", _has("-H", "--hard-links"), _named_anew),
    Intended("`-H`, the name", _has("-H", "--hard-links"), _always(_first_names)),
    Intended("`-H`, the name", _has("-H", "--hard-links"), _always(_lines(_first_name))),
    Intended("`-n -H`, a special file below", _nodes_below_others, _always(_planned_without_nodes)),
    Intended(
        "`-i` with `-A`, `-X` or `-U`, and", _both(ATTRIBUTES, FOUND), _always(_lines(unnamed_attributes))
    ),
    Intended("`-n -X` with", _both(ATTRIBUTES, FOUND), _always(_as_the_run_ends)),
    Intended("`-i` with `-O` or `-J`", _both(UNTIMED, FOUND), _always(_lines(unnamed_times))),
    Intended("`--link-dest` with symlinks", _has("--link-dest"), _always(unlinked_nodes)),
    Intended("`--link-dest` with symlinks", _both(INEXACT, FOUND), _always(timeless_symlinks)),
    Intended("`-i`, where an entry with set-id bits", _has_set_id, _always(_unnamed_owners)),
    Intended("`-n --delete` with rules", _has(*FILTERS), _always(_emptied)),
    Intended("`--max-delete`", _has("--max-delete"), _always(_stopped)),
    Intended("`--backup` with `--link-dest`", _both(BACKUPS, FOUND), unlinked_backups),
    Intended("`--backup`", _has(*BACKUPS), _always(_backed_up)),
)


def adjusted(case: Case, outcome: Outcome) -> Outcome:
    """`outcome` without what is intended."""
    for intended in INTENDED:
        if intended.concerns(case):
            outcome = intended.look_past(case, outcome)
    return outcome
