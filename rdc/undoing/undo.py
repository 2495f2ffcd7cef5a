"""Undoes the latest sync into a directory, and lists those that can be undone. UNDO.md has the argument."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager, suppress

from rdc.errors import ExitCode, FileError, RdcError, printable
from rdc.files.base.metadata import kind_of, metadata_of, set_mode_on_name, set_on_name
from rdc.files.base.paths import PARTS_NAME, is_reserved, join, make_aside
from rdc.files.base.syscalls import rename_no_replace_between
from rdc.files.base.taking_names import directory_over_file, file_over_directory, sync_file_systems
from rdc.files.facts.xattrs import read_entry_attributes, write_entry_attributes
from rdc.files.root.root import Root
from rdc.lean.records import replace
from rdc.lean.typed import Protocol
from rdc.model.preserved import AttributeKinds
from rdc.progress import Problem, Progressed
from rdc.undoing.records import UndoableSync, UndoItem, UndoOptions, UndoReport
from rdc.undoing.store import (
    Changed,
    Ended,
    Facts,
    Finished,
    Head,
    Held,
    Left,
    Line,
    Made,
    Moved,
    Own,
    RemovedDirectory,
    Saved,
    StoredSync,
    Undoing,
    UndoStore,
    facts_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rdc.files.base.directory_descriptors import Directory
    from rdc.model.entries import Metadata


# Takes single records back. Each step looks at what is there, so it may be repeated after a kill.
#
# An entry that is neither what the sync left nor what it found is newer work. It stays, and NewerWorkError
# names it. TreeState is the tree that is being undone, and OwnTimes says which of its files only rdc has
# touched.

_NO_NAME = {errno.ENOSYS, errno.EINVAL}
_THERE = Facts(0, 0, 0, 0)


class TreeState:
    """The tree that is being undone, as it is or (in a dry run) as it would be by now.

    It looks at entries, and lends the owner the permissions to work in directories.
    """

    def __init__(self, root: Root, *, dry: bool) -> None:
        self.root = root
        self.dry = dry
        self._would_be: dict[bytes, Facts | None] = {}
        """The entry that would be at a path by now, in a dry run."""
        self._borrowed: dict[bytes, int] = {}
        """The modes that directories had before this process changed them."""
        self._asked: set[bytes] = set()

    def look(self, path: bytes) -> os.stat_result | None:
        """Return the stat of an entry as it is; None if nothing is there. Raises FileError."""
        try:
            directory, name = self.root.locate(path, fresh=True)
        except FileError as error:
            if isinstance(error.__cause__, (FileNotFoundError, NotADirectoryError)):
                return None
            raise
        try:
            return os.stat(name, dir_fd=directory.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self.root.failure(error, path, "look at it") from error

    def facts(self, path: bytes) -> Facts | None:
        """Return what is, or would be, at a path. Raises FileError."""
        if path in self._would_be:
            return self._would_be[path]
        found = self.look(path)
        return None if found is None else facts_of(found)

    def note(self, path: bytes, facts: Facts | None) -> None:
        """Note what a dry run would have put at a path."""
        if self.dry:
            self._would_be[path] = facts

    def is_empty(self, path: bytes) -> bool:
        """Return whether the directory at `path` is, or would be, empty. Raises FileError."""
        directory = self.root.directory(path, fresh=True)
        with self.root.failing(path, "list it"):
            fd = os.open(b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory.fd)
            try:
                names = [os.fsencode(name) for name in os.listdir(fd)]
            finally:
                os.close(fd)
        paths = [join(path, name) for name in names]
        return all(self.dry and self._would_be.get(each, _THERE) is None for each in paths)

    def sweep(self, path: bytes) -> None:
        """Remove rdc's own temporaries and parts from a directory that is to be removed."""
        from rdc.files.replace.commit_group import sweep_temporaries
        from rdc.files.replace.partial_directory import remove_recorded

        with suppress(FileError, OSError):
            directory = self.root.directory(path, fresh=True)
            fd = os.open(b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory.fd)
            try:
                names = [os.fsencode(name) for name in os.listdir(fd)]
            finally:
                os.close(fd)
            sweep_temporaries(self.root, path, [name for name in names if is_reserved(name)])
            if PARTS_NAME in names:
                remove_recorded(directory.fd)

    # Permissions

    def lend(self, path: bytes) -> None:
        """Let the owner work in the directory at `path` until its own metadata are set. Raises FileError."""
        if path in self._asked or self.dry or os.geteuid() == 0:
            return
        self._asked.add(path)
        found = self.look(path)
        if found is None or not stat.S_ISDIR(found.st_mode) or found.st_mode & 0o700 == 0o700:
            return
        directory, name = self.root.locate(path, fresh=True)
        with suppress(OSError):  # the step that needs the permissions reports the error
            set_mode_on_name(name, directory.fd, stat.S_IMODE(found.st_mode) | 0o700)
            self._borrowed[path] = stat.S_IMODE(found.st_mode)

    def mode_before(self, path: bytes) -> int | None:
        """Return the mode that a directory had before `lend`; None if it has it still."""
        return self._borrowed.get(path)

    def finished(self, path: bytes) -> None:
        """Note that a directory has its own mode again, or is gone."""
        self._borrowed.pop(path, None)
        self._asked.discard(path)

    def end(self) -> None:
        """Give the directories that are left the modes that they had."""
        for path, mode in sorted(self._borrowed.items(), reverse=True):
            with suppress(FileError, OSError):
                directory, name = self.root.locate(path, fresh=True)
                set_mode_on_name(name, directory.fd, mode)
        self._borrowed.clear()


