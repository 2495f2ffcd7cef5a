"""SliceChoice: which directories and files belong to one of several slices of a scan."""

from __future__ import annotations

from array import array

from rdc.kernel import name_ranks
from rdc.model.entries import little_endian_integers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.entries import PackedInodes
    from rdc.model.scan import ScanSlice

__all__ = ["SliceChoice", "SliceDivision"]

_KEY = b"rdc survey slice"


class SliceDivision:
    """Each directory belongs to one slice, and so do the files in it that have one name.

    Files with several names go by their inode number, because only one slice may count them. Nothing else
    decides: not the device number, which differs between machines, and not the place of a mount. So machines
    that see the same tree agree without a word.
    """

    def __init__(self, of: int, *, by_inode: bool) -> None:
        """`by_inode`: whether all files go by inode, since a path may name a file that a walk also finds."""
        self._of = of
        self._by_inode = by_inode

    def of_directory(self, operand: int, path: bytes) -> int:
        """The slice, from 1 on, of the directory at `path` below the path number `operand` of the scan."""
        return self._of_name(b"%d/%b" % (operand, path))

    def of_inode(self, inode: int) -> int:
        return self._of_name(b"inode %d" % inode)

    def of_file(self, operand: int, inode: int, links: int) -> int:
        """The slice of a file that is a path of the scan."""
        return self.of_inode(inode) if self._goes_by_inode(links) else self.of_directory(operand, b"")

    def of_rows(self, rows: list[int], inodes: PackedInodes, own: int) -> dict[int, list[int]]:
        """The files in `rows` of one directory, by slice. `own`: the slice of their directory."""
        links = little_endian_integers("I", inodes.links)
        if not self._by_inode and max(map(links.__getitem__, rows), default=1) <= 1:
            return {own: rows} if rows else {}
        numbers: array[int] = little_endian_integers("Q", inodes.inodes)
        found: dict[int, list[int]] = {}
        for row in rows:
            number = self.of_inode(numbers[row]) if self._goes_by_inode(links[row]) else own
            found.setdefault(number, []).append(row)
        return found

    def _goes_by_inode(self, links: int) -> bool:
        return links > 1 or self._by_inode

    def _of_name(self, name: bytes) -> int:
        return 1 + int.from_bytes(name_ranks(_KEY, name + b"\0"), "little") % self._of


class SliceChoice:
    """What one slice has of a division."""

    def __init__(self, slice_: ScanSlice, *, by_inode: bool) -> None:
        """`by_inode`: as in SliceDivision."""
        self._number = slice_.number
        self._division = SliceDivision(slice_.of, by_inode=by_inode)

    def has_directory(self, operand: int, path: bytes) -> bool:
        return self._division.of_directory(operand, path) == self._number

    def has_inode(self, inode: int) -> bool:
        return self._division.of_inode(inode) == self._number

    def has_file(self, operand: int, inode: int, links: int) -> bool:
        """Whether a file that is a path of the scan belongs here."""
        return self._division.of_file(operand, inode, links) == self._number

    def chosen(self, rows: list[int], inodes: PackedInodes, *, own: bool) -> list[int]:
        """Those of the files in `rows` of one directory that belong here. `own`: whether their directory
        does."""
        # No slice has the number 0, which stands for all others.
        return self._division.of_rows(rows, inodes, self._number if own else 0).get(self._number, [])
