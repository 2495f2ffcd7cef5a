"""The inodes of a walk: which entries were there, and which are names of one file."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right

from blake3 import blake3

from rdc.lean.records import replace
from rdc.model.entries import LINKED, Identities, Listing, PackedInodes, little_endian_integers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rdc.tree.manifest import Manifest, RowMap


# TreeIdentities: which entry each row of a walked tree was, beside the manifest of the tree.


class TreeIdentities:
    """Inode numbers and ctimes: 16 bytes a row. Devices take 16 bytes for each run of rows on one device."""

    def __init__(self, manifest: Manifest) -> None:
        """`manifest`: has kinds, sizes and mtimes of the same rows. Each directory is added to both."""
        self._manifest = manifest
        self._inodes = bytearray()
        self._ctimes = bytearray()
        self._run_firsts = array("Q")
        self._run_devices = array("Q")

    def add(self, inodes: PackedInodes) -> None:
        """Append the next directory of the walk."""
        first = len(self._inodes) // 8
        count = len(inodes.inodes) // 8
        self._inodes += inodes.inodes
        self._ctimes += inodes.ctimes
        known = self._run_devices[-1].to_bytes(8, "little") * count if self._run_devices else b""
        if inodes.devices != known:
            for row, device in enumerate(little_endian_integers("Q", inodes.devices)):
                if not self._run_devices or device != self._run_devices[-1]:
                    self._run_firsts.append(first + row)
                    self._run_devices.append(device)

    def listing(self, directory: int) -> Listing:
        """Return all entries of a directory of the manifest, with their identities."""
        manifest = self._manifest
        first, end = manifest.firsts[directory], manifest.end(directory)
        inodes = PackedInodes(
            self._devices(first, end),
            bytes(self._inodes[8 * first : 8 * end]),
            bytes(4 * (end - first)),
            bytes(8 * (end - first)),
            bytes(self._ctimes[8 * first : 8 * end]),
        )
        identities = Identities(
            bytes(manifest.kinds[first:end]),
            bytes(manifest.sizes[8 * first : 8 * end]),
            bytes(manifest.mtimes[8 * first : 8 * end]),
            inodes,
        )
        return replace(manifest.listing(directory), identities=identities)

    def _devices(self, first: int, end: int) -> bytes:
        """Return the devices of rows [first, end)."""
        packed = bytearray()
        run = bisect_right(self._run_firsts, first) - 1
        while first < end:
            stop = self._run_firsts[run + 1] if run + 1 < len(self._run_firsts) else end
            packed += self._run_devices[run].to_bytes(8, "little") * (min(stop, end) - first)
            first, run = stop, run + 1
        return bytes(packed)


# LinkTable: which entries of a tree are further names of an earlier entry's file (--hard-links).

DIGESTED_PAIRS = 4096
"""Pairs whose paths are in memory at a time."""

_ROW = (1 << 32) - 1


class LinkTable:
    """The hard links of a manifest, as pairs of rows: a regular file or special file, and the first row that
    names the same one.

    Pairs are ordered by the former and take eight bytes each. Names outside the tree, or excluded from it,
    are not considered.
    """

    def __init__(self, *, aliased: bool = False) -> None:
        """`aliased`: a file may have more paths than names, as through followed links."""
        self._aliased = aliased
        self.files = array("I")
        self.firsts = array("I")
        self._seen: dict[int, dict[int, int]] = {}
        """By device and inode, files with names still to come: the first row, and above its 32 bits the
        number of these names."""
        self._by_first: array[int] | None = None
        """Numbers of pairs, ordered by first row."""

    def __len__(self) -> int:
        return len(self.files)

    def clear(self) -> None:
        del self.files[:], self.firsts[:]
        self._seen.clear()

    def add(self, first: int, kinds: bytes, inodes: PackedInodes) -> None:
        """Add the next directory of a walk: its rows, from `first` on, and their inodes."""
        links = little_endian_integers("I", inodes.links)
        for row, names in enumerate(links):
            if names < 2 or kinds[row] not in LINKED:
                continue
            device, inode = inodes.identity(row)
            seen = self._seen.setdefault(device, {})
            known = seen.get(inode)
            if known is None:
                seen[inode] = first + row | names - 1 << 32
                continue
            self.files.append(first + row)
            self.firsts.append(known & _ROW)
            if self._aliased:
                continue
            left = (known >> 32) - 1
            if left > 0:
                seen[inode] = known & _ROW | left << 32
            else:
                # All names were found, so the file can be forgotten.
                del seen[inode]

    def extend(self, files: Iterable[int], firsts: Iterable[int]) -> None:
        """Append pairs that the peer sent."""
        self.files.extend(files)
        self.firsts.extend(firsts)

    def between(self, start: int, stop: int) -> range:
        """Return the numbers of the pairs whose files are rows [start, stop)."""
        return range(bisect_left(self.files, start), bisect_left(self.files, stop))

    def names(self, first: int) -> Iterator[int]:
        """Yield the further names of a file, in order. The table must not grow afterwards."""
        if self._by_first is None:
            self._by_first = array("I", sorted(range(len(self)), key=self.firsts.__getitem__))
        at = bisect_left(self._by_first, first, key=self.firsts.__getitem__)
        while at < len(self) and self.firsts[self._by_first[at]] == first:
            yield self.files[self._by_first[at]]
            at += 1

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self.files, self.firsts, strict=True)

    def transposed(self, rows: RowMap) -> LinkTable | None:
        """Return the pairs as rows of another manifest, or None if it lacks one or orders them
        differently."""
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
        """Return 32 bytes over the pairs' paths; rows are `manifest`'s.

        Trees with the same links have the same digest, whatever else they contain.
        """
        hasher = blake3(b"rdc 1 hard links")
        for at in range(0, len(self), DIGESTED_PAIRS):
            files, firsts = self.files[at : at + DIGESTED_PAIRS], self.firsts[at : at + DIGESTED_PAIRS]
            different = sorted(set(firsts))
            paths = dict(zip(different, manifest.paths(different), strict=True))
            for file, first in zip(manifest.paths(files), firsts, strict=True):
                hasher.update(b"%b\0%b\0" % (file, paths[first]))
        return hasher.digest()
