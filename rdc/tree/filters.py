"""FilterList: which entries of a tree take part, by rsync's patterns matched in linear time."""

from __future__ import annotations

from rdc.errors import UsageError
from rdc.lean.records import Record
from rdc.limits import FILTER_BYTES, FILTER_PATTERN_BYTES, FILTER_RULES, FILTER_WILD_BYTES
from rdc.model.selection import DirectoryRules, FilterRule, RuleAction, RuleSide, RuleSyntax, are_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TypeAlias

    from rdc.files.root.root import Root
    from rdc.kernel import PatternSet
    from rdc.tree.selection import Selection


# Which rules of a list count where: at the source, at the destination, and for what the source announces.

Rule: TypeAlias = "FilterRule | DirectoryRules"


def source_rules(rules: Iterable[Rule]) -> list[Rule]:
    """Return the rules that count at the source, where they say which entries take part."""
    return [rule for rule in rules if rule.side is not RuleSide.DESTINATION]


def destination_rules(rules: Iterable[Rule], *, delete_excluded: bool, emptied: bool = False) -> list[Rule]:
    """Return the rules that count at the destination, where they say which entries stay.

    `emptied`: without the perishable ones, which protect nothing in a directory that is being deleted.
    """
    found: list[Rule] = []
    for rule in rules:
        # Rules in a file may name their sides themselves.
        mixed = isinstance(rule, DirectoryRules) and rule.syntax is RuleSyntax.RULES
        hides_only = rule.side is RuleSide.DEFAULT and delete_excluded and not mixed
        if rule.side is not RuleSide.SOURCE and not hides_only and not (emptied and _perishes(rule)):
            found.append(rule)
    return found


def _perishes(rule: Rule) -> bool:
    return rule.perishable if isinstance(rule, DirectoryRules) else rule.modifiers.perishable


def provable_rules(rules: Iterable[Rule]) -> list[FilterRule]:
    """Return the rules before the first one that depends on files or on absolute paths: what these exclude is
    excluded in every tree."""
    found: list[FilterRule] = []
    for rule in rules:
        if isinstance(rule, DirectoryRules):
            break
        if not rule.modifiers.absolute:
            found.append(rule)
        elif rule.action is RuleAction.INCLUDE:
            break
    return found


# RuleScope: the directories of a tree whose own rule files count.


class RuleScope:
    """Rule files apply to what is synced, and below it, as in rsync.

    They do not count in the directory above SRC without a trailing slash.
    """

    def __init__(self, tree: FilteredTree) -> None:
        self._top = tree.top
        self._selection = tree.selection
        self._real = None if tree.selection is None else tree.root.real

    @property
    def real(self) -> Callable[[bytes], bytes] | None:
        """Returns where an entry is below the tree's root; None: at its own path."""
        return self._real

    def counts(self, directory: bytes) -> bool:
        """Return whether the rule files of a directory count."""
        if self._selection is not None:
            return self._selection.has_rules(directory)
        return bool(directory) or not self._top

    def begins(self, directory: bytes) -> bool:
        """Return whether a directory whose files count has none above it whose files count."""
        return not directory or not self.counts(directory.rpartition(b"/")[0])


# RuleTable: numbered patterns, and the number of the first one that matches a path.
#
# A pattern without wildcards is a look-up by the path or by its last components. All others are one automaton
# (rdc.kernel.PatternSet), whose work is linear in the name of the entry. So the order of the patterns decides
# what matches, and not what it costs.

NO_RULE = 1 << 62
"""No pattern matches: larger than any number."""


class _Literals:
    """Patterns without wildcards that are compared with the same part of a path, each with its number."""

    __slots__ = ("any_kind", "directories")

    def __init__(self) -> None:
        self.any_kind: dict[bytes, int] = {}
        self.directories: dict[bytes, int] = {}

    def first(self, text: bytes, is_directory: bool) -> int:
        number = self.any_kind.get(text, NO_RULE)
        return min(number, self.directories.get(text, NO_RULE)) if is_directory else number


