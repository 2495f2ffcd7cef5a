"""DirectoryFilters: rules of which some lie in files of the directories themselves.

A state says which rules hold in one directory. It is made from the state of the directory above and from the
rule files of the directory, and most directories have none and share the state above. A walk goes down and up
again, so it needs the states of one path only. Deletions come late and in any order, when rule files may have
been reslotd. There every state is kept, as it was when the directory was first looked at.
"""

from __future__ import annotations

import errno
import os
import re
import stat

from rdc.errors import FileChangedError, FileError, UsageError
from rdc.files.base.paths import join, path_of_directory
from rdc.lean.records import Record
from rdc.limits import (
    DIRECTORY_WILD_BYTES,
    FILTER_BYTES,
    FILTER_FILES,
    FILTER_PATTERN_BYTES,
    FILTER_RULES,
    RULE_FILE_BYTES,
    RULE_FILES,
    RULE_FILES_BYTES,
)
from rdc.model.selection import DirectoryRules, FilterRule, RuleAction, RuleModifiers, RuleSide, RuleSyntax
from rdc.tree.filters import (
    NO_RULE,
    DestinationFilters,
    FilteredTree,
    FilterList,
    Rule,
    RuleMatcher,
    RuleScope,
    RuleTable,
    destination_rules,
    provable_rules,
    source_rules,
)
from rdc.tree.rule_text import RuleDefaults, RuleListBuilder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import TypeAlias

    from rdc.files.root.root import Root


_ACTION_OF_FILE = {RuleSyntax.INCLUDE: RuleAction.INCLUDE, RuleSyntax.EXCLUDE: RuleAction.EXCLUDE}


class DirectoryRuleText(Record):
    """The rules of a rule file."""

    rules: tuple[Rule, ...]
    cleared: bool
    """True if a '!' removes the rules of the directories above."""


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


# Cache directories: those with a CACHEDIR.TAG that has the signature of bford.info/cachedir.

CACHE_SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55"


def cache_rules(reader: RuleFileReader, directory: bytes, rules: DirectoryRules) -> list[FilterRule] | None:
    """Return the rules for what is in a directory: of a cache only the tag takes part. None for other
    directories.

    A tag that is no regular file, or cannot be read, is none: then nothing is left out.
    """
    if not reader.tagged(directory, rules.name, CACHE_SIGNATURE):
        return None
    modifiers = RuleModifiers(rules.side, perishable=rules.perishable)
    return [
        FilterRule(action, pattern, modifiers)
        for action, pattern in ((RuleAction.INCLUDE, b"/" + rules.name), (RuleAction.EXCLUDE, b"*"))
    ]


# GitIgnore: the lines of a .gitignore, which mean what gitignore(5) says.

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Spaces at the end that no backslash escapes.
_TRAILING_SPACES = re.compile(rb"(?<!\\)((?:\\\\)*) +\Z")
_SPECIAL = re.compile(rb"[*?\[\\]")


