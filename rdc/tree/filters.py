"""FilterList: which entries of a tree take part, by rsync's patterns matched in linear time."""

from __future__ import annotations

from rdc.errors import UsageError
from rdc.lean.records import dataclass
from rdc.limits.wire import (
    FILTER_BYTES,
    FILTER_PATTERN_BYTES,
    FILTER_RULES,
    FILTER_WILD_BYTES,
)
from rdc.model.selection import FilterRule, RuleAction, are_plain
from rdc.tree.rule_table import NO_RULE, RuleTable, is_wild

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.files.root.root import Root
    from rdc.tree.selection import Selection

_ADVICE = "exclude directories rather than what is in them, or sync parts one by one"

MOST_RULES = f"{FILTER_RULES:,} filter rules are the most: {_ADVICE}"
"""What is said of more rules than a run takes."""

__all__ = [
    "MOST_RULES",
    "DestinationFilters",
    "FilterList",
    "FilteredTree",
    "add_pattern",
    "check_rule_bounds",
    "numbered",
]


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
    so nothing below it is tested. All rules without wildcards together cost a few look-ups. All others
    together cost a pass over their bytes, divided by 64, for each byte of an entry's name.
    """

    def __init__(self, rules: Sequence[FilterRule]) -> None:
        """Raises UsageError for an empty pattern or if a bound of rdc.limits is exceeded."""
        self.wild_bytes = check_rule_bounds(rules)
        """Bytes of the patterns that no look-up finds."""
        self._rules = rules
        self._table: RuleTable | None = None

    def __bool__(self) -> bool:
        """Whether there is any rule."""
        return bool(self._rules)

    def excluded(self, path: bytes, is_directory: bool) -> bool:
        """Return whether `path` (relative, without trailing '/') is excluded. The root itself, b'', never
        is."""
        if not path:
            return False
        table = self._table or self._built()
        first = table.first(path, is_directory)
        return first != NO_RULE and self._rules[first].action is RuleAction.EXCLUDE

    def decision(self, path: bytes, is_directory: bool) -> bool | None:
        """Like `excluded`, but None if no rule matches. `path` is not empty."""
        table = self._table or self._built()
        first = table.first(path, is_directory)
        return None if first == NO_RULE else self._rules[first].action is RuleAction.EXCLUDE

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

    def _built(self) -> RuleTable:
        """Make the table. It is made when it is needed: a run has lists that it only checks, or passes on."""
        table = RuleTable()
        for number, rule in numbered(self._rules):
            add_pattern(table, number, rule.pattern)
        self._table = table
        return table


def numbered(rules: Sequence[FilterRule]) -> Iterator[tuple[int, FilterRule]]:
    """Yield each rule with the number of the first one in its run of equal actions. It decides alike, and a
    list of a million rules has few numbers in memory."""
    first, action = 0, None
    for number, rule in enumerate(rules):
        if rule.action is not action:
            first, action = number, rule.action
        yield first, rule


def add_pattern(
    table: RuleTable, number: int, pattern: bytes, *, absolute: bool = False, negated: bool = False
) -> None:
    """Add a pattern of rsync's kind. `absolute`: it is compared with the path after the table's prefix.
    `negated`: it matches what it would not."""
    directory_only = len(pattern) > 1 and pattern.endswith(b"/")
    if directory_only:
        pattern = pattern[:-1]
    anchored = pattern.startswith(b"/")
    if not (is_wild(pattern) or negated):
        text = pattern[1:] if anchored else pattern
        if absolute and anchored:
            if not text.startswith(table.prefix):
                return  # of something that is not below the root
            text = text[len(table.prefix) :]
        if anchored or not absolute:
            table.add_literal(number, text, anchored=anchored, directory_only=directory_only)
            return
    # Imported here: most runs have no wildcards.
    from rdc.kernel import PatternSet

    kind = 0
    if directory_only:
        kind |= PatternSet.DIRECTORY
    if absolute:
        kind |= PatternSet.ABSOLUTE
    if negated:
        kind |= PatternSet.NEGATED
    if not is_wild(pattern):
        kind |= PatternSet.LITERAL
    elif pattern.endswith(b"***"):
        # It matches a directory itself, and everything below it.
        kind |= PatternSet.INSIDE
    if anchored:
        pattern = pattern[1:]
    elif kind & PatternSet.LITERAL or b"**" not in pattern:
        kind |= PatternSet.TAIL
    elif not pattern.startswith(b"**"):
        kind |= PatternSet.ANYWHERE
    elif pattern.lstrip(b"*").startswith(b"/"):
        # rsync lets '**/' match at the start of a path, as if the path began with '/'.
        kind |= PatternSet.ANYWHERE
        pattern = pattern.lstrip(b"*")[1:]
    table.add_wild(number, pattern, kind)


def check_rule_bounds(rules: Sequence[FilterRule]) -> int:
    """Return the bytes of the patterns with wildcards or modifiers. Raise UsageError for an empty pattern or
    if a bound of rdc.limits is exceeded."""
    if len(rules) > FILTER_RULES:
        raise UsageError(MOST_RULES)
    patterns = [rule.pattern for rule in rules]
    sizes = list(map(len, patterns))
    if not all(sizes):
        raise UsageError("a filter rule has an empty pattern")
    if sizes and max(sizes) > FILTER_PATTERN_BYTES:
        longest = max(patterns, key=len)
        raise UsageError(
            f"a filter pattern has {len(longest):,} bytes; {FILTER_PATTERN_BYTES:,} are the most:"
            f" {longest[:40]!r}..."
        )
    if sum(sizes) > FILTER_BYTES:
        raise UsageError(
            f"filter patterns have {sum(sizes):,} bytes together; {FILTER_BYTES:,} are the most: {_ADVICE}"
        )
    plain = not is_wild(b"".join(patterns)) and are_plain(rules)
    wild = 0 if plain else sum(len(rule.pattern) + 1 for rule in rules if _needs_automaton(rule))
    if wild > FILTER_WILD_BYTES:
        raise UsageError(
            f"filter patterns with wildcards or modifiers have {wild:,} bytes together; {FILTER_WILD_BYTES:,}"
            " are the most: use fewer of them, or patterns without wildcards, of which a run takes more"
        )
    return wild


def _needs_automaton(rule: FilterRule) -> bool:
    return is_wild(rule.pattern) or rule.modifiers.negated or rule.modifiers.absolute
