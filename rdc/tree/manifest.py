"""Manifest: all entries of a tree as columns, in walk order, with one digest over everything.

Each row is an entry. The rows of a directory lie together, sorted by name; directories follow in pre-order.
The text column holds, for each directory with entries: NUL, its path, NUL, then its entries' names, each
followed by NUL. No name is empty, so an empty string always announces a path.
An entry takes about 30 bytes besides its name. A million entries stay below 100 MB. MANIFEST.md has the
format."""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left

from blake3 import blake3

from rdc.files.base.relative_path import join
from rdc.kernel import row_paths, take_rows
from rdc.lean.records import dataclass
from rdc.model.entries import Kind, Metadata, PackedListing, little_endian_integers, strings
from rdc.tree.manifest_columns import ManifestColumns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.model.preserved import Preserved

__all__ = ["Entry", "Manifest", "covering_root", "further_digest"]

ROOT_KEY = blake3(b"rdc 1 manifest root").digest()


def further_digest(links: bytes | None, attributes: bytes | None) -> bytes:
    """Return 32 bytes over the facts that no column holds: hard links and extended attributes.

    Each argument is a digest, or None if that fact is not preserved. If both are None the result is b"".
    """
    if links is None and attributes is None:
        return b""
    return blake3((links or bytes(32)) + (attributes or bytes(32))).digest()