class GitIgnore(FilterList):
    """The last line that matches an entry decides. Lines are about paths below the file's directory."""

    def __init__(self, data: bytes, directory: bytes) -> None:
        """Parse `data`, at most RULE_FILE_BYTES. Raises UsageError for a line that is too long."""
        self._below = len(directory) + 1 if directory else 0
        self._ignores: list[bool] = []
        self._lines = RuleTable()
        self.wild_bytes = 0
        lines = data.removeprefix(_BYTE_ORDER_MARK).split(b"\n")
        if max(map(len, lines)) > FILTER_PATTERN_BYTES:
            number = next(at for at, text in enumerate(lines, 1) if len(text) > FILTER_PATTERN_BYTES)
            raise UsageError(f"line {number} has {len(lines[number - 1])} bytes; is this a list of patterns?")
        for text in reversed(lines):
            if text and not text.startswith(b"#"):
                self._add(text.removesuffix(b"\r"))

    def __bool__(self) -> bool:
        return bool(self._ignores)

    def excluded(self, path: bytes, is_directory: bool) -> bool:
        return bool(path) and bool(self.decision(path, is_directory))

    def decision(self, path: bytes, is_directory: bool) -> bool | None:
        number = self._lines.first(path[self._below :], is_directory)
        return None if number == NO_RULE else self._ignores[number]

    def _add(self, text: bytes) -> None:
        """Add a line. The later ones of the file were added before it."""
        if text.endswith(b" "):
            text = _TRAILING_SPACES.sub(rb"\1", text)
        ignores = not text.startswith(b"!")
        text = text if ignores else text[1:]
        directory_only = text.endswith(b"/")
        text = text.removesuffix(b"/")
        if not text:
            return
        number = len(self._ignores)
        self._ignores.append(ignores)
        anchored = b"/" in text
        text = text.removeprefix(b"/")
        if _SPECIAL.search(text) is None:
            self._lines.add_literal(number, text, anchored=anchored, directory_only=directory_only)
            return
        from rdc.kernel import PatternSet

        kind = PatternSet.COMPONENTS
        kind |= 0 if anchored else PatternSet.ANYWHERE
        kind |= PatternSet.DIRECTORY if directory_only else 0
        self._lines.add_wild(number, text, kind)
        self.wild_bytes += len(text) + 1


# RuleFileReader: reads the rule files of a tree's directories, confined to the tree.

# O_NONBLOCK: a fifo without a writer must not block the run.
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class RuleFileReader:
    """Reads files by directory and name. A symlink is refused: it could name any file of the machine, whose
    lines would then show in messages."""

    def __init__(self, root: Root, *, base: bytes, above: bool) -> None:
        """Take `base`: the absolute path of the root. `above`: whether the directories above it may be
        read."""
        self._root = root
        self._base = base
        self._above = above

    def shown(self, path: bytes) -> str:
        """Return the path of a file as messages name it."""
        return os.fsdecode(self._root.shown(path))

    def read(self, directory: bytes, name: bytes) -> bytes | None:
        """Return the content of the file; None if there is none. Raises FileError if it cannot be read."""
        path = join(directory, name)
        try:
            found = self._root.perform(path, "read its filter rules", _opened, reading=True)
        except FileChangedError:
            return None  # the directory has vanished
        if found is None:
            return None
        if isinstance(found, str):
            raise self._refused(path, found)
        with open(found, "rb") as file, self._root.failing(path, "read its filter rules"):
            data = file.read(RULE_FILE_BYTES + 1)
        if len(data) > RULE_FILE_BYTES:
            raise self._refused(path, f"more than {RULE_FILE_BYTES} bytes")
        return data

    def tagged(self, directory: bytes, name: bytes, signature: bytes) -> bool:
        """Return whether the directory has a regular file of that name that begins with the signature."""
        try:
            found = self._root.perform(join(directory, name), "read it", _opened, reading=True)
        except FileError:
            return False  # an entry that cannot be opened is no tag
        if not isinstance(found, int):
            return False
        with open(found, "rb") as file:
            try:
                return file.read(len(signature)) == signature
            except OSError:
                return False

    def above(self, directory: bytes) -> Iterator[bytes]:
        """Yield the directories above `directory`, from the top of the file system, as absolute paths."""
        if not self._above:
            return
        parts = [part for part in os.path.join(self._base, self._root.real(directory)).split(b"/") if part]
        for count in range(len(parts)):
            yield b"/" + b"/".join(parts[:count])

    def read_above(self, directory: bytes, name: bytes) -> bytes | None:
        """Like `read` for a directory by its absolute path."""
        from rdc.files.root.root import Root

        root = Root.open(directory)
        try:
            return RuleFileReader(root, base=directory, above=False).read(b"", name)
        finally:
            root.close()

    def _refused(self, path: bytes, found: str) -> Exception:
        return self._root.refused(
            path,
            "read its filter rules",
            expected=f"a regular file of at most {RULE_FILE_BYTES} bytes",
            found=found,
            advice="what is below its directory was left alone",
        )


