"""Decides in which cases rsync should do as rdc does."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence

from tests.support.oracle.cases import Case
from tests.support.oracle.operands import CONTENTS
from tests.support.oracle.options import DELETIONS
from tests.support.oracle.scenes import Side, Special
from tests.support.trees.trees import Directory, File, Link, Tree, parent_of

__all__ = ["comparable"]

SET_ID = stat.S_ISUID | stat.S_ISGID
RULE_FILES = frozenset({"-C", "--cvs-exclude", "-F"})
RULES = RULE_FILES | {"-FF", "--filter", "--exclude", "--include"}
RULE_FILE_NAMES = frozenset({".f", ".g", ".rsync-filter", ".cvsignore"})
NO_OWNER = frozenset({"--no-owner", "--no-o"})
FOLLOWING = frozenset({"-L", "--copy-links", "-k", "--copy-dirlinks", "--copy-unsafe-links"})
KEEPING = frozenset({"-K", "--keep-dirlinks"})
KEPT_APART = frozenset({"-b", "--backup", "--backup-dir"})
WRITING_INTO = frozenset({"--inplace", "--append", "--append-verify"})
ALTERNATES = frozenset({"--link-dest", "--compare-dest", "--copy-dest"})
MAPPING = frozenset({"--usermap", "--groupmap", "--chown"})
NOT_RECURSIVE = frozenset({"-d", "--dirs", "--old-dirs", "--old-d"})
COARSE = 4 * 10**9
"""Nanoseconds: newer by less than two seconds is not newer to rsync -u --modify-window=-1."""


def comparable(case: Case) -> bool:
    """Return whether rsync's answer is one that rdc means to give."""
    words = {word.partition("=")[0] for word in case.words}
    wanted, held = case.scene.source.tree, case.scene.destination.tree
    if words & NO_OWNER and (
        any("s" in word for word in case.words if word.startswith("--chmod")) or _has_set_id(wanted)
    ):
        return False  # --chmod with set-id bits: only where owners are kept
    if "--munge-links" in words and words & {*FOLLOWING, "--safe-links"}:
        return False  # refused
    if "--delay-updates" in words and words & (WRITING_INTO | ALTERNATES):
        return False  # refused
    if "--partial-dir" in words and words & WRITING_INTO:
        return False  # refused
    if words & KEEPING and (words & KEPT_APART or _links_in_the_way(wanted, held)):
        return False  # refused; or the metadata go to another entry
    if _changes_kind_of_device(case.scene.source, case.scene.destination):
        return False  # rsync leaves it alone
    if words & ALTERNATES and not _comparable_alternates(case, words):
        return False
    if words & {"-y", "--fuzzy"} and _links_in_the_way(wanted, held):
        return False  # rsync -n looks for similar names through such a link
    if "--max-delete" in words and _moves(wanted, held):
        return False  # rdc renames the file, which is no deletion
    if words & MAPPING and "--numeric-ids" in words:
        return False  # rsync then sends no names, and rdc does
    if "--safe-links" in words and words & KEPT_APART:
        return False  # rsync deletes an unsafe link without keeping it
    if words & MAPPING and (words & NO_OWNER or words & {"-A", "--acls"} or _map_twice(case)):
        return False  # refused
    if case.operands != CONTENTS and not _comparable_operands(case, words):
        return False
    if words & {"-A", "--acls"} and "--chmod" in words:
        return False
    if words & {"-A", "--acls"} and _special_bits_and_access(case.scene.source):
        return False  # rsync takes the owning group's rights from such a directory
    if words & {"-O", "--omit-dir-times"} and (
        words & {"-I", "--ignore-times"} or _has_another_time_alone(wanted, held)
    ):
        return False  # rsync writes equal files anew, in directories whose times it then leaves
    if (
        words & {"-I", "--ignore-times"}
        and not (
            words & {"-H", "--hard-links"} and {*case.scene.destination.links} <= {*case.scene.source.links}
        )
        and case.scene.destination.links
    ):
        return False  # rsync writes equal files anew, so names of one file become files of their own
    if "--ignore-errors" in words and words & RULE_FILES:
        return False  # refused: what a rule file with a mistake hides would be deleted
    appends = words & {"--append", "--append-verify"}
    if (appends or "--inplace" in words) and words & {"-u", "--update", "--size-only"}:
        return False  # refused
    if appends and words & {"-W", "--whole-file", "-y", "--fuzzy"}:
        return False  # refused by rsync; or it leaves out a new file that a longer one resembles
    if appends and (words & {"-c", "--checksum"} or not _lengthened(wanted, held)):
        return False  # the one is refused, and what rsync makes of the other is no version of either side
    if _set_in_turn(case, apart=bool(words & {"-H", "--hard-links"})):
        return False
    if words & {"-u", "--update"} and not (_coarse(wanted) and _coarse(held)):
        return False  # times are compared to the nanosecond, which rsync's -u does not do
    if not words >= {"-A", "-X"} and _bears_what_rewriting_loses(case):
        return False
    if "--remove-source-files" in words and (words & FOLLOWING or case.operands != CONTENTS):
        return False  # the one is refused; in the other rsync looks for what it has removed already
    if words & {"-8", "--8-bit-output"} and any(_is_no_text(node) for node in wanted.values()):
        return False  # rsync writes the bytes themselves, and rdc escapes what is no text
    if words & FOLLOWING and not _leads_somewhere(wanted):
        return False
    if words & FOLLOWING and words & set(DELETIONS) and any(b"/" in path for path in _dangling(wanted)):
        return False  # rsync has deleted before it meets such a link, which ends deletions
    if _goes_on_deleting(words, wanted, held):
        return False
    # rsync goes on below an entry that --ignore-existing keeps in a directory's way, and fails there.
    entered = (Directory, Link) if words & FOLLOWING else Directory
    return "--ignore-existing" not in words or not any(
        isinstance(node, entered) and path in held and not isinstance(held[path], Directory)
        for path, node in wanted.items()
    )


