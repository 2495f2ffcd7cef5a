"""The text of filter rules: of options and of files of rules, and what -C adds."""

from __future__ import annotations

import os
import re

from rdc.errors import UsageError
from rdc.lean.records import Record, replace
from rdc.limits import (
    FILTER_BYTES,
    FILTER_DIRECTORY_RULES,
    FILTER_MERGE_DEPTH,
    FILTER_PATTERN_BYTES,
    FILTER_RULES,
)
from rdc.model.selection import DirectoryRules, FilterRule, RuleAction, RuleModifiers, RuleSide, RuleSyntax
from rdc.tree.filters import MOST_RULES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import TypeAlias


# Reads one filter rule: its name or letter, its modifiers, and its pattern or file.

_WORDS = {
    b"clear": b"!",
    b"dir-merge": b":",
    b"exclude": b"-",
    b"hide": b"H",
    b"include": b"+",
    b"merge": b".",
    b"protect": b"P",
    b"risk": b"R",
    b"show": b"S",
}
_WORD = re.compile(b"(%s)(?=[ _,]|\\Z)" % b"|".join(_WORDS))
_ACTIONS = {
    b"+": (RuleAction.INCLUDE, RuleSide.DEFAULT),
    b"-": (RuleAction.EXCLUDE, RuleSide.DEFAULT),
    b"S": (RuleAction.INCLUDE, RuleSide.SOURCE),
    b"H": (RuleAction.EXCLUDE, RuleSide.SOURCE),
    b"R": (RuleAction.INCLUDE, RuleSide.DESTINATION),
    b"P": (RuleAction.EXCLUDE, RuleSide.DESTINATION),
}
_OF_PATTERNS = b"/!Csrpx"
_OF_FILES = b"-+Cenwsrp/x"


