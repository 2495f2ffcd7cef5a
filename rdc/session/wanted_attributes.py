"""The extended attributes that a destination is told of, until they are set, when all is in place."""

from __future__ import annotations

from array import array
from bisect import bisect_left

from rdc.errors import ExitCode, ProtocolError, RdcError
from rdc.limits import ATTRIBUTES_HELD_BYTES
from rdc.model.attributes import ACCESS_ACL, UNREADABLE, group_bits, unpack_attributes
from rdc.model.entries import Kind, Listing
from rdc.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from rdc.model.attributes import AttributeKinds
    from rdc.protocol.messages import EntryAttributes
    from rdc.session.tree_attributes import EntrySet
    from rdc.tree.manifest import Manifest
    from rdc.tree.row_map import RowMap

__all__ = ["WantedAttributes"]

_GROUP = 0o70
_TOLD, _NEW = 1, 2


class WantedAttributes:
    """Eight bytes for each entry that has any; equal sets are held once."""

    def __init__(self, kinds: AttributeKinds) -> None:
        self.kinds = kinds
        """Those that both sides agreed to keep."""
        self._ordinals = array("I")
        self._numbers = array("I")
        self._sets: list[bytes] = []
        self._known: dict[bytes, int] = {}
        self._held = 0
        self._groups: dict[int, int] = {}
        """Of sets with an access ACL: what it lets the owning group do."""
        self._notes = bytearray()
        """A byte a row, of these bits."""
        self.root_told = False
        """As `is_told`, of the tree's own directory."""

    @property
    def highest(self) -> int:
        """The last ordinal that was told of; 0: the root's, or none."""
        return self._ordinals[-1] if self._ordinals else 0

    def extend(self, message: EntryAttributes) -> None:
        """ProtocolError for kinds that were not agreed on, RdcError for more than is held."""
        numbers = [self._number(packed) for packed in message.sets]
        self._ordinals.extend(message.entries)
        self._numbers.extend([numbers[number] for number in message.numbers])

    def hold(self, sets: Iterable[EntrySet]) -> bool:
        """Takes what was read here, in order; False where that is more than is held."""
        try:
            for one in sets:
                self._numbers.append(self._number(one.packed))
                self._ordinals.append(one.ordinal)
        except RdcError:
            return False
        return True

    def adopt(self, other: WantedAttributes, rows: RowMap) -> bool:
        """Takes, in place of what is here, what `other` has of another manifest's rows. False where one has
        no row here, or the order is another."""
        ordinals = array("I")
        last = -1
        for ordinal in other._ordinals:
            row = rows.row(ordinal - 1) if ordinal else -1
            if row is None or row + 1 <= last:
                return False
            last = row + 1
            ordinals.append(last)
        self._ordinals, self._numbers = ordinals, other._numbers
        self._sets, self._known, self._groups = other._sets, other._known, other._groups
        return True

    def guard(self, manifest: Manifest) -> None:
        """As `guarded`, of all files of a manifest that was told without a listing. Its directories have
        their ACLs already, of which a mode with less would only take the mask away."""
        modes: dict[int, int] = {}
        for ordinal, number in zip(self._ordinals, self._numbers, strict=True):
            may = self._groups.get(number)
            if may is not None and ordinal and manifest.kinds[ordinal - 1] == Kind.FILE:
                at = 2 * (ordinal - 1)
                mode = int.from_bytes(manifest.modes[at : at + 2], "little")
                modes[ordinal - 1] = mode & (~_GROUP | may)
        if modes:
            manifest.set_modes(modes)

    def _number(self, packed: bytes) -> int:
        known = self._known.get(packed)
        if known is not None:
            return known
        self._held += len(packed)
        if self._held > ATTRIBUTES_HELD_BYTES:
            raise RdcError(
                f"the source has more than {ATTRIBUTES_HELD_BYTES} bytes of different extended attributes;"
                " sync parts of it by themselves, or leave out -X",
                code=ExitCode.PARTIAL,
            )
        number = self._known[packed] = len(self._sets)
        self._sets.append(packed)
        if packed != UNREADABLE:
            attributes = dict(unpack_attributes(packed))
            odd = [name for name in attributes if not self.kinds.has(name)]
            if odd:
                raise ProtocolError(f"an extended attribute {odd[0]!r}, which nobody asked for")
            if ACCESS_ACL in attributes:
                self._groups[number] = group_bits(attributes[ACCESS_ACL])
        return number

    def of(self, first: int, count: int) -> dict[int, bytes]:
        """Of rows from `first` on, which ones have what, by their place among these."""
        start = bisect_left(self._ordinals, first + 1)
        stop = bisect_left(self._ordinals, first + 1 + count, start)
        return {self._ordinals[at] - first - 1: self._sets[self._numbers[at]] for at in range(start, stop)}

    def of_root(self) -> bytes:
        """What the tree's own directory is to have."""
        return self._sets[self._numbers[0]] if self._ordinals and not self._ordinals[0] else b""

    def guarded(self, first: int, listing: Listing) -> Listing:
        """A directory's entries as they are made before their ACLs are there: a mode has an ACL's mask for
        its group, which without the ACL would let the group do what only named users may."""
        if not self._groups:
            return listing
        modes = listing.modes[:]
        start = bisect_left(self._ordinals, first + 1)
        stop = bisect_left(self._ordinals, first + 1 + len(listing), start)
        for at in range(start, stop):
            may = self._groups.get(self._numbers[at])
            if may is not None:
                row = self._ordinals[at] - first - 1
                modes[row] &= ~_GROUP | may
        return replace(listing, modes=modes)

    def guarded_mode(self, row: int, mode: int) -> int:
        """The same of one entry's; row -1 is the tree's own directory."""
        at = bisect_left(self._ordinals, row + 1)
        if at < len(self._ordinals) and self._ordinals[at] == row + 1:
            return mode & (~_GROUP | self._groups.get(self._numbers[at], _GROUP))
        return mode

    def note_told(self, rows: Iterable[int], *, new: bool = False) -> None:
        """The user is told that something else of these rows differs, which then stands for their attributes
        as well. `new`: nothing of their kind was at their paths."""
        for row in rows:
            if row >= len(self._notes):
                self._notes += bytes(row + 1 - len(self._notes))
            self._notes[row] |= _TOLD | _NEW if new else _TOLD

    def note_moved(self, row: int) -> None:
        """What was new at its path is a file that was here: it has brought its attributes along."""
        if self.is_new(row):
            self._notes[row] ^= _NEW

    def is_told(self, row: int) -> bool:
        return row < len(self._notes) and bool(self._notes[row] & _TOLD)

    def is_new(self, row: int) -> bool:
        return row < len(self._notes) and bool(self._notes[row] & _NEW)