def _goes_on_deleting(words: set[str], wanted: Tree, held: Tree) -> bool:
    """Return whether rsync deletes though something failed before. rdc then deletes nothing."""
    if words & FOLLOWING and "--force" in words:
        return any(_dangling(wanted))  # for these it deletes nothing by --delete alone
    # A directory with entries stays in the way of a new one.
    filled = {path: node for path, node in held.items() if any(parent_of(below) == path for below in held)}
    return bool(words & NOT_RECURSIVE and words & set(DELETIONS)) and _directories_in_the_way(wanted, filled)


def _directories_in_the_way(wanted: Tree, held: Tree) -> bool:
    return any(
        isinstance(held.get(path), Directory) and not isinstance(wanted[path], Directory) for path in wanted
    )


def _comparable_alternates(case: Case, words: set[str]) -> bool:
    wanted, held = case.scene.source.tree, case.scene.destination.tree
    if words & KEEPING or (words & WRITING_INTO and "--link-dest" in words):
        return False  # refused
    if "--remove-source-files" in words and (
        case.scene.source.specials
        or words & {"--compare-dest", "-H", "--hard-links"}
        or any(isinstance(side.tree.get(path), Link) for side in case.scene.alternates for path in wanted)
    ):
        # rsync leaves at SRC a symlink or a special file that it has linked; or removes what DST lacks.
        return False
    if words & {"--append", "--append-verify"}:
        return False  # rsync leaves out what is no shorter there, whatever else it differs in
    if words & {"-H", "--hard-links"} and _some_names_are_there(case):
        return False  # rsync takes the name that is there, and rdc the first one
    if words & {"-c", "--checksum"}:
        return False  # rsync looks there for what DST has already, too
    if _directories_in_the_way(wanted, held):
        return False  # rdc fetches what a directory was in the way of
    entered = (Directory, Link) if words & FOLLOWING else Directory
    directories = [path for path, node in wanted.items() if isinstance(node, entered)]
    # rsync follows links on the way to a file.
    return not any(isinstance(side.tree.get(p), Link) for side in case.scene.alternates for p in directories)


def _some_names_are_there(case: Case) -> bool:
    """Return whether an alternate directory has some names of a file at SRC, and others not."""
    names: dict[bytes, set[bytes]] = {}
    for name, file in case.scene.source.links:
        names.setdefault(file, {file}).add(name)
    return any(
        0 < len(group & side.tree.keys()) < len(group)
        for group in names.values()
        for side in case.scene.alternates
    )


def _bears_what_rewriting_loses(case: Case) -> bool:
    """Return whether a file at DST has attributes and differs in time alone: rsync makes it again."""
    wanted, held = case.scene.source.tree, case.scene.destination.tree
    pairs = ((wanted.get(path), held.get(path)) for path, _, _ in case.scene.destination.attributes)
    return any(
        isinstance(new, File) and isinstance(old, File) and new.content == old.content for new, old in pairs
    )