class RuleDefaults(Record):
    """The syntax of a file of rules, and the defaults that the file gives its rules."""

    action: RuleAction | None = None
    """The action of the file's patterns; None if each line is a rule of --filter."""
    words: bool = False
    """True if spaces separate rules, too. Comments then have no meaning."""
    clears: bool = False
    """True if '!' removes the rules before it in a file of patterns."""
    side: RuleSide = RuleSide.DEFAULT
    perishable: bool = False
    absolute: bool = False
    own_side: RuleSide = RuleSide.DEFAULT
    """The side of a rule that leaves the rule file itself out. In a rule file of the tree, such a rule always
    protects, as in rsync, even with --delete-excluded."""

    def split(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the rules in `data`, each with the number of its line."""
        for number, line in enumerate(re.split(rb"[\r\n]", data), 1):
            if self.words:
                for word in line.split():
                    yield number, word
            elif line and line[:1] not in (b";", b"#"):
                yield number, line

    def pattern_rule(self, pattern: bytes) -> FilterRule:
        """Return the rule for a line of a file of patterns."""
        modifiers = RuleModifiers(self.side, False, self.perishable, self.absolute)
        return FilterRule(self.action or RuleAction.EXCLUDE, pattern, modifiers)


class MergeRule(Record):
    """The rule 'merge', which puts the rules of a file in its own place."""

    name: bytes
    defaults: RuleDefaults
    leaves_itself_out: bool
    """True if files with the last component of `name` are excluded."""

    @property
    def own_exclusion(self) -> tuple[FilterRule, ...]:
        """The rule that leaves out the file itself, if it does."""
        own = self.name[self.name.rfind(b"/") + 1 :]
        if not (self.leaves_itself_out and own):
            return ()
        return (FilterRule(RuleAction.EXCLUDE, own, RuleModifiers(self.defaults.own_side)),)


class CvsRules(Record):
    """The rule '-C', for which the list of CVS stands."""

    defaults: RuleDefaults


class _Clear(Record):
    """The rule '!'."""


CLEAR = _Clear()

ParsedRule: TypeAlias = "FilterRule | DirectoryRules | MergeRule | CvsRules | _Clear"


def parse_rule(text: bytes, where: str, defaults: RuleDefaults) -> tuple[ParsedRule, ...]:
    """Return the rule that `text` is. A file that is excluded itself comes with the rule that does it.

    `defaults`: of the file that the rule stands in. Raises UsageError; the message begins with `where`.
    """
    word = _WORD.match(text)
    letter, rest = (_WORDS[word[0]], text[len(word[0]) :]) if word else (text[:1], text[1:])
    rest = rest.removeprefix(b",")
    if letter == b"!":
        if rest:
            raise UsageError(f"{where}: nothing may follow '!' or 'clear'")
        return (CLEAR,)
    modifiers, name = _split(rest)
    if letter in _ACTIONS:
        return (_pattern_rule(letter, modifiers, name, where, defaults),)
    if letter in (b".", b":"):
        return _file_rules(modifiers, name, where, defaults, each_directory=letter == b":")
    raise UsageError(
        f"{where}: not a filter rule; it begins with + - P R H S . : or !, or with include, exclude, protect,"
        " risk, hide, show, merge, dir-merge or clear"
    )


def _split(rest: bytes) -> tuple[bytes, bytes]:
    """Return the modifiers, and what follows the first space or underscore."""
    at = next((at for at, code in enumerate(rest) if code in b" _"), len(rest))
    return rest[:at], rest[at + 1 :]


def _pattern_rule(
    letter: bytes, modifiers: bytes, pattern: bytes, where: str, defaults: RuleDefaults
) -> FilterRule | CvsRules:
    action, side = _ACTIONS[letter]
    has_side = side is not RuleSide.DEFAULT
    _check(modifiers, _OF_PATTERNS.translate(None, b"srC") if has_side else _OF_PATTERNS, where)
    side = _side(side, modifiers, where, defaults)
    perishable, absolute = (
        b"p" in modifiers or defaults.perishable,
        b"/" in modifiers or defaults.absolute,
    )
    if b"C" in modifiers:
        if pattern or b"!" in modifiers:
            raise UsageError(f"{where}: 'C' stands for the list of CVS; it takes no pattern and no '!'")
        return CvsRules(RuleDefaults(action, True, True, side, perishable, absolute))
    if not pattern:
        raise UsageError(f"{where}: the rule has no pattern")
    return FilterRule(action, pattern, RuleModifiers(side, b"!" in modifiers, perishable, absolute))


def _file_rules(
    modifiers: bytes, name: bytes, where: str, defaults: RuleDefaults, *, each_directory: bool
) -> tuple[ParsedRule, ...]:
    _check(modifiers, _OF_FILES, where)
    lists = [bytes([code]) for code in modifiers if code in b"-+C"]
    if len(lists) > 1:
        raise UsageError(f"{where}: '-', '+' and 'C' exclude each other, and each may stand once")
    name = name or (b".cvsignore" if b"C" in lists else b"")
    if not name:
        raise UsageError(f"{where}: the rule names no file")
    action = None
    if lists:
        action = RuleAction.INCLUDE if lists == [b"+"] else RuleAction.EXCLUDE
    of_cvs = lists == [b"C"]
    merge = MergeRule(
        name=name,
        defaults=RuleDefaults(
            action=action,
            words=b"w" in modifiers or of_cvs,
            clears=of_cvs,
            side=_side(RuleSide.DEFAULT, modifiers, where, defaults),
            perishable=b"p" in modifiers or defaults.perishable,
            absolute=b"/" in modifiers or defaults.absolute,
            own_side=defaults.own_side,
        ),
        leaves_itself_out=b"e" in modifiers,
    )
    if not each_directory:
        return (merge,)
    found = _directory_rules(name, merge.defaults, where, inherited=not (b"n" in modifiers or of_cvs))
    return (*merge.own_exclusion, found)


def _directory_rules(name: bytes, read: RuleDefaults, where: str, *, inherited: bool) -> DirectoryRules:
    above = name.startswith(b"/")
    if b"/" in name[above:] or name[above:] in (b"", b".", b".."):
        raise UsageError(
            f"{where}: expected the name of a file in each directory, such as .rules, or /.rules to read"
            " those of the directories above, too"
        )
    return DirectoryRules(
        name=name[above:],
        syntax=RuleSyntax.RULES if read.action is None else RuleSyntax(read.action.value),
        side=read.side,
        inherited=inherited,
        words=read.words,
        clears=read.clears,
        perishable=read.perishable,
        absolute=read.absolute,
        above=above,
    )


def _check(modifiers: bytes, allowed: bytes, where: str) -> None:
    for code in modifiers:
        if code not in allowed:
            raise UsageError(f"{where}: the rule has no modifier {chr(code)!r}")
        if code == ord("x"):
            raise UsageError(f"{where}: rdc has no rules for names of extended attributes (modifier 'x')")


def _side(side: RuleSide, modifiers: bytes, where: str, defaults: RuleDefaults) -> RuleSide:
    """Return the side of a rule, by its name, its modifiers or its file. Raises UsageError if rule and file
    name one."""
    named = "".join(letter for letter in "sr" if ord(letter) in modifiers)
    side = RuleSide(named) if named else side
    if defaults.side is RuleSide.DEFAULT:
        return side
    if side is not RuleSide.DEFAULT:
        raise UsageError(f"{where}: the rule names a side, and its file has one already")
    return defaults.side


# The rules that -C stands for: what cvs(1) ignores, as rsync(1) lists it.

CVS_PATTERNS = (
    b"RCS", b"SCCS", b"CVS", b"CVS.adm", b"RCSLOG", b"cvslog.*", b"tags", b"TAGS", b".make.state",
    b".nse_depinfo", b"*~", b"#*", b".#*", b",*", b"_$*", b"*$", b"*.old", b"*.bak", b"*.BAK", b"*.orig",
    b"*.rej", b".del-*", b"*.a", b"*.olb", b"*.o", b"*.obj", b"*.so", b"*.exe", b"*.Z", b"*.elc", b"*.ln",
    b"core", b".svn/", b".git/", b".hg/", b".bzr/",
)  # fmt: skip


def cvs_rules(defaults: RuleDefaults, own: Iterable[bytes]) -> list[FilterRule]:
    """Return the rules for all patterns. `own`: what the user's ~/.cvsignore and CVSIGNORE hold, in this
    order.

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


# RuleListBuilder: parses filter rules from --exclude, --include and --filter values and from rule files.

_PREFIXES = {b"- ": RuleAction.EXCLUDE, b"+ ": RuleAction.INCLUDE}
_FIRST_BYTES = b"+-!"
"""The prefixes of a line that is more than a pattern."""
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
        """True if a '!' was there."""

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
                    f"{where}: the list of CVS is allowed only on the command line or in a merge file"
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
