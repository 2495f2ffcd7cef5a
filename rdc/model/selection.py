"""Selected paths: what several SRC, --relative or --files-from take, as names below directories."""

from __future__ import annotations

import os

from rdc.errors import UsageError, printable
from rdc.lean.checks import Checked, check_fields
from rdc.lean.enums import Enum
from rdc.lean.records import Record
from rdc.limits import NAME_BYTES, PATH_BYTES, PATH_DEPTH, SELECTED_BYTES, SELECTED_NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import TypeGuard


_NO_NAMES = frozenset((b"", b".", b".."))


class SelectedPaths(Record):
    """Names below one directory of the source."""

    origin: bytes
    """The directory, as its side takes it; b"" where only the names count, at the destination."""
    names: tuple[bytes, ...]
    """Paths below the directory, which are the paths at the destination, too. "." is the directory itself. A
    '/' at the end means the directory's contents, even without recursion. "./" in front means that the
    directory's own metadata count as well."""


class SelectedName(Record):
    """One name of SelectedPaths, read."""

    path: bytes
    """Empty for the directory itself."""
    contents: bool
    """True if its contents are meant, even without recursion."""
    with_top: bool
    """True if the metadata of the directory that it is below count."""


def read_name(name: bytes) -> SelectedName:
    """Read a name that `check_name` takes."""
    if name == b".":
        return SelectedName(b"", True, True)
    path = name.removeprefix(b"./")
    return SelectedName(path.removesuffix(b"/"), path.endswith(b"/"), len(path) < len(name))


def check_name(name: bytes) -> None:
    """Raise ValueError unless a name of SelectedPaths has plain components within the limits."""
    if name == b".":
        return
    components = name.removeprefix(b"./").removesuffix(b"/").split(b"/")
    if not _NO_NAMES.isdisjoint(components):
        raise ValueError(f"{printable(name[:NAME_BYTES])!r} is not a plain relative path")
    # A list may have a million names, nearly all of them short.
    if len(name) > NAME_BYTES and (
        len(name) > PATH_BYTES or len(components) > PATH_DEPTH or max(map(len, components)) > NAME_BYTES
    ):
        raise ValueError(f"a path of {len(name)} bytes and {len(components)} components is too long")


def select_operands(paths: Sequence[bytes], *, relative: bool) -> tuple[SelectedPaths, ...]:
    """Return the paths that SRC operands select, in their order. `relative`: they keep the path that the user
    wrote, or the part after "/./" in it, as in rsync. Raises UsageError for '..' in such a path."""
    return _joined(_relative(path) if relative else _plain(path) for path in paths)


def listed_names(text: bytes, *, nul: bool) -> tuple[bytes, ...]:
    """Return the paths of a list, one a line or, with `nul`, each ended by NUL. Empty ones and those that
    begin with '#' or ';' are comments, as in rsync. Raises UsageError for a NUL byte in a path, and for more
    lines than a run takes names."""
    count = text.count(b"\0") if nul else text.count(b"\n") + text.count(b"\r")
    if count > SELECTED_NAMES:
        raise UsageError(
            f"--files-from: {count:,} lines; {SELECTED_NAMES:,} are the most: name directories, or sync parts"
            " one by one"
        )
    lines = text.split(b"\0") if nul else text.replace(b"\r", b"\n").split(b"\n")
    names = tuple(line for line in lines if line and not line.startswith((b"#", b";")))
    for name in names:
        if b"\0" in name:
            shown = printable(name[:60])
            raise UsageError(f"--files-from: '{shown}' has a NUL byte; -0 reads lists whose paths NUL ends")
    return names


def select_listed(
    directory: bytes, names: Sequence[bytes], *, relative: bool = True
) -> tuple[SelectedPaths, ...]:
    """Return what a list of names below `directory` selects. `relative`: as in `select_operands`; without it,
    each entry loses the path above it. Raises UsageError for '..' in a name."""
    top = os.path.join(directory, b"")

    def chosen() -> Iterator[tuple[bytes, bytes]]:
        for name in names:
            inner = name.lstrip(b"/") or b"."
            if b".." in inner and b".." in inner.split(b"/"):
                raise UsageError(f"{printable(name)}: a listed name cannot have '..' in it; write it without")
            origin, one = _relative(inner) if relative else _plain(inner)
            # A name that is itself is kept once.
            yield top if origin == b"." else os.path.join(directory, origin), name if one == name else one

    return _joined(chosen())


def _plain(path: bytes) -> tuple[bytes, bytes]:
    above, name = os.path.split(path)
    if name in {b"", b".", b".."}:
        return path, b"."
    return above or b".", name


def _relative(path: bytes) -> tuple[bytes, bytes]:
    origin, mark, rest = path.partition(b"/./")
    if mark:
        origin = origin or b"/"
    else:
        origin, rest = (b"/" if path.startswith(b"/") else b"."), path
    contents = rest.endswith((b"/", b"/.")) or rest in {b"", b"."}
    components = [name for name in rest.split(b"/") if name not in {b"", b"."}]
    if b".." in components:
        raise UsageError(
            f"{printable(path)}: '..' cannot be part of a relative path; put /./ after it, or leave out -R"
        )
    if not components:
        return origin, b"."
    with_top = not mark and path.startswith(b"./")
    return origin, b"./" * with_top + b"/".join(components) + b"/" * contents


