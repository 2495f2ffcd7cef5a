"""New content that waits: in the directory of --temp-dir, or until all is there (--delay-updates)."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from functools import partial

from rdc.errors import FileError, RdcError
from rdc.files.base.directory_descriptors import Directory, stable_fields
from rdc.files.base.metadata import Expected, identity_of
from rdc.files.base.paths import is_temporary_of, join, make_aside
from rdc.files.base.syscalls import rename_no_replace_between
from rdc.files.replace.commit_group import CommitGroup, Staged, is_own_partial, sweep_temporaries
from rdc.files.replace.replacement import KEEP_BYTES, Replacement
from rdc.lean.records import Record, replace
from rdc.model.entries import ComparedFields, Identity, Metadata, is_same_entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.files.root.root import Root
    from rdc.files.root.source_file import SourceFile


# DistantReplacement: the future content of a file, in the directory of --temp-dir until it is complete.
#
# Complete content moves to a temporary beside its target before a CommitGroup takes it. On the file system of
# the target that is a rename. From another one it is copied, and the group syncs the copy. From there on all
# is as without --temp-dir: no file is ever written where its name is.

_COPIED = {errno.EXDEV, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM}
"""Errors of a rename after which the content is copied."""


class DistantReplacement(Replacement):
    """A Replacement that begins in `root.writes.distant`, under a name that stands for the whole path."""

    __slots__ = ()

    def _create(self, directory: Directory, target: bytes) -> None:
        distant = (self.root.writes.distant or self.root).top()
        if self.root.writes.undo is not None and self.root.writes.distant_path is not None:
            self.root.writes.undo.entering(self.root.writes.distant_path, distant.fd)
        super()._create(distant, self.path)

    def seal(self, metadata: Metadata, *, owner: bool) -> None:
        """Move the content beside its target, then do what Replacement.seal does. Raises RdcError."""
        try:
            directory, target = self.root.locate_to_write(self.path)
            self._bring(directory, target)
        except OSError as error:
            self.abandon()
            raise self.root.failure(error, self.path, "move its new content beside it") from error
        except RdcError:
            self.abandon()
            raise
        super().seal(metadata, owner=owner)

    def _bring(self, directory: Directory, target: bytes) -> None:
        old = self.temporary

        def move(aside: bytes) -> None:
            rename_no_replace_between(old, self.directory.fd, aside, directory.fd)

        try:
            self._name = make_aside(target, move)
        except OSError as error:
            if error.errno not in _COPIED:
                raise
            self._copy(directory, target)
        self.directory = directory

    def _copy(self, directory: Directory, target: bytes) -> None:
        """Start again beside the target, with a copy of what was written. Raises OSError, RdcError."""
        fd, name, distant, size = self._fd, self.temporary, self.directory, self.size
        self._fd, self._name, self.size, self._cloned, self._hole = -1, None, 0, 0, (-1, -1)
        try:
            super()._create(directory, target)
            if self.copy_from(fd, 0, size, holes=True) != size:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
        finally:
            with suppress(OSError):
                os.unlink(name, dir_fd=distant.fd)
            os.close(fd)


class Leftovers:
    """Partial files of earlier runs in `root.writes.distant`. Their paths here begin with a slash."""

    def __init__(self, root: Root, distant: Root) -> None:
        """List the reserved names in `distant`. Raises FileError if it cannot be listed."""
        self._root = root
        self._distant = distant
        self._names = distant.listed(b"").reserved

    def of(self, path: bytes) -> bytes | None:
        """Return the longest that is a copy of the file at `path`; None for none."""
        sized = []
        top = os.fstat(self._distant.fileno())
        for name in self._names:
            with suppress(OSError):
                if is_temporary_of(name, path):
                    found = os.stat(name, dir_fd=self._distant.fileno(), follow_symlinks=False)
                    if is_own_partial(name, found, top):
                        sized.append((found.st_size, name))
        return b"/" + max(sized)[1] if sized else None

    def open(self, path: bytes) -> SourceFile:
        """Open one that `of` returned. Raises FileError."""
        return self._distant.open_read(path[1:])

    def remove(self, names: list[bytes] | None = None) -> None:
        """Remove those of these paths that no run writes; None: all."""
        if self._root.append_only:
            return
        chosen = self._names if names is None else [path[1:] for path in names]
        sweep_temporaries(self._distant, b"", chosen)
        self._names = tuple([name for name in self._names if name not in chosen])

    def __bool__(self) -> bool:
        return bool(self._names)


# DelayedGroup: holds finished files back until all are there (--delay-updates).
#
# The content of each is synced at once. Its temporary is then closed, so no number of files needs more
# descriptors. When the run has everything, `land` opens the temporaries again and commits them as any
# CommitGroup does: a kill leaves the old file or the new one at each path. The next run finds
# the temporaries of files that were held back, and uses them as bases.


class _Waiting(Record, eq=False):
    """A file that waits."""

    replacement: Replacement
    metadata: Metadata
    owner: bool
    expected: Expected
    distant: bool
    """True if its temporary is in the directory of --temp-dir."""
    identity: Identity | None = None
    """The temporary's, since it is closed."""


