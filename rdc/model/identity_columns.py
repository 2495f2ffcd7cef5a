"""IdentityColumns: the identities of many entries, one per row, in 41 bytes each."""

from __future__ import annotations

from array import array

from rdc.model.entries import Identity, Kind, little_endian_integers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rdc.model.entries import Identities

__all__ = ["IdentityColumns"]

_TIME_LEAST, _TIME_MOST = -(1 << 63), (1 << 63) - 1


class IdentityColumns:
    """Columns that grow. Times are clamped to 64 bits of nanoseconds."""

    __slots__ = ("_ctimes", "_devices", "_inodes", "_kinds", "_mtimes", "_sizes")

    def __init__(self, identities: Iterable[Identity] = ()) -> None:
        self._devices, self._inodes, self._sizes = array("Q"), array("Q"), array("Q")
        self._mtimes, self._ctimes = array("q"), array("q")
        self._kinds = bytearray()
        for each in identities:
            self.append(each)

    def __len__(self) -> int:
        return len(self._kinds)

    def append(self, found: Identity) -> None:
        """Add one row."""
        self._devices.append(found.device)
        self._inodes.append(found.inode)
        self._sizes.append(found.size)
        self._mtimes.append(min(max(found.mtime_ns, _TIME_LEAST), _TIME_MOST))
        self._ctimes.append(min(max(found.ctime_ns, _TIME_LEAST), _TIME_MOST))
        self._kinds.append(found.kind)

    def extend(self, found: Identities, rows: Sequence[int]) -> None:
        """Add these rows of a listing."""
        kinds = found.kinds
        if len(rows) < 4:
            for row in rows:
                self.append(found.of(row))
            return
        for column, typecode, packed in (
            (self._devices, "Q", found.inodes.devices),
            (self._inodes, "Q", found.inodes.inodes),
            (self._sizes, "Q", found.sizes),
            (self._mtimes, "q", found.mtimes),
            (self._ctimes, "q", found.inodes.ctimes),
        ):
            column.extend(_rows_chosen(little_endian_integers(typecode, packed), rows))
        chosen = bytes([kinds[row] for row in rows])
        if any(chosen):
            first = len(self._kinds)
            for number, kind in enumerate(chosen):
                if kind:
                    self._sizes[first + number] = 0
            chosen = bytes([min(kind, Kind.SPECIAL) for kind in chosen])
        self._kinds += chosen

    def __getitem__(self, row: int) -> Identity:
        return Identity(
            self._devices[row],
            self._inodes[row],
            self._sizes[row],
            self._mtimes[row],
            self._ctimes[row],
            self._kinds[row],
        )

    def chosen(self, rows: Sequence[int]) -> IdentityColumns:
        """Return these rows, in this order. A range of them is sliced, without work per row."""
        made = IdentityColumns()
        for name in ("_devices", "_inodes", "_sizes", "_mtimes", "_ctimes"):
            column: array[int] = getattr(self, name)
            if isinstance(rows, range):
                chosen = column[rows.start : rows.stop]
            else:
                chosen = array(column.typecode, [column[row] for row in rows])
            setattr(made, name, chosen)
        made._kinds += bytes([self._kinds[row] for row in rows])
        return made

    def differing(self, rows: Sequence[int], *columns: array[int]) -> list[int]:
        """Return the numbers of the rows that differ from `columns` (devices, inodes, sizes, mtimes, ctimes):
        row i is compared with row `rows[i]` there."""
        own = (self._devices, self._inodes, self._sizes, self._mtimes, self._ctimes)
        numbers: set[int] = set()
        for mine, other in zip(own, columns, strict=True):
            theirs = _rows_chosen(other, rows)
            if mine != theirs:
                numbers.update(number for number, one in enumerate(mine) if one != theirs[number])
        return sorted(numbers)

    def packed(self) -> bytes:
        """Return devices, inodes, sizes, mtimes and ctimes, one column after the other, in 8 native bytes a
        row."""
        columns = (self._devices, self._inodes, self._sizes, self._mtimes, self._ctimes)
        return b"".join([column.tobytes() for column in columns])


def _rows_chosen(column: array[int], rows: Sequence[int]) -> array[int]:
    """Return rows of a column. Consecutive rows are sliced, without a Python step per row."""
    if rows and rows[-1] - rows[0] == len(rows) - 1 and list(rows) == list(range(rows[0], rows[-1] + 1)):
        return column[rows[0] : rows[-1] + 1]
    return array(column.typecode, [column[row] for row in rows])
