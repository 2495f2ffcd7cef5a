"""MergeRule: the rule 'merge', which puts the rules of a file in its own place."""

from __future__ import annotations

import re

from rdc.errors import UsageError
from rdc.model.sync import RuleAction
from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MergeRule", "merge_rule"]

_RULE = re.compile(rb"(?:\.,?|merge(?:,|(?=[ _]|\Z)))([^ _]*)(?:[ _](.*))?", re.DOTALL)
_LIST_MODIFIERS = (b"-", b"+", b"C")
_MODIFIERS = (*_LIST_MODIFIERS, b"e", b"n", b"w")


@dataclass(frozen=True, slots=True)
class MergeRule:
    """A file of rules and how to read it."""

    name: bytes
    action: RuleAction | None
    """What happens to the file's patterns; None if each line is a rule of --filter."""
    words: bool
    """Whether spaces separate rules, too. Comments then have no meaning."""
    clears: bool
    """Whether '!' removes the rules before it in a file of patterns."""
    leaves_itself_out: bool
    """Whether files with the last component of `name` are excluded."""

    def split(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the rules in `data`, each with the number of its line."""
        for number, line in enumerate(re.split(rb"[\r\n]", data), 1):
            if self.words:
                for word in line.split():
                    yield number, word
            elif line and line[:1] not in (b";", b"#"):
                yield number, line


def merge_rule(text: bytes, where: str) -> MergeRule | None:
    """Return the merge rule that `text` is, or None if it is another rule.

    Raises UsageError for a modifier that rdc lacks and for a rule without a file. The message begins with
    `where`.
    """
    found = _RULE.fullmatch(text)
    if found is None:
        return None
    modifiers = [bytes([code]) for code in found[1]]
    for modifier in modifiers:
        if modifier not in _MODIFIERS:
            raise UsageError(f"{where}: rdc has no modifier {modifier.decode('latin-1')!r} of merge rules")
    lists = [modifier for modifier in modifiers if modifier in _LIST_MODIFIERS]
    if len(lists) > 1:
        raise UsageError(f"{where}: '-', '+' and 'C' exclude each other, and each may stand once")
    name = found[2] or (b".cvsignore" if b"C" in lists else b"")
    if not name:
        raise UsageError(f"{where}: the merge rule names no file")
    action = None
    if lists:
        action = RuleAction.INCLUDE if lists == [b"+"] else RuleAction.EXCLUDE
    return MergeRule(
        name=name,
        action=action,
        words=b"w" in modifiers or b"C" in modifiers,
        clears=b"C" in modifiers,
        leaves_itself_out=b"e" in modifiers,
    )
