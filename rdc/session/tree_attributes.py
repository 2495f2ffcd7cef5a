"""The extended attributes of a tree (--xattrs, --acls), read a directory at a time as a walk comes to it, and
one digest over all of them."""

from __future__ import annotations

from blake3 import blake3

from rdc.errors import ExitCode, FileChangedError, FileError, printable
from rdc.files.xattrs import read_directory_attributes, read_entry_attributes
from rdc.limits import ATTRIBUTE_SET_BYTES
from rdc.model.attributes import UNREADABLE, pack_attributes
from rdc.model.entries import Kind, strings
from rdc.progress import Problem
from rdc.records import dataclass
from rdc.tree.walk import join

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.files.confined import Root
    from rdc.model.attributes import AttributeKinds, Attributes
    from rdc.model.entries import PackedListing

__all__ = ["EntrySet", "TreeAttributes"]


@dataclass(frozen=True, slots=True)
class EntrySet:
    """What one entry has."""

    ordinal: int
    """Its row in the manifest, and 1; 0 is the tree's own directory."""
    packed: bytes
    """As pack_attributes has it; never empty."""


class TreeAttributes:
    """Of one walk after the other."""

    def __init__(
        self, root: Root, kinds: AttributeKinds, report: Callable[[Problem], None] | None = None
    ) -> None:
        """`report`: takes what cannot be read, or be told; such entries have UNREADABLE."""
        self._root = root
        self._kinds = kinds
        self._report = report
        self._hasher = blake3()

    def begin(self, *, top: bool) -> list[EntrySet]:
        """A walk begins; what its root directory has, where that counts."""
        self._hasher = blake3(b"rdc 1 attributes")
        if not top:
            return []
        held: Attributes | OSError
        try:
            held = read_entry_attributes(self._root.fileno(), b".", self._kinds)
        except OSError as error:
            held = error
        packed = self._packed(b"", b".", held)
        if not packed:
            return []
        self._note(b"", packed)
        return [EntrySet(0, packed)]

    def read(self, path: bytes, first: int, listing: PackedListing) -> list[EntrySet]:
        """The next directory: its entries, from row `first` of the manifest on, that have any."""
        found: list[EntrySet] = []

        def take(row: int, name: bytes, packed: bytes) -> None:
            self._note(join(path, name), packed)
            found.append(EntrySet(first + row + 1, packed))

        left = 0
        try:
            for row, name, held in read_directory_attributes(self._root, path, listing.names, self._kinds):
                if listing.kinds[row] != Kind.SPECIAL:
                    take(row, name, self._packed(path, name, held))
                left = row + 1
        except FileChangedError:
            pass  # gone, or replaced: what is in it will be missed by others too
        except FileError as error:
            # Not the same as none: those would be removed at the destination.
            self._tell(path, f"{error}; DST keeps the extended attributes that it has there")
            for row, name in enumerate(strings(listing.names)[left:], left):
                take(row, name, UNREADABLE)
        return found

    def digest(self) -> bytes:
        """32 bytes over what was read of this walk, by path: the same in trees whose entries have the same
        attributes, whatever else is in them."""
        return self._hasher.digest()

    def _note(self, path: bytes, packed: bytes) -> None:
        self._hasher.update(b"%b\0%b%b" % (path, len(packed).to_bytes(4, "little"), packed))

    def _packed(self, path: bytes, name: bytes, held: Attributes | OSError) -> bytes:
        if isinstance(held, OSError):
            return self._unreadable(path, name, held.strerror or type(held).__name__)
        packed = pack_attributes(held)
        if len(packed) > ATTRIBUTE_SET_BYTES:
            return self._unreadable(
                path, name, f"they are {len(packed)} bytes, {ATTRIBUTE_SET_BYTES} the most"
            )
        return packed

    def _unreadable(self, path: bytes, name: bytes, why: str) -> bytes:
        entry = path if name == b"." else join(path, name)
        shown = printable(self._root.shown(entry))
        self._tell(entry, f"{shown}: cannot read its extended attributes: {why}; DST keeps those that it has")
        return UNREADABLE

    def _tell(self, entry: bytes, text: str) -> None:
        if self._report is not None:
            self._report(Problem(ExitCode.PARTIAL, entry, text))
