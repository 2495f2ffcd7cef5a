"""RuleMatcher: rules of any kind but per-directory ones, in order.

It is apart from FilterList, because most runs have plain rules, whose matching costs less.
"""

from __future__ import annotations

from rdc.model.selection import FilterRule, RuleAction
from rdc.tree.filters import FilterList, add_pattern, numbered
from rdc.tree.rule_table import NO_RULE, RuleTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["RuleMatcher"]


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
        """`base`: the absolute path of the tree's root. `real`: returns where an entry is below it; None: at
        its own path. `at`: the directory at which a leading '/' anchors, relative to the root; `from_top`:
        absolute, without its leading '/'. Raises UsageError if a bound of rdc.limits is exceeded."""
        super().__init__(rules)
        top = base.strip(b"/")
        self._prefix = top + b"/" if top else b""
        self._real = real
        self._at = at
        self._from_top = from_top
        self._tables: list[_Other] = []

    def __len__(self) -> int:
        """The number of rules."""
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
        """The table of the rules that begin with '/', and what of a path is left out for it."""
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
