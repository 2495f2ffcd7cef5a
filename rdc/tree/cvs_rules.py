"""The rules that -C stands for: what cvs(1) ignores, as rsync(1) lists it."""

from __future__ import annotations

from rdc.lean.records import replace
from rdc.model.selection import FilterRule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from rdc.tree.rule_syntax import RuleDefaults

__all__ = ["CVS_PATTERNS", "cvs_rules"]

CVS_PATTERNS = (
    b"RCS", b"SCCS", b"CVS", b"CVS.adm", b"RCSLOG", b"cvslog.*", b"tags", b"TAGS", b".make.state",
    b".nse_depinfo", b"*~", b"#*", b".#*", b",*", b"_$*", b"*$", b"*.old", b"*.bak", b"*.BAK", b"*.orig",
    b"*.rej", b".del-*", b"*.a", b"*.olb", b"*.o", b"*.obj", b"*.so", b"*.exe", b"*.Z", b"*.elc", b"*.ln",
    b"core", b".svn/", b".git/", b".hg/", b".bzr/",
)  # fmt: skip


def cvs_rules(defaults: RuleDefaults, own: Iterable[bytes]) -> list[FilterRule]:
    """The rules for all patterns. `own`: what the user's ~/.cvsignore and CVSIGNORE hold, in this order.

    The fixed ones are perishable. '!' among the user's removes all before it.
    """
    fixed = replace(defaults, perishable=True)
    rules = [fixed.pattern_rule(pattern) for pattern in CVS_PATTERNS]
    for data in own:
        for _, word in defaults.split(data):
            if word == b"!":
                rules.clear()
            else:
                rules.append(defaults.pattern_rule(word))
    return rules
