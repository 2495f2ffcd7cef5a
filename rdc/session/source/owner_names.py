"""The names of a source's owners, each announced once."""

from __future__ import annotations

import os

from rdc.errors import ExitCode, RdcError
from rdc.limits.wire import OWNER_NAME_BYTES, OWNERS, OWNERS_PER_MESSAGE
from rdc.model.entries import little_endian_integers
from rdc.protocol.messages import Owners
from rdc.session.runtime.commands import Send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rdc.model.entries import PackedListing
    from rdc.session.runtime.commands import Conversation
    from rdc.tree.manifest import Manifest

__all__ = ["OwnerNames"]


class OwnerNames:
    """Remembers which ids were announced."""

    def __init__(self) -> None:
        self._users: set[int] = set()
        self._groups: set[int] = set()

    def announce(self, uids: bytes | bytearray, gids: bytes | bytearray) -> Iterator[Owners]:
        """The messages that have to precede entries with these columns of ids, u32 little-endian.

        Raises RdcError for more owners than a destination takes.
        """
        users, groups = _unannounced(self._users, uids), _unannounced(self._groups, gids)
        if max(len(self._users), len(self._groups)) > OWNERS:
            raise RdcError(
                f"SRC has more than {OWNERS:,} users or groups, which cannot be kept by name: use"
                " --numeric-ids, without --usermap, --groupmap and --chown",
                code=ExitCode.PARTIAL,
            )
        for at in range(0, max(len(users), len(groups)), OWNERS_PER_MESSAGE):
            some = slice(at, at + OWNERS_PER_MESSAGE)
            yield _named(users[some], groups[some])

    def send(self, columns: PackedListing | Manifest, round_: int) -> Conversation[None]:
        """Sends the names of owners of entries that are sent next."""
        for message in self.announce(columns.uids, columns.gids):
            yield Send(message, round_)

    def first(self, uid: int, gid: int) -> Owners:
        """The message about the owners of the tree's top."""
        self._users.add(uid)
        self._groups.add(gid)
        return _named([uid], [gid])


def _unannounced(announced: set[int], column: bytes | bytearray) -> list[int]:
    """The ids of a column that were not announced, which count as announced from now on."""
    new = sorted(set(little_endian_integers("I", column)) - announced)
    announced.update(new)
    return new


def _named(users: list[int], groups: list[int]) -> Owners:
    import grp
    import pwd

    return Owners(
        tuple(users),
        tuple([_name(lambda uid: pwd.getpwuid(uid).pw_name, uid) for uid in users]),
        tuple(groups),
        tuple([_name(lambda gid: grp.getgrgid(gid).gr_name, gid) for gid in groups]),
    )


def _name(look_up: Callable[[int], str], number: int) -> bytes:
    """The name of an id; b"" for none."""
    try:
        name = os.fsencode(look_up(number))
    except (KeyError, OverflowError):
        return b""
    return name if len(name) <= OWNER_NAME_BYTES and b"\0" not in name else b""