class OwnTimes:
    """Tells whether anybody but rdc has touched a file since a sync left it, by its ctime.

    Its owner can give a file any content, size and mtime, but no ctime. A sync notes the ctimes that it
    leaves (Left, Held). An undo changes them again. So it says by a line in its own record on which files it
    has begun to act, for one that goes on after a kill. For the undo of the sync before, it says by a line in
    that record that a file at its new ctime is what it was at an earlier one (Own).
    """

    def __init__(self, record: StoredSync, older: StoredSync | None) -> None:
        """`record`: of the sync that is undone. `older`: of the sync that is undone next, if there is one."""
        self._record = record
        self._older = older
        self._lines: dict[int, Own] | None = None
        """For each inode, the last line about it. None: not read yet."""
        self._acted: dict[int, int] = {}
        """The ctimes that this undo gave to files: further steps may be about them."""

    def _line(self, inode: int) -> Own | None:
        if self._lines is None:
            self._lines = {}
            # Most records have no such line, and nobody asks.
            for each in self._record.backwards():
                if isinstance(each, Own):
                    self._lines.setdefault(each.inode, each)
        return self._lines.get(inode)

    def pass_on(self) -> None:
        """Repeat in the older record what this one says about files, before the first step: the sync may not
        have touched them."""
        if self._older is not None:
            self._line(0)
            lines = [each for each in (self._lines or {}).values() if each.now is not None]
            self._older.append([*lines], fsync=False)

    def explain(self, found: os.stat_result, left: int | None) -> bool:
        """Return whether nobody but rdc has touched a file, whose stat is `found`, since it had the ctime
        `left`. None: that is unknown."""
        inode, now = found.st_ino, found.st_ctime_ns
        if now in (left, self._acted.get(inode)):
            return True
        line = self._line(inode)
        return line is not None and (line.now is None or (line.now == now and line.was == left))

    def begin(self, inode: int) -> None:
        """Note that the undo is about to act on a file that nobody else has touched."""
        self._record.append([Own(inode, 0, None)], fsync=False)

    def became(self, found: os.stat_result, was: int) -> None:
        """Note that a file that nobody else has touched, whose stat is `found`, is now what it was at the
        ctime `was`, before the sync."""
        self._acted[found.st_ino] = found.st_ctime_ns
        if self._older is not None and was:
            self._older.append([Own(found.st_ino, was, found.st_ctime_ns)], fsync=False)


