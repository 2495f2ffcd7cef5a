"""OpenedPath: where a path that a user named leads, found without following a link that another user made.

Files that rdc writes on request lie anywhere, also in directories that others may write to, such as /tmp. The
kernel's fs.protected_symlinks guards only links that open(2) follows in sticky directories. rdc looks at each
link itself: one that belongs neither to the effective user nor to root is not followed, wherever it is. The
directory is held open, so what happens to the path afterwards redirects nothing.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

from rdc.errors import UsageError, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["OpenedPath", "make_directory"]

LINKS = 40
"""Links followed on one path, as in the kernel."""

_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_OWN_DESCRIPTORS = b"/proc/self/fd"


class OpenedPath:
    """A name in an open directory, which leads through no further link. A context manager."""

    __slots__ = ("descriptor", "directory", "is_magic", "name", "path")

    def __init__(self, path: bytes, *, make: int = 0, last: bool = True) -> None:
        """Open the directory that `path` leads to. `make`: the mode of missing directories, which are
        created; 0: they are not. `last=False`: a link at the path itself is not followed, so the name may be
        one.

        Raises OSError, and UsageError for a link of another user.
        """
        self.path = path
        self.directory = -1
        self.name = b""
        self.descriptor: int | None = None
        """The open descriptor of this process that the path means, such as 1 for /dev/stdout."""
        self.is_magic = False
        """Whether the name is a link of procfs, which only the kernel can follow."""
        if b"\0" in path:
            raise OSError(errno.EINVAL, "a name holds no NUL byte")
        try:
            self._walk(make, last)
        except BaseException:
            self.close()
            raise

    def look(self) -> os.stat_result | None:
        """Return the stat of the entry; None if nothing is there. Raises OSError."""
        if self.descriptor is not None:
            return os.fstat(self.descriptor)
        try:
            return os.stat(self.name, dir_fd=self.directory, follow_symlinks=self.is_magic)
        except FileNotFoundError:
            return None

    def close(self) -> None:
        fd, self.directory = self.directory, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> OpenedPath:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _walk(self, make: int, last: bool) -> None:
        todo = self._begin(self.path)
        links = 0
        while todo:
            name = todo.pop()
            if name in (b"", b"."):
                self.name = b"."  # a slash at the end of the path means a directory
                continue
            found = None if name == b".." else self._stat(name)
            if found is not None and stat.S_ISLNK(found.st_mode) and (todo or last):
                links += 1
                self._check_link(name, found, links)
                todo += self._followed(name, is_last=not todo)
            elif todo:
                if found is None and make and name != b"..":
                    with suppress(FileExistsError):
                        os.mkdir(name, make, dir_fd=self.directory)
                self._enter(os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=self.directory))
            else:
                self.name = name

    def _followed(self, name: bytes, *, is_last: bool) -> list[bytes]:
        """Follow a link. Return the components that are then to be walked, the first one last."""
        if not self._is_of_procfs():
            text = os.readlink(name, dir_fd=self.directory)
            return self._begin(text) if text.startswith(b"/") else _steps(text)
        if is_last:
            self._end_in_procfs(name)
        else:
            self._enter(os.open(name, _DIRECTORY, dir_fd=self.directory))
        return []

    def _begin(self, path: bytes) -> list[bytes]:
        """Enter the directory where `path` begins, and return its components, the first one last."""
        self._enter(os.open(b"/" if path.startswith(b"/") else b".", _DIRECTORY))
        return _steps(path)

    def _enter(self, fd: int) -> None:
        self.close()
        self.directory = fd

    def _stat(self, name: bytes) -> os.stat_result | None:
        try:
            return os.stat(name, dir_fd=self.directory, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def _check_link(self, name: bytes, found: os.stat_result, links: int) -> None:
        """Raise UsageError for a link of another user, and OSError after too many of them."""
        if links > LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if found.st_uid not in {os.geteuid(), 0}:
            shown = printable(self.path)
            raise UsageError(
                f"{shown}: cannot write it: {printable(name)} is a symbolic link of user {found.st_uid}, and"
                " rdc follows no link of another user; name the place that it leads to"
            )

    def _is_of_procfs(self) -> bool:
        """Return whether links of the directory lead where only the kernel knows, as /proc/self/fd/1."""
        try:
            return os.fstat(self.directory).st_dev == os.stat(b"/proc/self").st_dev
        except OSError:
            return False

    def _end_in_procfs(self, name: bytes) -> None:
        """End at a link of procfs that is the last component. Raises OSError for a file without a name."""
        self.name = name
        if name.isdigit() and os.path.samestat(os.fstat(self.directory), os.stat(_OWN_DESCRIPTORS)):
            self.descriptor = int(name)
            return
        self.is_magic = True
        found = self.look()
        if found is not None and stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is open in another process; name the file itself")


def make_directory(path: bytes, mode: int = 0o777) -> None:
    """Create a directory and those above it, as far as they are missing. Raises as OpenedPath does."""
    OpenedPath(os.path.join(path, b""), make=mode).close()


def _steps(path: bytes) -> list[bytes]:
    """Split at slashes; the first component comes last."""
    return path.split(b"/")[::-1]
