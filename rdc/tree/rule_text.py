"""RuleListBuilder: parses filter rules from --exclude, --include and --filter values and from rule files."""

from __future__ import annotations

import re

from rdc.errors import UsageError
from rdc.limits.paths import FILTER_PATTERN_BYTES
from rdc.model.sync import FilterRule, RuleAction

__all__ = ["RuleListBuilder"]

_WORDS = {b"exclude": RuleAction.EXCLUDE, b"include": RuleAction.INCLUDE}
_PREFIXES = {b"- ": RuleAction.EXCLUDE, b"+ ": RuleAction.INCLUDE}
_NOT_THERE = {
    "merge": "use --exclude-from=FILE or --include-from=FILE",
    "dir-merge": "list the rules on the command line or in --exclude-from=FILE",
    "hide": "use --exclude",
    "show": "use --include",
    "protect": "use --exclude, which also keeps matching entries from being deleted",
    "risk": "use --include",
}
_LETTERS = {".": "merge", ":": "dir-merge", "H": "hide", "S": "show", "P": "protect", "R": "risk"}


class RuleListBuilder:
    """Collects rules in the order given. The rule '!' removes all rules before it."""

    def __init__(self) -> None:
        self._rules: list[FilterRule] = []

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
        """Add a value of --filter: '+ PATTERN', '- PATTERN', 'include PATTERN', 'exclude PATTERN' or '!'.

        '_' may replace the space, as in rsync. Raises UsageError for rsync's other rules and modifiers, and
        names them.
        """
        if text in (b"!", b"clear"):
            self._rules.clear()
            return
        shown = text[:80].decode("utf-8", "surrogateescape")
        word = re.match(rb"[A-Za-z][A-Za-z-]+", text)
        if word is not None:
            name = word[0]
            if name.decode() in _NOT_THERE:
                raise _no_kind(shown, name.decode())
            rule, rest = _WORDS.get(name), text[len(name) :]
        else:
            letter = text[:1].decode("latin-1")
            if letter in _LETTERS:
                raise _no_kind(shown, _LETTERS[letter])
            rule, rest = _PREFIXES.get(text[:1] + b" "), text[1:]
        if rule is None:
            raise UsageError(f"--filter={shown}: not a filter rule; use '+ PATTERN' or '- PATTERN'")
        if rest[:1] not in (b" ", b"_", b""):
            raise UsageError(f"--filter={shown}: rdc has no rule modifiers; use '+ PATTERN' or '- PATTERN'")
        if len(rest) < 2:
            raise UsageError(f"--filter={shown}: the rule has no pattern")
        self._rules.append(FilterRule(rule, rest[1:]))

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


def _no_kind(shown: str, name: str) -> UsageError:
    return UsageError(f"--filter={shown}: rdc has no '{name}' rules; {_NOT_THERE[name]}")