class RuleTable:
    """Patterns are added in ascending order of their numbers, before the first look-up."""

    def __init__(self, prefix: bytes = b"") -> None:
        """`prefix`: stands in front of each path for patterns that are ABSOLUTE; it is empty or ends in
        '/'."""
        self.prefix = prefix
        self._whole = _Literals()
        self._tails: dict[int, _Literals] = {}
        """By the number of the components that they are compared with."""
        self._counts: list[int] = []
        """The numbers in ascending order."""
        self._numbers: list[int] = []
        self._patterns: list[bytes] = []
        self._kinds = bytearray()
        self._set: PatternSet | None = None

    @property
    def filled(self) -> bool:
        """Return whether there is any pattern."""
        return bool(self._whole.any_kind or self._whole.directories or self._tails or self._patterns)

    def add_literal(self, number: int, text: bytes, *, anchored: bool, directory_only: bool) -> None:
        """Add a pattern without wildcards. `anchored`: it is compared with the whole path, else with as many
        of the last components as it has."""
        if anchored:
            literals = self._whole
        else:
            count = text.count(b"/") + 1
            if count not in self._tails:
                self._tails[count] = _Literals()
                self._counts = sorted(self._tails)
            literals = self._tails[count]
        (literals.directories if directory_only else literals.any_kind).setdefault(text, number)

    def add_wild(self, number: int, pattern: bytes, kind: int) -> None:
        """Add a pattern for the automaton. `kind`: a sum of what PatternSet names."""
        self._numbers.append(number)
        self._patterns.append(pattern)
        self._kinds.append(kind)

    def first(self, path: bytes, is_directory: bool) -> int:
        """Return the number of the first pattern that matches, or NO_RULE. `path` is not empty."""
        first = self._whole.first(path, is_directory)
        at, passed = len(path), 0
        for count in self._counts:
            while passed < count and at >= 0:
                at = path.rfind(b"/", 0, at)
                passed += 1
            first = min(first, self._tails[count].first(path[at + 1 :], is_directory))
            if at < 0:
                break  # the path has no more components
        if self._patterns:
            place = (self._set or self._automaton()).first(path, is_directory)
            if place >= 0:
                first = min(first, self._numbers[place])
        return first

    def _automaton(self) -> PatternSet:
        # Imported here: most runs have no wildcards.
        from rdc.kernel import PatternSet

        self._set = PatternSet(self._patterns, self._kinds, self.prefix)
        return self._set


def is_wild(pattern: bytes) -> bool:
    """Return whether rsync treats `pattern` as wildcards. Otherwise even a backslash stands for itself."""
    return b"*" in pattern or b"?" in pattern or b"[" in pattern


_ADVICE = "exclude directories rather than what is in them, or sync parts one by one"

MOST_RULES = f"{FILTER_RULES:,} filter rules are the most: {_ADVICE}"
"""The message about more rules than a run takes."""


class FilteredTree(Record):
    """The tree that rules are about."""

    root: Root
    top: bytes = b""
    """The one entry of the root that the tree is; b"" for all entries."""
    served: bytes | None = None
    """The absolute path of the root within a served directory; None if the root lies anywhere."""
    selection: Selection | None = None
    """The selection from the tree; None for all of it."""


class DestinationFilters(Record):
    """The rules of a run at its destination."""

    announced: FilterList
    """The rules that exclude entries which no honest source announces."""
    listed: FilterList
    """The rules that exclude entries from comparisons."""
    protected: FilterList
    """The rules that protect entries from deletion. They raise FileError for a rule file that cannot be read.
    """


class FilterList:
    """An ordered list of rules. The first rule that matches an entry decides; without a match the entry takes
    part.

    Paths are relative to the transfer root: names inside SRC for `SRC/`, and paths that begin with SRC's last
    component for `SRC`, as a pattern's leading '/' expects. Walks do not descend into an excluded directory,
    so nothing below it is tested. All rules without wildcards together cost a few look-ups. All others
    together cost a pass over their bytes, divided by 64, for each byte of an entry's name.
    """

    def __init__(self, rules: Sequence[FilterRule]) -> None:
        """Check `rules`. Raises UsageError for an empty pattern or if a bound of rdc.limits is exceeded."""
        self.wild_bytes = check_rule_bounds(rules)
        """Bytes of the patterns that no look-up finds."""
        self._rules = rules
        self._table: RuleTable | None = None

    def __bool__(self) -> bool:
        """Return whether there is any rule."""
        return bool(self._rules)

    def excluded(self, path: bytes, is_directory: bool) -> bool:
        """Return whether `path` (relative, without trailing '/') is excluded. The root itself, b'', never
        is."""
        if not path or not self._rules:
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
        """Return the rules for selected names below the directory `origin` of `root`. No rule file counts
        there."""
        return self

    def at_source(self, tree: FilteredTree) -> FilterList:
        """Return the rules that say which entries of a tree take part. Raises UsageError for too many."""
        return self

    def at_destination(
        self, tree: FilteredTree, *, delete: bool, delete_excluded: bool
    ) -> DestinationFilters:
        """Return the rules as they count at the destination. Raises UsageError for too many."""
        listed = FilterList(()) if delete_excluded else self
        return DestinationFilters(announced=self, listed=listed, protected=listed)

    @property
    def movable(self) -> FilterList:
        """Excludes what is protected, and the rule files themselves: where they lie, they count."""
        return self

    @property
    def certain(self) -> FilterList:
        """The rules that certainly exclude: an entry that they exclude is not deleted in any tree, if no
        --delete-excluded is given."""
        return self

    @property
    def emptied(self) -> FilterList:
        """The rules that protect entries of a directory that is being deleted."""
        return self

    def renew(self) -> None:
        """Forget which rule files were read: from now on they count as they are at the next look."""

    def prepare(self, directory: bytes) -> None:
        """Read the rule files of `directory` before a sync changes anything there: they apply as they are
        now."""

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


