"""Reads the extended attributes of a tree (--xattrs, --acls) during a walk, and digests them all."""

from __future__ import annotations

from blake3 import blake3

from rdc.errors import ExitCode, FileChangedError, FileError, printable
from rdc.files.base.relative_path import join
from rdc.files.facts.directory_xattrs import read_directory_attributes, read_entry_attributes
from rdc.lean.records import dataclass
from rdc.limits.wire import ATTRIBUTE_SET_BYTES
from rdc.model.entries import Kind, PackedListing, strings
from rdc.model.preserved import UNREADABLE, AttributeKinds, Attributes, pack_attributes
from rdc.progress import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.files.root.root import Root

__all__ = ["EntrySet", "TreeXattrs"]


@dataclass(frozen=True, slots=True)
class EntrySet:
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
        """Begins a walk. Returns the root directory's attributes; `top`: whether they count."""
        self._hasher = blake3(b"rdc 1 attributes")
        if not top:
            return []
        existing: Attributes | OSError
        try:
            here, kinds = self._root.top().fd, self._kinds.of(Kind.DIRECTORY)
            existing = read_entry_attributes(here, b".", kinds, fakes=self._root.reads.fakes)
        except OSError as error:
            existing = error
        packed = self._packed(b"", b".", existing)
        if not packed:
            return []
        self._note(b"", packed)
        return [EntrySet(0, packed)]

    def read(self, path: bytes, first: int, listing: PackedListing) -> list[EntrySet]:
        """The attributes of a directory's entries that have any. `first`: manifest row of its first entry."""
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
        """A digest of 32 bytes over all attributes of this walk, with paths.

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