def covering_root(root: bytes, further: bytes) -> bytes:
    """Return a manifest's root digest, 32 bytes, extended to cover `further` (see `further_digest`)."""
    return blake3(b"rdc 1 further" + root + further).digest() if further else root


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of a manifest as a value."""

    path: bytes
    kind: int
    size: int
    """Bytes."""
    metadata: Metadata
    target: bytes
    """The target of a symlink; b'' for any other kind."""


class Manifest(ManifestColumns):
    """A tree's entries, looked up by path or row, compared with another manifest's, and digested."""

    def clear(self) -> None:
        super().clear()
        self._numbers: dict[bytes, int] = {}
        """Directory numbers by path, filled when one is looked up."""
        self._last_path = (0, 0)
        """The row after the last one whose path was looked up, and the offset of that row's name in
        `text`."""

    def row(self, path: bytes) -> int | None:
        """Return the row of the entry at `path`, or None if there is none."""
        parent, _, name = path.rpartition(b"/")
        number = self.number(parent)
        if number is None:
            return None
        names = self.listing(number).names
        at = bisect_left(names, name)
        return self.firsts[number] + at if names[at : at + 1] == (name,) else None

    def is_directory(self, path: bytes) -> bool:
        """Return whether the entry at `path` is a directory."""
        row = self.row(path)
        return row is not None and self.kinds[row] == Kind.DIRECTORY

    def same(self, directory: int, other: Manifest, other_directory: int, preserved: Preserved) -> bool:
        """Return whether a directory of the source equals `other_directory` of `other`, the destination's, as
        far as both ends preserve it."""
        # Most directories of most trees are equal, so columns are compared without unpacking them.
        a, b, ends = (
            self.firsts[directory],
            other.firsts[other_directory],
            (self.end(directory), other.end(other_directory)),
        )
        count = ends[0] - a
        if count != ends[1] - b or self.kinds[a : a + count] != other.kinds[b : b + count]:
            return False

        def alike(mine: bytearray, its: bytearray, width: int) -> bool:
            return mine[width * a : width * (a + count)] == its[width * b : width * (b + count)]

        if not (alike(self.sizes, other.sizes, 8) and self.names(directory) == other.names(other_directory)):
            return False
        kinds = self.kinds[a : a + count]
        if not alike(self.mtimes, other.mtimes, 8):
            mine, its = self.mtimes[8 * a : 8 * (a + count)], other.mtimes[8 * b : 8 * (b + count)]
            if preserved.at_source.mtimes(mine, kinds) != preserved.at_destination.mtimes(its, kinds):
                return False
        if not alike(self.modes, other.modes, 2):
            mine, its = self.modes[2 * a : 2 * (a + count)], other.modes[2 * b : 2 * (b + count)]
            if preserved.compared_modes(mine, kinds) != preserved.compared_modes(its, kinds):
                return False
        if preserved.owner and not alike(self.uids, other.uids, 4):
            return False
        if preserved.owner and preserved.group and not alike(self.gids, other.gids, 4):
            return False
        return self.links_of(directory) == other.links_of(other_directory)

    def taken_directories(self, other: Manifest) -> bytearray:
        """Return a byte per directory: 1 if it needs no comparison with `other`.

        That holds if all its entries were taken from one directory of `other` and that one has no more.
        """
        whole = bytearray(len(self.directories))
        for run in self.taken:
            stop = run.first + run.count
            begin, last = self.directory_of(run.first), self.directory_of(stop - 1)
            whole[begin : last + 1] = b"\1" * (last + 1 - begin)
            # Only the first and last directory of a run can be incomplete.
            for directory in {begin, last}:
                first, end = self.firsts[directory], self.end(directory)
                row = first - run.first + run.source
                other_directory = other.directory_of(row) if first >= run.first and end <= stop else -1
                if other_directory < 0 or (
                    other.firsts[other_directory],
                    other.end(other_directory) - row,
                ) != (row, end - first):
                    whole[directory] = 0
        return whole

    def number(self, path: bytes) -> int | None:
        """Return the number of the directory at `path`, or None if it has no entries."""
        for number in range(len(self._numbers), len(self.directories)):
            self._numbers[self.directories[number]] = number
        return self._numbers.get(path)

    def runs(self, rows: Sequence[int]) -> Iterator[tuple[int, Sequence[int]]]:
        """Yield (directory number, its rows) for increasing `rows`. Raises IndexError for unknown rows."""
        if rows and not 0 <= rows[-1] < len(self.kinds):
            raise IndexError(rows[-1])
        at = 0
        while at < len(rows):
            directory = self.directory_of(rows[at])
            stop = bisect_left(rows, self.end(directory), at)
            yield directory, rows[at:stop]
            at = stop

    def paths(self, rows: Sequence[int]) -> list[bytes]:
        """Return the paths of increasing rows. Raises IndexError for unknown rows."""
        return strings(self.joined_paths(rows))

    def joined_paths(self, rows: Sequence[int]) -> bytes:
        """Return the paths of increasing rows, each followed by NUL. Raises IndexError for unknown rows."""
        if rows and not 0 <= rows[-1] < len(self.kinds):
            raise IndexError(rows[-1])
        if not rows:
            return b""
        directory = self.directory_of(rows[0])
        cached = self._unpacked_listings.get(directory)
        if cached is not None and rows[-1] < self.end(directory):
            # The listing is cached, so calls for one large directory may come in any order.
            first, above = self.firsts[directory], self.directories[directory]
            start = above + b"/" if above else b""
            return b"".join([start + cached.names[row - first] + b"\0" for row in rows])
        wanted = array("Q", rows)
        paths, self._last_path = row_paths(self.text, self.texts, self.firsts, wanted, self._last_path)
        return paths

    def sizes_of(self, rows: Sequence[int]) -> list[int]:
        """Return the sizes in bytes of increasing rows, all of which must exist."""
        if rows and rows[-1] - rows[0] == len(rows) - 1:
            return little_endian_integers("Q", self.sizes[8 * rows[0] : 8 * rows[-1] + 8]).tolist()
        return _chosen("Q", self.sizes, rows)

    def mtimes_of(self, rows: Sequence[int]) -> list[int]:
        """Return the mtimes in nanoseconds of increasing rows, all of which must exist."""
        return _chosen("q", self.mtimes, rows)

    def chosen(self, directory: int, rows: Sequence[int]) -> PackedListing:
        """Return one or more increasing rows of a directory. Consecutive rows are sliced, without work per
        row."""
        if rows[-1] - rows[0] == len(rows) - 1:
            return self.packed_slice(directory, rows[0], rows[-1] + 1)
        first = self.firsts[directory]
        return self.listing(directory).rows([row - first for row in rows]).packed()

    def entry(self, row: int) -> Entry:
        """Return one row as a value. Raises IndexError for an unknown row."""
        if not 0 <= row < len(self.kinds):
            raise IndexError(row)
        directory = self.directory_of(row)
        listing, at = self.listing(directory), row - self.firsts[directory]
        kind = listing.kinds[at]
        target = listing.target(at) if kind == Kind.SYMLINK else b""
        path = join(self.directories[directory], listing.names[at])
        return Entry(path, kind, listing.sizes[at], listing.metadata(at), target)

    def root(self, top: Metadata | None, preserved: Preserved) -> bytes:
        """Return the root digest, 32 bytes over every column that is `preserved`. MANIFEST.md has the
        formula.

        `top` is the metadata of the root directory itself, or None if that takes no part. `preserved`: as
        in Fold, or of both ends for entries of either.
        """
        owners = preserved.owner | (preserved.owner and not preserved.group) << 1
        head = struct.pack("<BB", owners, top is not None)
        if top is not None:
            mode = top.mode & preserved.directory_modes
            head += struct.pack("<Hq", mode, preserved.top_mtime(top.mtime_ns))
            head += struct.pack("<I", top.uid) if preserved.owner else b""
            head += struct.pack("<I", top.gid) if preserved.owner and preserved.group else b""
        hasher = blake3(head, key=ROOT_KEY)
        columns: list[bytes | bytearray] = [self.text, self.kinds, self.targets]
        columns += [preserved.compared_modes(self.modes, self.kinds)]
        columns += [self.sizes, preserved.mtimes(self.mtimes, self.kinds)]
        columns += [self.uids] if preserved.owner else []
        columns += [self.gids] if preserved.owner and preserved.group else []
        hasher.update(b"".join(len(column).to_bytes(8, "little") for column in columns))
        for column in columns:
            hasher.update(column)
        return hasher.digest()


def _chosen(typecode: str, column: bytearray, rows: Sequence[int]) -> list[int]:
    """Return the 8-byte numbers in these rows of a packed column."""
    return little_endian_integers(typecode, take_rows(column, 8, array("Q", rows))).tolist()
