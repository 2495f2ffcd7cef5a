"""The options about users and groups."""

from __future__ import annotations

import os

from rdc.cli.options.table import Option, OptionGroup
from rdc.errors import UsageError
from rdc.limits.wire import OWNER_MAP_BYTES
from rdc.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.cli.options.table import Words
    from rdc.model.sync import SyncOptions

__all__ = ["OWNER_GROUP", "with_owners"]

OWNER_GROUP = OptionGroup(
    "Users and groups",
    (
        Option(("--owner",), "keep owners and groups, root or not"),
        Option(("--no-owner", "--no-o"), "never keep owners and groups"),
        Option(("--super",), "set owners and make devices, root or not, as far as the system lets"),
        Option(
            ("--fake-super",),
            "keep owners, devices and the like in extended attributes, in rsync's form, on this machine",
        ),
        Option(("--numeric-ids",), "keep owners and groups by number (default)"),
        Option(("--no-numeric-ids",), "keep them by name where DST has the name, else by number"),
        Option(("--usermap",), "what users become: FROM:TO items, such as 0-99:nobody,wayne:admin", "MAP"),
        Option(("--groupmap",), "the same for groups, such as *:users", "MAP"),
        Option(("--chown",), "give everything to this user and group; one of them may be left out", "OWNER"),
    ),
)


_KEYS = tuple(option.key for option in OWNER_GROUP.options)


def with_owners(options: SyncOptions, words: Words) -> SyncOptions:
    """Returns `options` with the choices of OWNER_GROUP. Raises UsageError."""
    if not words.has(*_KEYS):
        return options
    names = words.last("--numeric-ids", "--no-numeric-ids")
    users, groups = _maps(words)
    options = replace(
        options,
        owner=_owner(words),
        owner_names=names is not None and names.key == "--no-numeric-ids",
        usermap=users,
        groupmap=groups,
        fake_super=words.has("--fake-super"),
        super_user=words.has("--super"),
    )
    if options.fake_super:
        from rdc.session.trees.faked_trees import check_faked

        check_faked(options)
    if options.maps_owners:
        _check(options, words)
    return options


def _owner(words: Words) -> bool | None:
    """Whether owners are kept; None for where this is root. As in rsync, -o takes --no-owner back."""
    found: bool | None = None
    for given in words.given:
        if given.key in {"--owner", "--no-owner"}:
            found = given.key == "--owner"
        elif given.key == "-o":
            found = found or None
    return found


def _maps(words: Words) -> tuple[bytes, bytes]:
    """Returns the maps of users and of groups. --chown=USER:GROUP is one of both, as in rsync."""
    users, groups = _values(words, "--usermap"), _values(words, "--groupmap")
    for value in _values(words, "--chown"):
        user, _, group = value.partition(b":")
        if not (user or group) or b"," in user + group:
            raise UsageError(f"--chown={os.fsdecode(value)}: expected USER:GROUP, USER or :GROUP")
        users += [b"*:" + user] if user else []
        groups += [b"*:" + group] if group else []
    return _one_map("--usermap", users), _one_map("--groupmap", groups)


def _values(words: Words, name: str) -> list[bytes]:
    return [os.fsencode(given.value) for given in words.given if given.key == name]


def _one_map(name: str, maps: list[bytes]) -> bytes:
    """Returns the only map; b"" for none. Raises UsageError for several, or a wrong one."""
    from rdc.model.owner_maps import parse_owner_map

    if not maps:
        return b""
    if len(maps) > 1:
        raise UsageError(f"{name} counts once, and --chown is such a map: join the items by commas")
    (text,) = maps
    if len(text) > OWNER_MAP_BYTES:
        raise UsageError(f"{name}: {len(text)} bytes, the limit is {OWNER_MAP_BYTES}")
    try:
        parse_owner_map(text)
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from None
    return text


def _check(options: SyncOptions, words: Words) -> None:
    given = words.last("--usermap", "--groupmap", "--chown", "--no-numeric-ids")
    name = "" if given is None else given.key
    if options.owner is False:
        raise UsageError(f"{name} and --no-owner exclude each other")
    if options.acls:
        raise UsageError(f"{name} and --acls exclude each other: ACLs name users by their numbers")
