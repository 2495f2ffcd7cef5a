"""Maps each owner at the source to a user and a group of this machine.

Only the side that applies owners maps them, so no source chooses an id that the user's maps do not give.
"""

from __future__ import annotations

import sys
from array import array

from rdc.errors import ProtocolError, UsageError, printable
from rdc.lean.records import Record, field, replace
from rdc.model.entries import Listing, Metadata, little_endian, little_endian_integers
from rdc.model.options import OwnerRule, parse_owner_map

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rdc.kernel import PatternSet
    from rdc.model.sync import SyncOptions
    from rdc.protocol.messages import Owners
    from rdc.tree.manifest import Manifest


NO_ID = 0xFFFF_FFFF
"""The id that nobody has."""


class Rule(Record):
    """An item of a map, as it counts on this machine."""

    item: OwnerRule
    to: int
    pattern: PatternSet | None

    def matches(self, number: int, name: bytes) -> bool:
        """Return whether it is about the source's id `number`, whose name is `name`; b"" for none."""
        item = self.item
        if item.name is None:
            return item.lowest <= number <= item.highest
        return name == item.name if self.pattern is None else self.pattern.first(name, False) == 0


class IdMapping(Record, frozen=False):
    """Users, or groups: the first rule that matches counts, then the same name here, then the number."""

    rules: tuple[Rule, ...]
    look_up: Callable[[bytes], int | None] | None
    """The id of a name on this machine; None: names count in rules alone."""
    names: dict[int, bytes] = field(default_factory=dict)
    """The source's ids that were announced, with their names."""
    known: dict[int, int] = field(default_factory=dict)
    """The decisions so far."""

    def mapped_id(self, number: int) -> int:
        """Return the id on this machine that the source's id becomes. Raises ProtocolError for one that was
        not announced."""
        found = self.known.get(number)
        if found is None:
            name = self.names.get(number)
            if name is None:
                raise ProtocolError(f"the remote side tells of owner {number}, whose name it did not tell")
            found = self.known[number] = self._decided(number, name)
        return found

    def _decided(self, number: int, name: bytes) -> int:
        for rule in self.rules:
            if rule.matches(number, name):
                return rule.to
        # Root is never taken for another user because of a name, as in rsync.
        found = self.look_up(name) if self.look_up is not None and name and number else None
        return number if found is None else found

    def announce(self, numbers: Iterable[int], names: Iterable[bytes]) -> None:
        """Take names of the source's ids. Only the first name of an id counts."""
        for number, name in zip(numbers, names, strict=True):
            self.names.setdefault(number, name)

    @property
    def changes(self) -> bool:
        """Return whether an announced id becomes another one."""
        return any(self.mapped_id(number) != number for number in self.names)

    def mapped(self, column: array[int]) -> array[int]:
        """Return a column of the source's ids as ids of this machine; the column itself if nothing
        changes."""
        if all(self.mapped_id(number) == number for number in set(column)):
            return column
        return array("I", map(self.mapped_id, column))

    def unmapped(self, column: array[int]) -> array[int]:
        """Return a column of ids of this machine as announced ids that become them.

        Where several do, it is the least of them. Where none does, it is an id that no source has.
        """
        sources: dict[int, int] = {}
        for number in sorted(self.names):
            sources.setdefault(self.mapped_id(number), number)
        return array("I", [sources.get(number, NO_ID) for number in column])


