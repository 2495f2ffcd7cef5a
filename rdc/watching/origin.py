"""The followed directory, distinguished from anything else that may appear at its path."""

from __future__ import annotations

import os

from blake3 import blake3

from rdc.errors import ExitCode, RdcError, UsageError, printable
from rdc.files.facts.filesystem_id import file_system_of, path_of
from rdc.model.entries import Kind
from rdc.session.trees.sites import ANYWHERE
from rdc.session.trees.source_tree import SourceTree
from rdc.watching.mounts import Mounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.sync import SyncOptions
    from rdc.session.trees.sites import Site

__all__ = ["Origin"]

MARK_BYTES = 16


class Origin:
    """The followed directory. It outlives sessions and remembers what was at the path when entries were last
    announced."""

    def __init__(
        self, path: bytes, options: SyncOptions, site: Site = ANYWHERE, *, name: str = "", mark: bytes = b""
    ) -> None:
        """path: a path of `site`. name: the path in messages. mark: the directory that an earlier session
        followed, if it had entries; empty otherwise."""
        self._path = path
        self._site = site
        self._options = options
        self._name = name or printable(path)
        self.mark = mark
        """Opaque id of the directory that was last opened to be followed. It survives a new mount of the same
        file system if that has an id of its own."""
        self._mounts: Mounts | None = None
        self.announced = bool(mark)
        """Whether entries were announced, so an empty directory is suspicious."""

    def open(self) -> SourceTree:
        """The tree, opened for one turn: an open tree could not be unmounted. FileError if it is gone."""
        # Every rdc that follows or is followed knows special files by their kinds.
        return SourceTree.open(self._path, self._site).showing(self._options.nodes)

    def accept(self) -> None:
        """Follow the directory that is now at the path. UsageError if it is no directory, FileError if
        nothing is there."""
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
        """Why the path does not hold the same directory; None if it does."""
        problem, mark = self._look()
        if problem is not None:
            return problem
        if mark == self.mark:
            return self._unmounted()
        if self._options.delete:
            return f"{self._name} is another directory now (unmounted?); to follow this one, start again"
        return f"{self._name} is another directory now"

    def absence(self) -> str | None:
        """Why the watch cannot continue; None if it can. With --delete the same directory must be back,
        without it any directory will do. In both cases it must not be empty."""
        problem = self.trouble() if self._options.delete else self._look()[0]
        if problem is None and self.announced and not self._options.force_empty and self._is_bare:
            return self.empty
        return problem

    def _unmounted(self) -> str | None:
        """With --delete, a mount that disappeared below must not look like deleted files."""
        missed = self._mounts.missed() if self._mounts is not None and self._options.delete else None
        if missed is None:
            return None
        return f"{printable(missed)} in {self._name} was unmounted; to follow without it, start again"

    def _look(self) -> tuple[str | None, bytes]:
        """The problem at the path if any, and the mark of the directory there."""
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
        """Whether the directory is empty, as far as it can be read. Filtered entries count as content."""
        try:
            tree = self.open()
        except RdcError:
            return True
        try:
            return tree.root.listed(tree.only or b"").is_empty
        except RdcError as error:
            return error.code is ExitCode.VANISHED
        finally:
            tree.root.release()


def _mark(tree: SourceTree) -> bytes:
    """A hash of the file system's own id and the inode number, since a far side needs neither."""
    directory = tree.root.directory(tree.only or b"", fresh=True)
    system, inode = file_system_of(directory.fd).id, os.fstat(directory.fd).st_ino
    return blake3(b"rdc origin %d %d" % (system, inode)).digest(length=MARK_BYTES)
