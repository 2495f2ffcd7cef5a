"""Resolves the paths of a session: anywhere on this machine, or below a directory that confines a peer."""

from __future__ import annotations

import contextlib
import errno
import os
from array import array

from rdc.errors import FileError, ProtocolError, TrustError, printable
from rdc.files.base.paths import join, lies_in_own_directory, stands_for_reserved
from rdc.files.base.syscalls import process_umask
from rdc.files.root.policies import MadeEntries, WriteQuota
from rdc.files.root.root import Root, WritePolicy
from rdc.lean.records import replace
from rdc.lean.typed import Protocol
from rdc.model.entries import Kind, Listing, Metadata
from rdc.protocol.messages import Start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from rdc.model.preserved import Preserved
    from rdc.protocol.connection import Received
    from rdc.tree.filters import FilterList
    from rdc.tree.selection import Selection


class Site(Protocol):
    """Resolves the paths of a session: on the whole machine, or below a served directory."""

    def open(self, path: bytes, *, create: bool = False, writable: bool = False, mode: int = 0o777) -> Root:
        """Open a directory, like Root.open."""

    def open_base(self) -> Root:
        """Open the directory that every `below_base` is below."""

    def below_base(self, path: bytes) -> bytes:
        """Return where the directory at `path` is below `open_base`, by no symlink."""

    def beside(self, path: bytes, other: bytes) -> bytes:
        """Return the path that `other` means relative to the directory at `path`. Raises TrustError if that
        lies outside of what is served."""

    def has(self, path: bytes) -> bool:
        """Return whether anything is at `path`, a dangling symlink included."""

    def has_directory(self, path: bytes) -> bool:
        """Return whether `path` is a directory that `open` can open."""

    def is_bare(self, path: bytes) -> bool:
        """Return whether `path` is missing or an empty directory, so that all entries will be new."""

    def top(self) -> Root:
        """Return the directory outside of which nothing is read, opened for the caller."""

    @property
    def title(self) -> str:
        """The name of `top` in messages; empty where it is the whole machine."""


class _Anywhere:
    """Resolves paths on the whole machine and follows symlinks."""

    def open(self, path: bytes, *, create: bool = False, writable: bool = False, mode: int = 0o777) -> Root:
        return Root.open(path, create=create, writable=writable, mode=mode)

    def open_base(self) -> Root:
        return Root.open(b"/")

    def below_base(self, path: bytes) -> bytes:
        return os.path.realpath(path).strip(b"/")

    def beside(self, path: bytes, other: bytes) -> bytes:
        if other.startswith(b"../") and not os.path.lexists(path):
            # In a dry run the directory is not made, so the kernel cannot resolve a way out of it.
            return os.path.join(parent_of(path), other[3:])
        return os.path.join(path, other)

    def has(self, path: bytes) -> bool:
        return os.path.lexists(path)

    def has_directory(self, path: bytes) -> bool:
        return os.path.isdir(path)

    def is_bare(self, path: bytes) -> bool:
        try:
            with os.scandir(path) as entries:
                return next(entries, None) is None
        except FileNotFoundError:
            return True
        except OSError:
            return False

    def top(self) -> Root:
        return Root.open(b"/")

    title = ""


ANYWHERE: Site = _Anywhere()


def parent_of(path: bytes) -> bytes:
    """Return the directory that `path` is in, by its text."""
    return os.path.dirname(path.rstrip(b"/")) or b"."


def served_path(path: bytes, site: Site) -> bytes | None:
    """Return the absolute path within the served directory that `path` stands for; None on the whole
    machine."""
    return None if site is ANYWHERE else os.path.normpath(b"/" + path)


