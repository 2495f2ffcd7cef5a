"""RuleItems: filter rules with everything that they say, as one list."""

from __future__ import annotations

from functools import cache

from rdc.limits.paths import NAME_BYTES
from rdc.limits.wire import RULES_BYTES
from rdc.model.filter_rules import (
    DirectoryRules,
    FilterRule,
    RuleAction,
    RuleModifiers,
    RuleSide,
    RuleSyntax,
    are_plain,
)
from rdc.protocol.wire.fields import of_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TypeAlias

    Rule: TypeAlias = FilterRule | DirectoryRules

__all__ = ["RuleItems", "RulePart", "pack_rules"]

_SIDES = (RuleSide.DEFAULT, RuleSide.SOURCE, RuleSide.DESTINATION, RuleSide.BOTH)
_SYNTAXES = (
    RuleSyntax.RULES, RuleSyntax.INCLUDE, RuleSyntax.EXCLUDE, RuleSyntax.GIT, RuleSyntax.CACHE_TAG,
)  # fmt: skip
_DIGITS = b"0123456789abcdef"
_PLAIN = FilterRule(RuleAction.EXCLUDE, b"-").modifiers
"""Those of a rule that is an action and a pattern."""
_RULE_FLAGS = ("negated", "perishable", "absolute")
_FILE_FLAGS = ("inherited", "words", "clears", "perishable", "absolute", "above")


class RuleItems:
    """For each rule its code as three hexadecimal digits, its text, and NUL; PROTOCOL.md section 10 has the
    bits of a code.

    A list that Open's own rules can say is not valid here, so that each list has one form.
    """

    def pack(self, value: tuple[Rule, ...]) -> object:
        return b"".join(pack_rules(value))

    def unpack(self, raw: object) -> tuple[Rule, ...]:
        rules = RulePart().unpack(raw)
        if are_plain(rules):
            raise ValueError("rules without anything to add")
        return rules


class RulePart:
    """Some of the rules, in the same form."""

    def pack(self, value: tuple[Rule, ...]) -> object:
        return b"".join(pack_rules(value))

    def unpack(self, raw: object) -> tuple[Rule, ...]:
        blob = of_type(raw, bytes)
        if len(blob) > RULES_BYTES:
            raise ValueError(f"rules of {len(blob)} bytes, the limit is {RULES_BYTES}")
        texts = blob.split(b"\0")
        if texts.pop():
            raise ValueError("expected NUL after each rule")
        return tuple(_unpacked(text[:3], text[3:]) for text in texts)


def pack_rules(rules: Iterable[Rule]) -> Iterator[bytes]:
    """Yield the form of each rule."""
    for rule in rules:
        yield b"%03x%b\0" % _packed(rule)


def _packed(rule: Rule) -> tuple[int, bytes]:
    if isinstance(rule, FilterRule) and rule.modifiers is _PLAIN:
        return (rule.action is RuleAction.INCLUDE) << 1, rule.pattern
    side = _SIDES.index(rule.side)
    if isinstance(rule, FilterRule):
        code = (rule.action is RuleAction.INCLUDE) | side << 1 | _bits(rule.modifiers, _RULE_FLAGS) << 3
        return code << 1, rule.pattern
    code = _SYNTAXES.index(rule.syntax) | side << 3 | _bits(rule, _FILE_FLAGS) << 5
    return code << 1 | 1, rule.name


def _bits(rule: RuleModifiers | DirectoryRules, flags: tuple[str, ...]) -> int:
    return sum(getattr(rule, name) << bit for bit, name in enumerate(flags))


def _unpacked(digits: bytes, text: bytes) -> Rule:
    if not text:
        raise ValueError("a rule is a code of three digits and a text")
    is_file, code = _number(digits)
    if not is_file:
        action, modifiers = _kind(code)
        return FilterRule(action, text, modifiers)
    if not 0 <= code < 1 << 11 or code & 7 >= len(_SYNTAXES):
        raise ValueError(f"{code} is no code of per-directory rules")
    if b"/" in text or text in (b".", b"..") or len(text) > NAME_BYTES:
        raise ValueError("per-directory rules with the name of no file")
    return DirectoryRules(text, _SYNTAXES[code & 7], _SIDES[code >> 3 & 3], **_flags(code >> 5, _FILE_FLAGS))


@cache
def _number(digits: bytes) -> tuple[int, int]:
    """Whether the rules are in files, and their code."""
    if len(digits) != 3 or any(digit not in _DIGITS for digit in digits):
        raise ValueError("a rule is a code of three digits and a text")
    number = int(digits, 16)
    return number & 1, number >> 1


@cache
def _kind(code: int) -> tuple[RuleAction, RuleModifiers]:
    """One record for all rules with these modifiers."""
    if not 0 <= code < 1 << 6:
        raise ValueError(f"{code} is no code of a rule")
    action = RuleAction.INCLUDE if code & 1 else RuleAction.EXCLUDE
    if not code >> 1:
        return action, _PLAIN
    return action, RuleModifiers(_SIDES[code >> 1 & 3], **_flags(code >> 3, _RULE_FLAGS))


def _flags(bits: int, names: tuple[str, ...]) -> dict[str, bool]:
    return {name: bool(bits >> bit & 1) for bit, name in enumerate(names)}
