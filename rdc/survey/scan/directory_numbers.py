"""DirectoryNumbers: gives directories of one walk their numbers, once a file in or below them counts."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.survey.count.chunk_locations import ChunkLocations

__all__ = ["DirectoryNumbers"]


class _Above:
    """A directory on the way to the current one."""

    __slots__ = ("number", "path", "shown", "walked")

    def __init__(self, path: bytes, shown: bytes, walked: int) -> None:
        self.path = path
        self.shown = shown
        self.walked = walked
        self.number = -1


class DirectoryNumbers:
    """The directories on the way to the current one, of a walk that goes into the depth first.

    A slice counts few of the directories that it walks, so only those and the ones above them get a number.
    Numbers still increase in the order of the walk. A directory without a number has no numbered directory
    below it. So when it gets one, all directories with smaller numbers came before it.
    """

    def __init__(self, locations: ChunkLocations, operand: int) -> None:
        self._locations = locations
        self.operand = operand
        """Number of the path of the scan that is walked."""
        self._way: list[_Above] = []

    def enter(self, path: bytes, shown: bytes, walked: int) -> None:
        """Makes the directory at `path` the current one, which is `walked` in the order of the walk."""
        above = path.rpartition(b"/")[0]
        while self._way and not (path and self._way[-1].path == above):
            self._way.pop()
        self._way.append(_Above(path, shown, walked))

    def number(self) -> int:
        """The number of the current directory."""
        above = -1
        for one in self._way:
            if one.number < 0:
                one.number = self._locations.add_directory(one.shown, above, self.operand, one.walked)
            above = one.number
        return above