class NewerWorkError(FileError):
    """An entry stays as it is, because it is newer work."""


class Steps:
    """Takes the records of one sync back, the last first."""

    def __init__(
        self,
        tree: TreeState,
        old_versions: int,
        shown: bytes,
        *,
        exact: bool,
        finished: bool,
        own: OwnTimes | None,
        was_before: Callable[[bytes, Facts], bool],
    ) -> None:
        """`old_versions`: descriptor of the directory of the kept entries, `shown` its path in messages.
        `exact`: the sync came to its end and no undo of it began, so metadata are as the records say.
        `finished`: the sync came to its end. `own`: None for a record of version 1, which has no ctimes.
        `was_before`: whether an interrupted undo may have brought a path to this state already."""
        self._own = own
        self._all_noted = finished
        """True if the sync has noted what its steps so far led to. Before a kill it may have no time for the
        last of them."""
        self._left: dict[int, int] = {}
        """The ctimes that the sync left files with, by inode number, until a step is about the file."""
        self._held: dict[int, int] = {}
        """The ctimes of kept files, by number, in the same way."""
        self._was_before = was_before
        self._tree = tree
        self._root = tree.root
        self._saved = old_versions
        self._shown = shown
        self._exact = exact
        self._done: set[bytes] = set()
        """Entries whose metadata this undo has set, or left alone as newer work."""
        self._left_alone: set[bytes] = set()

    def take_back(self, record: Line) -> str | None:
        """Take one record back.

        Returns what was done ("restored", "removed", "moved" or "changed"); None for nothing. Raises
        NewerWorkError for newer work, other FileErrors for an entry that cannot be changed, and RdcError.
        """
        match record:
            case Made():
                return self._remove(record)
            case Saved():
                return self._restore(record)
            case RemovedDirectory():
                return self._make_directory(record)
            case Moved():
                return self._move_back(record)
            case Changed():
                return self._set_back(record)
        return None

    def note(self, record: Left | Held) -> None:
        """Take what the sync noted of files after the steps before this line."""
        if isinstance(record, Held):
            self._held.update(record.ctimes_ns)
        else:
            self._left.setdefault(record.inode, record.ctime_ns)
            self._all_noted = True

    # Entries that the sync made

    def _remove(self, record: Made) -> str | None:
        path, now = record.path, self._tree.facts(record.path)
        if now is None:
            return None
        if path in self._left_alone:
            return None  # named already
        if not _is(now, record.new):
            if self._was_before(path, now):
                return None
            raise self._newer(path, "remove what the sync made", "that it was changed or replaced since")
        if now.is_directory:
            if not self._tree.dry:
                self._tree.lend(path)
                self._tree.sweep(path)
            if not self._tree.is_empty(path):
                raise self._newer(path, "remove the directory that the sync made", "newer entries in it")
        if not self._tree.dry:
            directory, name = self._opened(path)
            failing = self._root.failing(path, "remove what the sync made")
            with failing, self._losing_a_name(record.new, name, directory):
                (os.rmdir if now.is_directory else os.unlink)(name, dir_fd=directory.fd)
            if now.is_directory:
                self._root.forget(path)
                self._tree.finished(path)
        self._tree.note(path, None)
        return "removed"

    @contextmanager
    def _losing_a_name(self, new: Facts | None, name: bytes, directory: Directory) -> Iterator[None]:
        """Open a context in which the entry `name` is removed: it may be a further name that the sync gave a
        file. Raises OSError."""
        own = self._own
        if own is None or new is None or not new.ctime_ns:
            yield
            return
        fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory.fd)
        try:
            known = own.explain(os.fstat(fd), self._left.get(new.inode))
            if known:
                own.begin(new.inode)
            yield
            if known:
                own.became(os.fstat(fd), new.ctime_ns)
        finally:
            os.close(fd)

    # Entries that the sync replaced or removed

    def _restore(self, record: Saved) -> str | None:
        path, now = record.path, self._tree.facts(record.path)
        if now is not None and _is_same(now, record.old):
            self._drop_spare(record)
            return None  # the sync did not come to replace it, or it is back
        if now is not None and not (record.new is not None and _is(now, record.new)):
            if self._was_before(path, now):
                return None
            raise self._newer(path, "put its old version back", "newer work", record)
        if now is not None and now.is_directory and not self._tree.is_empty(path):
            raise self._newer(path, "put its old version back", "newer entries in it", record)
        if not self._tree.dry:
            self._put_back(record, now)
        self._tree.note(path, record.old)
        return "restored"

    def _drop_spare(self, record: Saved) -> None:
        """Remove the kept name of an entry that has its own. Raises RdcError."""
        if self._tree.dry:
            return
        with suppress(FileNotFoundError):
            os.unlink(b"%d" % record.number, dir_fd=self._saved)
        found = self._tree.look(record.path)
        own = self._own
        if own is None or found is None or not stat.S_ISREG(found.st_mode):
            return
        if own.explain(found, None) or _is_private(found):
            own.became(found, record.old.ctime_ns)

    def _put_back(self, record: Saved, now: Facts | None) -> None:
        path, name_there = record.path, b"%d" % record.number
        directory, name = self._opened(path)
        known = False
        try:
            found = os.stat(name_there, dir_fd=self._saved, follow_symlinks=False)
            if not _is_same(facts_of(found), record.old):
                raise self._root.refused(
                    path,
                    "put its old version back",
                    expected=f"it as {os.fsdecode(self._shown)}/{record.number}",
                    found="that it was written to since, under another name that it has",
                    advice="the existing entry was kept; look at that file",
                )
            if self._own is not None and stat.S_ISREG(found.st_mode):
                held = self._held.pop(record.number, None)
                known = self._own.explain(found, held) or (held is None and _is_private(found))
                if known:
                    self._own.begin(found.st_ino)
            if now is None:
                self._rename_to_free(name_there, name, directory)
            elif now.is_directory:
                self._over_directory(name_there, name, directory)
                self._root.forget(path)
                self._tree.finished(path)
            else:
                with self._losing_a_name(record.new, name, directory):
                    os.rename(name_there, name, src_dir_fd=self._saved, dst_dir_fd=directory.fd)
            if known and self._own is not None:
                back = os.stat(name, dir_fd=directory.fd, follow_symlinks=False)
                self._own.became(back, record.old.ctime_ns)
        except FileExistsError as error:
            raise self._newer(path, "put its old version back", "newer work", record) from error
        except OSError as error:
            raise self._root.failure(error, path, "put its old version back") from error

    def _rename_to_free(self, saved: bytes, name: bytes, directory: Directory) -> None:
        try:
            rename_no_replace_between(saved, self._saved, name, directory.fd)
        except OSError as error:
            if error.errno not in _NO_NAME:
                raise
            os.link(saved, name, src_dir_fd=self._saved, dst_dir_fd=directory.fd, follow_symlinks=False)
            os.unlink(saved, dir_fd=self._saved)

    def _over_directory(self, saved: bytes, name: bytes, directory: Directory) -> None:
        """Put a kept entry in place of an empty directory. Its kept name goes last, as no sweep of
        temporaries may take the only one."""

        def link(aside: bytes) -> None:
            os.link(saved, aside, src_dir_fd=self._saved, dst_dir_fd=directory.fd, follow_symlinks=False)

        temporary = make_aside(name, link)
        try:
            file_over_directory(temporary, name, directory.fd)
        except OSError:
            os.unlink(temporary, dir_fd=directory.fd)
            raise
        os.unlink(saved, dir_fd=self._saved)

    def _make_directory(self, record: RemovedDirectory) -> str | None:
        path, now = record.path, self._tree.facts(record.path)
        if now is not None and now.is_directory:
            return None
        if now is not None and not (record.new is not None and _is(now, record.new)):
            if self._was_before(path, now):
                return None
            raise self._newer(path, "make its directory again", "newer work")
        if not self._tree.dry:
            directory, name = self._opened(path)
            with self._root.failing(path, "make its directory again"):
                if now is None:
                    os.mkdir(name, 0o700, dir_fd=directory.fd)
                else:
                    with self._losing_a_name(record.new, name, directory):
                        directory_over_file(name, directory.fd, 0o700)
            self._done.add(path)
        self._tree.note(path, Facts(stat.S_IFDIR, 0, 0, 0))
        return "restored"

    # Entries that the sync moved

    def _move_back(self, record: Moved) -> str | None:
        there, here = self._tree.facts(record.new), self._tree.facts(record.path)
        if here is not None and _is_same(here, record.facts):
            return None
        if here is not None:
            raise self._newer(record.path, "move the file back to it", "newer work")
        if there is None or not _is(there, record.facts):
            raise self._newer(record.new, "move it back", "that it was changed, replaced or removed since")
        if not self._tree.dry:
            there_fd, there_name = self._opened(record.new)
            directory, name = self._opened(record.path)
            with self._root.failing(record.path, "move the file back to it"):
                found = os.stat(there_name, dir_fd=there_fd.fd, follow_symlinks=False)
                own = self._own if stat.S_ISREG(found.st_mode) else None
                known = own is not None and own.explain(found, self._left.get(found.st_ino))
                if known and own is not None:
                    own.begin(found.st_ino)
                rename_no_replace_between(there_name, there_fd.fd, name, directory.fd)
                if known and own is not None:
                    back = os.stat(name, dir_fd=directory.fd, follow_symlinks=False)
                    own.became(back, record.facts.ctime_ns)
            self._root.forget(record.new)
        if record.new in self._left_alone:
            self._left_alone.add(record.path)
        self._tree.note(record.new, None)
        self._tree.note(record.path, record.facts)
        return "moved"

    # Metadata

    def _set_back(self, record: Changed) -> str | None:
        path = record.path
        if path in self._left_alone:
            return None
        # In a dry run, entries that would be back have the metadata that they had when they were removed.
        found = self._tree.look(path)
        if found is None or not _is_like(facts_of(found), record.old):
            return None  # it is gone or another one, which was named
        now = metadata_of(found)
        own, known = (self._own if stat.S_ISREG(found.st_mode) else None), False
        if own is not None:
            left = self._left.get(found.st_ino)
            if found.st_nlink < 2:
                self._left.pop(found.st_ino, None)
            known = own.explain(found, left)
            if now == record.metadata and not self._differs_in_attributes(record, found):
                if known and not self._tree.dry:
                    own.became(found, record.old.ctime_ns)
                return None
            # The sync was killed before it noted the ctime of its last change. What is undone without the
            # check is passed on without it, too, or the undo before this one would take it for newer work.
            known = known or (left is None and not self._all_noted)
            if not (known or path in self._done):
                self._left_alone.add(path)
                raise self._newer(path, "set its mode, owner and time back", "that it was changed since")
        mode = self._tree.mode_before(path)
        if mode is not None:
            now = replace(now, mode=mode)
        if not self._is_explained(record, now, is_directory=stat.S_ISDIR(found.st_mode)):
            self._left_alone.add(path)
            raise self._newer(path, "set its mode, owner and time back", "that they were changed since")
        self._done.add(path)
        if self._tree.dry:
            return "changed" if record.wanted is not None and now != record.metadata else None
        if own is not None:
            own.begin(found.st_ino)
        done = self._set(record, found)
        if own is not None and known:
            now_there = self._tree.look(path)
            if now_there is not None and now_there.st_ino == found.st_ino:
                own.became(now_there, record.old.ctime_ns)
        self._tree.finished(path)
        return "changed" if done and record.wanted is not None else None

    def _is_explained(self, record: Changed, now: Metadata, *, is_directory: bool) -> bool:
        """Return whether the sync, or this undo, left the entry with the metadata `now`."""
        old, wanted = record.metadata, record.wanted
        if record.path in self._done:
            return True
        mtimes = {old.mtime_ns} if wanted is None else {old.mtime_ns, wanted.mtime_ns}
        if not is_directory and now.mtime_ns not in mtimes:
            return False
        if not self._exact:
            return True
        after = old if wanted is None else wanted
        return (
            now.mode in (old.mode, after.mode)
            and now.uid in (old.uid, after.uid)
            and (now.gid in (old.gid, after.gid))
        )

    def _differs_in_attributes(self, record: Changed, found: os.stat_result) -> bool:
        """Return whether the entry has not the attributes that it had. Raises RdcError."""
        if record.attributes is None:
            return False
        with self._root.failing(record.path, "read its extended attributes"):
            directory, name = self._root.locate(record.path, fresh=True)
            return read_entry_attributes(directory.fd, name, _kinds()) != record.attributes

    def _set(self, record: Changed, found: os.stat_result) -> bool:
        """Return whether anything differed. Raises RdcError."""
        path, metadata = record.path, record.metadata
        if stat.S_ISDIR(found.st_mode) and not self._exact:
            self._tree.sweep(path)
        directory, name = self._root.locate(path, fresh=True)
        kinds = _kinds()
        with self._root.failing(path, "set its metadata back"):
            found = os.stat(name, dir_fd=directory.fd, follow_symlinks=False)
            differs = metadata_of(found) != metadata
            set_on_name(name, directory.fd, found, metadata, owner=True)
            wanted = record.attributes
            if wanted is not None and read_entry_attributes(directory.fd, name, kinds) != wanted:
                differs = True
                kind = kind_of(found.st_mode)
                write_entry_attributes(self._root, path, kind, wanted, kinds, metadata.mode)
                now = os.stat(name, dir_fd=directory.fd, follow_symlinks=False)
                set_on_name(name, directory.fd, now, metadata, owner=True)
        return differs

    def _opened(self, path: bytes) -> tuple[Directory, bytes]:
        """Return the directory of a path, in which the owner may work, and the name. Raises FileError."""
        self._tree.lend(path.rpartition(b"/")[0])
        return self._root.locate(path, fresh=True)

    def _newer(self, path: bytes, doing: str, found: str, saved: Saved | None = None) -> NewerWorkError:
        advice = "it stays as it is"
        if saved is not None and self._has_old_version(saved):
            advice += f"; its old version stays as {os.fsdecode(self._shown)}/{saved.number}"
        error = self._root.refused(
            path, doing, expected="what the sync left there", found=found, advice=advice
        )
        return NewerWorkError(path, str(error))

    def _has_old_version(self, saved: Saved) -> bool:
        try:
            os.stat(b"%d" % saved.number, dir_fd=self._saved, follow_symlinks=False)
        except OSError:
            return False
        return True


