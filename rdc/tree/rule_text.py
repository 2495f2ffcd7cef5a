"""RuleListBuilder: parses filter rules from --exclude, --include and --filter values and from rule files."""

from __future__ import annotations

import os
import re

from rdc.errors import UsageError
from rdc.limits.paths import FILTER_BYTES, FILTER_MERGE_DEPTH, FILTER_PATTERN_BYTES, FILTER_RULES
from rdc.model.sync import FilterRule, RuleAction
from rdc.tree.merge_rules import MergeRule, merge_rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["RuleListBuilder"]

_WORDS = {b"exclude": RuleAction.EXCLUDE, b"include": RuleAction.INCLUDE}
_PREFIXES = {b"- ": RuleAction.EXCLUDE, b"+ ": RuleAction.INCLUDE}
_NOT_THERE = {
    "dir-merge": "list the rules on the command line or in a merge file",
    "hide": "use --exclude",
    "show": "use --include",
    "protect": "use --exclude, which also keeps matching entries from being deleted",
    "risk": "use --include",
}
_LETTERS = {":": "dir-merge", "H": "hide", "S": "show", "P": "protect", "R": "risk"}


class RuleListBuilder:
    """Collects rules in the order given. The rule '!' removes all rules before it."""

    def __init__(self, read: Callable[[str], bytes]) -> None:
        """`read` returns the content of the file that a merge rule names, and may raise RdcError."""
        self._read = read
        self._rules: list[FilterRule] = []
        self._merged_bytes = 0

    def rules(self) -> tuple[FilterRule, ...]:
        return tuple(self._rules)

    def add_pattern(self, text: bytes, action: RuleAction) -> None:
        """Add a value of --exclude or --include. A prefix '+ ' or '- ' overrides the option, as in rsync.
        Raises UsageError."""
        if text == b"!":
            self._rules.clear()
            return
        prefixed = _PREFIXES.get(text[:2])
        if prefixed is not None:
            action, text = prefixed, text[2:]
            if not text:
                raise UsageError("a filter rule ends after its prefix; a pattern is expected")
        if text:
            self._rules.append(FilterRule(action, text))

    def add_filter(self, text: bytes) -> None:
        """Add a value of --filter: '+ PATTERN', '- PATTERN', 'include PATTERN', 'exclude PATTERN', '. FILE',
        'merge FILE' or '!'.

        '_' may replace the space, as in rsync. Raises UsageError for rsync's other rules and modifiers, and
        names them.
        """
        self._add_filter(text, f"--filter={_shown(text)}", depth=0)

    def _add_filter(self, text: bytes, where: str, *, depth: int) -> None:
        if text in (b"!", b"clear"):
            self._rules.clear()
            return
        merge = merge_rule(text, where)
        if merge is not None:
            self._merge(merge, where, depth + 1)
            return
        word = re.match(rb"[A-Za-z][A-Za-z-]+", text)
        if word is not None:
            name = word[0]
            if name.decode() in _NOT_THERE:
                raise _no_kind(where, name.decode())
            rule, rest = _WORDS.get(name), text[len(name) :]
        else:
            letter = text[:1].decode("latin-1")
            if letter in _LETTERS:
                raise _no_kind(where, _LETTERS[letter])
            rule, rest = _PREFIXES.get(text[:1] + b" "), text[1:]
        if rule is None:
            raise UsageError(f"{where}: not a filter rule; use '+ PATTERN' or '- PATTERN'")
        if rest[:1] not in (b" ", b"_", b""):
            raise UsageError(f"{where}: rdc has no rule modifiers; use '+ PATTERN' or '- PATTERN'")
        if len(rest) < 2:
            raise UsageError(f"{where}: the rule has no pattern")
        self._rules.append(FilterRule(rule, rest[1:]))

    def _merge(self, merge: MergeRule, where: str, depth: int) -> None:
        # A file that merges itself would never end.
        if depth > FILTER_MERGE_DEPTH:
            raise UsageError(f"{where}: merge files name each other more than {FILTER_MERGE_DEPTH} deep")
        name = os.fsdecode(merge.name)
        data = self._read(name)
        # Two merge rules in each file double the work with each level.
        self._merged_bytes += len(data)
        if self._merged_bytes > FILTER_BYTES:
            raise UsageError(f"{name}: merge files have more than {FILTER_BYTES} bytes together")
        if merge.leaves_itself_out:
            own = merge.name[merge.name.rfind(b"/") + 1 :]
            if own:
                self._rules.append(FilterRule(RuleAction.EXCLUDE, own))
        for number, text in merge.split(data):
            if len(self._rules) >= FILTER_RULES:
                raise UsageError(f"{name}: line {number}: rdc takes at most {FILTER_RULES} filter rules")
            if merge.action is None:
                self._add_filter(text, f"{name}: line {number}: {_shown(text)}", depth=depth)
            elif merge.clears and text == b"!":
                self._rules.clear()
            else:
                self._rules.append(FilterRule(merge.action, text))

    def add_lines(self, data: bytes, action: RuleAction, *, name: str) -> None:
        """Add the rules of an --exclude-from or --include-from file. Errors call the file `name`.

        Each line is one rule. Empty lines are ignored, as are lines that begin with ';' or '#'. Spaces are
        part of the pattern. Raises UsageError.
        """
        for number, line in enumerate(re.split(rb"[\r\n]", data), 1):
            if len(line) > FILTER_PATTERN_BYTES + 2:
                raise UsageError(f"{name}: line {number} has {len(line)} bytes; is this a list of patterns?")
            if line and line[:1] not in (b";", b"#"):
                self.add_pattern(line, action)


def _shown(text: bytes) -> str:
    return text[:80].decode("utf-8", "surrogateescape")


def _no_kind(where: str, name: str) -> UsageError:
    return UsageError(f"{where}: rdc has no '{name}' rules; {_NOT_THERE[name]}")
