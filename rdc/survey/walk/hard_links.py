"""Hard links: which rows count as files, and which are other names of these files."""

from __future__ import annotations

from array import array
from bisect import bisect_left

from rdc.survey.walk.equal_groups import equal_groups

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.survey.walk.file_columns import FileColumns

__all__ = ["OtherNames", "split_names"]


class OtherNames:
    """For each row that counts as a file, the rows of its other names. Twelve bytes per name."""

    def __init__(self, pairs: list[tuple[int, int]]) -> None:
        """`pairs`: a row that counts as a file, and a row of another name of it."""
        pairs.sort()
        self._firsts = array("I", [first for first, _ in pairs])
        self.rows = array("I", [other for _, other in pairs])
        """The rows of all other names."""

    def __len__(self) -> int:
        return len(self.rows)

    def of(self, row: int) -> array[int]:
        """The other names of `row`, in increasing order."""
        start = bisect_left(self._firsts, row)
        return self.rows[start : bisect_left(self._firsts, row + 1, start)]


def split_names(files: FileColumns, rows: Sequence[int]) -> tuple[array[int], OtherNames]:
    """Splits `rows` into those that count as files, each the first name of its file, and their other
    names."""
    groups = equal_groups(files.identities(rows), 16)
    if not len(groups):
        return array("I", rows), OtherNames([])
    pairs = []
    other = bytearray(len(rows))
    for positions in groups:
        first = min(rows[position] for position in positions)
        for position in positions:
            if rows[position] != first:
                other[position] = 1
                pairs.append((first, rows[position]))
    return array("I", [row for position, row in enumerate(rows) if not other[position]]), OtherNames(pairs)
