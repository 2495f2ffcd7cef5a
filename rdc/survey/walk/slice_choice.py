"""SliceChoice: which directories and files belong to one of several slices of a scan."""

from __future__ import annotations

from array import array

from rdc.kernel import name_ranks
from rdc.model.entries import little_endian_integers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.entries import PackedInodes
    from rdc.model.scan import ScanSlice

__all__ = ["SliceChoice"]

_KEY = b"rdc survey slice"


class SliceChoice:
    """Each directory belongs to one slice, and so do the files in it that have one name.

    Files with several names go by their inode number, because only one slice may count them. Nothing else
    decides: not the device number, which differs between machines, and not the place of a mount. So machines
    that see the same tree agree without a word.
    """

    def __init__(self, slice_: ScanSlice, *, by_inode: bool) -> None:
        """`by_inode`: whether all files go by inode, since a path may name a file that a walk also finds."""
        self._number = slice_.number - 1
        self._of = slice_.of
        self._by_inode = by_inode

    def has_directory(self, operand: int, path: bytes) -> bool:
        """Whether the directory at `path` below the path number `operand` of the scan belongs here."""
        return self._has(b"%d/%b" % (operand, path))

    def has_inode(self, inode: int) -> bool:
        return self._has(b"inode %d" % inode)

    def has_file(self, operand: int, inode: int, links: int) -> bool:
        """Whether a file that is a path of the scan belongs here."""
        return self.has_inode(inode) if links > 1 or self._by_inode else self.has_directory(operand, b"")

    def chosen(self, rows: list[int], inodes: PackedInodes, *, own: bool) -> list[int]:
        """Those of the files in `rows` of one directory that belong here. `own`: whether their directory
        does."""
        links = little_endian_integers("I", inodes.links)
        if not self._by_inode and max(map(links.__getitem__, rows), default=1) <= 1:
            return rows if own else []
        numbers: array[int] = little_endian_integers("Q", inodes.inodes)
        return [
            row for row in rows if (self.has_inode(numbers[row]) if self._by_inode or links[row] > 1 else own)
        ]

    def _has(self, name: bytes) -> bool:
        return int.from_bytes(name_ranks(_KEY, name + b"\0"), "little") % self._of == self._number
