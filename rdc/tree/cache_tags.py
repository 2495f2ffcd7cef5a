"""Cache directories: those with a CACHEDIR.TAG that has the signature of bford.info/cachedir."""

from __future__ import annotations

from rdc.model.selection import DirectoryRules, FilterRule, RuleAction, RuleModifiers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.tree.rule_files import RuleFileReader

__all__ = ["CACHE_SIGNATURE", "CACHE_TAG_NAME", "cache_rules"]

CACHE_TAG_NAME = b"CACHEDIR.TAG"
CACHE_SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55"


def cache_rules(reader: RuleFileReader, directory: bytes, rules: DirectoryRules) -> list[FilterRule] | None:
    """The rules for what is in a directory: of a cache only the tag takes part. None for other directories.

    A tag that is no regular file, or cannot be read, is none: then nothing is left out.
    """
    if not reader.tagged(directory, rules.name, CACHE_SIGNATURE):
        return None
    modifiers = RuleModifiers(rules.side, perishable=rules.perishable)
    return [
        FilterRule(action, pattern, modifiers)
        for action, pattern in ((RuleAction.INCLUDE, b"/" + rules.name), (RuleAction.EXCLUDE, b"*"))
    ]
