"""Options that joined the protocol after the list in record_fields.Options was closed.

Each has a name. Open carries the name and value of each one that differs from its default, and `needs` has
the names, so a side that does not know one refuses the session by name.
"""

from __future__ import annotations

from itertools import pairwise

from rdc.limits.paths import NAME_BYTES, PATH_BYTES
from rdc.limits.sessions import ALTERNATE_DIRECTORIES, DEPTH_LIMIT, WINDOW_SECONDS
from rdc.limits.wire import MODE_CHANGES_BYTES, OWNER_MAP_BYTES, SIZE_LIMIT, UNDO_DAYS
from rdc.model.filter_rules import DirectoryRules, FilterRule, are_plain
from rdc.model.location import FarList
from rdc.model.sync import Alternates, AlternateUse, Backup, KeepUndo, SyncOptions
from rdc.protocol.wire.fields import Blob, Flag, Integer, of_type
from rdc.records import dataclass, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from rdc.protocol.wire.fields import Codec

__all__ = [
    "ADDED_OPTIONS",
    "DISPENSABLE",
    "RULE_PARTS",
    "SELECTION",
    "AddedOptions",
    "NamedValues",
    "SomeRules",
    "added_values",
    "rule_bytes",
    "with_added",
]


@dataclass(frozen=True, slots=True)
class NamedValues:
    """Options by name, in increasing order of names."""

    items: tuple[tuple[str, Any], ...]


class BackupItems:
    """[suffix, directory]; directory is nil for none."""

    SUFFIX = Blob(0, NAME_BYTES)
    DIRECTORY = Blob(1, PATH_BYTES)

    def pack(self, value: Backup) -> object:
        directory = None if value.directory is None else self.DIRECTORY.pack(value.directory)
        return [self.SUFFIX.pack(value.suffix), directory]

    def unpack(self, raw: object) -> Backup:
        items = of_type(raw, tuple)
        if len(items) != 2:
            raise ValueError(f"expected 2 items, found {len(items)}")
        suffix, directory = items
        backup = Backup(
            self.SUFFIX.unpack(suffix), None if directory is None else self.DIRECTORY.unpack(directory)
        )
        if b"/" in suffix or b"\0" in suffix + (directory or b"") or not (suffix or directory):
            raise ValueError("a suffix is the end of a name, and needed without a directory")
        return backup


class ModeChangesText:
    """The items of SyncOptions.chmod, as the user wrote them."""

    def pack(self, value: str) -> object:
        return self._checked(value)

    def unpack(self, raw: object) -> str:
        return self._checked(of_type(raw, str))

    def _checked(self, value: str) -> str:
        from rdc.model.mode_changes import parse_mode_changes

        if not value or len(value.encode()) > MODE_CHANGES_BYTES:
            raise ValueError(f"expected 1 to {MODE_CHANGES_BYTES} bytes")
        parse_mode_changes(value)
        return value


class OwnerMapText:
    """A map of users or groups, as the user wrote it."""

    TEXT = Blob(1, OWNER_MAP_BYTES)

    def pack(self, value: bytes) -> object:
        return self.unpack(value)

    def unpack(self, raw: object) -> bytes:
        from rdc.model.owner_maps import parse_owner_map

        text = self.TEXT.unpack(raw)
        parse_owner_map(text)
        return text


class KeepUndoItems:
    """[bytes, days]; one of them is nil."""

    SIZE = Integer(1, SIZE_LIMIT)
    DAYS = Integer(1, UNDO_DAYS)

    def pack(self, value: KeepUndo) -> object:
        size = None if value.size is None else self.SIZE.pack(value.size)
        return [size, None if value.days is None else self.DAYS.pack(value.days)]

    def unpack(self, raw: object) -> KeepUndo:
        items = of_type(raw, tuple)
        if len(items) != 2 or (items[0] is None) == (items[1] is None):
            raise ValueError("expected bytes or days")
        size, days = items
        return KeepUndo(
            None if size is None else self.SIZE.unpack(size),
            None if days is None else self.DAYS.unpack(days),
        )


class UserPath:
    """The path of a directory or a file, as the user wrote it."""

    PATH = Blob(1, PATH_BYTES)

    def pack(self, value: bytes) -> object:
        return self.unpack(value)

    def unpack(self, raw: object) -> bytes:
        path = self.PATH.unpack(raw)
        if b"\0" in path:
            raise ValueError("a path has a NUL byte")
        return path


class FarListItems:
    """[path, nul, relative]."""

    PATH = UserPath()

    def pack(self, value: FarList) -> object:
        return [self.PATH.pack(value.path), value.nul, value.relative]

    def unpack(self, raw: object) -> FarList:
        items = of_type(raw, tuple)
        if len(items) != 3:
            raise ValueError(f"expected 3 items, found {len(items)}")
        path, nul, relative = items
        return FarList(self.PATH.unpack(path), of_type(nul, bool), of_type(relative, bool))


class AlternatesItems:
    """[use, directory, ...]."""

    DIRECTORY = Blob(1, PATH_BYTES)

    def pack(self, value: Alternates) -> object:
        return [value.use.value, *map(self.DIRECTORY.pack, value.directories)]

    def unpack(self, raw: object) -> Alternates:
        items = of_type(raw, tuple)
        if not 2 <= len(items) <= 1 + ALTERNATE_DIRECTORIES:
            raise ValueError(f"expected 2 to {1 + ALTERNATE_DIRECTORIES} items, found {len(items)}")
        directories = tuple(map(self.DIRECTORY.unpack, items[1:]))
        if any(b"\0" in directory for directory in directories):
            raise ValueError("a directory has a NUL byte")
        return Alternates(AlternateUse(of_type(items[0], str)), directories)


