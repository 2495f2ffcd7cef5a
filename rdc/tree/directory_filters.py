"""DirectoryFilters: rules of which some lie in files of the directories themselves.

A state says which rules hold in one directory. It is made from the state of the directory above and from the
rule files of the directory, and most directories have none and share the state above. A walk goes down and up
again, so it needs the states of one path only. Deletions come late and in any order, when rule files may have
been reslotd. There every state is kept, as it was when the directory was first looked at.
"""

from __future__ import annotations

from rdc.errors import FileError, UsageError
from rdc.files.base.relative_path import join
from rdc.lean.records import dataclass
from rdc.limits.wire import DIRECTORY_WILD_BYTES, FILTER_FILES, RULE_FILES, RULE_FILES_BYTES
from rdc.model.selection import DirectoryRules, FilterRule, RuleSyntax
from rdc.tree.directory_rule_text import parse_rule_file
from rdc.tree.filters import FilterList
from rdc.tree.rule_matcher import RuleMatcher
from rdc.tree.rule_roles import destination_rules, source_rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import TypeAlias

    from rdc.tree.rule_files import RuleFileReader
    from rdc.tree.rule_roles import Rule
    from rdc.tree.rule_scope import RuleScope

__all__ = ["DirectoryFilters", "FilterRole"]


@dataclass(frozen=True, slots=True)
class FilterRole:
    """What the rules decide: which entries take part, or which ones a sync must not delete."""

    protects: bool
    delete_excluded: bool = False

    def rules(self, rules: Iterable[Rule], *, emptied: bool = False) -> list[Rule]:
        """The rules that count. `emptied`: in a directory that is being deleted."""
        if not self.protects:
            return source_rules(rules)
        return destination_rules(rules, delete_excluded=self.delete_excluded, emptied=emptied)


class _Slot:
    """Where per-directory rules stand in a list. Two slots are never equal."""

    def __init__(self, rules: DirectoryRules) -> None:
        self.rules = rules


_Items: TypeAlias = "tuple[FilterList | _Slot, ...]"


@dataclass(frozen=True, slots=True)
class _Compiled:
    """The rules of one file, or of the whole list."""

    items: _Items
    emptied: _Items
    """Without the perishable ones."""


@dataclass(frozen=True, slots=True)
class _State:
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
        """`base`: the absolute path of the root. `scope`: where rule files count. `keeps`: they count as they
        are at the first look."""
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
        """Whether the name is one of the rule files that were read so far."""
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
        """The rules that hold in a directory. Raises FileError."""
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
        """Keeps only the states of a directory and of those above it."""
        kept: dict[bytes, _State | FileError] = {}
        while directory is not None and directory in self._states:
            kept[directory] = self._states[directory]
            directory = directory.rpartition(b"/")[0] if directory else None
        self._states = kept
        self._files = self._file_bytes = 0

    def _entered(self, directory: bytes, above: _State) -> _State:
        """The state of a directory. Raises FileError."""
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
        """The rules of the directories above the tree, the nearest first."""
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
        """The rules of a directory's file, and whether they remove inherited ones; None without a file."""
        if rules.syntax is RuleSyntax.CACHE_TAG:
            from rdc.tree.cache_tags import cache_rules

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
                from rdc.tree.git_rules import GitIgnore

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
    """The same rules for what is in directories that are being deleted."""

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
