"""RuleMatcher: rules of any kind but per-directory ones, in order.

It is apart from FilterList, because most runs have plain rules, whose matching costs less.
"""

from __future__ import annotations

from rdc.errors import UsageError
from rdc.limits.paths import FILTER_WILD_RULES
from rdc.model.filter_rules import FilterRule, RuleAction
from rdc.tree.filters import FilterList, check_rule_bounds

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
        check_rule_bounds(rules)
        self._rules = tuple(rules)
        self._base = base.strip(b"/")
        self._real = real
        self._parts: list[FilterList | _Special] = []
        self._wild_rules = 0
        plain: list[FilterRule] = []
        for rule in rules:
            pattern, absolute = rule.pattern, rule.modifiers.absolute
            if pattern.startswith(b"/") and not absolute:
                pattern, absolute = _anchored(at, pattern), from_top
            # rsync compares a pattern without '/' or '**' with the name alone.
            absolute &= b"/" in pattern[:-1] or b"**" in pattern
            if rule.modifiers.negated or absolute:
                self._end_run(plain)
                plain = []
                self._parts.append(self._special(rule, pattern, absolute=absolute))
                self._wild_rules += 1
            else:
                plain.append(FilterRule(rule.action, pattern))
        self._end_run(plain)
        if self._wild_rules > FILTER_WILD_RULES:
            raise UsageError(
                f"rdc takes at most {FILTER_WILD_RULES} filter rules with wildcards or modifiers"
            )

    def _end_run(self, rules: list[FilterRule]) -> None:
        if rules:
            run = FilterList(rules)
            self._wild_rules += run.wild_rules
            self._parts.append(run)

    def _special(self, rule: FilterRule, pattern: bytes, *, absolute: bool) -> _Special:
        prefix = self._base + b"/" if absolute and self._base else b""
        matcher = FilterList((FilterRule(RuleAction.EXCLUDE, pattern),))
        excludes = rule.action is RuleAction.EXCLUDE
        real = self._real if absolute else None
        return _Special(matcher, prefix, real, negated=rule.modifiers.negated, excludes=excludes)

    def __bool__(self) -> bool:
        return bool(self._rules)

    def __len__(self) -> int:
        """The number of rules."""
        return len(self._rules)

    @property
    def wild_rules(self) -> int:
        return self._wild_rules

    def excluded(self, path: bytes, is_directory: bool) -> bool:
        return bool(path) and bool(self.decision(path, is_directory))

    def decision(self, path: bytes, is_directory: bool) -> bool | None:
        for part in self._parts:
            decision = part.decision(path, is_directory)
            if decision is not None:
                return decision
        return None


class _Special:
    """One rule that is negated, or compared with the absolute path."""

    __slots__ = ("_excludes", "_matcher", "_negated", "_prefix", "_real")

    def __init__(
        self,
        matcher: FilterList,
        prefix: bytes,
        real: Callable[[bytes], bytes] | None,
        *,
        negated: bool,
        excludes: bool,
    ) -> None:
        self._matcher = matcher
        self._prefix = prefix
        self._real = real
        self._negated = negated
        self._excludes = excludes

    def decision(self, path: bytes, is_directory: bool) -> bool | None:
        whole = path if self._real is None else self._real(path)
        matches = self._matcher.excluded(self._prefix + whole, is_directory)
        return None if matches is self._negated else self._excludes


_WILD = b"*?["


def _anchored(at: bytes, pattern: bytes) -> bytes:
    """A pattern that begins with '/', which stands for the directory `at`, as one of the whole tree."""
    if not at:
        return pattern
    if not any(code in _WILD for code in at + pattern):
        return b"/" + at + pattern
    own = pattern if any(code in _WILD for code in pattern) else _escaped(pattern)
    return b"/" + _escaped(at) + own


def _escaped(text: bytes) -> bytes:
    return b"".join(b"\\" + bytes([code]) if code in b"\\*?[" else bytes([code]) for code in text)
