"""Many small files as columns: their listing, and their signatures."""

from __future__ import annotations

from array import array

from rdc.lean.records import dataclass
from rdc.model.entries import Identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.files.root.root import Root
    from rdc.signature.short import ShortSignatures

__all__ = ["SignedFiles", "SmallFiles"]


@dataclass(frozen=True, slots=True)
class SmallFiles:
    """Listed files of one tree. For `sign_small`, each has at most BULK_BYTES."""

    root: Root
    paths: bytes
    """Relative to `root`, each followed by NUL."""
    devices: array[int]
    inodes: array[int]
    sizes: array[int]
    """Typecode 'Q'."""
    mtimes: array[int]
    ctimes: array[int]
    """Typecode 'q', nanoseconds."""

    def __len__(self) -> int:
        return len(self.sizes)

    def identity(self, row: int) -> Identity:
        """The listed identity of one row."""
        return Identity(
            self.devices[row], self.inodes[row], self.sizes[row], self.mtimes[row], self.ctimes[row]
        )


@dataclass(frozen=True, slots=True)
class SignedFiles:
    """Some rows of a SmallFiles, with their signatures."""

    rows: array[int]
    """Typecode 'I', increasing; the columns below have one of theirs each, in this order."""
    signatures: ShortSignatures
    ctimes: array[int]
    """Typecode 'q': when they were read."""
    data: bytes | None
    """Their contents, one behind another. None: they were known and not read, or they were released."""

    def chosen(self, numbers: Sequence[int]) -> SignedFiles:
        """Returns the files with these numbers, which increase, without their contents."""
        return SignedFiles(
            array("I", [self.rows[number] for number in numbers]),
            self.signatures.chosen(numbers),
            array("q", [self.ctimes[number] for number in numbers]),
            None,
        )
