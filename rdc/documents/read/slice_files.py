"""SliceFiles: which files, and which ranges of large ones, one slice of a search reads."""

from __future__ import annotations

from rdc.documents.read.file_kinds import is_divided
from rdc.documents.read.file_range import FileRange
from rdc.kernel import name_ranks
from rdc.limits.searches import RANGE_BYTES
from rdc.model.entries import Kind, PackedListing, little_endian_integers, strings
from rdc.survey.slices import SLICE_KEY, WalkTotals, name_rank

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array

    from rdc.model.scan import ScanSlice

__all__ = ["SliceFiles", "ranges_of"]


def ranges_of(path: bytes, size: int, slices: int, format_: str = "auto") -> int:
    """Return how many ranges a file has among so many slices, if it is read in this format."""
    if not is_divided(path, format_):
        return 1
    return max(1, min(slices, size // RANGE_BYTES))


class SliceFiles:
    """Chooses what one slice reads: files by a hash of their path, and of a large file one range.

    The ranges of a file belong to as many slices, one after another. A corpus often lies in one directory, so
    files of a directory do not stay together as in slices of a scan. Adds up what was walked meanwhile.
    """

    def __init__(self, slice_: ScanSlice, format_: str) -> None:
        """`format_`: one of FORMATS."""
        self._format = format_
        self._number = slice_.number - 1
        self._of = slice_.of
        self._files = self._bytes = self._directories = 0

    @property
    def totals(self) -> WalkTotals:
        """What was walked, whichever slice it belongs to."""
        return WalkTotals(self._files, self._bytes, self._directories, self._number + 1)

    def has_path(self, path: bytes) -> bool:
        """Whether a path that cannot be listed belongs here."""
        return self._first(path) == self._number

    def has_file(self, path: bytes, size: int) -> bool:
        """Counts a file, and returns whether it or a range of it belongs here."""
        self._files += 1
        self._bytes += size
        return self._distance(self._first(path)) < ranges_of(path, size, self._of, self._format)

    def rows(self, directory: bytes, listing: PackedListing) -> list[int]:
        """Counts the files of a directory, and returns the rows of those that are read here."""
        self._directories += 1
        rows = listing.rows_of(Kind.FILE)
        if not rows:
            return []
        self._files += len(rows)
        sizes: array[int] = little_endian_integers("Q", listing.sizes)
        self._bytes += sum(map(sizes.__getitem__, rows))
        base = _rank(directory)
        ranks: array[int] = little_endian_integers("Q", name_ranks(SLICE_KEY, listing.names))
        names: list[bytes] = []
        chosen = []
        for row in rows:
            distance = self._distance(base + ranks[row])
            # Most files have one range.
            if distance and sizes[row] >= 2 * RANGE_BYTES:
                names = names or strings(listing.names)
                if distance < ranges_of(names[row], sizes[row], self._of, self._format):
                    chosen.append(row)
            elif not distance:
                chosen.append(row)
        return chosen

    def range_of(self, path: bytes, size: int) -> FileRange | None:
        """The range of a file of this slice; None for the whole file."""
        ranges = ranges_of(path, size, self._of, self._format)
        return None if ranges == 1 else FileRange.of_file(self._distance(self._first(path)), ranges, size)

    def _first(self, path: bytes) -> int:
        """The slice, from 0, of a path and of the first range of a file."""
        at = path.rfind(b"/") + 1
        return (_rank(path[:at]) + _rank(path[at:])) % self._of

    def _distance(self, first: int) -> int:
        return (self._number - first) % self._of


def _rank(name: bytes) -> int:
    return name_rank(name.replace(b"\0", b""))
