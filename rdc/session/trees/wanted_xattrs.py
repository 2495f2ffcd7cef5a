"""Stores the extended attributes that a source announces until the destination sets them."""

from __future__ import annotations

from array import array
from bisect import bisect_left

from rdc.errors import ExitCode, ProtocolError, RdcError
from rdc.lean.records import replace
from rdc.limits.wire import ATTRIBUTES_PENDING_BYTES
from rdc.model.entries import NODES, Kind, Listing
from rdc.model.preserved import (
    ACCESS_ACL,
    FAKED_PREFIX,
    UNREADABLE,
    AttributeKinds,
    bits_before_acl,
    pack_attributes,
    unpack_attributes,
)
from rdc.plan.compare import Change

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from rdc.plan.compare import Comparison
    from rdc.protocol.messages import EntryAttributes
    from rdc.session.trees.tree_xattrs import EntrySet
    from rdc.tree.manifest import Manifest
    from rdc.tree.row_map import RowMap

__all__ = ["WantedXattrs"]

_OTHERS = 0o77
_GUARDED = NODES | {Kind.FILE}
_REPORTED, _NEW = 1, 2


class WantedXattrs:
    """Stores eight bytes per entry that has attributes; equal sets are stored once.

    Entries are named by manifest rows. An ordinal is a row plus 1; ordinal 0 is the tree's root directory.
    """

    def __init__(self, kinds: AttributeKinds, *, guards: bool = True) -> None:
        self.guards = guards
        """Whether modes are narrower until entries have their access ACLs; see bits_before_acl. Not where an
        ACL is only kept, and the mode does not depend on it."""
        self.kinds = kinds
        """The kinds that both sides preserve."""
        self._ordinals = array("I")
        self._numbers = array("I")
        self._sets: list[bytes] = []
        self._known: dict[bytes, int] = {}
        self._pending_bytes = 0
        self._before: dict[int, int] = {}
        """For sets with an access ACL, the group and other bits that a mode may have before the ACL is
        set."""
        self._notes = bytearray()
        """One byte per row, of the bits _TOLD and _NEW."""
        self._root_reported = False

    @property
    def highest(self) -> int:
        """The highest ordinal with attributes; 0 if only the root has any, or nothing."""
        return self._ordinals[-1] if self._ordinals else 0

    def extend(self, message: EntryAttributes) -> None:
        """Adds announced attributes. Raises ProtocolError for kinds that were not agreed on, RdcError for
        too many."""
        numbers = [self._number(packed) for packed in message.sets]
        self._ordinals.extend(message.entries)
        self._numbers.extend([numbers[number] for number in message.numbers])

    def hold(self, sets: Iterable[EntrySet]) -> bool:
        """Adds attributes of local entries, in order. False if they are too many."""
        try:
            for one in sets:
                self._numbers.append(self._number(one.packed))
                self._ordinals.append(one.ordinal)
        except RdcError:
            return False
        return True

    def take_over(self, other: WantedXattrs, rows: RowMap) -> bool:
        """Replaces the stored attributes by those of `other`, whose rows `rows` translates.

        Returns False if an entry has no row here or the order differs.
        """
        ordinals = array("I")
        last = -1
        for ordinal in other._ordinals:
            row = rows.row(ordinal - 1) if ordinal else -1
            if row is None or row + 1 <= last:
                return False
            last = row + 1
            ordinals.append(last)
        self._ordinals, self._numbers = ordinals, other._numbers
        self._sets, self._known, self._before = other._sets, other._known, other._before
        return True

    def guard(self, manifest: Manifest) -> None:
        """Like `guarded` for all files and special files of a manifest that came without listings.

        Directories are left out: they have their ACLs already, and a narrower mode would only remove the
        mask.
        """
        modes: dict[int, int] = {}
        for ordinal, number in zip(self._ordinals, self._numbers, strict=True):
            may = self._before.get(number)
            if may is not None and ordinal and manifest.kinds[ordinal - 1] in _GUARDED:
                at = 2 * (ordinal - 1)
                mode = int.from_bytes(manifest.modes[at : at + 2], "little")
                modes[ordinal - 1] = mode & (~_OTHERS | may)
        if modes:
            manifest.set_modes(modes)

    def _number(self, packed: bytes) -> int:
        known = self._known.get(packed)
        if known is not None:
            return known
        self._pending_bytes += len(packed)
        if self._pending_bytes > ATTRIBUTES_PENDING_BYTES:
            raise RdcError(
                f"the source has more than {ATTRIBUTES_PENDING_BYTES} bytes of different extended attributes;"
                " sync parts of it by themselves, or leave out -X",
                code=ExitCode.PARTIAL,
            )
        number = self._known[packed] = len(self._sets)
        self._sets.append(packed)
        if packed != UNREADABLE:
            attributes = dict(unpack_attributes(packed))
            if any(name.startswith(FAKED_PREFIX) for name in attributes):
                # An older source sends them. They count as absent.
                attributes = {
                    name: value for name, value in attributes.items() if not name.startswith(FAKED_PREFIX)
                }
                self._sets[number] = pack_attributes(tuple(attributes.items()))
            odd = [name for name in attributes if not self.kinds.has(name)]
            if odd:
                raise ProtocolError(f"an extended attribute {odd[0]!r}, which nobody asked for")
            if ACCESS_ACL in attributes and self.guards:
                self._before[number] = bits_before_acl(attributes[ACCESS_ACL])
        return number

    def of(self, first: int, count: int) -> dict[int, bytes]:
        """The packed attributes of `count` rows from `first` on, by row relative to `first`."""
        start = bisect_left(self._ordinals, first + 1)
        stop = bisect_left(self._ordinals, first + 1 + count, start)
        return {self._ordinals[at] - first - 1: self._sets[self._numbers[at]] for at in range(start, stop)}

    def acl_of(self, row: int) -> bytes | None:
        """The access ACL that an entry gets; b"" for none. Row -1 is the tree's root directory.

        None if the run does not preserve ACLs or the source could not read this one.
        """
        if AttributeKinds.ACL not in self.kinds:
            return None
        packed = self.of_root() if row < 0 else self.of(row, 1).get(0, b"")
        return None if packed == UNREADABLE else dict(unpack_attributes(packed)).get(ACCESS_ACL, b"")

    def of_root(self) -> bytes:
        """The packed attributes of the tree's root directory."""
        return self._sets[self._numbers[0]] if self._ordinals and not self._ordinals[0] else b""

    def guarded(self, first: int, listing: Listing) -> Listing:
        """A directory's listing with the modes that entries have before their ACLs; see bits_before_acl."""
        if not self._before:
            return listing
        modes = listing.modes[:]
        start = bisect_left(self._ordinals, first + 1)
        stop = bisect_left(self._ordinals, first + 1 + len(listing), start)
        for at in range(start, stop):
            may = self._before.get(self._numbers[at])
            if may is not None:
                row = self._ordinals[at] - first - 1
                modes[row] &= ~_OTHERS | may
        return replace(listing, modes=modes)

    def guarded_mode(self, row: int, mode: int) -> int:
        """The mode of one entry before its ACL is set. Row -1 is the tree's root directory."""
        at = bisect_left(self._ordinals, row + 1)
        if at < len(self._ordinals) and self._ordinals[at] == row + 1:
            return mode & (~_OTHERS | self._before.get(self._numbers[at], _OTHERS))
        return mode

    def note_reported(self, rows: Iterable[int], *, new: bool = False) -> None:
        """Notes rows that the run reports for another difference, so their attributes need no report.

        `new`: no entry of the same kind was at their paths.
        """
        for row in rows:
            if row >= len(self._notes):
                self._notes += bytes(row + 1 - len(self._notes))
            self._notes[row] |= _REPORTED | _NEW if new else _REPORTED

    def note_compared(self, first: int, comparison: Comparison) -> None:
        """Like `note_reported` for the entries of a directory that a comparison reports. `first`: the row of
        its first entry."""
        self.note_reported([first + row for row in comparison.touched])
        for decision in comparison.decisions:
            new = decision.change in (Change.CREATE, Change.REPLACE)
            if decision.change is not Change.CHECK or decision.difference:
                self.note_reported((first + decision.row,), new=new)

    def note_root_reported(self) -> None:
        """Like `note_reported` for the root directory of the tree."""
        self._root_reported = True

    @property
    def root_reported(self) -> bool:
        """Like `is_reported` for the root directory of the tree."""
        return self._root_reported

    def note_moved(self, row: int) -> None:
        """Notes that a new file is a renamed local file, which has kept its attributes."""
        if self.is_new(row):
            self._notes[row] ^= _NEW

    def is_reported(self, row: int) -> bool:
        """Whether the run reports this row anyway."""
        return row < len(self._notes) and bool(self._notes[row] & _REPORTED)

    def is_new(self, row: int) -> bool:
        """Whether no entry of the same kind was at the row's path."""
        return row < len(self._notes) and bool(self._notes[row] & _NEW)