class AllRules:
    """All filter rules, if one of them is more than an action and a pattern."""

    def pack(self, value: tuple[FilterRule | DirectoryRules, ...]) -> object:
        from rdc.protocol.wire.rule_items import RuleItems

        return RuleItems().pack(value)

    def unpack(self, raw: object) -> tuple[FilterRule | DirectoryRules, ...]:
        from rdc.protocol.wire.rule_items import RuleItems

        return RuleItems().unpack(raw)


class SomeRules:
    """Some of the filter rules, each with everything that it says."""

    def pack(self, value: tuple[FilterRule | DirectoryRules, ...]) -> object:
        from rdc.protocol.wire.rule_items import RulePart

        return RulePart().pack(value)

    def unpack(self, raw: object) -> tuple[FilterRule | DirectoryRules, ...]:
        from rdc.protocol.wire.rule_items import RulePart

        return RulePart().unpack(raw)


def rule_bytes(rule: FilterRule | DirectoryRules) -> int:
    """Return the bytes that a rule takes at most on the wire."""
    return 4 + len(rule.pattern if isinstance(rule, FilterRule) else rule.name)


ADDED_OPTIONS: Mapping[str, Codec] = {
    "allocate": Flag(),
    "alternates": AlternatesItems(),
    "append": Flag(),
    "atimes": Flag(),
    "backup": BackupItems(),
    "chmod": ModeChangesText(),
    "copy_dirlinks": Flag(),
    "copy_links": Flag(),
    "copy_unsafe_links": Flag(),
    "delay_updates": Flag(),
    "delete_missing_args": Flag(),
    "depth": Integer(0, DEPTH_LIMIT),
    "devices": Flag(),
    "files_from": FarListItems(),
    "force": Flag(),
    "groupmap": OwnerMapText(),
    "guard": Integer(0, 100, optional=True),
    "ignore_errors": Flag(),
    "ignore_missing_args": Flag(),
    "ignore_times": Flag(),
    "implied_dirs": Flag(),
    "inplace": Flag(),
    "keep_dirlinks": Flag(),
    "keep_undo": KeepUndoItems(),
    "list_unchanged": Flag(),
    "max_delete_share": Integer(0, 100, optional=True),
    "mkpath": Flag(),
    "modify_window": Integer(0, WINDOW_SECONDS),
    "omit_dir_times": Flag(),
    "omit_link_times": Flag(),
    "open_noatime": Flag(),
    "owner_names": Flag(),
    "partial_dir": UserPath(),
    "prune_empty_dirs": Flag(),
    "recursive": Flag(),
    "remove_source_files": Flag(),
    "rules": AllRules(),
    "rules_after": Flag(),
    "safe_links": Flag(),
    "specials": Flag(),
    "super_user": Flag(),
    "temp_dir": UserPath(),
    "usermap": OwnerMapText(),
    "whole_file": Flag(),
}
"""The codec of each such field of SyncOptions, by its name."""

DISPENSABLE = frozenset({"depth", "devices", "specials"})
"""Options that a session can do without: a side that does not know them makes no such entries, or has one
call in flight."""

SELECTION = "selection"
"""The name that an Open needs if Selected messages follow it. It has no value."""

RULE_PARTS = "rule_parts"
"""The name that an Open needs if its filter rules follow it as Rules messages. It has no value."""

_DEFAULTS = SyncOptions()


def added_values(options: SyncOptions) -> NamedValues | None:
    """The options that have to be named in an Open; None for none."""
    values = tuple((name, getattr(options, name)) for name in sorted(ADDED_OPTIONS))
    changed = tuple((name, value) for name, value in values if _is_added(name, value))
    return NamedValues(changed) if changed else None


def _is_added(name: str, value: Any) -> bool:
    """Whether the value differs from the default, and has no place elsewhere in Open."""
    return value != getattr(_DEFAULTS, name) and not (name == "rules" and are_plain(value))


def with_added(options: SyncOptions, values: NamedValues | None) -> SyncOptions:
    """`options` with the values that an Open named."""
    return options if values is None else replace(options, **dict(values.items))


class AddedOptions:
    """[name, value, name, value, ...] with names in increasing order; nil for none. Unknown names are left
    out."""

    optional = True

    def pack(self, value: NamedValues | None) -> object:
        if value is None:
            return None
        return [item for name, field in value.items for item in (name, ADDED_OPTIONS[name].pack(field))]

    def unpack(self, raw: object) -> NamedValues | None:
        if raw is None:
            return None
        items = of_type(raw, tuple)
        names = [of_type(name, str) for name in items[::2]]
        if len(items) % 2 or not names or any(first >= second for first, second in pairwise(names)):
            raise ValueError("expected names in increasing order, a value behind each")
        values = []
        for name, value in zip(names, items[1::2], strict=True):
            codec = ADDED_OPTIONS.get(name)
            if codec is not None:
                try:
                    values.append((name, codec.unpack(value)))
                except ValueError as error:
                    raise ValueError(f"{name}: {error}") from None
        return NamedValues(tuple(values)) if values else None
