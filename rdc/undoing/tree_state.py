"""TreeState: the tree that is being undone, as it is or (in a dry run) as it would be by now."""

from __future__ import annotations

import os
import stat
from contextlib import suppress

from rdc.errors import FileError
from rdc.files.base.metadata import set_mode_on_name
from rdc.files.base.relative_path import join
from rdc.files.base.temporary_names import PARTS_NAME, is_reserved
from rdc.undoing.journal import Facts, facts_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.root.root import Root

__all__ = ["TreeState"]


class TreeState:
    """Looks at entries, and lends the owner the permissions to work in directories."""

    def __init__(self, root: Root, *, dry: bool) -> None:
        self.root = root
        self.dry = dry
        self._would_be: dict[bytes, Facts | None] = {}
        """In a dry run: what would be at a path by now."""
        self._borrowed: dict[bytes, int] = {}
        """The modes that directories had before this process changed them."""
        self._asked: set[bytes] = set()

    def look(self, path: bytes) -> os.stat_result | None:
        """The stat of an entry as it is; None if nothing is there. Raises FileError."""
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
        """What is, or would be, at a path. Raises FileError."""
        if path in self._would_be:
            return self._would_be[path]
        found = self.look(path)
        return None if found is None else facts_of(found)

    def note(self, path: bytes, facts: Facts | None) -> None:
        """Notes what a dry run would have put at a path."""
        if self.dry:
            self._would_be[path] = facts

    def is_empty(self, path: bytes) -> bool:
        """Whether the directory at `path` is, or would be, empty. Raises FileError."""
        directory = self.root.directory(path, fresh=True)
        try:
            fd = os.open(b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory.fd)
            try:
                names = [os.fsencode(name) for name in os.listdir(fd)]
            finally:
                os.close(fd)
        except OSError as error:
            raise self.root.failure(error, path, "list it") from error
        paths = [join(path, name) for name in names]
        return all(self.dry and self._would_be.get(each, _THERE) is None for each in paths)

    def sweep(self, path: bytes) -> None:
        """Removes rdc's own temporaries and parts from a directory that is to be removed."""
        from rdc.files.replace.parts_record import remove_recorded
        from rdc.files.replace.sweep_temporaries import sweep_temporaries

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
        """Lets the owner work in the directory at `path` until its own metadata are set. Raises FileError."""
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
        """The mode that a directory had before `lend`; None if it has it still."""
        return self._borrowed.get(path)

    def finished(self, path: bytes) -> None:
        """Notes that a directory has its own mode again, or is gone."""
        self._borrowed.pop(path, None)
        self._asked.discard(path)

    def end(self) -> None:
        """Gives the directories that are left the modes that they had."""
        for path, mode in sorted(self._borrowed.items(), reverse=True):
            with suppress(FileError, OSError):
                directory, name = self.root.locate(path, fresh=True)
                set_mode_on_name(name, directory.fd, mode)
        self._borrowed.clear()


_THERE = Facts(0, 0, 0, 0)
