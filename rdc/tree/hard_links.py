"""Which entries of a tree are further names of a file that it names before (--hard-links)."""

from __future__ import annotations

from array import array
from bisect import bisect_left

from blake3 import blake3

from rdc.model.entries import Kind, little_endian_integers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rdc.model.entries import PackedInodes
    from rdc.tree.manifest import Manifest
    from rdc.tree.row_map import RowMap

__all__ = ["LinkTable"]

DIGESTED_PAIRS = 4096
"""Pairs whose paths are held at a time."""

_ROW = (1 << 32) - 1


class LinkTable:
    """Pairs of rows of a manifest: a regular file, and the first row that names the same file, in the order
    of the former. Eight bytes each; names outside of the tree, or left out of it, take no part."""

    def __init__(self) -> None:
        self.files = array("I")
        self.firsts = array("I")
        self._seen: dict[int, dict[int, int]] = {}
        """By device and inode, of files that have names left to be met: the first row, and above its 32 bits
        how many names that are."""
        self._by_first: array[int] | None = None
        """Numbers of pairs, in the order of the firsts."""

    def __len__(self) -> int:
        return len(self.files)

    def clear(self) -> None:
        del self.files[:], self.firsts[:]
        self._seen.clear()

    def add(self, first: int, kinds: bytes, inodes: PackedInodes) -> None:
        """The next directory of a walk: its rows, from `first` on, and which files they are."""
        links = little_endian_integers("I", inodes.links)
        for row, names in enumerate(links):
            if names < 2 or kinds[row] != Kind.FILE:
                continue
            device, inode = inodes.identity(row)
            seen = self._seen.setdefault(device, {})
            known = seen.get(inode)
            if known is None:
                seen[inode] = first + row | names - 1 << 32
                continue
            self.files.append(first + row)
            self.firsts.append(known & _ROW)
            left = (known >> 32) - 1
            if left > 0:
                seen[inode] = known & _ROW | left << 32
            else:
                # All of them were met: nothing more has to be known of it.
                del seen[inode]

    def extend(self, files: Iterable[int], firsts: Iterable[int]) -> None:
        """Pairs that were told; they go on where the table ends."""
        self.files.extend(files)
        self.firsts.extend(firsts)

    def between(self, start: int, stop: int) -> range:
        """The numbers of the pairs of rows [start, stop)."""
        return range(bisect_left(self.files, start), bisect_left(self.files, stop))

    def names(self, first: int) -> Iterator[int]:
        """The further names of a file, in order. The table no longer grows from here on."""
        if self._by_first is None:
            self._by_first = array("I", sorted(range(len(self)), key=self.firsts.__getitem__))
        at = bisect_left(self._by_first, first, key=self.firsts.__getitem__)
        while at < len(self) and self.firsts[self._by_first[at]] == first:
            yield self.files[self._by_first[at]]
            at += 1

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self.files, self.firsts, strict=True)

    def transposed(self, rows: RowMap) -> LinkTable | None:
        """The same pairs of paths as rows of another manifest; None where it does not have them all, in the
        same order."""
        found = LinkTable()
        last = -1
        for file, first in self:
            row, before = rows.row(file), rows.row(first)
            if row is None or before is None or not before < row > last:
                return None
            found.files.append(row)
            found.firsts.append(before)
            last = row
        return found

    def digest(self, manifest: Manifest) -> bytes:
        """32 bytes over the pairs of paths, the rows being `manifest`'s: the same in trees that have the same
        links, whatever else is in them."""
        hasher = blake3(b"rdc 1 hard links")
        for at in range(0, len(self), DIGESTED_PAIRS):
            files, firsts = self.files[at : at + DIGESTED_PAIRS], self.firsts[at : at + DIGESTED_PAIRS]
            different = sorted(set(firsts))
            paths = dict(zip(different, manifest.paths(different), strict=True))
            for file, first in zip(manifest.paths(files), firsts, strict=True):
                hasher.update(b"%b\0%b\0" % (file, paths[first]))
        return hasher.digest()