def _comparable_operands(case: Case, words: set[str]) -> bool:
    if "--no-implied-dirs" in case.operands.words and any(
        isinstance(node, Directory) and not isinstance(case.scene.destination.tree.get(path, node), Directory)
        for path, node in case.scene.source.tree.items()
    ):
        return False  # rsync works through a symlink in the place of such a directory
    if "--no-implied-dirs" in case.operands.words and words & {"-i", "--itemize-changes", "-ii", "-vv"}:
        return False  # rdc lists such directories as unchanged
    hides = words & {*RULES, "--old-dirs", "--old-d"}
    if hides and _is_within_another(case.operands.listed or case.operands.paths):
        return False  # rsync takes what rules hide if it is named; rdc takes it as a part of the other
    if "--delete-missing-args" in case.operands.words and words & RULES:
        return False  # an operand that rules hide counts as missing, and rsync lists it alone
    if "--no-implied-dirs" in case.operands.words and words & RULES:
        return False  # rdc makes the directories above a name that rules hide
    if words & FOLLOWING and words & {"-m", "--prune-empty-dirs"}:
        return False  # rsync keeps a listed directory in which a link cannot be followed
    if words & {"-I", "--ignore-times"}:
        return False  # rsync writes equal files anew, in directories whose times it then leaves
    if words & {"-m", "--prune-empty-dirs"} and "--no-relative" in case.operands.words:
        return False  # without recursion rsync keeps the directories that a listed directory has
    named_paths = case.operands.listed or case.operands.paths
    if words & {"-m", "--prune-empty-dirs"} and (_is_within_another(named_paths) or _recurs(named_paths)):
        return False  # rsync keeps the empty directories above one that it lists twice
    if _reads_no_rule_files_above(case, words):
        return False  # rsync takes a listed file that a rule file above it hides
    if _counts_from_the_second_name(case, words):
        return False  # without recursion rsync reads a rule file after the first name of its directory
    if words & {"-F", "-FF"} and (len(case.operands.paths) > 1 or case.operands.listed is not None):
        return False  # rsync reads the files above one SRC alone
    several = case.operands.listed is None and "-R" not in case.operands.words
    if several and _is_within_another(case.operands.paths):
        return False  # rdc takes it as a part of the other SRC, and rsync as one of its own
    if several and _joins_a_rule_file(case, words):
        return False  # rsync reads it for its own SRC alone
    # After a missing SRC rdc deletes nothing.
    named = {path.rpartition("/")[2] for path in case.operands.listed or case.operands.paths}
    missing = not named.isdisjoint(("missing", "none"))
    ignores = {"--ignore-missing-args", "--delete-missing-args"} & set(case.operands.words)
    return bool(ignores) or not (missing and words & {*DELETIONS, "--force"})


def _reads_no_rule_files_above(case: Case, words: set[str]) -> bool:
    """Return whether rsync lists all of SRC first, and reads rule files only in what it enters."""
    whole = words & {"--delete-after", "--delay-updates", "-m", "--prune-empty-dirs"}
    return (
        case.operands.listed is not None
        and "-r" in case.operands.words
        and bool(whole)
        and _has_rule_files(case, words)
    )


def _counts_from_the_second_name(case: Case, words: set[str]) -> bool:
    """Return whether several names of one directory below the top are listed, without recursion."""
    above = [path.rpartition("/")[0] for path in case.operands.listed or ()]
    return (
        "-r" not in case.operands.words
        and any(path and above.count(path) > 1 for path in above)
        and _has_rule_files(case, words)
    )


def _joins_a_rule_file(case: Case, words: set[str]) -> bool:
    """Return whether several SRC share a rule file: it is one of them, or lies in one copied by contents."""
    paths = case.operands.paths
    opened = [path.rstrip("/") for path in paths if not path or path.endswith("/")]
    inside = {f"{top}/{name}".lstrip("/").encode() for top in opened for name in RULE_FILE_NAMES}
    named = any(path.rpartition("/")[2] in RULE_FILE_NAMES for path in paths)
    return (
        len(paths) > 1
        and bool(opened)
        and (named or not inside.isdisjoint(case.scene.source.tree))
        and _has_rule_files(case, words)
    )


def _has_rule_files(case: Case, words: set[str]) -> bool:
    named = any(re.match(r"--filter=(:|dir-merge|merge|\.)", word) for word in case.words)
    return named or bool(words & {*RULE_FILES, "-FF"})


def _is_within_another(paths: Sequence[str]) -> bool:
    """Return whether a path is below one copied with its contents, and further ones may have its name."""
    tops = {path.rstrip("/") for path in paths}
    return len(tops) > 1 and any(
        top != path and (not top or path.startswith(top + "/")) for top in tops for path in tops
    )


def _recurs(paths: Sequence[str]) -> bool:
    """Return whether a path is named twice, with or without a slash at its end."""
    return len({os.path.normpath(path) for path in paths}) < len(paths)


def _leads_somewhere(tree: Tree) -> bool:
    """Return whether no link leads out, or to a directory in which other links may lead back: rsync would
    copy it 40 links deep."""
    within = [parent_of(path) + b"/" for path, node in tree.items() if isinstance(node, Link)]
    for path, node in tree.items():
        if isinstance(node, Link):
            place = os.path.normpath(os.path.join(b"/", parent_of(path), node.target))[1:] + b"/"
            if node.target.strip(b"./") == b"" or any(one.startswith(place) for one in within):
                return False
    return True