def _kinds() -> AttributeKinds:
    """Return the kinds of attributes that come back."""
    kinds = AttributeKinds.USER | AttributeKinds.ACL
    return kinds | AttributeKinds.ROOT if os.geteuid() == 0 else kinds


def _is_private(found: os.stat_result) -> bool:
    """Return whether nobody but this user may write to a file."""
    return found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _is(now: Facts, recorded: Facts) -> bool:
    """Return whether an entry is the recorded one, unchanged. A directory has no identity of its own."""
    return now.identity == recorded.identity or (now.is_directory and recorded.is_directory)


def _is_same(now: Facts, old: Facts) -> bool:
    """Return whether an entry is the old version. A change of its mtime alone has a record of its own."""
    return (now.format, now.inode, now.size) == (old.format, old.inode, old.size)


def was_left_by(record: Line, path: bytes, now: Facts) -> bool:
    """Return whether taking the record back brings `path` to the state `now`."""
    match record:
        case Saved(path=there, old=old):
            return there == path and _is_same(now, old)
        case Moved(path=there, facts=facts):
            return there == path and _is_same(now, facts)
        case RemovedDirectory(path=there):
            return there == path and now.is_directory
    return False


def _is_like(now: Facts, old: Facts) -> bool:
    return (now.is_directory and old.is_directory) or _is_same(now, old)


