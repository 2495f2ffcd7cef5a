"""FilterList: which entries of a tree take part, by rsync's patterns matched in linear time."""

from __future__ import annotations

from rdc.errors import UsageError
from rdc.limits.paths import (
    FILTER_BYTES,
    FILTER_PATTERN_BYTES,
    FILTER_RULES,
    FILTER_WILD_RULES,
)
from rdc.model.filter_rules import FilterRule, RuleAction
from rdc.records import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Sequence

    from rdc.files.root.root import Root
    from rdc.tree.selection import Selection

__all__ = ["DestinationFilters", "FilterList", "FilteredTree", "check_rule_bounds"]


@dataclass(frozen=True, slots=True)
class FilteredTree:
    """The tree that rules are about."""

    root: Root
    top: bytes = b""
    """The one entry of the root that the tree is; b"" for all entries."""
    served: bytes | None = None
    """The absolute path of the root within a served directory; None if the root lies anywhere."""
    selection: Selection | None = None
    """What is selected of the tree; None for all of it."""


@dataclass(frozen=True, slots=True)
class DestinationFilters:
    """The rules of a run at its destination."""

    announced: FilterList
    """What these exclude, no honest source announces."""
    listed: FilterList
    """What these exclude, no comparison looks at."""
    protected: FilterList
    """What these exclude, is not deleted. They raise FileError for a rule file that cannot be read."""


class FilterList:
    """An ordered list of rules. The first rule that matches an entry decides; without a match the entry takes
    part.

    Paths are relative to the transfer root: names inside SRC for `SRC/`, and paths that begin with SRC's last
    component for `SRC`, as a pattern's leading '/' expects. Walks do not descend into an excluded directory,
    so nothing below it is tested. A rule with wildcards costs at most the path's length times the pattern's.
    All rules without wildcards together cost a few look-ups.
    """

    def __init__(self, rules: Sequence[FilterRule]) -> None:
        """Raises UsageError for an empty pattern or if a bound of rdc.limits is exceeded."""
        check_rule_bounds(rules)
        self._include = [rule.action is RuleAction.INCLUDE for rule in rules]
        self._wild: list[tuple[int, _WildRule]] = []
        self._whole = _Literals()
        self._tails: dict[int, _Literals] = {}
        for number, rule in enumerate(rules):
            self._add(number, rule.pattern)

    def __bool__(self) -> bool:
        """Whether there is any rule."""
        return bool(self._include)

    def excluded(self, path: bytes, is_directory: bool) -> bool:
        """Return whether `path` (relative, without trailing '/') is excluded. The root itself, b'', never
        is."""
        if not path:
            return False
        first = self._whole.first(path, is_directory)
        for components, literals in self._tails.items():
            first = min(first, literals.first(_tail(path, components), is_directory))
        for number, rule in self._wild:
            if number > first:
                break
            if rule.matches(path, is_directory):
                first = number
                break
        return first < len(self._include) and not self._include[first]

    def decision(self, path: bytes, is_directory: bool) -> bool | None:
        """Like `excluded`, but None if no rule matches. `path` is not empty."""
        # `excluded` runs for each entry of most runs with rules, so it calls no part that both could share.
        first = self._whole.first(path, is_directory)
        for components, literals in self._tails.items():
            first = min(first, literals.first(_tail(path, components), is_directory))
        for number, rule in self._wild:
            if number > first:
                break
            if rule.matches(path, is_directory):
                first = number
                break
        return not self._include[first] if first < len(self._include) else None

    def for_operands(self, root: Root, origin: bytes) -> FilterList:
        """The rules for selected names below the directory `origin` of `root`. No rule file counts there."""
        return self

    def at_source(self, tree: FilteredTree) -> FilterList:
        """The rules that say which entries of a tree take part. Raises UsageError for too many."""
        return self

    def at_destination(
        self, tree: FilteredTree, *, delete: bool, delete_excluded: bool
    ) -> DestinationFilters:
        """The rules as they count at the destination. Raises UsageError for too many."""
        listed = FilterList(()) if delete_excluded else self
        return DestinationFilters(announced=self, listed=listed, protected=listed)

    @property
    def movable(self) -> FilterList:
        """Excludes what is protected, and the rule files themselves: where they lie, they count."""
        return self

    @property
    def certain(self) -> FilterList:
        """What these exclude, is not deleted in any tree, if no --delete-excluded is given."""
        return self

    @property
    def emptied(self) -> FilterList:
        """The rules that protect entries of a directory that is being deleted."""
        return self

    def renew(self) -> None:
        """Forgets which rule files were read: from now on they count as they are at the next look."""

    def prepare(self, directory: bytes) -> None:
        """Called before a sync changes anything in `directory`: its rule files count as they are now."""

    @property
    def wild_rules(self) -> int:
        """The number of rules that cost a match for each entry."""
        return len(self._wild)

    def _add(self, number: int, pattern: bytes) -> None:
        directory_only = len(pattern) > 1 and pattern.endswith(b"/")
        if directory_only:
            pattern = pattern[:-1]
        if _is_wild(pattern):
            if len(self._wild) >= FILTER_WILD_RULES:
                raise UsageError(f"rdc takes at most {FILTER_WILD_RULES} filter rules with wildcards")
            self._wild.append((number, _wild_rule(pattern, directory_only)))
            return
        anchored = pattern.startswith(b"/")
        if anchored:
            literals = self._whole
            pattern = pattern[1:]
        else:
            literals = self._tails.setdefault(pattern.count(b"/") + 1, _Literals())
        literals.add(number, pattern, directory_only)


