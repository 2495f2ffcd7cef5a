"""ListColumns: rows of a list before they are written. ListedRow: one of them."""

from __future__ import annotations

from array import array

from rdc.lean.records import dataclass
from rdc.model.entries import PackedInodes
from rdc.survey.parts.sections import encode_section, packed, packed_names, unpacked, unpacked_names
from rdc.survey.walk.file_columns import NO_FILES, FileRows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "ABOVE",
    "CONTINUED",
    "OWN",
    "SINGLE",
    "ListColumns",
    "ListedRow",
    "directories_in",
]

ABOVE, OWN, CONTINUED, SINGLE = range(4)
"""Kinds of rows: a directory of other slices on the way to one of this slice; one with something of this
slice; more files of the directory before; a file that is a path of the scan, with the directory it is in."""

ROW_BYTES, FILES_BYTES, FILE_BYTES = 100, 900, 52
"""Bytes in memory: a row beside its path, the columns of its files, and one file in them beside its name."""


@dataclass(frozen=True, slots=True)
class ListedRow:
    kind: int
    """ABOVE, OWN, CONTINUED or SINGLE."""
    operand: int
    """Number of the path of the scan."""
    walked: int
    """Position in the walk over everything."""
    path: bytes
    """Path below the path of the scan."""
    files: FileRows


class ListColumns:
    """Rows of one list. `bytes` is about what they take."""

    def __init__(self) -> None:
        self._kinds, self._operands, self._walked, self._counts = (array("Q") for _ in range(4))
        self._paths: list[bytes] = []
        self._files: list[FileRows] = []
        self.bytes = 0

    def add(self, row: ListedRow) -> None:
        self._kinds.append(row.kind)
        self._operands.append(row.operand)
        self._walked.append(row.walked)
        self._counts.append(len(row.files))
        self._paths.append(row.path)
        self.bytes += ROW_BYTES + len(row.path)
        if len(row.files):
            self._files.append(row.files)
            self.bytes += FILES_BYTES + FILE_BYTES * len(row.files) + len(row.files.names)

    def encoded(self) -> bytes:
        """A section with all rows."""
        files = self._files
        return encode_section(
            b"LIST",
            *map(packed, (self._kinds, self._operands, self._walked, self._counts)),
            packed_names(self._paths),
            *(
                b"".join(parts)
                for parts in (
                    [each.names for each in files],
                    [each.sizes for each in files],
                    [each.mtimes for each in files],
                    [each.inodes.devices for each in files],
                    [each.inodes.inodes for each in files],
                    [each.inodes.links for each in files],
                    [each.inodes.allocated for each in files],
                    [each.inodes.ctimes for each in files],
                )
            ),
        )


def directories_in(fields: list[bytes]) -> Iterator[ListedRow]:
    """The rows of a section. Raises ValueError if columns differ in length."""
    kinds, operands, walked, counts = map(unpacked, fields[:4])
    names, sizes, mtimes, devices, inodes, links, allocated, ctimes = fields[5:]
    files = FileRows(names, sizes, mtimes, PackedInodes(devices, inodes, links, allocated, ctimes))
    every, total = unpacked_names(names), sum(counts)
    if len(every) != total or len(links) != 4 * total:
        raise ValueError("columns of several lengths")
    if any(len(column) != 8 * total for column in (sizes, mtimes, devices, inodes, allocated, ctimes)):
        raise ValueError("columns of several lengths")
    start = 0
    rows = zip(kinds, operands, walked, unpacked_names(fields[4]), counts, strict=True)
    for kind, operand, position, path, count in rows:
        stop = start + count
        yield ListedRow(kind, operand, position, path, files.part(every, start, stop) if count else NO_FILES)
        start = stop
