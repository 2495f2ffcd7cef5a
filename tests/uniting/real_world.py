"""Two real trees beside the pure world: each user's step is done in both, and so is each run."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rdc.lean.records import replace as with_fields
from rdc.progress import Problem
from rdc.uniting.attributes import AttributeSets
from rdc.uniting.records import UniteConflict, UniteItem, UniteOptions, UniteReport
from rdc.uniting.rows import DIRECTORY, FILE, LEFT, RIGHT, SYMLINK
from rdc.uniting.run import unite
from rdc.uniting.ties import grouped
from tests.uniting.pure_world import Disk, World, all_sets
from tests.uniting.remote_runs import Wrap, unite_in_turns

SIDES = ("left", "right")
QUICK = UniteOptions(keep_undo=None, fsync=False, guard=100, force_empty=True)
"""Of users that delete most of a small tree at will."""

FIRST_TIMES = 6
"""The greatest time that a file of the first tree has in memory."""

Snapshot = dict[bytes, tuple[int, bytes, int]]


def snapshot(top: Path) -> Snapshot:
    """Kinds, contents and modes of a tree, read by means of their own."""
    found: Snapshot = {}
    for directory, names, files in os.walk(os.fsencode(top)):
        names[:] = [name for name in names if not name.startswith(b".rdc-")]
        for name in (*names, *files):
            path = os.path.join(directory, name)
            at = os.path.relpath(path, os.fsencode(top))
            if os.path.islink(path):
                found[at] = SYMLINK, os.readlink(path), 0
            elif os.path.isdir(path):
                found[at] = DIRECTORY, b"", os.stat(path).st_mode & 0o777
            else:
                found[at] = FILE, Path(os.fsdecode(path)).read_bytes(), os.stat(path).st_mode & 0o777
        names[:] = [name for name in names if not os.path.islink(os.path.join(directory, name))]
    return found


def attributes_in(top: Path, sets: AttributeSets | None = None) -> dict[bytes, bytes]:
    """The digests of the sets of extended attributes of all entries that have any, which `sets` holds
    then."""
    found = {}
    sets = sets or all_sets()
    for path in snapshot(top):
        real = os.path.join(os.fsencode(top), path)
        names = os.listxattr(real, follow_symlinks=False)
        pairs = [(os.fsencode(name), os.getxattr(real, name, follow_symlinks=False)) for name in names]
        if pairs:
            found[path] = sets.add(tuple(sorted(pairs)))
    return found


def ties_in(top: Path) -> dict[bytes, int]:
    """The names below a directory that share a file."""
    files: dict[int, list[bytes]] = {}
    for path, (kind, _, _) in snapshot(top).items():
        if kind == FILE:
            files.setdefault(os.lstat(os.path.join(os.fsencode(top), path)).st_ino, []).append(path)
    return grouped(files.values())


def every_stat(top: Path) -> dict[str, tuple[int, ...]]:
    """What tells whether anything was written below a directory, the state included."""
    found: dict[str, tuple[int, ...]] = {}
    for directory, _, files in os.walk(top):
        for path in (directory, *(os.path.join(directory, name) for name in files)):
            seen = os.lstat(path)
            if not path.endswith(".rdc-unite/lock"):
                found[path] = (seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
    return found


class RealWorld(World):
    """A World whose steps are done on disk, too."""

    def __init__(
        self,
        top: Path,
        remote: random.Random | None = None,
        *,
        has_times: bool = False,
        has_attributes: bool = False,
        has_acls: bool = False,
        has_links: bool = False,
    ) -> None:
        """`remote`: runs are as between two machines, and it chooses which side dials."""
        super().__init__(
            has_times=has_times, has_attributes=has_attributes, has_acls=has_acls, has_links=has_links
        )
        self.remote = remote
        self.tops = (top / "left", top / "right")
        for each in self.tops:
            each.mkdir()

    def at(self, side: int, path: bytes) -> bytes:
        return os.path.join(os.fsencode(self.tops[side]), path)

    def write(self, side: int, path: bytes, content: bytes, *, mtime: int | None = None) -> None:
        before = dict(self.disks[side])
        first = mtime is not None and mtime <= FIRST_TIMES
        super().write(side, path, content, mtime=mtime if first else None)
        if self.disks[side] != before:
            real = self.at(side, path)
            if os.path.islink(real):
                os.unlink(real)
            Path(os.fsdecode(real)).write_bytes(content)
            os.chmod(real, self.disks[side][path].mode)
            if first or self.has_times:
                time = 1_000_000_123 + 1_000_003 * self.disks[side][path].mtime
                os.utime(real, ns=(time, time))
            self.refresh()

    def link(self, side: int, path: bytes, target: bytes) -> None:
        before = dict(self.disks[side])
        super().link(side, path, target)
        if self.disks[side] != before:
            real = self.at(side, path)
            if os.path.lexists(real):
                os.unlink(real)
            os.symlink(target, real)
            self.refresh()

    def mkdir(self, side: int, path: bytes) -> None:
        before = dict(self.disks[side])
        super().mkdir(side, path)
        if self.disks[side] != before:
            os.mkdir(self.at(side, path))
            os.chmod(self.at(side, path), 0o755)  # noqa: S103 - a user.s own directory
            self.refresh()

    def change(self, side: int, path: bytes, *, mode: int | None = None, mtime: int | None = None) -> None:
        thing = self.disks[side].get(path)
        if thing is not None and thing.kind == DIRECTORY and mode is not None:
            mode |= 0o711  # whoever runs the tests works in it
        super().change(side, path, mode=mode, mtime=mtime)
        if thing is not None and thing.kind != SYMLINK:
            if mode is not None:
                os.chmod(self.at(side, path), mode)
            if mtime is not None:
                os.utime(self.at(side, path))

    def attribute(self, side: int, path: bytes, number: int) -> None:
        thing = self.disks[side].get(path)
        super().attribute(side, path, number)
        if thing is not None and thing.kind != SYMLINK:
            real = self.at(side, path)
            for name in os.listxattr(real):
                os.removexattr(real, name)
            for key, value in self.sets.of(self.disks[side][path].attributes):
                os.setxattr(real, key, value)

    def remove(self, side: int, path: bytes) -> None:
        real = self.at(side, path)
        if path in self.disks[side]:
            if os.path.isdir(real) and not os.path.islink(real):
                shutil.rmtree(real)
            else:
                os.unlink(real)
        super().remove(side, path)

    def move(self, side: int, old: bytes, new: bytes) -> None:
        before = dict(self.disks[side])
        super().move(side, old, new)
        if self.disks[side] != before:
            os.rename(self.at(side, old), self.at(side, new))
            self.refresh()

    def tie(self, side: int, path: bytes, other: bytes) -> None:
        before = dict(self.disks[side])
        super().tie(side, path, other)
        if self.disks[side] != before:
            real = self.at(side, path)
            if os.path.lexists(real) and os.lstat(real).st_ino != os.lstat(self.at(side, other)).st_ino:
                os.unlink(real)
            if not os.path.lexists(real):
                os.link(self.at(side, other), real)
            self.refresh()

    def part(self, side: int, path: bytes) -> None:
        before = dict(self.disks[side])
        super().part(side, path)
        if self.disks[side] != before:
            real = Path(os.fsdecode(self.at(side, path)))
            aside = real.with_name("aside")
            shutil.copy2(real, aside)
            aside.replace(real)
            self.refresh()

    def refresh(self) -> None:
        """Give the entries in memory the inode numbers of those on disk, and the ancestor as well."""
        for side, disk in enumerate(self.disks):
            numbers: dict[int, int] = {}
            for path, thing in disk.items():
                real = os.lstat(self.at(side, path)).st_ino
                numbers[thing.inode] = real
                # Symlinks prove no rename in a real run.
                disk[path] = replace(thing, inode=real if thing.kind != SYMLINK else self.inode() << 80)
            for path, row in self.base.items():
                stamp = row.stamps[side]
                if stamp.inode in numbers:
                    stamps = list(row.stamps)
                    stamps[side] = stamp._replace(inode=numbers[stamp.inode])
                    self.base[path] = row._replace(stamps=(stamps[0], stamps[1]))

    def run_real(
        self, options: UniteOptions = QUICK, *, exchanged: bool = False
    ) -> tuple[UniteReport, list[object]]:
        """One real run, with the right side as the left one if wanted."""
        events: list[object] = []
        return self.unite(options, events.append, exchanged=exchanged), events

    def unite(
        self,
        options: UniteOptions,
        report: Callable[[object], None],
        *,
        exchanged: bool = False,
        wrap: Wrap | None = None,
    ) -> UniteReport:
        left, right = self.tops[::-1] if exchanged else self.tops
        options = with_fields(
            options, xattrs=self.has_attributes, acls=self.has_acls, hard_links=self.has_links
        )
        if self.remote is None:
            return unite(os.fsencode(left), os.fsencode(right), options, report)
        near = self.remote.randrange(2)
        return unite_in_turns(left, right, options, report, near=near, wrap=wrap).report


def shown(disk: Disk) -> Snapshot:
    """A disk in memory as a snapshot."""
    return {
        path: (thing.kind, thing.content, thing.mode if thing.kind != SYMLINK else 0)
        for path, thing in disk.items()
    }


def conflicts_of(events: list[object]) -> set[tuple[bytes, str]]:
    return {(event.path_bytes, event.about) for event in events if isinstance(event, UniteConflict)}


def items_of(events: list[object]) -> list[UniteItem]:
    return [event for event in events if isinstance(event, UniteItem)]


def problems_of(events: list[object]) -> list[Problem]:
    return [event for event in events if isinstance(event, Problem) and event.code]


__all__ = ["LEFT", "QUICK", "RIGHT", "RealWorld", "conflicts_of", "every_stat", "items_of", "problems_of"]