# No rule matched: larger than any rule's number.
_NONE = FILTER_RULES + 1


@dataclass(frozen=True, slots=True)
class _Literals:
    """Patterns without wildcards that are compared with the same part of a path, each with the number of its
    first rule."""

    any_kind: dict[bytes, int] = field(default_factory=dict)
    directories: dict[bytes, int] = field(default_factory=dict)

    def add(self, number: int, pattern: bytes, directory_only: bool) -> None:
        (self.directories if directory_only else self.any_kind).setdefault(pattern, number)

    def first(self, text: bytes, is_directory: bool) -> int:
        number = self.any_kind.get(text, _NONE)
        return min(number, self.directories.get(text, _NONE)) if is_directory else number


@dataclass(frozen=True, slots=True)
class _WildRule:
    regex: re.Pattern[bytes]
    components: int
    """How many of the path's last components the pattern is matched against; 0 means all."""
    directory_only: bool
    matches_inside: bool
    """Whether the pattern ends in '***', which matches the directory itself and everything below it."""

    def matches(self, path: bytes, is_directory: bool) -> bool:
        if self.directory_only and not is_directory:
            return False
        if self.components:
            # Without this check, a class that names '/' could match; rsync lets nothing match a separator.
            if path.count(b"/") + 1 < self.components:
                return False
            path = _tail(path, self.components)
        if self.matches_inside and is_directory:
            path += b"/"
        return self.regex.fullmatch(path) is not None


def _is_wild(pattern: bytes) -> bool:
    """Return whether rsync treats `pattern` as wildcards. Otherwise even a backslash stands for itself."""
    return any(ch in pattern for ch in (b"*", b"?", b"["))


def _wild_rule(pattern: bytes, directory_only: bool) -> _WildRule:
    # Imported here: loading regular expressions takes 2.5 ms, and most runs have no wildcards.
    from rdc.tree.wildcards import compile_wildcards

    matches_inside = pattern.endswith(b"***")
    crosses = b"**" in pattern
    floating = False
    components = 0
    if pattern.startswith(b"/"):
        pattern = pattern[1:]
    elif pattern.startswith(b"**"):
        # rsync lets '**/' match at the start of a path, as if the path began with '/'.
        if pattern.lstrip(b"*").startswith(b"/"):
            # `**/rest` matches `rest` after any '/' or at the start, which is what a floating `rest` does.
            anywhere = compile_wildcards(pattern.lstrip(b"*")[1:], floating=True)
            return _WildRule(anywhere, 0, directory_only, matches_inside)
    elif crosses:
        floating = True
    else:
        components = pattern.count(b"/") + 1
    return _WildRule(
        compile_wildcards(pattern, floating=floating), components, directory_only, matches_inside
    )


def _tail(path: bytes, components: int) -> bytes:
    """Return the last `components` components of `path`, or all of it if it has fewer."""
    if components == 1:
        return path[path.rfind(b"/") + 1 :]
    return b"/".join(path.split(b"/")[-components:])


def check_rule_bounds(rules: Sequence[FilterRule]) -> None:
    """Raise UsageError for an empty pattern or if a bound of rdc.limits is exceeded."""
    if len(rules) > FILTER_RULES:
        raise UsageError(f"{len(rules)} filter rules; rdc takes at most {FILTER_RULES}")
    total = 0
    for rule in rules:
        if not rule.pattern:
            raise UsageError("a filter rule has an empty pattern")
        if len(rule.pattern) > FILTER_PATTERN_BYTES:
            raise UsageError(
                f"a filter pattern has {len(rule.pattern)} bytes; rdc takes at most {FILTER_PATTERN_BYTES}: "
                f"{rule.pattern[:40]!r}..."
            )
        total += len(rule.pattern)
    if total > FILTER_BYTES:
        raise UsageError(f"filter patterns have {total} bytes together; rdc takes at most {FILTER_BYTES}")
