"""A group of identical files on disk: one entry per inode with all its known names, and which of them stays.

Removed duplicates leave the file that the rules prefer (`choose_survivor`). Hard links lead to the file that
could not be freed anyway (`choose_original`). Blocks are those of the file whose sharing frees most
(`choose_source`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from rdc.errors import FileError
from rdc.files.base.paths import changed, join
from rdc.files.facts.extents import DiskUse, disk_use
from rdc.files.facts.file_facts import FileFacts, facts_at, facts_of
from rdc.files.names.name_change import is_displaced
from rdc.lean.records import Record, field
from rdc.model.duplicates import IdenticalFiles, KeepOrder, KeepRule, RootedPath
from rdc.model.preserved import real_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array

    from rdc.files.root.root import Root


class Tree(Record):
    root: Root
    real: bytes
    """Its absolute path without symlinks, for comparing paths of several trees."""

    def real_path(self, path: bytes) -> bytes:
        return join(self.real.rstrip(b"/"), path) if self.real != b"/" else b"/" + path


def is_below(path: bytes, top: bytes) -> bool:
    """Return whether the real path `path` is `top` or lies below it."""
    return path == top or path.startswith(top.rstrip(b"/") + b"/")


class Inode(Record, frozen=False):
    """One file of a group."""

    facts: FileFacts
    names: list[RootedPath] = field(default_factory=list)
    protected: bool = False
    """True if one of its names lies below --keep, so that it must not be changed."""
    stuck: bool = False
    """True if this process cannot change its names."""
    use: DiskUse | None = None
    """The space that it takes on disk, if that was requested."""

    @property
    def stays(self) -> bool:
        """Return whether its blocks must not change, or cannot."""
        return self.protected or (self.use is not None and self.use.fixed)

    @property
    def has_other_names(self) -> bool:
        """Return whether it has names that were not given: removing all known names leaves it allocated."""
        return self.facts.links > len(self.names)


def inodes_of(
    group: IdenticalFiles,
    trees: Sequence[Tree],
    keep: Sequence[bytes],
    problem: Callable[[FileError], None],
    *,
    attributes: bool = False,
    use: bool = False,
) -> list[Inode]:
    """Return the group's files by inode, in the order of their first names. Files that cannot be opened or
    whose size has changed are passed to `problem` and left out."""
    found: dict[tuple[int, int], Inode] = {}
    for number, path in zip(group.roots, group.paths, strict=True):
        tree = trees[number]
        if is_displaced(path.rpartition(b"/")[2]):
            continue  # displaced by an interrupted run: see rdc.duplicates.journal
        try:
            looked = _looked_at(tree, path, attributes=attributes, use=use)
            identity = looked.facts.identity
            if identity.size != group.size:
                raise changed(path, tree.root.shown(path), f"{group.size} bytes", f"{identity.size}")
        except FileError as error:
            problem(error)
            continue
        inode = found.setdefault((identity.device, identity.inode), looked)
        inode.names.append(RootedPath(number, path))
        real = tree.real_path(path)
        inode.protected = inode.protected or any(is_below(real, top) for top in keep)
    return list(found.values())


def _looked_at(tree: Tree, path: bytes, *, attributes: bool, use: bool) -> Inode:
    """Return the inode at a path. Raises FileError."""
    if not attributes and not use:
        return Inode(facts_at(tree.root, path))
    with tree.root.open_read(path) as source, tree.root.failing(path, "look at it", reading=True):
        facts = facts_of(source, attributes=attributes)
        return Inode(facts, use=disk_use(source.fileno()) if use else None)


def choose_original(inodes: Sequence[Inode]) -> Inode:
    """Return the file to which the other names will be linked.

    A file whose names must not change, or cannot; otherwise one with unknown names, which could not be freed
    anyway; otherwise the one with the most names; otherwise the first.
    """
    return max(inodes, key=lambda one: (one.protected, one.stuck, one.has_other_names, one.facts.links))


def by_volume(inodes: Sequence[Inode], volume: Callable[[Inode], bytes | None]) -> Iterator[list[Inode]]:
    """Divide inodes into parts of at least two that lie on one volume. `volume` returns the volume's id;
    None leaves the inode out."""
    parts: dict[bytes, list[Inode]] = {}
    for inode in inodes:
        name = volume(inode)
        if name is not None:
            parts.setdefault(name, []).append(inode)
    for part in parts.values():
        if len(part) > 1:
            yield part


# The file that stays when duplicates are removed


def choose_survivor(inodes: Sequence[Inode], rules: Sequence[KeepRule], trees: Sequence[Tree]) -> Inode:
    """Return the file of a set (in the order found) with which the others are compared, and which stays.

    The choice is a function of the set and the rules alone, so two runs over the same files choose the same.
    The rules are compared one after the other. Files that all rules find equal keep the order in which they
    were found: that of the PATHs.

    A protected file stays whatever the rules say. So it is taken before the others, and the rules choose only
    among protected files then.
    """
    candidates = [inode for inode in inodes if inode.protected] or list(inodes)
    for rule in rules:
        if rule.order is KeepOrder.FIRST:
            break
        ranks = [_rank(inode, rule, trees) for inode in candidates]
        best = min(ranks)
        candidates = [inode for inode, rank in zip(candidates, ranks, strict=True) if rank == best]
    return candidates[0]


def _rank(inode: Inode, rule: KeepRule, trees: Sequence[Tree]) -> int:
    """Return the rank of a file: the one with the lowest stays. A file with several names has the rank of its
    best one."""
    order = rule.order
    mtime = real_time(inode.facts.identity.mtime_ns)
    if order is KeepOrder.NEWEST:
        return -mtime
    if order is KeepOrder.OLDEST:
        return mtime
    if order is KeepOrder.IN:
        return -any(is_below(trees[name.root].real_path(name.path), rule.directory) for name in inode.names)
    lengths = [len(trees[name.root].root.shown(name.path)) for name in inode.names]
    return min(lengths) if order is KeepOrder.SHORTEST_PATH else -max(lengths)


# The file whose blocks the others share
#
# What a file frees when it changes is what nothing outside of the group holds: its own extents, and extents
# that only files of the group refer to, once the last of them has changed. FIEMAP says that an extent is
# shared, but not by how many. So an extent that one file of the group refers to is held by something else,
# such as a snapshot. One that several of them refer to may be, and counts half.

EXTENTS_COMPARED = 1 << 20
"""Shared extents of one group that are compared with each other: 100 MB of memory at most. With more, they
count as held by something else."""


class SharedPlaces:
    """The files of a group that refer to the shared extents of the group's volume, and may still change.

    The volume is cut at all ends of such extents, so that each piece is referred to as a whole or not at all.
    """

    def __init__(self, members: Sequence[Inode], changing: Sequence[bool]) -> None:
        """Compare the extents of `members`. `changing`: for each member, whether this run may make it refer
        to other extents."""
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
        """Yield the numbers of the pieces that these sorted, disjoint ranges cover."""
        if not self._cuts:
            return
        for start, end in ranges:
            number = bisect_right(self._cuts, start) - 1
            while number + 1 < len(self._cuts) and self._cuts[number] < end:
                yield number
                number += 1


class _Held(Record):
    length: int
    by_later: bool
    """True if another file of the group refers to it that is still to change."""
    by_several: bool
    """True if several files of the group referred to it at the beginning, all of which change."""


def _ranges(inode: Inode) -> list[tuple[int, int]]:
    """Return the shared places of a file on the volume, sorted and disjoint."""
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
    """Return the file whose blocks the others will share.

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