class ServedDirectory:
    """Resolves paths below one directory, component by component and never through a link.

    Descriptors decide what a path names. A link that another peer puts in the way meanwhile is therefore
    refused like an older one. An absolute path begins at the directory, too.
    """

    def __init__(
        self,
        open_top: Callable[[], int],
        title: str,
        label: bytes,
        allowance: WriteQuota | None = None,
        *,
        append_only: bool = False,
    ) -> None:
        """`open_top`: returns an O_PATH descriptor of the directory, which the caller closes, or raises
        RdcError. `title`, `label`: the directory's name in sentences and in paths. `allowance`: the quota for
        writes below it. `append_only`: its entries do not change, but for those that the session made."""
        self._open_top = open_top
        self.title = title
        self._append_only = append_only
        self._label = label
        self._allowance = allowance
        self._top().close()

    def _top(self, made: MadeEntries | None = None) -> Root:
        return Root(self._open_top(), self._label, writes=WritePolicy(quota=self._allowance, made=made))

    def open(self, path: bytes, *, create: bool = False, writable: bool = False, mode: int = 0o777) -> Root:
        inner = self._inner(path)
        # Entries that an earlier Root made count as existing for this one.
        made = MadeEntries() if self._append_only else None
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
        """Return the directory itself."""
        return self.open(b"")

    def below_base(self, path: bytes) -> bytes:
        """Return `path` relative to the directory. Raises FileError for '..'."""
        return self._inner(path)

    def beside(self, path: bytes, other: bytes) -> bytes:
        """Return the path that `other` means relative to the directory at `path`, by the text of both.

        No link is ever followed below the served directory, so '..' means the directory that the text has.
        """
        inner: list[bytes] = []
        for name in (other if other.startswith(b"/") else path + b"/" + other).split(b"/"):
            if name == b"..":
                if not inner:
                    shown = printable(other)
                    raise TrustError(f"{shown} leads out of {self.title}: name a directory inside it")
                inner.pop()
            elif name not in (b"", b"."):
                inner.append(name)
        return b"/".join(inner)

    def top(self) -> Root:
        return self._top()

    def has(self, path: bytes) -> bool:
        """Return whether anything is at `path`."""
        return self._kind(path) is not None

    def has_directory(self, path: bytes) -> bool:
        """Return whether a directory is at `path`."""
        return self._kind(path) is Kind.DIRECTORY

    def is_bare(self, path: bytes) -> bool:
        """Return whether `path` is missing or an empty directory."""
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
        """Return `path` relative to the directory. Raises FileError for '..' and for reserved names."""
        components = [name for name in path.split(b"/") if name not in (b"", b".")]
        if b".." in components:
            shown = printable(self._label.rstrip(b"/") + b"/" + path)
            raise FileError(path, f"{shown}: expected a path inside {self.title}, found '..' in it")
        if any(map(stands_for_reserved, components)):
            raise self._kept(path)
        return b"/".join(components)


# The error for content that does not match its digest. The caller then tries another way to get it.


class MismatchError(FileError):
    """Bytes do not match their digest: a short digest collided, or the base or the source changed."""


# Checks that a source announces only what it was asked for and what the filter rules include.
#
# A source that could choose other names would choose what is written at the destination, and with --delete
# what is deleted there. It could send a key instead of a document, a whole directory instead of one entry, or
# keys that the user excluded.


def entry_of(path: bytes) -> bytes:
    """Return the one entry that a source's path means, by rsync's rule.

    It is the last component. b"" means all entries of a directory: the last component is empty, "." or "..".
    """
    name = os.path.basename(path)
    return b"" if name in (b".", b"..") else name


def announced(received: Received | None, asked: bytes | None) -> tuple[Start, int]:
    """Return the source's Start and the round to go on with.

    `asked`: entry_of() the requested path; None if the source dialled and decides itself. Raises
    ProtocolError for any other message or entry.
    """
    if received is None or not isinstance(received.message, Start):
        raise ProtocolError("expected Start")
    if asked is not None and received.message.only != asked:
        only = received.message.only
        raise ProtocolError(f"{_named(asked)} was asked for, and the remote side tells of {_named(only)}")
    return received.message, received.round + 1


def check_announced(names: Collection[bytes], only: bytes) -> None:
    """Raise ProtocolError if `names`, from the source's root directory, include another name than `only`.

    `only` is the entry that Start announced; b"" allows all names.
    """
    for name in names if only else ():
        if name != only:
            raise ProtocolError(f"the remote side tells of {_named(name)}, {_named(only)} was announced")


def check_selected(directory: bytes, names: Collection[bytes], selection: Selection) -> None:
    """Raise ProtocolError if `names`, from a directory of the source, include one that is not selected."""
    taken = selection.names(directory)
    if taken is None:
        return
    for name in names:
        if name not in taken:
            shown = printable(join(directory, name))
            raise ProtocolError(f"the remote side tells of '{shown}', which was not asked for")


def check_included(
    directory: bytes, listing: Listing, filters: FilterList, selection: Selection | None = None
) -> None:
    """Raise ProtocolError if the rules exclude an entry of `directory`. A directory above a path of
    `selection` may arrive even so."""
    kinds = listing.kinds
    for row, name in enumerate(listing.names):
        path = join(directory, name)
        if selection is None or not selection.is_above(path):
            check_path(path, kinds[row] == Kind.DIRECTORY, filters)


def check_path(path: bytes, is_directory: bool, filters: FilterList) -> None:
    """Like check_included for one entry."""
    if filters.excluded(path, is_directory):
        raise ProtocolError(f"the remote side tells of '{printable(path)}', which a filter rule leaves out")


def _named(only: bytes) -> str:
    return f"'{printable(only)}'" if only else "the content of a directory"


def with_made_modes(listing: Listing, preserved: Preserved) -> Listing:
    """Return an announced listing with the modes that its entries get if they are new."""
    if preserved.keeps_all_modes:
        return listing
    umask = process_umask()
    modes = (
        preserved.made_mode(kind, mode, umask)
        for kind, mode in zip(listing.kinds, listing.modes, strict=True)
    )
    return replace(listing, modes=array("H", modes))


def with_made_mode(metadata: Metadata, kind: Kind, preserved: Preserved) -> Metadata:
    """Return the mode of one entry."""
    if preserved.keeps_all_modes:
        return metadata
    return replace(metadata, mode=preserved.made_mode(kind, metadata.mode, process_umask()))
