"""The directory that is followed, told from whatever else may come to stand at its path."""

from __future__ import annotations

import os

from blake3 import blake3

from rdc.errors import ExitCode, RdcError, UsageError, printable
from rdc.files.filesystem import file_system_of, path_of
from rdc.model.entries import Kind
from rdc.session.place import ANYWHERE
from rdc.session.source_tree import SourceTree
from rdc.watch.mounts import Mounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.sync import SyncOptions
    from rdc.session.place import Site

__all__ = ["Origin"]

MARK_BYTES = 16


class Origin:
    """Outlives sessions: what stood at the path when entries were last told of it is remembered."""

    def __init__(
        self, path: bytes, options: SyncOptions, site: Site = ANYWHERE, *, name: str = "", mark: bytes = b""
    ) -> None:
        """`path` is one of `site`, `name` how messages call it. `mark`: the directory that a session before
        told entries of; empty: there was none."""
        self._path = path
        self._site = site
        self._options = options
        self._name = name or printable(path)
        self.mark = mark
        """Opaque: which directory was last opened as the one to follow. It stays the same where a file system
        is mounted again, as far as that has an id of its own."""
        self._mounts: Mounts | None = None
        self.told = bool(mark)
        """Entries of it were told, so that finding none is suspicious."""

    def open(self) -> SourceTree:
        """The tree, for one turn: kept open it could not be unmounted. Raises FileError where it is gone."""
        return SourceTree.open(self._path, self._site)

    def accept(self) -> None:
        """What is at the path now is what to follow. Raises UsageError where that is no directory, FileError
        where it is nothing."""
        tree = self.open()
        try:
            if tree.only is not None and tree.root.kind(tree.only) is not Kind.DIRECTORY:
                raise UsageError(
                    f"{self._name}: a directory is expected (a link to one needs a '/' at the end)"
                )
            self.mark = _mark(tree)
            self._close_mounts()
            self._mounts = Mounts(path_of(tree.root.directory(tree.only or b"", fresh=True).fd))
        finally:
            tree.root.release()

    def close(self) -> None:
        self._close_mounts()

    def _close_mounts(self) -> None:
        if self._mounts is not None:
            self._mounts.close()
            self._mounts = None

    def trouble(self) -> str | None:
        """Why the directory cannot be read as what it was; None when it can."""
        problem, mark = self._look()
        if problem is not None:
            return problem
        if mark == self.mark:
            return self._unmounted()
        if self._options.delete:
            return f"{self._name} is another directory now (unmounted?); to follow this one, start again"
        return f"{self._name} is another directory now"

    def absence(self) -> str | None:
        """Why it cannot be gone on with; None when it can: with --delete the directory itself is back,
        without one that will do, and in either case not an empty one."""
        problem = self.trouble() if self._options.delete else self._look()[0]
        if problem is None and self.told and not self._options.force_empty and self._is_bare:
            return self.empty
        return problem

    def _unmounted(self) -> str | None:
        """With --delete, a mount below that went must not look like so many deleted files."""
        missed = self._mounts.missed() if self._mounts is not None and self._options.delete else None
        if missed is None:
            return None
        return f"{printable(missed)} in {self._name} was unmounted; to follow without it, start again"

    def _look(self) -> tuple[str | None, bytes]:
        """What is wrong at the path, or the mark of the directory that is there."""
        try:
            tree = self.open()
        except RdcError as error:
            cause = error.__cause__
            reason = cause.strerror if isinstance(cause, OSError) else None
            return f"{self._name} is gone ({reason or error})", b""
        try:
            if tree.only is not None and tree.root.kind(tree.only) is not Kind.DIRECTORY:
                return f"{self._name} is no directory any more", b""
            return None, _mark(tree)
        except (RdcError, OSError) as error:
            return f"{self._name} cannot be opened: {error}", b""
        finally:
            tree.root.release()

    @property
    def empty(self) -> str:
        return f"{self._name} is empty; --force-empty follows all the same"

    @property
    def _is_bare(self) -> bool:
        """Nothing is in the directory, as far as it can be read. What the filters leave out counts too."""
        try:
            tree = self.open()
        except RdcError:
            return True
        try:
            return not tree.root.list_packed(tree.only or b"").count
        except RdcError as error:
            return error.code is ExitCode.VANISHED
        finally:
            tree.root.release()


def _mark(tree: SourceTree) -> bytes:
    """Of a file system's own id and the inode, hashed: a far side has no use for either."""
    directory = tree.root.directory(tree.only or b"", fresh=True)
    system, inode = file_system_of(directory.fd).id, os.fstat(directory.fd).st_ino
    return blake3(b"rdc origin %d %d" % (system, inode)).digest(length=MARK_BYTES)