class OwnerMapping(Record, frozen=False):
    """The mapping of one session. The source announces ids with their names before entries that have them."""

    users: IdMapping
    groups: IdMapping
    applies: bool = True
    """True if owners are kept. Otherwise none changes."""
    own: tuple[bytearray, bytearray] | None = None
    """The columns that `unmapped` replaced."""

    def take(self, message: Owners) -> None:
        """Take announced names."""
        self.users.announce(message.users, message.user_names)
        self.groups.announce(message.groups, message.group_names)

    def metadata(self, metadata: Metadata) -> Metadata:
        """Return the metadata of the source's entry, with owners of this machine."""
        if not self.applies:
            return metadata
        uid, gid = self.users.mapped_id(metadata.uid), self.groups.mapped_id(metadata.gid)
        return replace(metadata, uid=uid, gid=gid)

    def listing(self, listing: Listing) -> Listing:
        """Return the source's entries, with owners of this machine."""
        if not self.applies:
            return listing
        uids, gids = self.users.mapped(listing.uids), self.groups.mapped(listing.gids)
        if uids is listing.uids and gids is listing.gids:
            return listing
        return replace(listing, uids=uids, gids=gids)

    @property
    def changes(self) -> bool:
        """Return whether an announced owner becomes another one."""
        return self.applies and (self.users.changes or self.groups.changes)

    def as_at_source(self, metadata: Metadata) -> Metadata:
        """Return the metadata of this machine, with the owners that the source has if nothing is to be
        changed."""
        uids, gids = (
            self.users.unmapped(array("I", [metadata.uid])),
            self.groups.unmapped(array("I", [metadata.gid])),
        )
        return replace(metadata, uid=uids[0], gid=gids[0])

    def mapped(self, manifest: Manifest) -> None:
        """Replace the source's owners in its manifest by owners of this machine."""
        if self.applies:
            _replace(manifest, self.users.mapped, self.groups.mapped)

    def unmapped(self, manifest: Manifest) -> None:
        """Replace owners of this machine by the source's, so that equal trees have equal digests, until
        `restore`."""
        self.own = manifest.uids, manifest.gids
        _replace(manifest, self.users.unmapped, self.groups.unmapped)

    def restore(self, manifest: Manifest) -> None:
        """Give a manifest the owners back that `unmapped` replaced."""
        if self.own is not None:
            manifest.set_owners(*self.own)
            self.own = None


def _replace(
    manifest: Manifest,
    users: Callable[[array[int]], array[int]],
    groups: Callable[[array[int]], array[int]],
) -> None:
    uids = users(little_endian_integers("I", manifest.uids))
    gids = groups(little_endian_integers("I", manifest.gids))
    manifest.set_owners(bytearray(little_endian(uids)), bytearray(little_endian(gids)))


def owner_mapping(options: SyncOptions) -> OwnerMapping:
    """Return the mapping that the options ask for. Raises UsageError for a name that this machine does not
    have."""
    users = _rules("--usermap", "user", options.usermap, _look_up_user)
    groups = _rules("--groupmap", "group", options.groupmap, _look_up_group)
    by_name = options.owner_names
    return OwnerMapping(
        IdMapping(users, _look_up_user if by_name else None),
        IdMapping(groups, _look_up_group if by_name else None),
    )


def _rules(option: str, kind: str, text: bytes, look_up: Callable[[bytes], int | None]) -> tuple[Rule, ...]:
    if not text:
        return ()
    try:
        items = parse_owner_map(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from None
    rules = []
    for item in items:
        number = look_up(item.to) if item.number is None else item.number
        if number is None:
            # --chown arrives as such a map, so this message is about either.
            given = f"--chown or {option}" if len(items) == 1 and item.item.startswith(b"*:") else option
            raise UsageError(
                f"{given}: {printable(item.item)}: DST has no {kind} '{printable(item.to)}'; give a number"
            )
        pattern = None
        if item.wild and item.name is not None:
            from rdc.kernel import PatternSet

            pattern = PatternSet((item.name,), bytes(1))
        rules.append(Rule(item, number, pattern))
    return tuple(rules)


def _look_up_user(name: bytes) -> int | None:
    import pwd

    try:
        return pwd.getpwnam(_text(name)).pw_uid
    except (KeyError, ValueError):
        return None


def _look_up_group(name: bytes) -> int | None:
    import grp

    try:
        return grp.getgrnam(_text(name)).gr_gid
    except (KeyError, ValueError):
        return None


def _text(name: bytes) -> str:
    return name.decode(sys.getfilesystemencoding(), "surrogateescape")