_NO_STEPS = (Head, Left, Held, Own, Undoing, Ended)
"""Lines that announce no change, while a sync runs."""

_UNCHANGING = (*_NO_STEPS, Finished)
"""Lines that announce no change."""


class UndoReporter(Protocol):
    """Receives what an undo did, what stays, and the progress."""

    def __call__(self, event: UndoItem | Problem | Progressed, /) -> None: ...


def list_syncs(destination: bytes) -> tuple[UndoableSync, ...]:
    """Return the syncs into a directory that can be undone, or were undone in part, the oldest first. Raises
    RdcError."""
    store = UndoStore.open(Root.open(destination))
    if store is None:
        return ()
    with store:
        return tuple(_describe(store, number) for number in store.numbers())


def last_number(root: Root) -> int:
    """Return the number of the latest record; 0 for none. Raises RdcError."""
    store = UndoStore.open(root)
    if store is None:
        return 0
    with store:
        return max(store.numbers(), default=0)


def is_taken_back(root: Root, number: int) -> bool:
    """Return whether the sync that left this record was undone, for all that is known: a record that is gone
    or cannot be read proves nothing. Raises RdcError."""
    store = UndoStore.open(root)
    if store is None:
        return True
    with store:
        if number not in store.numbers():
            return True
        try:
            record = store.stored(number)
        except RdcError:
            return True
        try:
            return record.head() is None or record.is_cut() or record.state()[1] is not None
        except RdcError:
            return True
        finally:
            record.close()


