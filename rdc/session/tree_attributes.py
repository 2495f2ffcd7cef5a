"""The extended attributes of a tree (--xattrs, --acls), read a directory at a time as a walk comes to it, and
one digest over all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from blake3 import blake3

from rdc.errors import ExitCode, FileError, printable
from rdc.files.entry_attributes import read_entry_attributes
from rdc.limits import ATTRIBUTE_SET_BYTES
from rdc.model.attributes import UNREADABLE, pack_attributes
from rdc.model.entries import Kind, strings
from rdc.progress import Problem
from rdc.records import dataclass
from rdc.tree.walk import join

if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.files.confined import Root
    from rdc.model.attributes import AttributeKinds
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
        packed = self._packed(b"", self._root.fileno(), b".") if top else b""
        if not packed:
            return []
        self._note(b"", packed)
        return [EntrySet(0, packed)]

    def read(self, path: bytes, first: int, listing: PackedListing) -> list[EntrySet]:
        """The next directory: its entries, from row `first` of the manifest on, that have any."""
        try:
            directory = self._root.directory(path)
        except FileError:
            return []  # gone, or replaced: what is in it will be missed by others too
        found = []
        for row, name in enumerate(strings(listing.names)):
            if listing.kinds[row] != Kind.SPECIAL:
                packed = self._packed(path, directory.fd, name)
                if packed:
                    self._note(join(path, name), packed)
                    found.append(EntrySet(first + row + 1, packed))
        return found

    def digest(self) -> bytes:
        """32 bytes over what was read of this walk, by path: the same in trees whose entries have the same
        attributes, whatever else is in them."""
        return self._hasher.digest()

    def _note(self, path: bytes, packed: bytes) -> None:
        self._hasher.update(b"%b\0%b%b" % (path, len(packed).to_bytes(4, "little"), packed))

    def _packed(self, path: bytes, directory: int, name: bytes) -> bytes:
        try:
            packed = pack_attributes(read_entry_attributes(directory, name, self._kinds))
        except FileNotFoundError:
            return b""
        except OSError as error:
            return self._unreadable(path, name, error.strerror or type(error).__name__)
        if len(packed) > ATTRIBUTE_SET_BYTES:
            return self._unreadable(
                path, name, f"they are {len(packed)} bytes, {ATTRIBUTE_SET_BYTES} the most"
            )
        return packed

    def _unreadable(self, path: bytes, name: bytes, why: str) -> bytes:
        if self._report is not None:
            entry = path if name == b"." else join(path, name)
            shown = printable(self._root.shown(entry))
            text = f"{shown}: cannot read its extended attributes: {why}; DST keeps those that it has"
            self._report(Problem(ExitCode.PARTIAL, entry, text))
        return UNREADABLE
