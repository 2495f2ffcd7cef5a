"""Which file lay behind each name, and when it was changed last: what size and mtime do not tell."""

from __future__ import annotations

from array import array

from rdc.model.entries import Kind, strings
from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rdc.model.entries import PackedInodes, PackedListing

__all__ = ["Stamps", "doubtful"]

_WIDTH = 8


@dataclass(frozen=True, slots=True)
class Stamps:
    """Of one directory: 16 bytes an entry besides its name, which is shared with the listing as a rule."""

    names: bytes
    """Each followed by NUL; the rows of the columns below are theirs."""
    inodes: bytes
    """u64."""
    ctimes: bytes
    """i64: nanoseconds."""

    @classmethod
    def of(cls, listing: PackedListing, inodes: PackedInodes) -> Stamps:
        return cls(listing.names, inodes.inodes, inodes.ctimes)

    def chosen(self, rows: Sequence[int]) -> Stamps:
        """Those of these rows only; `rows` increases."""
        names = strings(self.names)
        columns = (b"".join([column[8 * row : 8 * row + 8] for row in rows]) for column in self._columns)
        return Stamps(b"".join([names[row] + b"\0" for row in rows]), *columns)

    @property
    def _columns(self) -> tuple[bytes, bytes]:
        return self.inodes, self.ctimes

    def rows(self) -> dict[bytes, tuple[bytes, bytes]]:
        """Inode number and ctime by name."""
        pairs = zip(_items(self.inodes), _items(self.ctimes), strict=True)
        return dict(zip(strings(self.names), pairs, strict=True))


def doubtful(
    before: PackedListing,
    known: Stamps | None,
    now: PackedListing,
    found: Stamps,
    renamed: Collection[bytes],
) -> list[bytes]:
    """Names of files that have the size and mtime of before, and may have another content all the same.

    Another file is there (two were swapped, or one was put in place with its times), or this one was changed
    and its mtime set back. A changed ctime alone proves nothing where mode or owner changed, or where the
    file came here by a rename that was seen (`renamed`): those set it too. `known` None: nothing is known of
    before. Takes no step an entry where nothing changed.
    """
    if known == found or not before.count:
        return []
    if known is not None and before.names == now.names == known.names == found.names:
        # As after most edits: most rows have the stamps of before, and are left out at the speed of a zip.
        rows = _differing(known, found)
        before, now = _rows_of(before, rows), _rows_of(now, rows)
        known, found = known.chosen(rows), found.chosen(rows)
    was = {} if known is None else known.rows()
    held = dict(zip(strings(before.names), _columns(before), strict=True))
    names = []
    for (name, stamp), columns in zip(found.rows().items(), _columns(now), strict=True):
        kind, size, mtime, *rights = columns
        old = held.get(name)
        if kind != Kind.FILE or not size or old is None or old[:3] != (kind, size, mtime):
            continue
        inode, ctime = was.get(name, (b"", b""))
        explained = name in renamed or list(old[3:]) != rights
        if inode != stamp[0] or (ctime != stamp[1] and not explained):
            names.append(name)
    return names


def _differing(one: Stamps, other: Stamps) -> list[int]:
    """The rows in which two with the same names differ."""
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