def _describe(store: UndoStore, number: int) -> UndoableSync:
    record = store.stored(number)
    try:
        finished, ended, _ = record.state()
        head = record.head()
        if finished is None:
            entries = sum(not isinstance(each, _NO_STEPS) for each in record.backwards())
        else:
            entries = finished.entries
        return UndoableSync(
            number=number,
            seconds=record.made if head is None else head.seconds,
            entries=entries,
            bytes=record.size(),
            complete=finished is not None,
            left_alone=None if ended is None else ended.left_alone,
        )
    finally:
        record.close()


def undo_latest(destination: bytes, options: UndoOptions, reporter: UndoReporter) -> UndoReport:
    """Undo the latest sync that is not undone yet. A killed undo is continued.

    Newer work stays; `reporter` gets it as a Problem, and the rest is undone. Raises RdcError.
    """
    root = Root.open(destination, writable=not options.dry_run)
    store = UndoStore.open(root)
    if store is None:
        return _nothing()
    with store:
        if not options.dry_run:
            store.clear()
        numbers = store.numbers()
        for at in range(len(numbers) - 1, -1, -1):
            record = store.stored(numbers[at])
            try:
                finished, ended, begun = record.state()
                if ended is not None:
                    continue
                _check_top(root, record)
                record.check()
                older = _next(store, numbers[:at])
                try:
                    run = _Run(
                        root, record, older, options, reporter, finished=finished is not None, begun=begun
                    )
                    left_alone = run.perform()
                finally:
                    if older is not None:
                        older.close()
            finally:
                record.close()
            if not (left_alone or options.dry_run):
                store.drop(numbers[at])
            return run.report(numbers[at], left_alone, _older(store, numbers[:at]))
        return _nothing()


