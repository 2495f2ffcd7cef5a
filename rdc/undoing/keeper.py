"""SyncUndo: notes in a record what one sync is about to do, and keeps what it replaces and removes.

Each step is on disk before the change that it announces. An old version is kept by a second name (a hard
link), so at every moment it has one of the two. UNDO.md has the argument.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from contextlib import suppress

from rdc.errors import FileError, RdcError
from rdc.files.base.metadata import found_at, identity_of, metadata_of, would_change
from rdc.files.base.paths import cause_of
from rdc.files.base.taking_names import flush, is_refused
from rdc.files.facts.xattrs import read_entry_attributes
from rdc.lean.records import replace
from rdc.limits import DIRECTORIES_KNOWN
from rdc.model.preserved import AttributeKinds, Attributes
from rdc.undoing.store import (
    Bounds,
    Changed,
    Facts,
    Finished,
    Held,
    Left,
    Line,
    Made,
    Moved,
    RemovedDirectory,
    Saved,
    StoredSync,
    UndoStore,
    facts_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.files.root.root import Placed, Root
    from rdc.model.entries import Metadata
    from rdc.model.options import KeepUndo

HELD_AT_ONCE = 256
"""Kept files whose ctimes are noted together: as many as files of a commit group."""

_DIRECTORY = Facts(stat.S_IFDIR, 0, 0, 0)
"""A directory that is not made yet."""


class SyncUndo:
    """The undo of one sync into the tree at `root`. Its record is made with the first change."""

    def __init__(
        self, root: Root, keep: KeepUndo, *, fsync: bool, clock: Callable[[], float] = time.time
    ) -> None:
        """`fsync`: wait for the disk before each change. `clock`: seconds since 1970."""
        self._root = root
        self._keep = keep
        self._fsync = fsync
        self._clock = clock
        self._store: UndoStore | None = None
        self._record: StoredSync | None = None
        self._bounds: Bounds | None = None
        self._known: set[bytes] = set()
        """Directories that the record has already, so that a further step costs no line."""
        self._made: set[bytes] = set()
        """Directories that this sync made: their metadata need no undo."""
        self._expected: dict[bytes, tuple[int, int]] = {}
        """Entries that the record has as removed already, and their device and inode numbers."""
        self._entries = self._bytes = 0
        self._linked = False
        self._left: dict[int, int] = {}
        """The ctimes of changed files that the journal does not have yet, by inode number."""
        self._shared: dict[int, tuple[bytes, int, int]] = {}
        """Changed files with several names, by inode number: a path, and their size and mtime. Their ctime
        may change once more, with a name of theirs."""
        self._held: dict[int, int] = {}
        """By number, the names that kept files had when they were kept, until they have lost one."""
        self._look_at = HELD_AT_ONCE
        """Their number at which they are looked at next."""

    # The steps of UndoKeeper

    def entering(self, path: bytes, directory: int) -> None:
        """Do as UndoKeeper says."""
        if path not in self._known and path not in self._made:
            records: list[Line] = []
            self._note_directory(path, os.fstat(directory), records)
            self._write(records)

    def placing(self, arrivals: Sequence[Placed]) -> dict[bytes, RdcError]:
        """Do as UndoKeeper says."""
        records: list[Line] = []
        refused: dict[bytes, RdcError] = {}
        for arrival in arrivals:
            try:
                self._arrive(arrival, records)
            except FileError as error:
                refused[arrival.path] = error
            except OSError as error:
                problem = self._root.failure(error, arrival.path, "keep an undo of it")
                if not isinstance(problem, FileError):
                    raise problem from error
                refused[arrival.path] = problem
        self._write(records)
        return refused

    def _arrive(self, arrival: Placed, records: list[Line]) -> None:
        above, _, name = arrival.path.rpartition(b"/")
        new = _DIRECTORY if arrival.new is None else replace(facts_of(arrival.new), ctime_ns=arrival.ctime_ns)
        found = _look(name, arrival.parent)
        if found is None:
            self._note_parent(above, arrival.parent, records)
            records.append(Made(arrival.path, new))
            if arrival.new is None:
                _remember(self._made, arrival.path)
        elif stat.S_ISDIR(found.st_mode):
            if not new.is_directory:
                self._note_parent(above, arrival.parent, records)
                records += self._removed_directory(arrival.path, name, arrival.parent, found, new)
        elif arrival.new is None or not os.path.samestat(found, arrival.new):
            self._note_parent(above, arrival.parent, records)
            records.append(self._link(arrival.path, name, arrival.parent, found, new))

    def removing(self, paths: Sequence[bytes]) -> None:
        """Do as UndoKeeper says."""
        records: list[Line] = []
        batch: dict[bytes, tuple[int, int]] = {}
        for path in paths:
            directory, name = self._root.locate(path)
            with self._root.failing(path, "keep an undo of it"):
                found = _look(name, directory.fd)
            if found is None or self._expected.pop(path, None) == (found.st_dev, found.st_ino):
                continue
            above = path.rpartition(b"/")[0]
            self._note_parent(above, directory.fd, records)
            if stat.S_ISDIR(found.st_mode):
                records += self._removed_directory(path, name, directory.fd, found, None)
                continue
            try:
                records.append(self._link(path, name, directory.fd, found, None))
            except FileError:
                if len(paths) == 1:
                    self._write(records)  # what was noted of its directory counts as noted
                    raise
                continue  # its own removal reports it
            except OSError as error:
                self._write(records)
                raise self._root.failure(error, path, "keep an undo of it") from error
            batch[path] = found.st_dev, found.st_ino
        self._write(records)
        if len(self._expected) + len(batch) > DIRECTORIES_KNOWN:
            self._expected.clear()
        self._expected.update(batch)

    def changing(
        self, path: bytes, name: bytes, parent: int, wanted: Metadata, *, attributes: bool = False
    ) -> None:
        """Do as UndoKeeper says."""
        if path in self._made:
            return
        now = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if not (attributes or would_change(now, wanted, owner=True)):
            return
        is_directory = stat.S_ISDIR(now.st_mode)
        before = None
        if attributes or not is_directory:
            before = self._attributes(path, name, parent, needed=attributes)
        record = Changed(path, facts_of(now), metadata_of(now), before, wanted)
        # A directory's former metadata are on disk already then, and the rest only tells a later chmod.
        waits = attributes or not is_directory or path not in self._known
        if is_directory:
            self._begin()
            _remember(self._known, path)
        self._write([record], waits=waits)

    def moving(self, old: bytes, new: bytes, found: os.stat_result, wanted: Metadata) -> None:
        """Do as UndoKeeper says."""
        records: list[Line] = []
        there, name = self._root.locate(old)
        here, _ = self._root.locate(new)
        self._note_parent(old.rpartition(b"/")[0], there.fd, records)
        self._note_parent(new.rpartition(b"/")[0], here.fd, records)
        attributes = self._attributes(old, name, there.fd, needed=False)
        records.append(Changed(old, facts_of(found), metadata_of(found), attributes, wanted))
        records.append(Moved(old, new, facts_of(found)))
        self._write(records)
        # Notes about directories by path are not true of moved ones.
        if stat.S_ISDIR(found.st_mode):
            self._known.clear()
            self._made.clear()

    def changed(self, path: bytes, now: os.stat_result) -> None:
        """Do as UndoKeeper says."""
        if self._record is None or not stat.S_ISREG(now.st_mode):
            return
        self._left[now.st_ino] = now.st_ctime_ns
        if now.st_nlink > 1:
            if len(self._shared) >= DIRECTORIES_KNOWN:
                self._shared.clear()
            self._shared[now.st_ino] = path, now.st_size, now.st_mtime_ns

    def _ctimes(self, record: StoredSync, *, last: bool = False) -> list[Line]:
        """Return the lines about what is done, so that a kill loses those about the last step only. `last`:
        nothing more is done."""
        if last:
            for inode, (path, size, mtime_ns) in self._shared.items():
                with suppress(RdcError, OSError):
                    directory, name = self._root.locate(path)
                    now = os.stat(name, dir_fd=directory.fd, follow_symlinks=False)
                    if (now.st_ino, now.st_size, now.st_mtime_ns) == (inode, size, mtime_ns):
                        self._left[inode] = now.st_ctime_ns
        found: list[Line] = [Left(inode, ctime_ns) for inode, ctime_ns in self._left.items()]
        self._left.clear()
        if len(self._held) < self._look_at and not last:
            return found
        held: dict[int, int] = {}
        for number, names in list(self._held.items()):
            now = os.stat(b"%d" % number, dir_fd=record.saved, follow_symlinks=False)
            if now.st_nlink < names or last:
                held[number] = now.st_ctime_ns
                del self._held[number]
        self._look_at = 2 * len(self._held) + HELD_AT_ONCE
        return [*found, Held(tuple(held.items()))] if held else found

    # The end

    def finish(self) -> list[str]:
        """Note that the sync came to its end, and drop what is beyond the bound. Returns notices for the
        user. Raises RdcError."""
        if self._record is None or self._bounds is None:
            return []
        with self._root.failing(b"", "keep an undo of it"):
            records = self._ctimes(self._record, last=True)
        self._record.append([*records, Finished(self._entries, self._bytes)], fsync=self._fsync)
        if self._fsync:
            self._record.end()
        return self._bounds.finish(self._bytes)

    def close(self) -> None:
        """Let the next sync or undo into this directory begin. May be called again."""
        if self._record is not None:
            with suppress(RdcError, OSError):
                self._record.append(self._ctimes(self._record, last=True), fsync=False)
        for opened in (self._record, self._store):
            if opened is not None:
                opened.close()
        self._record = self._store = None

    # One step

    def _begin(self) -> StoredSync:
        """Return the record, which the first step makes."""
        if self._record is None:
            top = os.fstat(self._root.fileno())
            self._store = store = UndoStore.make(self._root, fsync=self._fsync)
            store.clear()
            seconds = int(self._clock())
            self._bounds = Bounds(store, self._keep, seconds)
            self._record = store.begin(seconds, fsync=self._fsync)
            self._known.add(b"")
            self._write([Changed(b"", facts_of(top), metadata_of(top), None, None)])
        return self._record

    def _note_parent(self, path: bytes, fd: int, records: list[Line]) -> None:
        if path not in self._known and path not in self._made:
            self._note_directory(path, os.fstat(fd), records)

    def _note_directory(self, path: bytes, found: os.stat_result, records: list[Line]) -> None:
        """Note the metadata of a directory before anything in it changes."""
        if path in self._known or path in self._made:
            return
        self._begin()
        if path not in self._known:
            _remember(self._known, path)
            records.append(Changed(path, facts_of(found), metadata_of(found), None, None))

    def _removed_directory(
        self, path: bytes, name: bytes, parent: int, found: os.stat_result, new: Facts | None
    ) -> list[Line]:
        """Return the records of a directory that goes, with the attributes that it has to get again."""
        attributes = self._attributes(path, name, parent, needed=False)
        old = Changed(path, facts_of(found), metadata_of(found), attributes, None)
        return [old, RemovedDirectory(path, new)]

    def _link(self, path: bytes, name: bytes, parent: int, found: os.stat_result, new: Facts | None) -> Saved:
        """Give an entry another name among the kept ones. Raises FileError or OSError."""
        record = self._begin()
        size = 512 * found.st_blocks
        if self._bounds is not None:
            self._bounds.make_room(self._bytes + size)
        self._root.spend(path, 0, entries=1)
        number = self._entries
        self._entries += 1
        try:
            os.link(name, b"%d" % number, src_dir_fd=parent, dst_dir_fd=record.saved, follow_symlinks=False)
        except OSError as error:
            # A file of another user, one with too many names, or one on another mount below the tree.
            if error.errno != errno.EXDEV and not is_refused(error):
                raise
            cause = cause_of(error, name, parent)
            advice = "leave out --keep-undo, or run as its owner or as root"
            raise self._root.refused(
                path,
                "keep an undo of it",
                expected="a file that can have another name in .rdc-undo",
                found=cause.found if cause is not None else os.strerror(error.errno or 0),
                advice=f"it stays as it is; {cause.advice if cause is not None else advice}",
            ) from error
        self._root.check.note_named(identity_of(found), found_at(name, parent), (found.st_mode,))
        self._bytes += size
        self._linked = True
        if stat.S_ISREG(found.st_mode):
            self._held[number] = found.st_nlink + 1
        return Saved(path, number, facts_of(found), new)

    def _attributes(self, path: bytes, name: bytes, parent: int, *, needed: bool) -> Attributes | None:
        """Return the extended attributes of an entry; None if they cannot be read and are not `needed`."""
        kinds = AttributeKinds.USER | AttributeKinds.ACL
        if os.geteuid() == 0:
            kinds |= AttributeKinds.ROOT
        try:
            return read_entry_attributes(parent, name, kinds)
        except OSError as error:
            if needed:
                raise self._root.failure(error, path, "keep an undo of its extended attributes") from error
            return None

    def _write(self, records: list[Line], *, waits: bool = True) -> None:
        if not records:
            return
        record = self._begin()
        if self._linked and self._fsync:
            with self._root.failing(b"", "keep an undo of it"):
                flush(record.saved)
        self._linked = False
        with self._root.failing(b"", "keep an undo of it"):
            records = [*self._ctimes(record), *records]
        written = record.append(records, fsync=self._fsync and waits)
        self._root.spend(b"", written)
        # A directory is noted before its entries change; it counts only if it was changed itself.
        self._entries += sum(isinstance(each, (Made, Moved, RemovedDirectory)) for each in records)
        self._entries += sum(isinstance(each, Changed) and each.wanted is not None for each in records)


def _look(name: bytes, parent: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _remember(paths: set[bytes], path: bytes) -> None:
    """Add a path to a bounded set."""
    if len(paths) >= DIRECTORIES_KNOWN:
        paths.clear()
    paths.add(path)
