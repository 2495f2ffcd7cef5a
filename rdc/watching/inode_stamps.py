"""The inode number and ctime of each entry, which show changes that size and mtime do not."""

from __future__ import annotations

from array import array

from rdc.lean.records import dataclass
from rdc.model.entries import Kind, strings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rdc.model.entries import PackedInodes, PackedListing

__all__ = ["InodeStamps", "possibly_changed"]

_WIDTH = 8


@dataclass(frozen=True, slots=True)
class InodeStamps:
    """Stamps of one directory: 16 bytes per entry besides its name, which is usually shared with the
    listing."""

    names: bytes
    """Names, each followed by NUL, in the order of the columns below."""
    inodes: bytes
    """Inode numbers, u64."""
    ctimes: bytes
    """Times of the last inode change, i64 nanoseconds."""

    @classmethod
    def of(cls, listing: PackedListing, inodes: PackedInodes) -> InodeStamps:
        return cls(listing.names, inodes.inodes, inodes.ctimes)

    def chosen(self, rows: Sequence[int]) -> InodeStamps:
        """The stamps of these rows only; `rows` increases."""
        names = strings(self.names)
        columns = (b"".join([column[8 * row : 8 * row + 8] for row in rows]) for column in self._columns)
        return InodeStamps(b"".join([names[row] + b"\0" for row in rows]), *columns)

    @property
    def _columns(self) -> tuple[bytes, bytes]:
        return self.inodes, self.ctimes

    def rows(self) -> dict[bytes, tuple[bytes, bytes]]:
        """Inode number and ctime by name."""
        pairs = zip(_items(self.inodes), _items(self.ctimes), strict=True)
        return dict(zip(strings(self.names), pairs, strict=True))


def possibly_changed(
    before: PackedListing,
    known: InodeStamps | None,
    now: PackedListing,
    found: InodeStamps,
    renamed: Collection[bytes],
) -> list[bytes]:
    """Names of files whose size and mtime are unchanged but whose content may differ.

    Either another file took the name (a swap, or a replacement with the old times), or the file changed and
    its mtime was set back. A new ctime alone proves nothing if mode or owner changed, or if the file came by
    an observed rename (`renamed`), since these also set it. known None: the earlier stamps are unknown. Takes
    no Python step per entry in an unchanged directory.
    """
    if known == found or not before.count:
        return []
    if known is not None and before.names == now.names == known.names == found.names:
        # After most edits most rows have equal stamps; zip skips them quickly.
        rows = _differing(known, found)
        before, now = _rows_of(before, rows), _rows_of(now, rows)
        known, found = known.chosen(rows), found.chosen(rows)
    was = {} if known is None else known.rows()
    earlier = dict(zip(strings(before.names), _columns(before), strict=True))
    names = []
    for (name, stamp), columns in zip(found.rows().items(), _columns(now), strict=True):
        kind, size, mtime, *rights = columns
        old = earlier.get(name)
        if kind != Kind.FILE or not size or old is None or old[:3] != (kind, size, mtime):
            continue
        inode, ctime = was.get(name, (b"", b""))
        explained = name in renamed or list(old[3:]) != rights
        if inode != stamp[0] or (ctime != stamp[1] and not explained):
            names.append(name)
    return names


def _differing(one: InodeStamps, other: InodeStamps) -> list[int]:
    """The rows in which two InodeStamps with equal names differ."""
    columns = (array("Q", column) for column in (one.inodes, other.inodes, one.ctimes, other.ctimes))
    pairs = enumerate(zip(*columns, strict=True))
    return [row for row, (inode, now, ctime, then) in pairs if inode != now or ctime != then]


def _rows_of(packed: PackedListing, rows: Sequence[int]) -> PackedListing:
    return packed if len(rows) == packed.count else packed.rows(rows)


def _columns(packed: PackedListing) -> list[tuple[int, ...]]:
    """Kind, size, mtime, mode, uid and gid of each row."""
    listing = packed.unpacked()
    columns = (listing.kinds, listing.sizes, listing.mtimes, listing.modes, listing.uids, listing.gids)
    return list(zip(*columns, strict=True))


def _items(column: bytes) -> list[bytes]:
    return [column[at : at + _WIDTH] for at in range(0, len(column), _WIDTH)]
