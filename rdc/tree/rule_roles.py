"""Which rules of a list count where: at the source, at the destination, and for what the source announces."""

from __future__ import annotations

from rdc.model.selection import DirectoryRules, FilterRule, RuleAction, RuleSide, RuleSyntax

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

__all__ = ["Rule", "destination_rules", "provable_rules", "source_rules"]

Rule: TypeAlias = "FilterRule | DirectoryRules"


def source_rules(rules: Iterable[Rule]) -> list[Rule]:
    """The rules that count at the source, where they say which entries take part."""
    return [rule for rule in rules if rule.side is not RuleSide.DESTINATION]


def destination_rules(rules: Iterable[Rule], *, delete_excluded: bool, emptied: bool = False) -> list[Rule]:
    """The rules that count at the destination, where they say which entries stay.

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
    """The rules before the first one that depends on files or on absolute paths: what these exclude is
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