def _joined(chosen: Iterable[tuple[bytes, bytes]]) -> tuple[SelectedPaths, ...]:
    """Neighbours with one origin together. Their order stays: the first of several equal names wins."""
    found: list[tuple[bytes, list[bytes]]] = []
    for origin, name in chosen:
        if not found or found[-1][0] != origin:
            found.append((origin, []))
        found[-1][1].append(name)
    return tuple(SelectedPaths(origin, tuple(names)) for origin, names in found)


def check_bounds(selected: Sequence[SelectedPaths]) -> None:
    """Raise UsageError for more or longer names than a session takes."""
    count = sum(len(paths.names) for paths in selected)
    size = sum(len(paths.origin) + sum(map(len, paths.names)) for paths in selected)
    if count > SELECTED_NAMES or size > SELECTED_BYTES:
        raise UsageError(
            f"{count:,} names of {size:,} bytes are selected; {SELECTED_NAMES:,} names of"
            f" {SELECTED_BYTES:,} bytes are the most: name directories, or sync parts one by one"
        )
    for paths in selected:
        for name in paths.names:
            try:
                check_name(name)
            except ValueError as error:
                raise UsageError(f"a selected name: {error}") from error


# Filter rules: which entries of a tree take part, and which ones a sync may delete.


class RuleAction(Enum):
    """The action on an entry that a FilterRule matches.

    >>> import rdc
    >>> rdc.RuleAction("-")
    <RuleAction.EXCLUDE: '-'>
    """

    INCLUDE = "+"
    EXCLUDE = "-"


class RuleSide(Enum):
    """The side at which a rule counts. At the source an excluded entry is hidden. At the destination it is
    protected from deletion.

    >>> import rdc
    >>> rdc.RuleSide("r")
    <RuleSide.DESTINATION: 'r'>
    """

    DEFAULT = ""
    """Both sides; with `delete_excluded` only the source."""
    SOURCE = "s"
    DESTINATION = "r"
    BOTH = "sr"
    """Both sides, with `delete_excluded` too."""


class RuleModifiers(Checked, Record):
    """The modifiers of a FilterRule, besides action and pattern.

    >>> import rdc
    >>> rdc.RuleModifiers(side=rdc.RuleSide.DESTINATION).negated
    False
    """

    side: RuleSide = RuleSide.DEFAULT
    negated: bool = False
    """The rule matches each entry that the pattern does not match."""
    perishable: bool = False
    """The rule protects nothing in a directory that is being deleted."""
    absolute: bool = False
    """The pattern is compared with the path from the top of the file system, or of the served directory."""


_NO_MODIFIERS = RuleModifiers()
_RULE_TYPES = (RuleAction, bytes, RuleModifiers)


class FilterRule(Record):
    """One rule of an ordered list. The first rule that matches an entry decides; no match means include.

    >>> import rdc
    >>> rdc.FilterRule(rdc.RuleAction.EXCLUDE, b"*.o").pattern
    b'*.o'
    """

    action: RuleAction
    pattern: bytes
    """The pattern as in rsync: '*' stops at '/', '**' does not. A leading '/' anchors it at the root, and a
    trailing '/' restricts it to directories. With any other '/' it matches the tail of the whole path."""
    # One field for all, because a peer may send 65,536 rules, most of which have none.
    modifiers: RuleModifiers = _NO_MODIFIERS

    def __post_init__(self) -> None:
        # A list may have a million of them.
        if (type(self.action), type(self.pattern), type(self.modifiers)) != _RULE_TYPES:
            check_fields(self)

    @property
    def side(self) -> RuleSide:
        """The side at which the rule counts."""
        return self.modifiers.side


class RuleSyntax(Enum):
    """The syntax of the rule file of a directory.

    >>> import rdc
    >>> rdc.RuleSyntax(".")
    <RuleSyntax.RULES: '.'>
    """

    RULES = "."
    """Each line is a rule of --filter."""
    INCLUDE = "+"
    """Each line is a pattern to include."""
    EXCLUDE = "-"
    """Each line is a pattern to exclude."""
    GIT = "g"
    """The lines of a .gitignore. Only what they ignore is decided."""
    CACHE_TAG = "c"
    """A CACHEDIR.TAG: if it has its signature, everything beside it is excluded."""


class DirectoryRules(Checked, Record):
    """Rules that each directory has in a file of its own. They take this place in the list: those of the
    directory first, then those of the directories above it.

    >>> import rdc
    >>> rdc.DirectoryRules(b".rsync-filter").inherited
    True
    """

    name: bytes
    """The name of the file. It has no slash."""
    syntax: RuleSyntax = RuleSyntax.RULES
    side: RuleSide = RuleSide.DEFAULT
    """The side at which all rules of the files count; DEFAULT: each rule says it."""
    inherited: bool = True
    """True if the rules count below the directory of the file, too."""
    words: bool = False
    """True if spaces separate rules, too. Comments then have no meaning."""
    clears: bool = False
    """True if '!' removes the rules before it in a file of patterns."""
    perishable: bool = False
    absolute: bool = False
    above: bool = False
    """True if the files of the directories above the root count, too. A served directory bounds them."""


def are_plain(rules: Sequence[FilterRule | DirectoryRules]) -> TypeGuard[Sequence[FilterRule]]:
    """Return whether action and pattern say everything of all rules."""
    return all(
        type(rule) is FilterRule and (rule.modifiers is _NO_MODIFIERS or rule.modifiers == _NO_MODIFIERS)
        for rule in rules
    )


def has_rule_files(rules: Iterable[FilterRule | DirectoryRules]) -> bool:
    """Return whether some rules lie in files of the trees."""
    return any(type(rule) is DirectoryRules for rule in rules)
