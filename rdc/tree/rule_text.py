"""RuleListBuilder: parses filter rules from --exclude, --include and --filter values and from rule files."""

from __future__ import annotations

import os
import re

from rdc.errors import UsageError
from rdc.limits.wire import (
    FILTER_BYTES,
    FILTER_DIRECTORY_RULES,
    FILTER_MERGE_DEPTH,
    FILTER_PATTERN_BYTES,
    FILTER_RULES,
)
from rdc.model.selection import DirectoryRules, FilterRule, RuleAction
from rdc.tree.filters import MOST_RULES
from rdc.tree.rule_syntax import CLEAR, CvsRules, MergeRule, ParsedRule, RuleDefaults, parse_rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["RuleListBuilder"]

_PREFIXES = {b"- ": RuleAction.EXCLUDE, b"+ ": RuleAction.INCLUDE}
_FIRST_BYTES = b"+-!"
"""With which a line may begin that is more than a pattern."""
_COMMENTS = b";#"
_PLAIN = RuleDefaults()


class RuleListBuilder:
    """Collects rules in the order given. The rule '!' removes all rules before it."""

    def __init__(
        self,
        read: Callable[[str], bytes],
        *,
        cvs: Callable[[RuleDefaults], Iterable[FilterRule]] | None = None,
        known: Iterable[DirectoryRules] = (),
        quotes: bool = True,
    ) -> None:
        """`read` returns the content of the file that a merge rule names, and may raise RdcError. `cvs`
        returns the rules that '-C' stands for. `known`: per-directory rules that hold already. `quotes`:
        whether messages quote the rule that is wrong."""
        self._read = read
        self._cvs = cvs
        self._rules: list[FilterRule | DirectoryRules] = []
        self._known = {rules.name for rules in known}
        self._merged_bytes = 0
        self._quotes = quotes
        self.cleared = False
        """Whether a '!' was there."""

    def rules(self) -> tuple[FilterRule | DirectoryRules, ...]:
        return tuple(self._rules)

    def add_pattern(self, text: bytes, action: RuleAction) -> None:
        """Add a value of --exclude or --include. A prefix '+ ' or '- ' overrides the option, as in rsync.
        Raises UsageError."""
        if text == b"!":
            self._clear()
            return
        prefixed = _PREFIXES.get(text[:2])
        if prefixed is not None:
            action, text = prefixed, text[2:]
            if not text:
                raise UsageError("a filter rule ends after its prefix; a pattern is expected")
        if text:
            self._rules.append(FilterRule(action, text))

    def add_filter(self, text: bytes) -> None:
        """Add a value of --filter: a name or letter of a rule, modifiers, a space, and a pattern or a file.

        '_' may replace the space, as in rsync. Raises UsageError, which names the rule.
        """
        self._add_text(text, f"--filter={_shown(text)}", _PLAIN, depth=0)

    def add_file(self, data: bytes, defaults: RuleDefaults, *, name: str, depth: int = 0) -> None:
        """Add the rules in `data`, the content of the file that messages call `name`. Raises UsageError."""
        # Two merge rules in each file double the work with each level.
        self._merged_bytes += len(data)
        if self._merged_bytes > FILTER_BYTES:
            raise UsageError(
                f"{name}: merge files have more than {FILTER_BYTES:,} bytes together, which are the most"
            )
        for number, text in defaults.split(data):
            where = f"{name}: line {number}"
            if len(self._rules) >= FILTER_RULES:
                raise UsageError(f"{where}: {MOST_RULES}")
            if defaults.action is None:
                quoted = f"{where}: {_shown(text)}" if self._quotes else where
                self._add_text(text, quoted, defaults, depth=depth)
            elif defaults.clears and text == b"!":
                self._clear()
            else:
                self._rules.append(defaults.pattern_rule(text))

    def _add_text(self, text: bytes, where: str, defaults: RuleDefaults, *, depth: int) -> None:
        for rule in parse_rule(text, where, defaults):
            self._add(rule, where, depth)

    def _add(self, rule: ParsedRule, where: str, depth: int) -> None:
        if rule is CLEAR:
            self._clear()
        elif isinstance(rule, MergeRule):
            self._merge(rule, where, depth + 1)
        elif isinstance(rule, CvsRules):
            if self._cvs is None:
                raise UsageError(
                    f"{where}: the list of CVS stands only on the command line or in a merge file"
                )
            self._rules += self._cvs(rule.defaults)
        elif isinstance(rule, DirectoryRules):
            self.add_directory_rules(rule, where)
        elif isinstance(rule, FilterRule):
            self._rules.append(rule)

    def add_directory_rules(self, rules: DirectoryRules, where: str) -> None:
        """Add per-directory rules, unless files of that name are read already. Raises UsageError."""
        if rules.name in self._known:
            return
        if len(self._known) >= FILTER_DIRECTORY_RULES:
            raise UsageError(
                f"{where}: rdc takes at most {FILTER_DIRECTORY_RULES} kinds of per-directory files"
            )
        self._known.add(rules.name)
        self._rules.append(rules)

    def _clear(self) -> None:
        self._known -= {rule.name for rule in self._rules if isinstance(rule, DirectoryRules)}
        self._rules.clear()
        self.cleared = True

    def _merge(self, merge: MergeRule, where: str, depth: int) -> None:
        # A file that merges itself would never end.
        if depth > FILTER_MERGE_DEPTH:
            raise UsageError(f"{where}: merge files name each other more than {FILTER_MERGE_DEPTH} deep")
        name = os.fsdecode(merge.name)
        data = self._read(name)
        self._rules += merge.own_exclusion
        self.add_file(data, merge.defaults, name=name, depth=depth)

    def add_lines(self, data: bytes, action: RuleAction, *, name: str) -> None:
        """Add the rules of an --exclude-from or --include-from file. Errors call the file `name`.

        Each line is one rule. Empty lines are ignored, as are lines that begin with ';' or '#'. Spaces are
        part of the pattern. Raises UsageError.
        """
        rules = self._rules
        for number, line in enumerate(re.split(rb"[\r\n]", data), 1):
            if len(line) > FILTER_PATTERN_BYTES + 2:
                raise UsageError(f"{name}: line {number} has {len(line)} bytes; is this a list of patterns?")
            if not line or line[0] in _COMMENTS:
                continue
            if len(rules) >= FILTER_RULES:
                raise UsageError(f"{name}: line {number}: {MOST_RULES}")
            if line[0] in _FIRST_BYTES:
                self.add_pattern(line, action)
            else:
                rules.append(FilterRule(action, line))


def _shown(text: bytes) -> str:
    return text[:80].decode("utf-8", "surrogateescape")
