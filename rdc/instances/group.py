"""A group of identical files on disk: one entry per inode, with all its known names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rdc.errors import FileError
from rdc.files.base.os_errors import changed
from rdc.files.facts.disk_use import disk_use
from rdc.files.facts.file_facts import facts_at, facts_of
from rdc.files.names.displaced_names import is_displaced
from rdc.instances.tree import is_below
from rdc.model.instances import RootedPath
from rdc.records import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.facts.disk_use import DiskUse
    from rdc.instances.tree import Tree
    from rdc.model.instances import FileFacts, IdenticalFiles

__all__ = ["Inode", "by_volume", "choose_original", "inodes_of"]


@dataclass(slots=True)
class Inode:
    """One file of a group."""

    facts: FileFacts
    names: list[RootedPath] = field(default_factory=list)
    protected: bool = False
    """Whether one of its names lies below --keep, so that it must not be changed."""
    stuck: bool = False
    """Whether this process cannot change its names."""
    use: DiskUse | None = None
    """What it takes on disk, if that was requested."""

    @property
    def stays(self) -> bool:
        """Whether its blocks must not change, or cannot."""
        return self.protected or (self.use is not None and self.use.fixed)

    @property
    def has_other_names(self) -> bool:
        """Whether it has names that were not given. Then it stays allocated even if all known names are
        removed."""
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
    """The group's files by inode, in the order of their first names. Files that cannot be opened or whose
    size has changed are passed to `problem` and left out."""
    found: dict[tuple[int, int], Inode] = {}
    for number, path in zip(group.roots, group.paths, strict=True):
        tree = trees[number]
        if is_displaced(path.rpartition(b"/")[2]):
            continue  # displaced by an interrupted run: see rdc.instances.leftovers
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
    """Raises FileError."""
    if not attributes and not use:
        return Inode(facts_at(tree.root, path))
    with tree.root.open_read(path) as source:
        try:
            facts = facts_of(source, attributes=attributes)
            return Inode(facts, use=disk_use(source.fileno()) if use else None)
        except OSError as error:
            raise tree.root.failure(error, path, "look at it", reading=True) from error


def choose_original(inodes: Sequence[Inode]) -> Inode:
    """The file to which the other names will be linked.

    A file whose names must not change, or cannot; otherwise one with unknown names, which could not be freed
    anyway; otherwise the one with the most names; otherwise the first.
    """
    return max(inodes, key=lambda one: (one.protected, one.stuck, one.has_other_names, one.facts.links))


def by_volume(inodes: Sequence[Inode], volume: Callable[[Inode], bytes | None]) -> Iterator[list[Inode]]:
    """Divides inodes into parts of at least two that lie on one volume. `volume` returns the volume's id;
    None leaves the inode out."""
    parts: dict[bytes, list[Inode]] = {}
    for inode in inodes:
        name = volume(inode)
        if name is not None:
            parts.setdefault(name, []).append(inode)
    for part in parts.values():
        if len(part) > 1:
            yield part