def _nothing() -> UndoReport:
    return UndoReport(None, 0, 0, 0, 0, 0, 0, ExitCode.OK)


def _older(store: UndoStore, numbers: list[int]) -> int:
    """Return how many of these syncs can still be undone."""
    older = 0
    for number in numbers:
        with suppress(RdcError):  # a damaged one says so in its own undo
            record = store.stored(number)
            try:
                older += record.state()[1] is None
            finally:
                record.close()
    return older


def _next(store: UndoStore, numbers: list[int]) -> StoredSync | None:
    """Return the record of the sync that is undone next; None for none, or one that has no ctimes."""
    for number in reversed(numbers):
        try:
            record = store.stored(number)
        except RdcError:
            return None
        try:
            head = record.head()
            if record.state()[1] is not None:
                record.close()
                continue
            if head is not None and head.version > 1:
                return record
        except FileError:
            pass  # it is damaged, which its own undo says
        record.close()
        return None
    return None


def _check_top(root: Root, record: StoredSync) -> None:
    head = record.head()
    found = os.fstat(root.fileno()).st_ino
    if head is not None and head.top != found:
        raise RdcError(
            f"{printable(record.shown)}: cannot undo it: expected the directory that was synced, found"
            " another one, such as a copy of it; undo it where it was made",
            code=ExitCode.FILE_IO,
        )


