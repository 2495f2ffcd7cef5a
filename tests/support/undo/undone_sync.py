"""Random syncs that keep an undo, killed or not, and undos of them, killed or not.

A census of the destination before each sync says what it has to be after the undo.
"""

from __future__ import annotations

import os
import random
import shutil
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from rdc.errors import ExitCode
from rdc.files.base.paths import UNDO_NAME, is_reserved
from rdc.files.root.root import Root
from rdc.model.options import KeepUndo
from rdc.model.sync import SyncOptions
from rdc.progress import Problem, Progressed
from rdc.undoing.records import UndoItem, UndoOptions, UndoReport
from rdc.undoing.store import Moved, UndoStore
from rdc.undoing.undo import list_syncs, undo_latest
from tests.support.running.syncing import Way, run_sync
from tests.support.trees.random_changes import Changes
from tests.support.trees.random_contents import Contents
from tests.support.undo.stepped_child import ended_at_step

__all__ = ["Census", "Tally", "UndoneSyncs", "census", "unlike"]

Census = dict[bytes, tuple[object, ...]]
"""By path: kind, mode, owner, content or target, mtime, attributes, and the first name of its file."""


def census(top: Path) -> Census:
    """Return everything below `top` except what rdc keeps for an undo."""
    found: Census = {}
    first: dict[tuple[int, int], bytes] = {}
    place = os.fsencode(top)
    paths = [place]
    for directory, directories, files in os.walk(place):
        if directory == place and UNDO_NAME in directories:
            directories.remove(UNDO_NAME)
        # The trial of a file system that was killed is a directory, with entries of names of its own.
        directories[:] = [name for name in directories if not is_reserved(name)]
        paths += [os.path.join(directory, name) for name in directories + files if not is_reserved(name)]
    for path in sorted(paths):
        here = os.lstat(path)
        relative = os.path.relpath(path, place)
        kind = stat.S_IFMT(here.st_mode)
        content: object = here.st_rdev
        if kind == stat.S_IFREG:
            with open(path, "rb") as file:
                content = file.read()
        elif kind == stat.S_IFLNK:
            content = os.readlink(path)
        names = os.listxattr(path, follow_symlinks=False)
        attributes = sorted((name, os.getxattr(path, name, follow_symlinks=False)) for name in names)
        name = relative if kind == stat.S_IFDIR else first.setdefault((here.st_dev, here.st_ino), relative)
        found[relative] = (
            kind, oct(here.st_mode), here.st_uid, here.st_gid, content, here.st_mtime_ns,
            tuple(attributes), name,
        )  # fmt: skip
    return found


def unlike(before: Census, after: Census) -> list[str]:
    """Return the differences between the two, one line per entry."""
    lines = []
    for path in sorted(before.keys() | after.keys()):
        one, other = before.get(path), after.get(path)
        if one != other:
            lines.append(f"{path!r}: was {_short(one)}, is {_short(other)}")
    return lines


def _short(entry: tuple[object, ...] | None) -> str:
    if entry is None:
        return "missing"
    return str([item[:20] if isinstance(item, bytes) else item for item in entry])


