"""Extended attributes of a tree: read and announced by a source, kept by a destination until it sets them."""

from __future__ import annotations

from array import array
from bisect import bisect_left

from blake3 import blake3

from rdc.errors import ExitCode, FileChangedError, FileError, ProtocolError, RdcError, printable
from rdc.files.base.paths import join
from rdc.files.facts.xattrs import read_directory_attributes, read_top_attributes
from rdc.lean.records import Record, replace
from rdc.limits import ATTRIBUTE_SET_BYTES, ATTRIBUTES_PENDING_BYTES
from rdc.model.entries import NODES, Kind, Listing, PackedListing, strings
from rdc.model.preserved import (
    ACCESS_ACL,
    FAKED_PREFIX,
    UNREADABLE,
    AttributeKinds,
    Attributes,
    bits_before_acl,
    pack_attributes,
    unpack_attributes,
)
from rdc.plan.compare import Change, Comparison
from rdc.progress import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rdc.files.root.root import Root
    from rdc.protocol.messages import EntryAttributes
    from rdc.tree.manifest import Manifest, RowMap


class EntrySet(Record):
    """The extended attributes of one entry."""

    ordinal: int
    """The entry's manifest row plus 1; 0 is the tree's root directory."""
    packed: bytes
    """The attributes as pack_attributes encodes them; never empty."""


class TreeXattrs:
    """Reads the attributes of one walk after another."""

    def __init__(
        self, root: Root, kinds: AttributeKinds, report: Callable[[Problem], None] | None = None
    ) -> None:
        """`report`: takes a Problem for each entry that cannot be read or sent; it counts as UNREADABLE."""
        self._root = root
        self._kinds = kinds
        self._report = report
        self._hasher = blake3()

    def begin(self, *, top: bool) -> list[EntrySet]:
        """Begin a walk. Returns the root directory's attributes; `top`: whether they count."""
        self._hasher = blake3(b"rdc 1 attributes")
        if not top:
            return []
        existing: Attributes | OSError
        try:
            existing = read_top_attributes(self._root, self._kinds.of(Kind.DIRECTORY))
        except OSError as error:
            existing = error
        packed = self._packed(b"", b".", existing)
        if not packed:
            return []
        self._note(b"", packed)
        return [EntrySet(0, packed)]

    def read(self, path: bytes, first: int, listing: PackedListing) -> list[EntrySet]:
        """Return the attributes of a directory's entries that have any. `first`: manifest row of its first
        entry."""
        found: list[EntrySet] = []
        kinds = [self._kinds.of(kind) for kind in listing.kinds]

        def take(row: int, name: bytes, packed: bytes) -> None:
            self._note(join(path, name), packed)
            found.append(EntrySet(first + row + 1, packed))

        left = 0
        try:
            for row, name, there in read_directory_attributes(self._root, path, listing.names, self._kinds):
                existing = there if isinstance(there, OSError) else kinds[row].chosen(there)
                if existing and kinds[row]:
                    take(row, name, self._packed(path, name, existing))
                left = row + 1
        except FileChangedError:
            pass  # the directory vanished or was replaced; other steps miss its entries, too
        except FileError as error:
            # UNREADABLE differs from no attributes: the destination would remove its own.
            self._report_problem(path, f"{error}; DST keeps the extended attributes that it has there")
            for row, name in enumerate(strings(listing.names)[left:], left):
                take(row, name, UNREADABLE)
        return found

    def digest(self) -> bytes:
        """Return a digest of 32 bytes over all attributes of this walk, with paths.

        It is equal for trees whose entries have equal attributes, whatever else differs.
        """
        return self._hasher.digest()

    def _note(self, path: bytes, packed: bytes) -> None:
        self._hasher.update(b"%b\0%b%b" % (path, len(packed).to_bytes(4, "little"), packed))

    def _packed(self, path: bytes, name: bytes, existing: Attributes | OSError) -> bytes:
        if isinstance(existing, OSError):
            return self._unreadable(path, name, existing.strerror or type(existing).__name__)
        packed = pack_attributes(existing)
        if len(packed) > ATTRIBUTE_SET_BYTES:
            return self._unreadable(
                path, name, f"they are {len(packed)} bytes, {ATTRIBUTE_SET_BYTES} the most"
            )
        return packed

    def _unreadable(self, path: bytes, name: bytes, why: str) -> bytes:
        entry = path if name == b"." else join(path, name)
        shown = printable(self._root.shown(entry))
        self._report_problem(
            entry, f"{shown}: cannot read its extended attributes: {why}; DST keeps those that it has"
        )
        return UNREADABLE

    def _report_problem(self, entry: bytes, text: str) -> None:
        if self._report is not None:
            self._report(Problem(ExitCode.PARTIAL, entry, text))


