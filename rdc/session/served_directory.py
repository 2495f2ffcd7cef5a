"""Confines a peer to one directory: a daemon's module, or the root of an ssh key."""

from __future__ import annotations

import contextlib
import errno
import os

from rdc.errors import ExitCode, FileError, RdcError, TrustError, printable
from rdc.files.base.append_only import MadeEntries
from rdc.files.base.own_directories import lies_in_own_directory
from rdc.files.base.temporary_names import stands_for_reserved
from rdc.files.root.root import Root, WritePolicy
from rdc.model.entries import Kind
from rdc.session.access import Access, granted_options
from rdc.session.serve import Admitted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.files.base.write_quota import WriteQuota
    from rdc.protocol.messages import Open
    from rdc.session.serve import Admission

__all__ = ["KEY_TITLE", "ServedDirectory", "admission", "open_served"]

KEY_TITLE = "the served directory"
"""`Access.title` for the root of a key."""

_KEY_LABEL = b"/"
"""The root of a key appears as "/" in messages to its peer."""


def open_served(path: bytes, title: str) -> int:
    """Opens the directory at an absolute path without ".." and without following a link.

    Returns an O_PATH descriptor. Raises RdcError (exit code 11). Its text names no path of this machine,
    because it goes to the peer.
    """
    try:
        directory = Root.open(b"/").directory(path.strip(b"/"))
    except FileError as error:
        raise RdcError(
            f"{title} is not available: its directory is missing, or a link took its place",
            code=ExitCode.FILE_IO,
        ) from error
    return os.dup(directory.fd)


def admission(path: bytes, access: Access) -> Admission:
    """Makes the Admission of a peer that is confined to the directory at `path`; see `open_served`.

    The directory is opened once per session and stays open until the process ends. If another directory takes
    its path meanwhile, the session goes on in the old one.
    """

    def admit(open_: Open) -> Admitted:
        options = granted_options(open_, access)
        top = open_served(path, access.title)
        site = ServedDirectory(lambda: os.dup(top), access, _KEY_LABEL)
        return Admitted(site, open_.path, options, uses_content=not access.write_only)

    return admit


class ServedDirectory:
    """Resolves paths below one directory, component by component and never through a link.

    Descriptors decide what a path names. A link that another peer puts in the way meanwhile is therefore
    refused like an older one. An absolute path begins at the directory, too.
    """

    def __init__(
        self, open_top: Callable[[], int], access: Access, label: bytes, allowance: WriteQuota | None = None
    ) -> None:
        """`open_top`: returns an O_PATH descriptor of the directory, which the caller closes, or raises
        RdcError. `label`: the directory's name in messages. `allowance`: the quota for writes below it."""
        self._open_top = open_top
        self._access = access
        self._label = label
        self._allowance = allowance
        self._top().close()

    def _top(self, made: MadeEntries | None = None) -> Root:
        return Root(self._open_top(), self._label, writes=WritePolicy(quota=self._allowance, made=made))

    def open(self, path: bytes, *, create: bool = False, writable: bool = False, mode: int = 0o777) -> Root:
        inner = self._inner(path)
        # Entries that an earlier Root made count as existing for this one.
        made = MadeEntries() if self._access.append_only else None
        with contextlib.closing(self._top(made)) as top:
            if inner and top.kind(inner) is None:
                if not create:
                    raise top.refused(
                        inner,
                        "open it",
                        expected="a directory",
                        found="nothing",
                        advice="check the spelling and run again",
                    )
                top.make_directory(inner, mode)
            fd = os.dup(top.directory(inner).fd)
        if inner and lies_in_own_directory(fd):
            os.close(fd)
            raise self._kept(path)
        label = self._label.rstrip(b"/") + b"/" + inner if inner else self._label
        root = Root(fd, label, writes=WritePolicy(quota=self._allowance, made=made))
        if writable and os.fstatvfs(fd).f_flag & os.ST_RDONLY:
            raise root.failure(OSError(errno.EROFS, ""), b"", "write below it")
        return root

    def open_base(self) -> Root:
        """The directory itself."""
        return self.open(b"")

    def below_base(self, path: bytes) -> bytes:
        """`path` relative to the directory. Raises FileError for '..'."""
        return self._inner(path)

    def beside(self, path: bytes, other: bytes) -> bytes:
        """The path that `other` means relative to the directory at `path`, by the text of both.

        No link is ever followed below the served directory, so '..' means the directory that the text has.
        """
        inner: list[bytes] = []
        for name in (other if other.startswith(b"/") else path + b"/" + other).split(b"/"):
            if name == b"..":
                if not inner:
                    shown = printable(other)
                    raise TrustError(f"{shown} leads out of {self._access.title}: name a directory inside it")
                inner.pop()
            elif name not in (b"", b"."):
                inner.append(name)
        return b"/".join(inner)

    def top(self) -> Root:
        return self._top()

    @property
    def title(self) -> str:
        return self._access.title

    def has(self, path: bytes) -> bool:
        """Whether anything is at `path`."""
        return self._kind(path) is not None

    def has_directory(self, path: bytes) -> bool:
        """Whether a directory is at `path`."""
        return self._kind(path) is Kind.DIRECTORY

    def is_bare(self, path: bytes) -> bool:
        """Whether `path` is missing or an empty directory."""
        kind = self._kind(path)
        if kind is not Kind.DIRECTORY:
            return kind is None
        try:
            with contextlib.closing(self._top()) as top:
                fd = os.open(
                    b".",
                    os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC,
                    dir_fd=top.directory(self._inner(path)).fd,
                )
        except (FileError, OSError):
            return False
        try:
            with os.scandir(fd) as entries:
                return next(entries, None) is None
        finally:
            os.close(fd)

    def _kind(self, path: bytes) -> Kind | None:
        inner = self._inner(path)
        if not inner:
            return Kind.DIRECTORY
        try:
            with contextlib.closing(self._top()) as top:
                return top.kind(inner)
        except FileError:
            return None  # a link or a file is in the way: opening the path reports it

    def _kept(self, path: bytes) -> FileError:
        shown = printable(self._label.rstrip(b"/") + b"/" + path)
        return FileError(path, f"{shown}: expected a path, found a name that rdc keeps for itself")

    def _inner(self, path: bytes) -> bytes:
        """`path` relative to the directory. Raises FileError for '..' and for reserved names."""
        components = [name for name in path.split(b"/") if name not in (b"", b".")]
        if b".." in components:
            shown = printable(self._label.rstrip(b"/") + b"/" + path)
            raise FileError(path, f"{shown}: expected a path inside {self._access.title}, found '..' in it")
        if any(map(stands_for_reserved, components)):
            raise self._kept(path)
        return b"/".join(components)