def _opened(name: bytes, parent: int) -> int | str | None:
    """Return a descriptor of a regular file, what else is there, or None for nothing."""
    try:
        fd = os.open(name, _FLAGS, dir_fd=parent)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            return "a symlink"
        raise
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    return "no regular file"


class FilterRole(Record):
    """The decision of the rules: which entries take part, or which ones a sync must not delete."""

    protects: bool
    delete_excluded: bool = False

    def rules(self, rules: Iterable[Rule], *, emptied: bool = False) -> list[Rule]:
        """Return the rules that count. `emptied`: in a directory that is being deleted."""
        if not self.protects:
            return source_rules(rules)
        return destination_rules(rules, delete_excluded=self.delete_excluded, emptied=emptied)


class _Slot:
    """The position of per-directory rules in a list. Two slots are never equal."""

    def __init__(self, rules: DirectoryRules) -> None:
        self.rules = rules


_Items: TypeAlias = "tuple[FilterList | _Slot, ...]"


class _Compiled(Record):
    """The rules of one file, or of the whole list."""

    items: _Items
    emptied: _Items
    """Without the perishable ones."""


class _State(Record):
    """The rules that hold in one directory."""

    slots: dict[_Slot, tuple[_Compiled, ...]]
    """For each slot, the rules of the nearest directory first."""
    rules: tuple[FilterList, ...]
    emptied: tuple[FilterList, ...]


def _excluded(rules: Iterable[FilterList], path: bytes, is_directory: bool) -> bool:
    for each in rules:
        decision = each.decision(path, is_directory)
        if decision is not None:
            return decision
    return False