class _SmallContents(Contents):
    """Contents of some KB, for many syncs a second."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def new(self) -> bytes:
        return self._rng.randbytes(self._rng.choice((0, 1, 300, 5_000, 40_000)))

    def small_text(self) -> bytes:
        return b"%d lines\n" % self._rng.randrange(10**6) * self._rng.randrange(1, 40)

    def edited(self, data: bytes) -> bytes:
        at = self._rng.randrange(len(data) + 1)
        return data[:at] + self._rng.randbytes(self._rng.choice((1, 40))) + data[at:]


@dataclass(slots=True)
class Tally:
    syncs: int = 0
    killed_syncs: int = 0
    undos: int = 0
    killed_undos: int = 0
    newer: int = 0
    """Entries that were changed between a sync and its undo."""
    taken_back: int = 0

    def add(self, other: Tally) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass(slots=True)
class _Ended:
    report: UndoReport | None = None
    events: list[UndoItem | Problem | Progressed] = field(default_factory=list)


class UndoneSyncs:
    """One source and one destination, which live on from case to case."""

    def __init__(self, place: Path, seed: int, *, entries: int = 40) -> None:
        self._rng = random.Random(seed)
        self._changes = Changes(self._rng, _SmallContents(self._rng), fresh=True)
        self.source, self.top = place / "source", place / "destination"
        self._said = place / "said"
        self._entries = entries
        self.tally = Tally()

    def case(self) -> None:
        """Run some syncs one after the other, then undo them, the last first."""
        rng = self._rng
        for top in (self.source, self.top):
            shutil.rmtree(top, ignore_errors=True)
        self._changes.fill(os.fsencode(self.source), self._entries)
        shutil.copytree(self.source, self.top, symlinks=True, ignore=_fifos)
        self._changes.change(os.fsencode(self.top), 12)
        before: list[Census] = []
        stirred: set[bytes] = set()
        killed = self.tally.killed_syncs
        open_to_all: set[bytes] = set()
        """Files that others may write to, and that an undo named: the sync was killed before it noted their
        ctimes, so that what it did to them cannot be told from a user's work."""
        for _ in range(rng.choice((1, 1, 2, 3))):
            found = census(self.top)
            if self._sync():
                before.append(found)
            else:  # it changed nothing, so it left no record
                stirred |= _stirred(found, census(self.top))
            self._changes.change(os.fsencode(self.source), 8)
        if rng.random() < 0.3 and before:
            self._undo_around_newer_work(before.pop())
            return
        while before:
            wanted, newer = before.pop(), census(self.top)
            ended = self._undo()
            named = {event.path_bytes for event in ended.events if isinstance(event, Problem)}
            if self.tally.killed_syncs > killed:
                open_to_all |= {path for path in named & newer.keys() if _is_open_to_all(newer[path])}
            found = census(self.top)
            both = [_contents(_untimed(each, stirred), open_to_all) for each in (wanted, found)]
            lines = unlike(*both)
            assert not lines, "\n".join(lines[:20])
        report = undo_latest(os.fsencode(self.top), UndoOptions(fsync=False), lambda event: None)
        assert report.number is None, report

    # Syncs

    def _options(self) -> SyncOptions:
        rng = self._rng
        return SyncOptions(
            delete=rng.random() < 0.7,
            checksum=rng.random() < 0.2,
            hard_links=rng.random() < 0.4,
            acls=rng.random() < 0.3,
            xattrs=rng.random() < 0.3,
            sparse=rng.random() < 0.1,
            owner=rng.choice((None, None, False)),
            max_delete=3 if rng.random() < 0.1 else None,
            existing=rng.random() < 0.1,
            fsync=rng.random() < 0.1,
            keep_undo=KeepUndo(days=30),
        )

    def _sync(self) -> bool:
        """Return whether it left a record."""
        options = self._options()
        numbers = self._records()
        self.tally.syncs += 1

        def work() -> None:
            run_sync(self.source, self.top, options, way=Way.HERE)

        if self._rng.random() < 0.6:
            stop_at = int(self._rng.uniform(0, 14) ** 2.2)
            self.tally.killed_syncs += ended_at_step(work, stop_at, self._said)
        else:
            work()
        return self._records() != numbers

    def _records(self) -> list[int]:
        """The syncs that are not undone yet."""
        return [sync.number for sync in list_syncs(os.fsencode(self.top)) if sync.left_alone is None]

    # Undos

    def _undo(self) -> _Ended:
        """Undo one sync, after some undos of it that were killed."""
        while self._rng.random() < 0.5:
            stop_at = int(self._rng.uniform(0, 9) ** 2)
            numbers = self._records()
            if ended_at_step(lambda: self._work(_Ended()), stop_at, self._said):
                self.tally.killed_undos += 1
            if self._records() != numbers:
                self.tally.undos += 1
                return _Ended()
        ended = _Ended()
        rehearsed = _Ended()
        self._work(rehearsed, dry_run=True)
        self._work(ended)
        self.tally.undos += 1
        assert ended.report is not None
        if ended.report.exit is ExitCode.OK:
            self.tally.taken_back += ended.report.restored + ended.report.removed + ended.report.moved
        return ended

    def _work(self, ended: _Ended, *, dry_run: bool = False) -> None:
        options = UndoOptions(dry_run=dry_run, fsync=False)
        ended.report = undo_latest(os.fsencode(self.top), options, ended.events.append)

    def _undo_around_newer_work(self, before: Census) -> None:
        """Undo a sync after newer changes: these stay and are reported, and all else is as before the
        sync."""
        after = census(self.top)
        for _ in range(3):
            with suppress(OSError, shutil.Error):
                self._newer()
        newer = census(self.top)
        touched = {path for path in after.keys() | newer.keys() if after.get(path) != newer.get(path)}
        self.tally.newer += len(touched)
        touched |= {old for old, new in self._moves() if new in touched}  # the user took its only copy
        # Who writes to one name of a file writes to its old version, too: that one is named, and stays away.
        files = {before[path][-1] for path in touched & before.keys()}
        touched |= {path for path, entry in before.items() if entry[-1] in files}
        self._undo()
        found = census(self.top)
        for path in touched:
            entry, synced = newer.get(path), after.get(path)
            if entry is None or (synced is not None and synced[:-1] == entry[:-1]):
                continue  # gone, or as the sync left it: another name of its file went
            if entry[0] == stat.S_IFREG and entry[4] != b"":
                contents = {each[4] for each in found.values()}
                assert entry[4] in contents, f"{path!r}: newer work is gone"
        near = {path for each in touched for path in _with_above(each)}
        lines = [
            line
            for path in sorted(before.keys() | found.keys())
            if path not in near and not _is_below(path, touched)
            for line in unlike(_only(before, path), _only(found, path))
        ]
        assert not lines, "\n".join(lines[:20])

    def _moves(self) -> list[tuple[bytes, bytes]]:
        """Return what the latest sync moved."""
        root = Root.open(os.fsencode(self.top))
        with UndoStore.open(root) or UndoStore.make(root, fsync=False) as store:
            record = store.stored(store.numbers()[-1])
            moves = [(each.path, each.new) for each in record.backwards() if isinstance(each, Moved)]
            record.close()
        return moves

    def _newer(self) -> None:
        """One change as a user makes it."""
        files = [path for path, entry in sorted(census(self.top).items()) if entry[0] == stat.S_IFREG]
        path = os.path.join(os.fsencode(self.top), self._rng.choice(files or [b"new"]))
        match self._rng.randrange(4):
            case 0:
                with open(path, "ab") as file:
                    file.write(b"written since %d" % self._rng.randrange(10**9))
            case 1:
                with open(path + b".new", "wb") as file:
                    file.write(b"saved since %d" % self._rng.randrange(10**9))
                os.rename(path + b".new", path)
            case 2:
                with open(os.path.join(os.path.dirname(path), b"newer"), "wb") as file:
                    file.write(b"made since %d" % self._rng.randrange(10**9))
            case 3:
                os.unlink(path)


