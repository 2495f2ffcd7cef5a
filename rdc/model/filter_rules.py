"""Filter rules: which entries of a tree take part, and which ones a sync may delete."""

from __future__ import annotations

from enum import Enum

from rdc.lean.checks import check_fields
from rdc.lean.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "DirectoryRules",
    "FilterRule",
    "RuleAction",
    "RuleModifiers",
    "RuleSide",
    "RuleSyntax",
    "are_plain",
    "has_rule_files",
]


class RuleAction(Enum):
    """What happens to an entry that a FilterRule matches.

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


@dataclass(frozen=True, slots=True)
class RuleModifiers:
    """What a FilterRule says besides action and pattern.

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

    def __post_init__(self) -> None:
        check_fields(self)


_NO_MODIFIERS = RuleModifiers()
_RULE_TYPES = (RuleAction, bytes, RuleModifiers)


@dataclass(frozen=True, slots=True)
class FilterRule:
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
    """How the rule file of a directory is read.

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


@dataclass(frozen=True, slots=True)
class DirectoryRules:
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
    """Whether the rules count below the directory of the file, too."""
    words: bool = False
    """Whether spaces separate rules, too. Comments then have no meaning."""
    clears: bool = False
    """Whether '!' removes the rules before it in a file of patterns."""
    perishable: bool = False
    absolute: bool = False
    above: bool = False
    """Whether the files of the directories above the root count, too. A served directory bounds them."""

    def __post_init__(self) -> None:
        check_fields(self)


def are_plain(rules: Iterable[FilterRule | DirectoryRules]) -> bool:
    """Whether action and pattern say everything of all rules."""
    return all(
        type(rule) is FilterRule and (rule.modifiers is _NO_MODIFIERS or rule.modifiers == _NO_MODIFIERS)
        for rule in rules
    )


def has_rule_files(rules: Iterable[FilterRule | DirectoryRules]) -> bool:
    """Whether some rules lie in files of the trees."""
    return any(type(rule) is DirectoryRules for rule in rules)
