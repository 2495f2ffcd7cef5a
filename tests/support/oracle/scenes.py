"""Random scenes: entries of every kind at SRC, and what became of them at DST."""

from __future__ import annotations

import os
import stat
import struct
from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st

from tests.support.trees.tree_strategies import pairs, plain_trees
from tests.support.trees.trees import Directory, File, Link, Tree, parent_of, write_tree

__all__ = ["Scene", "Side", "Special", "carried", "scenes", "sides"]

OWNERS = ((0, 0), (0, 1), (1, 1), (65534, 65534), (12_345, 54_321))
"""User and group: with names, and without."""

ACL_ACCESS = "system.posix_acl_access"
LATER = 9_100_000_000 * 10**9
"""Nanoseconds: an access time in 2258, after all other times. On a relatime mount reading leaves those."""
ACCESS_TIMES = tuple(LATER + late for late in (0, 5, 999_999_999, 10**9, 86_400 * 10**9))
SPECIAL_KINDS = (stat.S_IFIFO, stat.S_IFSOCK, stat.S_IFCHR, stat.S_IFBLK)


@dataclass(frozen=True, slots=True)
class Special:
    """A fifo, a socket or a device."""

    kind: int
    mode: int
    mtime_ns: int
    device: int


@dataclass(frozen=True, slots=True)
class Side:
    """One tree, with what a Tree value cannot say."""

    tree: Tree
    specials: tuple[tuple[bytes, Special], ...] = ()
    links: tuple[tuple[bytes, bytes], ...] = ()
    """New name and old name of one file."""
    owners: tuple[tuple[bytes, tuple[int, int]], ...] = ()
    attributes: tuple[tuple[bytes, str, bytes], ...] = ()
    accessed: tuple[tuple[bytes, int], ...] = ()
    """Access times in nanoseconds; LATER of other files and special files."""

    def write(self, top: Path) -> Path:
        """Make it at `top`, which is missing."""
        write_tree(top, self.tree)
        times = {path: os.stat(top / os.fsdecode(path)).st_mtime_ns for path in self._directories()}
        for path, special in self.specials:
            made = os.path.join(os.fsencode(top), path)
            os.mknod(made, special.kind | 0o600, special.device)
            os.chmod(made, special.mode)
            os.utime(made, ns=(special.mtime_ns, special.mtime_ns))
        for new, old in self.links:
            os.link(top / os.fsdecode(old), top / os.fsdecode(new), follow_symlinks=False)
        for path, (user, group) in self.owners:
            here, mode = top / os.fsdecode(path), os.lstat(top / os.fsdecode(path)).st_mode
            os.lchown(here, user, group)
            if not stat.S_ISLNK(mode):
                os.chmod(here, stat.S_IMODE(mode))
        for path, name, value in self.attributes:
            os.setxattr(top / os.fsdecode(path), name, value)
        given, files = dict(self.accessed), [p for p, node in self.tree.items() if isinstance(node, File)]
        for path in (*files, *dict(self.specials)):
            here = top / os.fsdecode(path)
            os.utime(here, ns=(given.get(path, LATER), here.stat().st_mtime_ns))
        for path, mtime in times.items():
            os.utime(top / os.fsdecode(path), ns=(mtime, mtime))
        return top

    def _directories(self) -> list[bytes]:
        return [path for path, node in self.tree.items() if isinstance(node, Directory)]


@dataclass(frozen=True, slots=True)
class Scene:
    """A source, a destination, and the trees beside it."""

    source: Side
    destination: Side
    alternates: tuple[Side, ...] = ()
    """Trees beside DST, for --link-dest and its like."""


def _acl(user: int, permissions: int, mode: int) -> bytes:
    """An access ACL of one more user, as the kernel's attribute has it (acl(5), linux/posix_acl_xattr.h)."""
    nobody = 0xFFFFFFFF
    entries = (
        (0x01, mode >> 6 & 7, nobody),
        (0x02, permissions, user),
        (0x04, mode >> 3 & 7, nobody),
        (0x10, 7, nobody),
        (0x20, mode & 7, nobody),
    )
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


