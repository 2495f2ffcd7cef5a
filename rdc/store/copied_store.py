"""CopiedStore: a store as the source of its own copy.

A copy takes time, and puts and gc go on meanwhile. What is shown is one state: the snapshots that were listed
when the copy began, and at least the packs that they need. The list of snapshots is taken first, so a later
put only adds packs; the store's lock is held, so no gc removes one.

The index of a published store is opened before that list is taken, and copied as it was then. A later one may
name packs that were not there yet when the copy listed them.
"""

from __future__ import annotations

import os
import stat

from rdc.errors import FileError
from rdc.files.base.paths import join
from rdc.files.base.store_guard import head_of
from rdc.files.root.root import Root
from rdc.files.root.source_file import SourceFile
from rdc.lean.records import replace
from rdc.model.entries import Kind, strings
from rdc.store.place import INDEX_NAME, PackStore, StoreLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.files.depth import Looking
    from rdc.files.root.lister import Run
    from rdc.model.entries import Identity, Listed

_LISTS = (b"snapshots", b"forgotten")
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class _FirstIndex(SourceFile):
    """The index with which the copy began. Its file is only ever replaced, and what that changes in its times
    says nothing of its content."""

    __slots__ = ("_found",)

    def __init__(self, fd: int, found: os.stat_result, path: bytes, shown: bytes) -> None:
        super().__init__(fd, found, path, shown)
        self._found = found

    @property
    def inode(self) -> int:
        return self._found.st_ino

    def again(self) -> _FirstIndex:
        twin = _FirstIndex(os.dup(self._fd), self._found, self.path, self._shown)
        twin.rate = self.rate
        return twin

    def rest(self) -> None:
        """Rest as SourceFile does. Nothing changes it."""

    def check_unchanged(self) -> None:
        """Check as SourceFile does. Nothing changes it."""


class CopiedStore(Root):
    """The directory of a store, or the one above it, with the store as it was when it was opened."""

    def __init__(self, root: Root, entry: bytes = b"") -> None:
        """Show what `root` shows, and share nothing with it. `entry`: the store, if it is an entry of `root`;
        b"": it is the root.

        Raises FileError if the store is damaged, OSError if the entry is no directory.
        """
        super().__init__(os.dup(root.fileno()), root.label, root.reads, root.writes)
        self._entry = entry
        self._index: _FirstIndex | None = None
        try:
            self._store = os.open(entry or b".", _DIRECTORY, dir_fd=self.fileno())
        except OSError:
            super().release()
            raise
        self._lock = StoreLock(self._store)
        try:
            self.store_head = head_of(self._store)
            self._index = self._open_index()
            with PackStore(os.dup(self._store), self.shown(entry)) as store:
                self._numbers = frozenset((*store.numbers(), *store.forgotten_numbers()))
        except BaseException:
            self.release()
            raise

    def _inner(self, path: bytes) -> bytes | None:
        """Return the path of an entry below the store, b"" for the store; None if it is not in it."""
        if not self._entry:
            return path
        if path == self._entry:
            return b""
        return path[len(self._entry) + 1 :] if path.startswith(self._entry + b"/") else None

    def release(self) -> None:
        super().release()
        self._lock.close()
        if self._store >= 0:
            os.close(self._store)
            self._store = -1
        if self._index is not None:
            self._index.close()

    def _open_index(self) -> _FirstIndex | None:
        try:
            fd = os.open(INDEX_NAME, _READ, dir_fd=self._store)
        except OSError:
            return None
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            os.close(fd)
            return None
        path = join(self._entry, INDEX_NAME) if self._entry else INDEX_NAME
        return _FirstIndex(fd, found, path, self.shown(path))

    def open_read(self, path: bytes) -> SourceFile:
        if self._inner(path) != INDEX_NAME or self._index is None:
            return super().open_read(path)
        index = self._index.again()
        index.rate = self.reads.rate
        return index

    def identity(self, path: bytes) -> Identity:
        """Return that of the first index for its path: whoever has read it looks whether it changed."""
        if self._inner(path) != INDEX_NAME or self._index is None:
            return super().identity(path)
        return self._index.identity

    def list_many(self, todo: Sequence[bytes], *, looking: Looking) -> Run | None:
        """List nothing: each directory is listed for itself."""
        return None

    def restated(self, path: bytes, listed: Listed) -> Listed:
        """Leave out snapshots that came later, and show the index with which the copy began."""
        listed = super().restated(path, listed)
        inner = self._inner(path)
        if inner == b"":
            return self._with_first_index(listed)
        if inner not in _LISTS:
            return listed
        names = strings(listed.listing.names)
        kept = [row for row, name in enumerate(names) if not name.isdigit() or int(name) in self._numbers]
        if len(kept) == len(names):
            return listed
        return listed.rows(kept)

    def _with_first_index(self, listed: Listed) -> Listed:
        names = strings(listed.listing.names)
        row = names.index(INDEX_NAME) if INDEX_NAME in names else -1
        if row < 0 or listed.listing.kinds[row] != Kind.FILE:
            return listed
        if self._index is None:
            return listed.rows([other for other in range(len(names)) if other != row])
        if listed.inodes.identity(row)[1] == self._index.inode:
            return listed
        # Its descriptor is open, so no other file has its number: who looks for that opens it by open_read.
        listing, inodes = listed.listing.unpacked(), bytearray(listed.inodes.inodes)
        listing.sizes[row] = self._index.size
        listing.mtimes[row] = self._index.identity.mtime_ns
        inodes[8 * row : 8 * row + 8] = self._index.inode.to_bytes(8, "little")
        return replace(listed, listing=listing.packed(), inodes=replace(listed.inodes, inodes=bytes(inodes)))


def copied_store(root: Root, entry: bytes = b"") -> Root:
    """Return a store, which is `root` or the entry of it, as the source of a copy, and release `root`. A
    damaged one stays as it is: its files are copied as those of any directory."""
    try:
        copied = CopiedStore(root, entry)
    except (FileError, OSError):
        return root
    root.release()
    return copied