def _stirred(before: Census, after: Census) -> set[bytes]:
    """The directories that a sync without a record left with another time: it was killed while it had a
    temporary in them. It changed nothing else."""
    found = {path for path, entry in after.items() if before.get(path) != entry and entry[0] == stat.S_IFDIR}
    lines = unlike(_untimed(before, found), _untimed(after, found))
    assert not lines, "\n".join(lines[:20])
    return found


def _untimed(found: Census, paths: set[bytes]) -> Census:
    return {path: (*entry[:5], 0, *entry[6:]) if path in paths else entry for path, entry in found.items()}


def _is_open_to_all(entry: tuple[object, ...]) -> bool:
    return entry[0] == stat.S_IFREG and bool(int(str(entry[1]), 8) & 0o022)


def _contents(found: Census, paths: set[bytes]) -> Census:
    """The same, without the metadata of some files."""
    return {
        path: (entry[0], "", 0, 0, entry[4], 0, (), entry[7]) if path in paths else entry
        for path, entry in found.items()
    }


def _only(found: Census, path: bytes) -> Census:
    """One entry without its time, and without which names its file has: newer work changes those."""
    entry = found.get(path)
    return {} if entry is None else {path: (*entry[:5], entry[6])}


def _with_above(path: bytes) -> list[bytes]:
    found = [path, b"."]
    while path := os.path.dirname(path):
        found.append(path)
    return found


def _is_below(path: bytes, tops: set[bytes]) -> bool:
    return any(each in tops for each in _with_above(path)[2:])


def _fifos(place: str, names: list[str]) -> list[str]:
    return [name for name in names if stat.S_ISFIFO(os.lstat(os.path.join(place, name)).st_mode)]