class DirectoryFilters(FilterList):
    """Rules with per-directory ones, bound to one tree. `excluded` raises FileError if a rule file cannot be
    read or understood."""

    def __init__(
        self,
        rules: Sequence[Rule],
        reader: RuleFileReader,
        role: FilterRole,
        *,
        base: bytes,
        scope: RuleScope,
        keeps: bool = False,
    ) -> None:
        """Take `base`: the absolute path of the root. `scope`: where rule files apply. `keeps`: a rule file
        applies as it was when first read."""
        self._reader = reader
        self._role = role
        self._base = base
        self._scope = scope
        self._keeps = keeps
        self._files = self._file_bytes = 0
        self._names: set[bytes] = set()
        """Names of the rule files that were looked for."""
        self._states: dict[bytes, _State | FileError] = {}
        self._list = self._compiled(rules, b"", from_top=False)
        slots = [item for item in self._list.items if isinstance(item, _Slot)]
        self._start = self._state_of(dict.fromkeys(slots, ()))

    def __bool__(self) -> bool:
        return True

    @property
    def emptied(self) -> FilterList:
        return _Emptied(self)

    @property
    def movable(self) -> FilterList:
        return _Movable(self)

    def excluded(self, path: bytes, is_directory: bool) -> bool:
        return bool(path) and _excluded(self.state(path.rpartition(b"/")[0]).rules, path, is_directory)

    def is_rule_file(self, path: bytes) -> bool:
        """Return whether the name is one of the rule files that were read so far."""
        return path.rpartition(b"/")[2] in self._names

    def renew(self) -> None:
        self._states.clear()
        self._files = self._file_bytes = 0

    def prepare(self, directory: bytes) -> None:
        try:
            self.state(directory)
        except FileError:
            return  # it is reported when something would be deleted

    def state(self, directory: bytes) -> _State:
        """Return the rules that hold in a directory. Raises FileError."""
        found = self._states.get(directory)
        if found is None:
            found = self._enter_from_above(directory)
        if isinstance(found, FileError):
            raise found
        return found

    def _enter_from_above(self, directory: bytes) -> _State | FileError:
        missing = [directory]
        while missing[-1] and missing[-1] not in self._states:
            missing.append(missing[-1].rpartition(b"/")[0])
        if missing[-1] in self._states:
            above: _State | FileError = self._states[missing.pop()]
        else:
            above = self._start
        if not self._keeps:
            self._forget_beside(missing[-1].rpartition(b"/")[0] if missing[-1] else None)
        while missing:
            path = missing.pop()
            if not isinstance(above, FileError):
                try:
                    above = self._entered(path, above)
                except FileError as error:
                    above = error
            self._states[path] = above
        return above

    def _forget_beside(self, directory: bytes | None) -> None:
        """Keep only the states of a directory and of those above it."""
        kept: dict[bytes, _State | FileError] = {}
        while directory is not None and directory in self._states:
            kept[directory] = self._states[directory]
            directory = directory.rpartition(b"/")[0] if directory else None
        self._states = kept
        self._files = self._file_bytes = 0

    def _entered(self, directory: bytes, above: _State) -> _State:
        """Return the state of a directory. Raises FileError."""
        if not self._scope.counts(directory):
            return above
        is_first = self._scope.begins(directory)
        slots: dict[_Slot, tuple[_Compiled, ...]] = {}
        waiting = list(above.slots)
        changed = False
        while waiting:
            slot = waiting.pop(0)
            self._names.add(slot.rules.name)
            inherited = above.slots.get(slot, ()) if slot.rules.inherited else ()
            if slot.rules.above and (is_first or slot not in above.slots):
                inherited = tuple(self._from_above(slot, directory))
            found = self._read(slot.rules, directory, [*above.slots, *slots, *waiting])
            if found is not None:
                compiled, cleared = found
                waiting += [item for item in compiled.items if isinstance(item, _Slot)]
                inherited = (compiled,) if cleared else (compiled, *inherited)
            changed = changed or inherited != above.slots.get(slot)
            slots[slot] = inherited
        try:
            return self._state_of(slots) if changed else above
        except UsageError as error:
            raise self._refused(directory, b"", str(error)) from error

    def _from_above(self, slot: _Slot, directory: bytes) -> Iterator[_Compiled]:
        """Yield the rules of the directories above the tree, the nearest first."""
        if not slot.rules.inherited:
            return
        found: list[_Compiled] = []
        for path in self._reader.above(directory):
            data = self._reader.read_above(path, slot.rules.name)
            if data is not None:
                compiled, cleared = self._parsed(data, slot.rules, path.strip(b"/"), (), above=path)
                found = [compiled] if cleared else [compiled, *found]
        yield from found

    def _read(
        self, rules: DirectoryRules, directory: bytes, known: Iterable[_Slot]
    ) -> tuple[_Compiled, bool] | None:
        """Return the rules of a directory's file, and whether they remove inherited ones; None without a
        file."""
        if rules.syntax is RuleSyntax.CACHE_TAG:
            inside = cache_rules(self._reader, directory, rules)
            return None if inside is None else (self._compiled(inside, directory, from_top=False), False)
        data = self._reader.read(directory, rules.name)
        if data is None:
            return None
        self._files += 1
        self._file_bytes += len(data)
        if self._files > RULE_FILES or self._file_bytes > RULE_FILES_BYTES:
            raise self._refused(
                directory,
                rules.name,
                f"rdc keeps at most {RULE_FILES:,} rule files of {RULE_FILES_BYTES:,} bytes together",
            )
        return self._parsed(data, rules, directory, [slot.rules for slot in known])

    def _parsed(
        self,
        data: bytes,
        rules: DirectoryRules,
        directory: bytes,
        known: Iterable[DirectoryRules],
        *,
        above: bytes | None = None,
    ) -> tuple[_Compiled, bool]:
        try:
            if rules.syntax is RuleSyntax.GIT:
                matcher: _Items = (GitIgnore(data, directory),)
                return _Compiled(matcher, matcher), False
            parsed = parse_rule_file(data, rules, directory, self._reader, known, above=above)
            return self._compiled(parsed.rules, directory, from_top=above is not None), parsed.cleared
        except UsageError as error:
            raise FileError(join(directory, rules.name), str(error)) from error

    def _compiled(self, rules: Sequence[Rule], at: bytes, *, from_top: bool) -> _Compiled:
        slots = {id(rule): _Slot(rule) for rule in rules if isinstance(rule, DirectoryRules)}

        def items(chosen: list[Rule]) -> Iterator[FilterList | _Slot]:
            run: list[FilterRule] = []
            for rule in chosen:
                if isinstance(rule, FilterRule):
                    run.append(rule)
                    continue
                if run:
                    yield RuleMatcher(run, base=self._base, real=self._scope.real, at=at, from_top=from_top)
                run = []
                yield slots[id(rule)]
            if run:
                yield RuleMatcher(run, base=self._base, real=self._scope.real, at=at, from_top=from_top)

        normal = tuple(items(self._role.rules(rules)))
        emptied = tuple(items(self._role.rules(rules, emptied=True))) if self._role.protects else normal
        return _Compiled(normal, emptied)

    def _state_of(self, slots: dict[_Slot, tuple[_Compiled, ...]]) -> _State:
        rules: list[FilterList] = []
        reached: dict[_Slot, tuple[_Compiled, ...]] = {}

        def flatten(compiled: _Compiled) -> None:
            for item in compiled.items:
                if isinstance(item, _Slot):
                    reached[item] = slots.get(item, ())
                    for each in slots.get(item, ()):
                        flatten(each)
                else:
                    rules.append(item)

        def flatten_emptied(compiled: _Compiled) -> Iterator[FilterList]:
            for item in compiled.emptied:
                if isinstance(item, _Slot):
                    for each in slots.get(item, ()):
                        yield from flatten_emptied(each)
                else:
                    yield item

        flatten(self._list)
        if sum(each.wild_bytes for each in rules) > DIRECTORY_WILD_BYTES:
            raise UsageError(
                "the filter patterns with wildcards that hold here have more than"
                f" {DIRECTORY_WILD_BYTES:,} bytes"
            )
        if len(rules) > FILTER_FILES:
            raise UsageError(f"more than {FILTER_FILES:,} files of filter rules hold at once")
        return _State(reached, tuple(rules), tuple(flatten_emptied(self._list)))

    def _refused(self, directory: bytes, name: bytes, why: str) -> FileError:
        path = join(directory, name)
        return FileError(
            path, f"{self._reader.shown(path)}: {why}; what is below its directory was left alone"
        )


class _Movable(FilterList):
    """Excludes rule files, too."""

    def __init__(self, filters: DirectoryFilters) -> None:
        self._filters = filters

    def __bool__(self) -> bool:
        return True

    def excluded(self, path: bytes, is_directory: bool) -> bool:
        return self._filters.excluded(path, is_directory) or self._filters.is_rule_file(path)


class _Emptied(FilterList):
    """The rules for entries of directories that are being deleted."""

    def __init__(self, filters: DirectoryFilters) -> None:
        self._filters = filters

    def __bool__(self) -> bool:
        return True

    @property
    def emptied(self) -> FilterList:
        return self

    def excluded(self, path: bytes, is_directory: bool) -> bool:
        state = self._filters.state(path.rpartition(b"/")[0])
        return bool(path) and _excluded(state.emptied, path, is_directory)


# UnboundFilters: rules of any kind before the tree is known that they are about.


class UnboundFilters(RuleMatcher):
    """The rules without a tree: excludes what they exclude in every tree, and knows no rule files and no
    absolute paths."""

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
    """Return the absolute path of the tree's root, without symlinks; b"/" if no rule needs it."""
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
