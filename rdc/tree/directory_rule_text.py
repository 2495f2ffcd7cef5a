"""Parses the rule file of a directory."""

from __future__ import annotations

import os

from rdc.errors import UsageError
from rdc.lean.records import dataclass
from rdc.model.selection import DirectoryRules, RuleAction, RuleSide, RuleSyntax
from rdc.tree.rule_syntax import RuleDefaults
from rdc.tree.rule_text import RuleListBuilder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from rdc.tree.rule_files import RuleFileReader
    from rdc.tree.rule_roles import Rule

__all__ = ["DirectoryRuleText", "parse_rule_file"]

_ACTION_OF_FILE = {RuleSyntax.INCLUDE: RuleAction.INCLUDE, RuleSyntax.EXCLUDE: RuleAction.EXCLUDE}


@dataclass(frozen=True, slots=True)
class DirectoryRuleText:
    """What a rule file says."""

    rules: tuple[Rule, ...]
    cleared: bool
    """Whether a '!' removes the rules of the directories above."""


def parse_rule_file(
    data: bytes,
    rules: DirectoryRules,
    directory: bytes,
    reader: RuleFileReader,
    known: Iterable[DirectoryRules],
    *,
    above: bytes | None = None,
) -> DirectoryRuleText:
    """Parse the rule file of a directory. `known`: the per-directory rules that hold already. `above`: the
    absolute path of the directory, if it is above the tree.

    Messages do not quote the file: the peer that reads them may not be allowed to read it. Raises UsageError,
    which names file and line, and FileError.
    """

    def read_beside(name: str) -> bytes:
        if "/" in name:
            raise UsageError(
                f"{shown}: a rule file of a directory merges only files beside it, found {name!r}"
            )
        raw = os.fsencode(name)
        found = reader.read(directory, raw) if above is None else reader.read_above(above, raw)
        if found is None:
            raise UsageError(f"{shown}: the file to merge is not there: {name!r}")
        return found

    path = os.path.join(directory, rules.name)
    shown = reader.shown(path) if above is None else os.fsdecode(os.path.join(above, rules.name))
    builder = RuleListBuilder(read_beside, known=known, quotes=False)
    defaults = RuleDefaults(
        action=_ACTION_OF_FILE.get(rules.syntax),
        words=rules.words,
        clears=rules.clears,
        side=rules.side,
        perishable=rules.perishable,
        absolute=rules.absolute,
        own_side=RuleSide.BOTH,
    )
    builder.add_file(data, defaults, name=shown)
    return DirectoryRuleText(builder.rules(), builder.cleared)
