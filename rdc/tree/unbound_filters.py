"""UnboundFilters: rules of any kind before the tree is known that they are about."""

from __future__ import annotations

import os

from rdc.errors import UsageError
from rdc.files.base.entry_path import path_of_directory
from rdc.limits.wire import FILTER_BYTES, FILTER_RULES
from rdc.model.selection import DirectoryRules, FilterRule, RuleAction, RuleSyntax
from rdc.tree.filters import DestinationFilters, FilteredTree, FilterList
from rdc.tree.rule_matcher import RuleMatcher
from rdc.tree.rule_roles import destination_rules, provable_rules, source_rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.files.root.root import Root
    from rdc.tree.rule_roles import Rule

__all__ = ["UnboundFilters"]


class UnboundFilters(RuleMatcher):
    """By itself it excludes what the rules exclude in every tree: it knows no rule files and no absolute
    paths."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        super().__init__(provable_rules(source_rules(rules)))
        _check_bounds(rules)
        self._all = tuple(rules)

    def __bool__(self) -> bool:
        return True

    @property
    def certain(self) -> FilterList:
        chosen = destination_rules(self._all, delete_excluded=False)
        return RuleMatcher([rule for rule in provable_rules(chosen) if not _may_perish(rule)])

    def for_operands(self, root: Root, origin: bytes) -> FilterList:
        rules = [rule for rule in source_rules(self._all) if isinstance(rule, FilterRule)]
        base = _base(FilteredTree(root), rules)
        return RuleMatcher(rules, base=base, real=lambda path: os.path.join(origin, path))

    def at_source(self, tree: FilteredTree) -> FilterList:
        base = _base(tree, self._all)
        chosen = source_rules(self._all)
        static = [rule for rule in chosen if isinstance(rule, FilterRule)]
        if len(static) == len(chosen):
            real = None if tree.selection is None else tree.root.real
            return RuleMatcher(static, base=base, real=real)
        from rdc.tree.directory_filters import DirectoryFilters, FilterRole
        from rdc.tree.rule_files import RuleFileReader
        from rdc.tree.rule_scope import RuleScope

        reader = RuleFileReader(tree.root, base=base, above=tree.served is None)
        return DirectoryFilters(
            self._all, reader, FilterRole(protects=False), base=base, scope=RuleScope(tree)
        )

    def at_destination(
        self, tree: FilteredTree, *, delete: bool, delete_excluded: bool
    ) -> DestinationFilters:
        announced = RuleMatcher(provable_rules(source_rules(self._all)))
        if not delete:
            return DestinationFilters(announced=announced, listed=announced, protected=FilterList(()))
        base = _base(tree, self._all)
        chosen = destination_rules(self._all, delete_excluded=delete_excluded)
        first = next((at for at, rule in enumerate(chosen) if isinstance(rule, DirectoryRules)), None)
        certain = RuleMatcher([rule for rule in chosen[:first] if isinstance(rule, FilterRule)], base=base)
        listed = _Both(announced, certain)
        if first is None:
            spared = destination_rules(self._all, delete_excluded=delete_excluded, emptied=True)
            lasting = [rule for rule in spared if isinstance(rule, FilterRule)]
            protected: FilterList = _Protecting(certain, RuleMatcher(lasting, base=base))
        else:
            from rdc.tree.directory_filters import DirectoryFilters, FilterRole
            from rdc.tree.rule_files import RuleFileReader
            from rdc.tree.rule_scope import RuleScope

            protected = DirectoryFilters(
                self._all,
                RuleFileReader(tree.root, base=base, above=tree.served is None),
                FilterRole(protects=True, delete_excluded=delete_excluded),
                base=base,
                scope=RuleScope(tree),
                keeps=True,
            )
        return DestinationFilters(announced=announced, listed=listed, protected=protected)


class _Both(FilterList):
    """Excludes what both lists exclude."""

    def __init__(self, one: FilterList, other: FilterList) -> None:
        self._one = one
        self._other = other

    def __bool__(self) -> bool:
        return bool(self._one) and bool(self._other)

    def excluded(self, path: bytes, is_directory: bool) -> bool:
        return self._one.excluded(path, is_directory) and self._other.excluded(path, is_directory)


class _Protecting(FilterList):
    """Rules, and those of them that hold in directories that are being deleted."""

    def __init__(self, own: FilterList, emptied: FilterList) -> None:
        self._own = own
        self._emptied = emptied

    def __bool__(self) -> bool:
        return bool(self._own)

    @property
    def emptied(self) -> FilterList:
        return self._emptied

    def excluded(self, path: bytes, is_directory: bool) -> bool:
        return self._own.excluded(path, is_directory)


def _base(tree: FilteredTree, rules: Sequence[Rule]) -> bytes:
    """The absolute path of the tree's root, without symlinks; b"/" if no rule needs it."""
    if tree.served is not None:
        return tree.served
    if not any(map(_needs_base, rules)):
        return b"/"
    return path_of_directory(tree.root.fileno())


def _needs_base(rule: Rule) -> bool:
    if isinstance(rule, DirectoryRules):
        return rule.absolute or rule.above or rule.syntax is RuleSyntax.RULES
    return rule.modifiers.absolute


def _may_perish(rule: FilterRule) -> bool:
    return rule.modifiers.perishable and rule.action is RuleAction.EXCLUDE


def _check_bounds(rules: Sequence[Rule]) -> None:
    total = sum(len(rule.pattern if isinstance(rule, FilterRule) else rule.name) for rule in rules)
    if len(rules) > FILTER_RULES or total > FILTER_BYTES:
        raise UsageError(
            f"{len(rules):,} filter rules of {total:,} bytes; {FILTER_RULES:,} of {FILTER_BYTES:,} are the"
            " most"
        )