class DelayedGroup(CommitGroup):
    """A CommitGroup that commits nothing before `land`, and all at once from then on."""

    def __init__(
        self,
        root: Root,
        *,
        fsync: bool,
        on_commit: Callable[[bytes], None],
        on_error: Callable[[FileError], None],
    ) -> None:
        """Take the arguments of CommitGroup. It is given Replacements alone: no small files in bulk."""
        super().__init__(root, fsync=fsync, on_commit=on_commit, on_error=on_error)
        self._delays = True
        self._open: dict[bytes, _Waiting] = {}
        self._waiting: dict[bytes, _Waiting] = {}

    def add(
        self,
        replacement: Replacement,
        path: bytes,
        metadata: Metadata,
        owner: bool,
        expected: Expected,
    ) -> None:
        """Like CommitGroup.add. Until `land`, the metadata are not set either."""
        if not self._delays:
            super().add(replacement, path, metadata, owner, expected)
            return
        replacement.hand_over()
        distant = (
            self._root.writes.distant is not None and replacement.directory is self._root.writes.distant.top()
        )
        self._open[path] = _Waiting(replacement, metadata, owner, expected, distant)
        self._count(1, replacement.size)

    def flush(self) -> None:
        """Make what was added durable, and close it. Raises RdcError."""
        if not self._delays:
            super().flush()
            return
        opened, self._open = self._open, {}
        self._taken()
        staged = [Staged(one.replacement, path, one.expected, None, False) for path, one in opened.items()]
        ready = self._sync_contents(staged, []) if self._fsync else staged
        for item in ready:
            try:
                identity = identity_of(os.fstat(item.replacement.fileno()))
            except OSError as error:
                item.replacement.abandon()
                self._fail(item.path, error, "look at its new content")
                continue
            item.replacement.rest()
            self._waiting[item.path] = replace(opened[item.path], identity=identity)
        self._raise_collected()

    def land(self) -> None:
        """Commit everything that was held back. From here on nothing is. Raises RdcError."""
        if not self._delays:
            return
        self.flush()
        self._delays = False
        for path, item in list(self._waiting.items()):
            self._release(path, item.expected)
        super().flush()

    def waits(self, path: bytes) -> bool:
        """Return whether the content of `path` is held back."""
        return path in self._waiting or path in self._open

    @property
    def waits_for_any(self) -> bool:
        """Return whether any content is held back."""
        return bool(self._waiting or self._open)

    def land_one(self, path: bytes, expected: Expected) -> None:
        """Commit what was held back for `path`, if anything was. From here on nothing is held back that
        `add` takes over. Raises RdcError."""
        self.flush()
        self._delays = False
        self._release(path, expected)
        super().flush()

    def _release(self, path: bytes, expected: Expected) -> None:
        item = self._waiting.pop(path, None)
        if item is None:
            return
        try:
            self._open_again(path, item)
        except FileError as error:
            self._report(path, error)
        else:
            super().add(item.replacement, path, item.metadata, item.owner, expected)

    def _is_same(self, found: os.stat_result, closed: Identity | None) -> bool:
        """Return whether a temporary is the one that was closed. Some file systems change times at that."""
        if closed is None:
            return False
        fields = stable_fields(found.st_dev)
        if not self._root.storage.facts.steady:
            fields = fields.both(ComparedFields(mtime=False, ctime=False))
        return is_same_entry(closed, identity_of(found), fields)

    def _open_again(self, path: bytes, one: _Waiting) -> None:
        """Open and lock a temporary. Raises RdcError if another one has its name by now."""
        root = self._root
        if one.distant and root.writes.distant is not None:
            directory = root.writes.distant.top()
        else:
            directory, _ = root.locate_to_write(path)
        with root.failing(path, "find its new content again"):
            if one.replacement.resume(directory, partial(self._is_same, closed=one.identity)):
                return
        raise root.refused(
            path,
            "put its new content in place",
            expected="the temporary file that was made for it",
            found="another one",
            advice="the existing entry was kept; run again once no other run of rdc works there",
        )

    def open_waiting(self, path: bytes) -> SourceFile | None:
        """Open the content that waits for `path`; None if none does. Raises FileError."""
        one = self._waiting.get(path)
        if one is None:
            return None
        name = one.replacement.temporary
        if one.distant and self._root.writes.distant is not None:
            return self._root.writes.distant.open_read(name)
        return self._root.open_read(join(path.rpartition(b"/")[0], name))

    def abandon(self) -> None:
        """Land nothing any more. What is long stays for the next run to resume from, as a Replacement's."""
        opened, self._open = self._open, {}
        waiting, self._waiting = self._waiting, {}
        for item in opened.values():
            item.replacement.keep()
        for path, item in waiting.items():
            if item.replacement.size < KEEP_BYTES:
                with suppress(RdcError):
                    self._open_again(path, item)
                    item.replacement.abandon()
        super().abandon()