# RuleMatcher: rules of any kind but per-directory ones, in order.
#
# It is apart from FilterList, because most runs have plain rules, whose matching costs less.


class RuleMatcher(FilterList):
    """Rules of one side, with their modifiers. The first rule that matches an entry decides."""

    def __init__(
        self,
        rules: Sequence[FilterRule],
        *,
        base: bytes = b"/",
        real: Callable[[bytes], bytes] | None = None,
        at: bytes = b"",
        from_top: bool = False,
    ) -> None:
        """Take `base`: the absolute path of the tree's root. `real` returns where an entry is below it; None:
        at its own path. `at`: the directory at which a leading '/' anchors, relative to the root; `from_top`:
        absolute, without its leading '/'. Raises UsageError if a bound of rdc.limits is exceeded."""
        super().__init__(rules)
        top = base.strip(b"/")
        self._prefix = top + b"/" if top else b""
        self._real = real
        self._at = at
        self._from_top = from_top
        self._tables: list[_Other] = []

    def __len__(self) -> int:
        """Return the number of rules."""
        return len(self._rules)

    def excluded(self, path: bytes, is_directory: bool) -> bool:
        return bool(path) and bool(self.decision(path, is_directory))

    def decision(self, path: bytes, is_directory: bool) -> bool | None:
        table = self._table or self._built()
        first = table.first(path, is_directory)
        for other in self._tables:
            first = min(first, other.first(path, is_directory))
        return None if first == NO_RULE else self._rules[first].action is RuleAction.EXCLUDE

    def _built(self) -> RuleTable:
        table = RuleTable(self._prefix)
        absolute = table if self._real is None else RuleTable(self._prefix)
        below, anchored = self._anchored(table, absolute)
        for number, rule in numbered(self._rules):
            # rsync compares a pattern without '/' or '**' with the name alone.
            is_absolute = rule.modifiers.absolute and (b"/" in rule.pattern[:-1] or b"**" in rule.pattern)
            chosen = absolute if is_absolute else table
            if rule.pattern.startswith(b"/") and not rule.modifiers.absolute:
                chosen, is_absolute = anchored, self._from_top
            add_pattern(chosen, number, rule.pattern, absolute=is_absolute, negated=rule.modifiers.negated)
        if absolute is not table and absolute.filled:
            self._tables.append(_Other(absolute, b"", self._real))
        if anchored not in (table, absolute) and anchored.filled:
            self._tables.append(_Other(anchored, below, self._real if self._from_top else None))
        self._table = table
        return table

    def _anchored(self, table: RuleTable, absolute: RuleTable) -> tuple[bytes, RuleTable]:
        """Return the table of the rules that begin with '/', and what of a path is left out for it."""
        if not self._at:
            return b"", absolute if self._from_top else table
        above = self._at + b"/"
        if not self._from_top:
            return above, RuleTable()
        if self._prefix.startswith(above):
            return b"", RuleTable(self._prefix[len(above) :])
        return above[len(self._prefix) :], RuleTable()


class _Other:
    """Rules that are compared with another path than the entry's."""

    __slots__ = ("_below", "_real", "_table")

    def __init__(self, table: RuleTable, below: bytes, real: Callable[[bytes], bytes] | None) -> None:
        """`real`: returns the path that is compared; None: the entry's. `below`: how it begins, which is not
        compared; what does not begin so matches no rule."""
        self._table = table
        self._below = below
        self._real = real

    def first(self, path: bytes, is_directory: bool) -> int:
        text = path if self._real is None else self._real(path)
        if self._below:
            if not text.startswith(self._below):
                return NO_RULE
            text = text[len(self._below) :]
        return self._table.first(text, is_directory)