def _is_no_text(node: object) -> bool:
    """Return whether a link's target is not UTF-8."""
    return isinstance(node, Link) and node.target.decode(errors="ignore").encode() != node.target


def _dangling(tree: Tree) -> Iterator[bytes]:
    """The links that lead to nothing of the tree."""
    for path, node in tree.items():
        if (
            isinstance(node, Link)
            and os.path.normpath(os.path.join(parent_of(path), node.target)) not in tree
        ):
            yield path


def _special_bits_and_access(side: Side) -> bool:
    """Return whether a directory has set-id or sticky bits and an access list."""
    return any(
        name == "system.posix_acl_access"
        and isinstance(node := side.tree.get(path), Directory)
        and node.mode & (SET_ID | stat.S_ISVTX)
        for path, name, _ in side.attributes
    )


def _changes_kind_of_device(source: Side, destination: Side) -> bool:
    """Return whether a device is a block device at one side and a character device of that number at the
    other."""
    first, devices = dict(destination.links), dict(destination.specials)
    names = {**dict(source.specials), **{new: dict(source.specials).get(old) for new, old in source.links}}
    pairs = ((new, devices.get(first.get(path, path))) for path, new in names.items())
    return any(new and old and new.device == old.device > 0 and new.kind != old.kind for new, old in pairs)


def _has_another_time_alone(wanted: Tree, held: Tree) -> bool:
    """Return whether a file of both sides has the same content and another time."""
    pairs = ((node, held.get(path)) for path, node in wanted.items())
    return any(
        isinstance(new, File)
        and isinstance(old, File)
        and new.content == old.content
        and new.mtime_ns != old.mtime_ns
        for new, old in pairs
    )


def _moves(wanted: Tree, held: Tree) -> bool:
    """Return whether a file that only DST has may be a new one of SRC."""
    gone = {
        (node.content, node.mtime_ns)
        for path, node in held.items()
        if isinstance(node, File) and path not in wanted
    }
    return any(
        isinstance(node, File) and path not in held and (node.content, node.mtime_ns) in gone
        for path, node in wanted.items()
    )


def _lengthened(wanted: Tree, held: Tree) -> bool:
    """Return whether each file that is shorter at DST is the beginning of the one at SRC."""
    pairs = ((node, held.get(path)) for path, node in wanted.items())
    return all(
        len(old.content) >= len(new.content) or new.content.startswith(old.content)
        for new, old in pairs
        if isinstance(new, File) and isinstance(old, File)
    )


def _has_set_id(tree: Tree) -> bool:
    return any(isinstance(node, File | Directory) and node.mode & SET_ID for node in tree.values())


def _links_in_the_way(wanted: Tree, held: Tree) -> bool:
    """Return whether DST has a symlink where SRC has a directory."""
    return any(
        isinstance(node, Directory) and isinstance(held.get(path), Link) for path, node in wanted.items()
    )


def _map_twice(case: Case) -> bool:
    """Return whether --chown is the second map of users, or of groups."""
    words = [word for word in case.words if word.startswith(("--usermap", "--groupmap"))]
    chown = [word.partition("=")[2].partition(":") for word in case.words if word.startswith("--chown")]
    users = any(each[0] for each in chown) and any(word.startswith("--usermap") for word in words)
    return users or (any(each[2] for each in chown) and any(word.startswith("--groupmap") for word in words))


def _coarse(tree: Tree) -> bool:
    return all(node.mtime_ns % COARSE == 0 for node in tree.values())


def _set_in_turn(case: Case, *, apart: bool) -> bool:
    """Return whether names of one file at DST are to change: each run sets the file in an order of its own.
    `apart`: names become files of their own, but those of special files."""
    source, destination = case.scene.source, case.scene.destination
    groups: dict[bytes, list[bytes]] = {}
    for new, old in destination.links:
        groups.setdefault(old, [old]).append(new)
    chmod = any(word.startswith(("--chmod", *MAPPING)) for word in case.words)
    for old, names in groups.items():
        if apart and old not in dict(destination.specials):
            continue
        wanted = {name: _metadata(source, name) for name in names}
        given = [each for each in wanted.values() if each]
        if len(given) > 1 and (chmod or {*given, _metadata(destination, old)} != {given[0]}):
            return True
    return False


def _metadata(side: Side, path: bytes) -> tuple[object, ...]:
    """Metadata of the file with that name, whichever of its names they were given to; () where it is none."""
    first = dict(side.links)
    path = first.get(path, path)
    node = side.tree.get(path, dict(side.specials).get(path))
    if not isinstance(node, File | Special):
        return ()
    owners = {first.get(name, name): owner for name, owner in side.owners}
    attributes = {name: value for bearer, name, value in side.attributes if first.get(bearer, bearer) == path}
    return (node.mode, node.mtime_ns, owners.get(path, (0, 0)), tuple(sorted(attributes.items())))
