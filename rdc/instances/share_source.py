"""Chooses the file of a group whose blocks the others will share: the one whose sharing frees most.

What a file frees when it changes is what nothing outside of the group holds: its own extents, and extents
that only files of the group refer to, once the last of them has changed. FIEMAP says that an extent is
shared, but not by how many. So an extent that one file of the group refers to is held by something else,
such as a snapshot. One that several of them refer to may be, and counts half.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter

from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterator, Sequence

    from rdc.instances.group import Inode

__all__ = ["SharedPlaces", "choose_source"]

EXTENTS_COMPARED = 1 << 20
"""Shared extents of one group that are compared with each other: 100 MB of memory at most. With more, they
count as held by something else."""


class SharedPlaces:
    """Which files of a group refer to the shared extents of the group's volume, and may still change.

    The volume is cut at all ends of such extents, so that each piece is referred to as a whole or not at all.
    """

    def __init__(self, members: Sequence[Inode], changing: Sequence[bool]) -> None:
        """`changing`: for each member, whether this run may make it refer to other extents."""
        ranges = [_ranges(inode) for inode in members]
        few = sum(map(len, ranges)) <= EXTENTS_COMPARED
        cuts = {cut for one in ranges for pair in one for cut in pair} if few else set()
        self._cuts = sorted(cuts)
        self._holders = [0] * len(self._cuts)
        self._changing = [0] * len(self._cuts)
        self._staying = [0] * len(self._cuts)
        for one, changes in zip(ranges, changing, strict=True):
            for number in self._pieces_of(one):
                self._holders[number] += 1
                self._changing[number] += changes
                self._staying[number] += not changes

    def changes(self, inode: Inode) -> None:
        """Take note that the turn of a file that may change has come."""
        for number in self._pieces_of(_ranges(inode)):
            self._changing[number] -= 1

    def remains(self, inode: Inode) -> None:
        """Take note that such a file keeps its extents."""
        for number in self._pieces_of(_ranges(inode)):
            self._staying[number] += 1

    def split(self, start: int, end: int) -> Iterator[_Held]:
        """Divide a range of the volume by who refers to it."""
        number = bisect_right(self._cuts, start) - 1
        while start < end:
            after = self._cuts[number + 1] if number + 1 < len(self._cuts) else end
            stop = min(after, end)
            known = 0 <= number < len(self._cuts)
            later = known and self._changing[number] > 0
            several = known and self._holders[number] > 1 and not self._staying[number]
            yield _Held(stop - start, later, several)
            start, number = stop, number + 1

    def perhaps_freed(self, inode: Inode) -> int:
        """Half of the bytes that the group frees if all its files but this one change, where several of them
        and perhaps nothing else refer to them: that is what choosing this file would lose."""
        total = 0
        for number in self._pieces_of(_ranges(inode)):
            if self._holders[number] > 1 and not self._staying[number]:
                total += self._cuts[number + 1] - self._cuts[number]
        return total // 2

    def _pieces_of(self, ranges: list[tuple[int, int]]) -> Iterator[int]:
        """The numbers of the pieces that these sorted, disjoint ranges cover."""
        if not self._cuts:
            return
        for start, end in ranges:
            number = bisect_right(self._cuts, start) - 1
            while number + 1 < len(self._cuts) and self._cuts[number] < end:
                yield number
                number += 1


@dataclass(frozen=True, slots=True)
class _Held:
    length: int
    by_later: bool
    """Whether another file of the group refers to it that is still to change."""
    by_several: bool
    """Whether several files of the group referred to it at the beginning, all of which change."""


def _ranges(inode: Inode) -> list[tuple[int, int]]:
    """The shared places of a file on the volume, sorted and disjoint."""
    shared: array[int] | tuple[int, ...] = () if inode.use is None else inode.use.shared
    found: list[tuple[int, int]] = []
    for start, length in sorted(zip(shared[0::2], shared[1::2], strict=True)):
        end = start + length
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def choose_source(members: Sequence[Inode], places: SharedPlaces) -> Inode:
    """The file whose blocks the others will share.

    A file that cannot change, or must not. Otherwise the one that would free least if it changed. Otherwise
    the one whose first place on disk most files have already. Otherwise the first.
    """
    files_at = Counter(inode.use.first for inode in members if inode.use is not None)

    def merit(inode: Inode) -> tuple[bool, int, int]:
        use = inode.use
        if use is None:
            return inode.stays, 0, 0
        cost = 0 if inode.stays else use.own + places.perhaps_freed(inode)
        return inode.stays, -cost, 0 if use.first is None else files_at[use.first]

    return max(members, key=merit)
