"""A group of identical files on disk: one entry per inode, with all its known names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from rdc.errors import FileError
from rdc.files.base.os_errors import changed
from rdc.files.facts.file_facts import facts_of
from rdc.files.names.displaced_names import is_displaced
from rdc.instances.tree import is_below
from rdc.model.instances import RootedPath
from rdc.records import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.instances.tree import Tree
    from rdc.model.instances import FileFacts, IdenticalFiles

__all__ = ["Inode", "choose_source", "inodes_of"]


@dataclass(slots=True)
class Inode:
    """One file of a group."""

    facts: FileFacts
    names: list[RootedPath] = field(default_factory=list)
    protected: bool = False
    """Whether one of its names lies below --keep, so that it must not be changed."""

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
    attributes: bool,
) -> list[Inode]:
    """The group's files by inode, in the order of their first names. Files that cannot be opened or whose
    size has changed are passed to `problem` and left out."""
    found: dict[tuple[int, int], Inode] = {}
    for number, path in zip(group.roots, group.paths, strict=True):
        tree = trees[number]
        if is_displaced(path.rpartition(b"/")[2]):
            continue  # displaced by an interrupted run: see rdc.instances.leftovers
        try:
            facts = facts_of(tree.root, path, attributes=attributes)
            size = facts.identity.size
            if size != group.size:
                raise changed(path, tree.root.shown(path), f"{group.size} bytes", f"{size}")
        except FileError as error:
            problem(error)
            continue
        inode = found.setdefault((facts.identity.device, facts.identity.inode), Inode(facts))
        inode.names.append(RootedPath(number, path))
        real = tree.real_path(path)
        inode.protected = inode.protected or any(is_below(real, top) for top in keep)
    return list(found.values())


def choose_source(inodes: Sequence[Inode]) -> Inode:
    """The file whose blocks the others will share.

    A protected file, since it must not be changed; otherwise the one whose place on disk most files share
    already; otherwise the first.
    """
    files_at = Counter(inode.facts.physical_offset for inode in inodes)

    def merit(inode: Inode) -> tuple[bool, int]:
        offset = inode.facts.physical_offset
        return inode.protected, 0 if offset is None else files_at[offset]

    return max(inodes, key=merit)


def choose_original(inodes: Sequence[Inode]) -> Inode:
    """The file to which the other names will be linked.

    A protected file; otherwise one with unknown names, which could not be freed anyway; otherwise the one
    with the most names; otherwise the first.
    """
    return max(inodes, key=lambda one: (one.protected, one.has_other_names, one.facts.links))


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