@st.composite
def sides(draw: st.DrawFn, tree: Tree, *, specials: bool) -> Side:
    """`tree` with owners, attributes, further names and, where `specials`, entries of other kinds."""
    directories = sorted(path for path, node in tree.items() if isinstance(node, Directory))
    files = sorted(path for path, node in tree.items() if isinstance(node, File))
    named = (os.path.join(directory, name) for directory in directories for name in (b"n1", b"n2"))
    free = [path for path in named if path not in tree]
    more: list[tuple[bytes, Special]] = []
    if specials and draw(st.integers(0, 3)) == 0:
        for path in draw(st.lists(st.sampled_from(free), max_size=2, unique=True)) if free else ():
            kind = draw(st.sampled_from(SPECIAL_KINDS))
            number = os.makedev(1, draw(st.integers(3, 5))) if kind in {stat.S_IFCHR, stat.S_IFBLK} else 0
            mode, seconds = draw(st.sampled_from((0o600, 0o644))), draw(st.integers(1, 3))
            more.append((path, Special(kind, mode, seconds * 10**9, number)))
            free.remove(path)
    links = []
    linkable = [*files, *dict(more)]
    if linkable and draw(st.integers(0, 2)) == 0:
        for path in draw(st.lists(st.sampled_from(free), max_size=2, unique=True)) if free else ():
            links.append((path, draw(st.sampled_from(linkable))))
    owners, attributes = [], []
    if draw(st.integers(0, 2)) == 0:
        for path in draw(st.lists(st.sampled_from(sorted(tree)), max_size=3, unique=True)):
            owners.append((path, draw(st.sampled_from(OWNERS))))
    if draw(st.integers(0, 2)) == 0:
        bearers = [path for path in sorted(tree) if not isinstance(tree[path], Link)]
        for path in draw(st.lists(st.sampled_from(bearers), max_size=3, unique=True)):
            name = draw(st.sampled_from(("user.a", "user.b", ACL_ACCESS)))
            value = draw(st.sampled_from((b"", b"1", b"long" * 200)))
            if name == ACL_ACCESS:
                node = tree[path]
                assert not isinstance(node, Link)
                value = _acl(1, draw(st.sampled_from((0, 4, 6))), node.mode)
            attributes.append((path, name, value))
    accessed = []
    if files and draw(st.integers(0, 2)) == 0:
        for path in draw(st.lists(st.sampled_from(files), max_size=3, unique=True)):
            accessed.append((path, draw(st.sampled_from(ACCESS_TIMES))))
    return Side(tree, tuple(more), tuple(links), tuple(owners), tuple(attributes), tuple(accessed))


@st.composite
def scenes(draw: st.DrawFn, *, specials: bool) -> Scene:
    """Two trees that are related, or not, or no entry but the top at one side."""
    source, destination = draw(pairs(plain_trees()))
    if draw(st.integers(0, 7)) == 0:
        destination = {b"": destination[b""]}
    one = draw(sides(source, specials=specials))
    other = draw(sides(destination, specials=specials))
    if draw(st.booleans()):
        other = carried(one, other)
    return Scene(one, other)


def carried(source: Side, destination: Side) -> Side:
    """`destination` with the extras of `source` where its tree has the same entries: an earlier copy."""
    same = {path for path, node in source.tree.items() if destination.tree.get(path) == node}
    specials = tuple(
        (path, special)
        for path, special in source.specials
        if path not in destination.tree and isinstance(destination.tree.get(parent_of(path)), Directory)
    )
    return Side(
        destination.tree,
        specials,
        tuple(
            (new, old)
            for new, old in source.links
            if old in same | dict(specials).keys()
            and new not in destination.tree
            and isinstance(destination.tree.get(parent_of(new)), Directory)
        ),
        tuple(pair for pair in source.owners if pair[0] in same),
        tuple(each for each in source.attributes if each[0] in same),
        tuple(each for each in source.accessed if each[0] in same),
    )