_OTHERS = 0o77
_GUARDED = NODES | {Kind.FILE}
_REPORTED, _NEW = 1, 2


class WantedXattrs:
    """Stores eight bytes per entry that has attributes; equal sets are stored once.

    Entries are named by manifest rows. An ordinal is a row plus 1; ordinal 0 is the tree's root directory.
    """

    def __init__(self, kinds: AttributeKinds, *, guards: bool = True) -> None:
        self.guards = guards
        """True if modes are narrower until entries have their access ACLs; see bits_before_acl. Not where an
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
        """Add announced attributes. Raises ProtocolError for kinds that were not agreed on, RdcError for
        too many."""
        numbers = [self._number(packed) for packed in message.sets]
        self._ordinals.extend(message.entries)
        self._numbers.extend([numbers[number] for number in message.numbers])

    def hold(self, sets: Iterable[EntrySet]) -> bool:
        """Add attributes of local entries, in order. False if they are too many."""
        try:
            for one in sets:
                self._numbers.append(self._number(one.packed))
                self._ordinals.append(one.ordinal)
        except RdcError:
            return False
        return True

    def take_over(self, other: WantedXattrs, rows: RowMap) -> bool:
        """Replace the stored attributes by those of `other`, whose rows `rows` translates.

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
        """Return the packed attributes of `count` rows from `first` on, by row relative to `first`."""
        start = bisect_left(self._ordinals, first + 1)
        stop = bisect_left(self._ordinals, first + 1 + count, start)
        return {self._ordinals[at] - first - 1: self._sets[self._numbers[at]] for at in range(start, stop)}

    def acl_of(self, row: int) -> bytes | None:
        """Return the access ACL that an entry gets; b"" for none. Row -1 is the tree's root directory.

        None if the run does not preserve ACLs or the source could not read this one.
        """
        if AttributeKinds.ACL not in self.kinds:
            return None
        packed = self.of_root() if row < 0 else self.of(row, 1).get(0, b"")
        return None if packed == UNREADABLE else dict(unpack_attributes(packed)).get(ACCESS_ACL, b"")

    def of_root(self) -> bytes:
        """Return the packed attributes of the tree's root directory."""
        return self._sets[self._numbers[0]] if self._ordinals and not self._ordinals[0] else b""

    def guarded(self, first: int, listing: Listing) -> Listing:
        """Return a directory's listing with the modes that entries have before their ACLs; see
        bits_before_acl."""
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
        """Return the mode of one entry before its ACL is set. Row -1 is the tree's root directory."""
        at = bisect_left(self._ordinals, row + 1)
        if at < len(self._ordinals) and self._ordinals[at] == row + 1:
            return mode & (~_OTHERS | self._before.get(self._numbers[at], _OTHERS))
        return mode

    def note_reported(self, rows: Iterable[int], *, new: bool = False) -> None:
        """Note rows that the run reports for another difference, so their attributes need no report.

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
        """Note that a new file is a renamed local file, which has kept its attributes."""
        if self.is_new(row):
            self._notes[row] ^= _NEW

    def is_reported(self, row: int) -> bool:
        """Return whether the run reports this row anyway."""
        return row < len(self._notes) and bool(self._notes[row] & _REPORTED)

    def is_new(self, row: int) -> bool:
        """Return whether no entry of the same kind was at the row's path."""
        return row < len(self._notes) and bool(self._notes[row] & _NEW)
