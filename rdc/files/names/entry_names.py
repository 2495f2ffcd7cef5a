"""Changes of names that a sync makes: moves, hard links and removals, each in one step.

Nothing can be lost. A move changes only names (rename(2)): at any moment the entry is at one of the two
paths, an entry at the new path stays (RENAME_NOREPLACE), and the entry at the old path is checked first. A
process that writes to the file meanwhile writes to the same file. A link takes the place of what its name had
in one step. A removal takes what a listing saw, and nothing else.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from contextlib import suppress

from rdc.errors import ExitCode, FileError, RdcError, printable
from rdc.files.base.directory_descriptors import Directory, honours_no_replace, stable_fields
from rdc.files.base.metadata import (
    ANYTHING,
    Expected,
    found_at,
    identity_of,
    narrow_name,
    narrowed,
    narrowed_metadata,
    outlast,
    read_acl,
    stat_entry,
    take_acl,
)
from rdc.files.base.paths import join, make_aside
from rdc.files.base.syscalls import rename_no_replace_between, syncfs
from rdc.files.base.taking_names import CANNOT_SYNC, is_refused
from rdc.files.root.policies import rename_to_free_name
from rdc.lean.enums import Enum
from rdc.lean.typed import TypeVar
from rdc.model.entries import ComparedFields, Identity, Metadata, is_same_entry
from rdc.model.preserved import packed_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rdc.files.root.root import Root


T = TypeVar("T")

_PASS = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_FIRST_MARK, _MARK_SECONDS = 10**9, 2
"""FAT keeps every other second, from 1980 on."""


def inode_at(root: Root, directory: bytes, name: bytes) -> int | None:
    """Return the inode number of what is found by a name in a directory; None if nothing is."""
    try:
        return root.perform(join(directory, name), "look at it", stat_entry).st_ino
    except RdcError:
        return None


def names_that_are_one(root: Root, directory: bytes, names: Sequence[bytes]) -> list[list[int]]:
    """Return the groups of two or more `names` of which a file under one would be found by the others.

    They are tried in a directory of their own beside them, which inherits what the file system does. The cost
    is linear, since a hostile source chooses the names. Empty if it cannot be tried: whoever makes the second
    file then finds the first.
    """
    try:
        groups = root.perform(
            join(directory, names[0]),
            "try its name",
            lambda name, parent: _aside(name, parent, lambda inside: _try_in(names, inside)),
        )
    except RdcError:
        return []
    return [group for group in groups if len(group) > 1]


def names_as_listed(root: Root, directory: bytes, names: Sequence[bytes]) -> frozenset[bytes]:
    """Return what a directory lists that is given entries of these `names`, none of which are one.

    They are tried beside them, as above. Empty if that cannot be tried.
    """
    try:
        return root.perform(
            join(directory, names[0]),
            "try its name",
            lambda name, parent: _aside(name, parent, lambda inside: _list_in(names, inside)),
        )
    except RdcError:
        return frozenset()


def _aside(name: bytes, parent: int, act: Callable[[int], T]) -> T:
    """Call `act` with the descriptor of a new directory beside `name`, and leave no trace of it."""
    before = stat_entry(b".", parent)
    aside = make_aside(name, lambda name: os.mkdir(name, 0o700, dir_fd=parent))
    try:
        inside = os.open(aside, _PASS, dir_fd=parent)
        try:
            return act(inside)
        finally:
            os.close(inside)
    finally:
        os.rmdir(aside, dir_fd=parent)
        os.utime(b".", ns=(before.st_atime_ns, before.st_mtime_ns), dir_fd=parent)


def _list_in(names: Sequence[bytes], inside: int) -> frozenset[bytes]:
    made: list[bytes] = []
    try:
        for name in names:
            os.mkdir(name, 0o700, dir_fd=inside)
            made.append(name)
        readable = os.open(b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=inside)
        try:
            return frozenset(map(os.fsencode, os.listdir(readable)))
        finally:
            os.close(readable)
    finally:
        for name in made:
            os.rmdir(name, dir_fd=inside)


def _try_in(names: Sequence[bytes], inside: int) -> list[list[int]]:
    groups: list[list[int]] = []
    try:
        for row, name in enumerate(names):
            try:
                os.mkdir(name, 0o700, dir_fd=inside)
            except FileExistsError:
                groups[_group_at(name, inside, len(groups))].append(row)
            except OSError:
                continue  # whoever makes it says what is wrong with it
            else:
                groups.append([row])
                mark = _FIRST_MARK + _MARK_SECONDS * (len(groups) - 1)
                os.utime(name, (mark, mark), dir_fd=inside)
    finally:
        for group in groups:
            os.rmdir(names[group[0]], dir_fd=inside)
    return groups


def _group_at(name: bytes, inside: int, groups: int) -> int:
    """Return the group of the directory that `name` leads to, which its mtime says.

    Inode numbers say less: some file systems give each spelling a number of its own.
    """
    number = (int(stat_entry(name, inside).st_mtime) - _FIRST_MARK) // _MARK_SECONDS
    return number if 0 <= number < groups else 0


_OTHERS = stat.S_IRWXG | stat.S_IRWXO


# Moves


class Moved(Enum):
    """Outcomes of a move."""

    DONE = "done"
    CHANGED = "changed"
    """The old path no longer holds the expected file. Nothing was done."""
    SHARED = "shared"
    """The file has other names, whose metadata would change with it. Nothing was done."""
    IMPOSSIBLE = "impossible"
    """The file system or the rights do not allow it. Nothing was done; the caller may copy instead."""


def move_file(
    root: Root, old: bytes, new: bytes, expected: Identity, wanted: Metadata, *, owner: bool
) -> Moved:
    """Rename the regular file at `old`, identified by `expected`, to `new`, where no entry may be.

    The directories of `old` may exclude users that those of `new` admit. So before the rename the file loses
    the rights of group and others that `wanted` does not grant. The caller sets the rest of `wanted`
    afterwards. A move that then fails can leave the file narrowed.

    Raises FileError if an entry is at `new`, its directory is missing, or `root` is append-only.
    """
    root.check_change(old, "move it")
    there, old_name = root.locate(old)
    try:
        here, new_name = root.locate(new, fresh=True)
        found = _expected_at(root, old_name, there.fd, expected)
        if found is None:
            return Moved.CHANGED
        if found.st_nlink > 1:
            return Moved.SHARED
        if found.st_dev != os.fstat(here.fd).st_dev:
            return Moved.IMPOSSIBLE
        if not (honours_no_replace(here.fd) and root.storage.facts.steady):
            return Moved.IMPOSSIBLE  # the rename could replace an entry, or would change the mtime
        if root.writes.undo is not None:
            closed = found.st_mode
            if root.writes.sheds_acls:
                closed &= ~_OTHERS if read_acl(there.fd, old_name) else ~0
            root.writes.undo.moving(
                old, new, found, narrowed_metadata(found, wanted, owner=owner, mode=closed)
            )
        # All of that took time: the check that counts is right before the steps that change something.
        found = _expected_at(root, old_name, there.fd, expected)
        if found is None:
            return Moved.CHANGED
        before = identity_of(found)
        if root.writes.sheds_acls:
            take_acl(old_name, there.fd, found)
            found = os.stat(old_name, dir_fd=there.fd, follow_symlinks=False)
        owned = owner and not root.reads.fakes
        # A file system without modes keeps the one it had. A change of the owner may clear special bits.
        narrow = stat.S_IFREG | narrowed(stat.S_IMODE(found.st_mode), wanted.mode)
        same_owner = not owned or (found.st_uid, found.st_gid) == (wanted.uid, wanted.gid)
        modes = (found.st_mode, narrow) if same_owner else None
        narrow_name(old_name, there.fd, found, wanted, owner=owned)
        try:
            rename_no_replace_between(old_name, there.fd, new_name, here.fd)
        except OSError:
            root.check.note_named(before, found_at(old_name, there.fd), modes)
            raise
        root.check.note_named(before, found_at(new_name, here.fd), modes)
        if root.writes.undo is not None:
            root.writes.undo.changed(new, os.stat(new_name, dir_fd=here.fd, follow_symlinks=False))
    except OSError as error:
        # Across file systems, without the rights, or where a rename cannot promise to replace nothing.
        if error.errno == errno.EXDEV or is_refused(error):
            return Moved.IMPOSSIBLE
        raise root.failure(error, new, "move a file there") from error
    return Moved.DONE


def _expected_at(root: Root, name: bytes, directory: int, expected: Identity) -> os.stat_result | None:
    """Return the stat of a regular file that is still `expected`; None if another entry or none has the name,
    or somebody changed it. Raises OSError."""
    try:
        found = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
    is_expected = stat.S_ISREG(found.st_mode) and root.check.is_still(expected, identity_of(found))
    return found if is_expected else None


def move_directory(root: Root, old: bytes, new: bytes) -> bool:
    """Rename the directory at `old`, with its contents, to `new`, where no entry may be.

    Returns False if that is impossible here; nothing was done then. Raises FileError if an entry is at `new`,
    its directory is missing, or `root` is append-only.
    """
    root.check_change(old, "move the directory")
    there, old_name = root.locate(old)
    try:
        here, new_name = root.locate(new, fresh=True)
        try:
            found = os.stat(old_name, dir_fd=there.fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        if not (stat.S_ISDIR(found.st_mode) and honours_no_replace(here.fd)):
            return False
        if root.writes.undo is not None:
            now = stat.S_IMODE(found.st_mode), packed_time(found.st_mtime_ns), found.st_uid, found.st_gid
            root.writes.undo.moving(old, new, found, Metadata(*now))
        rename_no_replace_between(old_name, there.fd, new_name, here.fd)
    except OSError as error:
        if error.errno == errno.EXDEV or is_refused(error):
            return False
        raise root.failure(error, new, "move a directory there") from error
    finally:
        # Cached descriptors below `old` are keyed by paths that are wrong now.
        root.forget(old)
    return True


def make_durable(root: Root, directories: Iterable[bytes]) -> None:
    """Make the renames into `directories` durable. The caller passes one directory per file system. Raises
    RdcError."""
    for path in directories:
        directory = root.directory(path)
        with root.failing(path, "make the moves into it durable"):
            fd = os.open(b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory.fd)
        try:
            syncfs(fd)
        except OSError as error:
            if error.errno not in CANNOT_SYNC:
                raise root.failure(error, path, "make the moves into it durable") from error
            os.sync()
        finally:
            os.close(fd)


# Hard links

LINK_ATTEMPTS = 16
"""Attempts to make the link. A sweep can remove the temporary name before the rename, and no lock prevents
that, since a lock would belong to the file under all its names. That happening 16 times is a fault."""


_WITHOUT_INODES = ComparedFields(inode=False, ctime=False)


class Linked(Enum):
    """Outcomes of `link_file`."""

    DONE = "done"
    CHANGED = "changed"
    """The old name is no longer the expected file. Nothing was done."""
    IMPOSSIBLE = "impossible"
    """The file system or the rights do not allow it. Nothing was done; the caller may write a separate file.
    """


def link_file(
    root: Root,
    old: bytes,
    new: bytes,
    expected: Identity,
    *,
    replaces: Expected = ANYTHING,
    origin: Root | None = None,
) -> Linked:
    """Make `new` a name of the regular or special file at `old`, if it is the one `expected` identifies.

    At any moment `new` names its former entry or this file. An empty directory there is replaced; another
    directory is a FileError. A kill in between leaves a temporary name, which holds no content of its own.
    What is replaced gets its backup, if `root` has backups. `origin`: the tree that `old` is in; None for
    `root`.

    Raises FileError if what `new` names is not what the link `replaces`, and if `root` is append-only and
    `new` is taken. Raises OutOfSpaceError, and RdcError (exit code 11) if the write quota is used up.
    """
    if not root.storage.facts.hard_links:
        return Linked.IMPOSSIBLE
    root.spend(new, 0, entries=1)
    there, old_name = (root if origin is None else origin).locate(old)
    here, new_name = root.locate(new, fresh=True)

    def link(name: bytes) -> None:
        os.link(old_name, name, src_dir_fd=there.fd, dst_dir_fd=here.fd, follow_symlinks=False)

    try:
        before = (
            os.stat(old_name, dir_fd=there.fd, follow_symlinks=False)
            if root.writes.undo is not None
            else None
        )
        if root.append_only and _is_taken(new_name, here.fd):
            # Checked first, because a temporary name would already change the ctime of the old file.
            raise root.append_only_refusal(new, "make it a hard link")
        root.note_entering(new, here.fd)
        for attempt in range(LINK_ATTEMPTS):
            temporary = make_aside(new_name, link)
            try:
                found = os.stat(temporary, dir_fd=here.fd, follow_symlinks=False)
                if stat.S_ISLNK(found.st_mode) or not _is_linked(expected, found):
                    return Linked.CHANGED
                ctime_ns = 0 if before is None else before.st_ctime_ns
                if root.append_only:
                    root.note_placing(new, here.fd, found, ctime_ns=ctime_ns)
                    rename_to_free_name(temporary, new_name, here.fd)
                else:
                    root.replace_by_name(new, temporary, here.fd, replaces, ctime_ns=ctime_ns)
                if origin is None:
                    root.check.note_named(expected, found_at(new_name, here.fd))
                if root.writes.undo is not None:
                    root.writes.undo.changed(new, os.stat(new_name, dir_fd=here.fd, follow_symlinks=False))
                return Linked.DONE
            except FileNotFoundError:
                if attempt == LINK_ATTEMPTS - 1:
                    raise
            finally:
                # The temporary name is still there after a failure. It is also there if both were names of
                # one file already, because rename(2) then does nothing.
                with suppress(OSError):
                    os.unlink(temporary, dir_fd=here.fd)
    except OSError as error:
        if root.append_only and error.errno == errno.EEXIST:
            raise root.append_only_refusal(new, "make it a hard link") from error
        # Across file systems, at the maximum of links, to a file of another user, or where there are none.
        if error.errno == errno.EXDEV or is_refused(error):
            return Linked.IMPOSSIBLE
        raise root.failure(error, new, "make it a hard link") from error
    return Linked.CHANGED


def _is_linked(expected: Identity, found: os.stat_result) -> bool:
    """Return whether a new name, with this stat, is one of the expected entry. The name changed its ctime;
    where inode numbers are not stable, size and mtime decide."""
    if found.st_dev != expected.device:
        return False
    if stable_fields(found.st_dev).inode:
        return found.st_ino == expected.inode
    return is_same_entry(expected, identity_of(found), _WITHOUT_INODES)


def _is_taken(name: bytes, directory: int) -> bool:
    with suppress(FileNotFoundError):
        os.stat(name, dir_fd=directory, follow_symlinks=False)
        return True
    return False


# Removals

_SECOND = 10**9
"""Nanoseconds."""


class UnchangedRemoval:
    """Removals of one run. It is made before anything is listed.

    An entry is the one listed if its inode, size, mtime and ctime are, and the ctime is no later than the
    run. A change after the listing gives it a later one: a run lists nothing before the clock that stamps
    files (rdc.files.base.metadata) has passed its beginning.
    """

    def __init__(self, root: Root) -> None:
        self._root = root
        self._began = time.time_ns()
        outlast(self._began)
        self._own: dict[tuple[int, int], int] = {}
        """The ctimes that removals of other names gave to files with several names, by device and inode."""

    def remove(self, path: bytes, listed: Identity) -> bool:
        """Remove the entry at `path`; False if nothing is there any more.

        Raises FileError, and leaves it, if it is a directory or not the entry that was listed.
        """
        directory, name = self._root.locate(path)
        try:
            found = stat_entry(name, directory.fd)
            if stat.S_ISDIR(found.st_mode) or not self._is_listed(found, listed):
                shown = printable(self._root.shown(path))
                text = f"{shown}: changed since it was synced, so it stays; run again"
                raise FileError(path, text, code=ExitCode.PARTIAL)
            self._unlink(directory, name, found)
        except FileNotFoundError:
            return False
        except OSError as error:
            failed = self._root.failure(error, path, "remove it")
            if isinstance(failed, FileError):
                raise failed from error
            # A full or read-only source stops no run: it only keeps what it has.
            raise self._root.refused(
                path,
                "remove it from the source",
                expected="a source that may be changed",
                found=f"{os.strerror(error.errno or 0)} ({errno.errorcode.get(error.errno or 0)})",
                advice="it is at the destination, and stays here; mount the source read-write, or leave out"
                " --remove-source-files",
            ) from error
        return True

    def _is_listed(self, found: os.stat_result, listed: Identity) -> bool:
        if (found.st_dev, found.st_ino) != (listed.device, listed.inode):
            return False
        # Symlinks may be listed without their times (--omit-link-times). Their ctime tells of a change, too.
        if stat.S_ISREG(found.st_mode) and (found.st_size, packed_time(found.st_mtime_ns)) != (
            listed.size,
            listed.mtime_ns,
        ):
            return False
        own = self._own.get((found.st_dev, found.st_ino))
        if own is not None:
            return found.st_ctime_ns == own
        # A file system of whole seconds, or of two as FAT, may have stamped a later change so.
        coarse = 0 if found.st_ctime_ns % _SECOND else 2 * _SECOND - 1
        return found.st_ctime_ns == listed.ctime_ns and found.st_ctime_ns + coarse <= self._began

    def _unlink(self, directory: Directory, name: bytes, found: os.stat_result) -> None:
        if found.st_nlink < 2:
            os.unlink(name, dir_fd=directory.fd)
            return
        fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory.fd)
        try:
            os.unlink(name, dir_fd=directory.fd)
            with suppress(OSError):
                self._own[found.st_dev, found.st_ino] = os.fstat(fd).st_ctime_ns
        finally:
            os.close(fd)
