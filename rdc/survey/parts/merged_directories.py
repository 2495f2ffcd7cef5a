"""MergedDirectories: the directories of all slices of one scan, numbered as one scan numbers them."""

from __future__ import annotations

from array import array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.survey.count.chunk_locations import ChunkLocations

__all__ = ["MergedDirectories"]

_Key = tuple[int, bytes]
"""Number of the path of the scan, and the directory's path."""


class MergedDirectories:
    """Equal paths are one directory. Its position in the walk decides its number.

    Slices that walked an unchanged tree agree in all positions. If the tree changed meanwhile, the least one
    counts. A directory still comes after the one above it: whichever slice met it first had met the one above
    before.
    """

    def __init__(self) -> None:
        self._walked: dict[_Key, int] = {}
        self._above: dict[_Key, _Key | None] = {}
        self._part: list[_Key] = []
        """The directories of the part that is being read, by number."""
        self._numbers: dict[_Key, int] = {}

    def begin_part(self) -> None:
        self._part = []

    def add(self, paths: list[bytes], above: array[int], walked: array[int], operands: array[int]) -> None:
        """Adds directories of a part as it stores them. Raises ValueError for what no scan writes."""
        for path, parent, position, operand in zip(paths, above, walked, operands, strict=True):
            if parent > len(self._part):
                raise ValueError("a directory above itself")
            key = (operand, path)
            over = self._part[parent - 1] if parent else None
            known = self._walked.get(key)
            if over is not None and self._walked[over] >= position:
                raise ValueError("a directory that was walked before the one above it")
            if known is not None and self._above[key] != over:
                raise ValueError("a directory in two places")
            self._walked[key] = position if known is None else min(known, position)
            self._above[key] = over
            self._part.append(key)

    def number_all(self, locations: ChunkLocations) -> None:
        """Adds all directories to `locations`, in the order of the walk."""
        self._part = []
        for key in sorted(self._walked, key=lambda key: (self._walked[key], key)):
            over = self._above[key]
            parent = -1 if over is None else self._numbers[over]
            operand, path = key
            self._numbers[key] = locations.add_directory(path, parent, operand, self._walked[key])
        self._walked, self._above = {}, {}

    def number(self, operand: int, path: bytes) -> int:
        """The number of a directory. Raises KeyError for one that was not added."""
        return self._numbers[operand, path]