class _Run:
    """One undo of one record."""

    def __init__(
        self,
        root: Root,
        record: StoredSync,
        older: StoredSync | None,
        options: UndoOptions,
        reporter: UndoReporter,
        *,
        finished: bool,
        begun: bool,
    ) -> None:
        """`older`: as in OwnTimes. `finished`: as in Steps. `begun`: an undo of the record was
        interrupted."""
        self._root = root
        self._record = record
        self._options = options
        self._reporter = reporter
        self._tree = TreeState(root, dry=options.dry_run)
        shown = record.shown + b"/kept"
        head = record.head()
        self._own = OwnTimes(record, older) if head is not None and head.version > 1 else None
        self._steps = Steps(
            self._tree,
            record.saved,
            shown,
            exact=finished and not begun,
            finished=finished,
            own=self._own,
            was_before=self._was_before,
        )
        self._begun = begun
        self._counts = {"restored": 0, "removed": 0, "moved": 0, "changed": 0}

    def perform(self) -> int:
        """Take everything back that is not newer work. Returns how many entries stay. Raises RdcError."""
        # A damaged line is found before anything is undone.
        total = sum(not isinstance(record, _UNCHANGING) for record in self._record.backwards())
        if not self._options.dry_run:
            self._record.cut()
            self._record.append([Undoing()], fsync=self._options.fsync)
            if self._own is not None:
                self._own.pass_on()
        left_alone = taken = 0
        try:
            for record in self._record.backwards():
                if isinstance(record, (Left, Held)):
                    self._steps.note(record)
                if isinstance(record, _UNCHANGING):
                    continue
                taken += 1
                self._reporter(Progressed("undo", taken, total))
                try:
                    done = self._steps.take_back(record)
                except FileError as error:
                    left_alone += 1
                    self._reporter(Problem(ExitCode.PARTIAL, error.path_bytes, str(error)))
                    continue
                if isinstance(record, Saved) and not self._options.dry_run:
                    with suppress(FileNotFoundError):
                        os.unlink(b"%d" % record.number, dir_fd=self._record.saved)
                if done is not None:
                    self._counts[done] += 1
                    self._reporter(UndoItem(done, record.path))
        finally:
            self._tree.end()
        if not self._options.dry_run:
            # A restored entry must be durable before its record is removed.
            if self._options.fsync and not sync_file_systems([self._record.directory]):
                os.sync()
            if left_alone:
                self._record.append([Ended(left_alone, self._record.size())], fsync=self._options.fsync)
        return left_alone

    def _was_before(self, path: bytes, now: Facts) -> bool:
        return self._begun and any(was_left_by(each, path, now) for each in self._record.backwards())

    def report(self, number: int, left_alone: int, older: int) -> UndoReport:
        code = ExitCode.PARTIAL if left_alone else ExitCode.OK
        return UndoReport(number=number, **self._counts, left_alone=left_alone, older=older, exit=code)
