"""Backups: what a sync replaces or deletes gets another name first.

The old entry keeps its own name, and its backup is a hard link to it. It is a durable copy if no link can be
made: the backup directory is on another file system, or the file system or this file takes none. A later step
then replaces or removes the first name. A file that is written into gets a copy, before its first byte
changes. So the old content has a name at every moment, and the new content appears as without backups. An
earlier backup of the same name is removed first: what it held was replaced twice.

Before the first name goes, the directory of the backup is synced. A power cut therefore loses no backup of
an entry that it finds replaced.
"""

from __future__ import annotations

import os
import stat

from rdc.errors import FileError
from rdc.files.base.metadata import found_at, identity_of
from rdc.files.base.paths import join, stands_for_reserved
from rdc.files.base.taking_names import flush, is_refused, refuses_links, sync_directory_at
from rdc.lean.records import replace
from rdc.model.entries import Kind, Metadata
from rdc.model.preserved import ACCESS_ACL, EVERYTHING, AttributeKinds, Attributes, packed_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.files.root.root import Root


_ANYBODYS = (b"user.", ACCESS_ACL)
"""Beginnings of the names of attributes that the owner of a file may set."""


class Backups:
    """Keeps the entries of the tree at `root` below another directory, or beside them under a suffix."""

    def __init__(
        self,
        root: Root,
        suffix: bytes,
        *,
        fsync: bool,
        top: Root | None = None,
        make_top: Callable[[], Root] | None = None,
    ) -> None:
        """`fsync`: sync the directories of backups. `top`: the backup directory, if it exists. `make_top`:
        makes it when the first entry is kept. Neither: backups lie beside the entries. Raises FileError if
        the backup directory is the tree itself."""
        self._root = root
        self._suffix = suffix
        self._fsync = fsync
        self._top = None if top is None else self._checked(top)
        self._make_top = _no_directory if make_top is None else make_top
        self._is_wanted: Callable[[bytes], bool] = lambda path: False
        self.beside = top is None and make_top is None
        """True if a backup lies in the directory of its entry."""

    def apart_from(self, is_wanted: Callable[[bytes], bool]) -> Backups:
        """Return this keeper for a run whose source has an entry where `is_wanted` says so: no backup takes
        its place. Both keep backups in one directory."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._is_wanted = is_wanted
        return other

    def _checked(self, top: Root) -> Root:
        with top.failing(b"", "keep backups in it"):
            here, there = (_identity(os.fstat(root.fileno())) for root in (self._root, top))
        if here != there:
            # A copy is a backup even where a file system keeps only a part of the metadata.
            top.storage.agree(EVERYTHING, EVERYTHING, insists=False)
            if here[0] == there[0]:
                top.rely_on(self._root.storage.facts, learned=self._root.storage.is_learned)
            return top
        raise top.refused(
            b"",
            "keep backups in it",
            expected="a directory of its own",
            found="the destination itself",
            advice="name another directory, or a --suffix alone",
        )

    def protects(self, path: bytes, kind: int) -> bool:
        """Return whether an extraneous entry is a backup or the backup directory, so that --delete leaves
        it."""
        if self.beside:
            return path.endswith(self._suffix)
        if kind != Kind.DIRECTORY or self._top is None:
            return False
        try:
            found = self._root.identity(path)
        except FileError:
            return False
        try:
            return (found.device, found.inode) == _identity(os.fstat(self._top.fileno()))
        except OSError:
            return True  # it may be

    def keep(self, path: bytes, name: bytes, parent: int, *, copy: bool = False) -> None:
        """Give the entry `name` of the open directory `parent`, at `path` of the tree, its backup.

        `copy`: a regular file gets a copy, which shares its blocks where the file system can. The backup is
        durable afterwards. A directory gets none. Raises FileError, or OSError if nothing is at `name`.
        """
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if stat.S_ISDIR(found.st_mode):
            return
        if stands_for_reserved(name + self._suffix):
            raise self._refused(path, "a name that rdc keeps for itself", "choose another --suffix")
        if self.beside:
            if self._is_wanted(path + self._suffix):
                raise self._refused(
                    path, "that the source has a file of that name", "choose another --suffix"
                )
            if copy:
                self._copy(path, self._root, path + self._suffix)
            elif not self._link(path, name, parent, name + self._suffix, parent, found):
                self._make_like(path, name, parent, self._root, path + self._suffix, found)
            return
        top = self._top
        if top is None:
            top = self._top = self._checked(self._make_top())
        above, _, last = path.rpartition(b"/")
        self._make_directories(top, above)
        if copy:
            self._copy(path, top, join(above, last + self._suffix))
            return
        directory, target = top.locate(join(above, last + self._suffix))
        if not self._link(path, name, parent, target, directory.fd, found):
            self._make_like(path, name, parent, top, join(above, target), found)

    def _link(
        self, path: bytes, name: bytes, parent: int, target: bytes, directory: int, found: os.stat_result
    ) -> bool:
        """Link the entry to its backup. Return whether it could be linked: a backup may lie on another file
        system or mount, some file systems have no links, and some files take no further one. Raises
        FileError."""
        try:
            self._root.spend(path, 0, entries=1)
            try:
                os.link(name, target, src_dir_fd=parent, dst_dir_fd=directory, follow_symlinks=False)
            except FileExistsError:
                there = os.stat(target, dir_fd=directory, follow_symlinks=False)
                if _identity(there) != _identity(found):
                    os.unlink(target, dir_fd=directory)
                    os.link(name, target, src_dir_fd=parent, dst_dir_fd=directory, follow_symlinks=False)
        except IsADirectoryError as error:
            raise self._occupied(path) from error
        except OSError as error:
            if refuses_links(error):
                return False
            raise self._root.failure(error, path, "keep a backup of it") from error
        with self._root.failing(path, "keep a backup of it"):
            self._root.check.note_named(identity_of(found), found_at(name, parent), (found.st_mode,))
            if self._fsync:
                sync_directory_at(b".", directory)
        return True

    def _make_like(
        self, path: bytes, name: bytes, parent: int, top: Root, backup: bytes, found: os.stat_result
    ) -> None:
        """Make a second entry like the one at `name`, where no link leads."""
        if stat.S_ISREG(found.st_mode):
            self._copy(path, top, backup)
            return
        metadata = Metadata(
            stat.S_IMODE(found.st_mode), packed_time(found.st_mtime_ns), found.st_uid, found.st_gid
        )
        if stat.S_ISLNK(found.st_mode):
            text = os.readlink(name, dir_fd=parent)
            top.replace_symlink(backup, text, metadata, owner=_is_root())
        else:
            from rdc.files.root.listing_view import node_of

            kind, number = node_of(found)
            top.replace_node(backup, kind, number, metadata, owner=_is_root())
        if self._fsync:
            sync_directory_at(b".", top.locate(backup)[0].fd)

    def _copy(self, path: bytes, top: Root, backup: bytes) -> None:
        """Make a copy of the regular file at `path`, with its metadata and attributes, at `backup` of
        `top`."""
        from rdc.files.names.name_change import seal_like
        from rdc.files.replace.cloning import copy_whole, may_clone
        from rdc.files.replace.replacement import Replacement

        with (
            self._root.open_read(path) as source,
            Replacement(
                top, backup, expected_size=source.size, allocated=source.taken, reserved=False
            ) as copy,
        ):
            copy_whole(copy, source, source.size, cloned=may_clone(top, source.identity.device))
            source.check_unchanged()
            name, directory = backup.rpartition(b"/")[2], copy.directory
            try:
                seal_like(copy, source.metadata, self._attributes(source.fileno()), owner=_is_root())
                flush(copy.fileno())
                os.rename(copy.temporary, name, src_dir_fd=directory.fd, dst_dir_fd=directory.fd)
                copy.renamed()
                if self._fsync:
                    sync_directory_at(b".", directory.fd)
            except BaseException as error:
                copy.abandon()
                if isinstance(error, IsADirectoryError):
                    raise self._occupied(path) from error
                if isinstance(error, OSError):
                    raise self._root.failure(error, path, "keep a backup of it") from error
                raise

    def _attributes(self, fd: int) -> Attributes:
        """Return the attributes of an open file that a copy of it gets: all that this user may set. Raises
        OSError."""
        from rdc.files.facts.xattrs import read_attributes

        try:
            found = read_attributes(fd)
        except OSError as error:
            if is_refused(error) and not self._root.storage.facts.keeps.attributes & AttributeKinds.USER:
                return ()
            raise
        return found if _is_root() else tuple(item for item in found if item[0].startswith(_ANYBODYS))

    def _occupied(self, path: bytes) -> FileError:
        return self._refused(path, "a directory of that name", "move it away, or change --suffix")

    def _make_directories(self, top: Root, path: bytes) -> None:
        """Make the directories of `path` below the backup directory, each as closed as the tree's own."""
        made = b""
        for name in path.split(b"/") if path else ():
            above, made = made, join(made, name)
            if top.kind(made) is not None:
                continue
            top.make_directory(made, 0o700)
            top.set_metadata(made, Kind.DIRECTORY, self._like(made), owner=_is_root())
            if self._fsync:
                sync_directory_at(b".", top.directory(above).fd)

    def _like(self, path: bytes) -> Metadata:
        """Return the metadata for the backup of a directory. Its owner can always work in it."""
        found = self._root.metadata(path)
        return replace(found, mode=found.mode | stat.S_IRWXU)

    def _refused(self, path: bytes, found: str, advice: str) -> FileError:
        return self._root.refused(
            path,
            "keep a backup of it",
            expected="a free name for its backup",
            found=found,
            advice=f"the file stays as it is; {advice}",
        )


def _is_root() -> bool:
    return os.geteuid() == 0


def _no_directory() -> Root:
    raise AssertionError("backups beside the entries need no directory")


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino
