"""DirectoryLister: the operations of Root that list one directory."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

from rdc.errors import RdcError
from rdc.files.base.relative_path import check_path
from rdc.files.root.confined_access import ConfinedAccess
from rdc.files.root.packed_listing import (
    list_beneath,
    list_inodes_beneath,
    open_directory,
    read_packed,
    read_packed_inodes,
)
from rdc.limits.paths import (
    DIRECTORY_BYTES,
    NAME_BYTES,
    PATH_DEPTH,
)
from rdc.model.entries import Kind, Listing, PackedInodes, PackedListing
from rdc.typed import TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.depth.depth import Looking

__all__ = ["DirectoryLister"]

T = TypeVar("T")

_READ_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_BOUNDS = {
    errno.ENAMETOOLONG: (
        f"names of at most {NAME_BYTES} bytes",
        "a longer one",
        "rename it, then run again",
    ),
    errno.EOVERFLOW: (
        f"names and metadata of at most {DIRECTORY_BYTES >> 20} MiB",
        "more entries than that",
        "move some of them to a directory of their own, then run again",
    ),
}
"""Bounds of a directory, by the errno that reports them: expected, found, advice."""


class DirectoryLister(ConfinedAccess):
    """Lists directories. Each listing opens its directory from the root, because walks open each one once."""

    def list(
        self,
        path: bytes,
        *,
        skip_temporaries: bool = True,
        on_temporary: Callable[[bytes], None] | None = None,
    ) -> Listing:
        """Return what `list_packed` returns, unpacked.

        With skip_temporaries=False, reserved names are entries like any other.
        """
        taker = (on_temporary or _ignore) if skip_temporaries else None
        found = self._list(path, lambda fd: read_packed(fd, taker))
        return self.viewed(path, found, None)[0].unpacked()

    def list_packed(
        self, path: bytes, *, on_temporary: Callable[[bytes], None] | None = None
    ) -> PackedListing:
        """Return the entries of a directory, sorted by name bytes. Raises RdcError.

        Reserved names (rdc.files.base.temporary_names) are left out. `on_temporary` receives each of them, so
        that the caller can sweep them.
        """
        found, _ = self.list_unviewed(path, on_temporary or _ignore, inodes=False)
        return self.viewed(path, found, None)[0]

    @property
    def lists_ahead(self) -> bool:
        """Whether threads may list several directories at a time: none depends on what others showed."""
        return self.followed is None

    def list_unviewed(
        self,
        path: bytes,
        on_temporary: Callable[[bytes], None],
        *,
        inodes: bool,
        limit: int = DIRECTORY_BYTES,
        looking: Looking | None = None,
    ) -> tuple[PackedListing, PackedInodes | None]:
        """Return what `list_inodes` returns before `viewed` sees it. Inodes come only where they are wanted.

        `limit`: bytes, as DIRECTORY_BYTES counts them; more are a FileError. `looking`: how many entries
        are looked at at a time; None: as `depths` has it. Threads may call it.
        """
        depth = looking or self.depths.looking
        # A shorter path is within both bounds of paths, so it needs no check.
        if self.followed is not None or not path or len(path) > PATH_DEPTH:
            if inodes:
                return self._list(path, lambda fd: read_packed_inodes(fd, on_temporary, limit, depth))
            return self._list(path, lambda fd: read_packed(fd, on_temporary, limit, depth)), None
        try:
            # One call opens and lists: a walk does little else.
            if inodes:
                return list_inodes_beneath(self._directory.fd, path, on_temporary, limit, depth)
            return list_beneath(self._directory.fd, path, on_temporary, limit, depth), None
        except OSError as error:
            check_path(path)
            raise self._listing_failure(error, path) from error

    def list_inodes(
        self, path: bytes, *, on_temporary: Callable[[bytes], None] | None = None
    ) -> tuple[PackedListing, PackedInodes]:
        """Return what `list_packed` returns, and the inode behind each entry."""
        depth = self.depths.looking
        found, inodes = self._list(
            path, lambda fd: read_packed_inodes(fd, on_temporary or _ignore, DIRECTORY_BYTES, depth)
        )
        found, shown = self.viewed(path, found, inodes)
        return found, inodes if shown is None else shown

    def viewed(
        self, path: bytes, listing: PackedListing, inodes: PackedInodes | None
    ) -> tuple[PackedListing, PackedInodes | None]:
        """Return what is shown of a directory, where that differs from what is there."""
        for view in self.views:
            listing, inodes = view.shown(self, path, listing, inodes)
        if self.shown_nodes and Kind.SPECIAL in listing.kinds:
            from rdc.files.root.node_kinds import with_node_kinds

            listing = with_node_kinds(self, path, listing)
        return listing, inodes

    def _list(self, path: bytes, read: Callable[[int], T]) -> T:
        top, below = self._directory.fd, path
        if self.followed is not None and (referent := self.followed.referent(path)) is not None:
            top, below = self.followed.top.fileno(), referent
        try:
            if below:
                check_path(below)
                fd = open_directory(top, below)
            else:
                fd = os.open(b".", _READ_DIRECTORY, dir_fd=top)
            try:
                return read(fd)
            finally:
                os.close(fd)
        except OSError as error:
            raise self._listing_failure(error, path) from error

    def _listing_failure(self, error: OSError, path: bytes) -> RdcError:
        if error.errno not in _BOUNDS:
            return self.failure(error, path, "list the directory", reading=True)
        expected, found, advice = _BOUNDS[error.errno]
        return self.refused(path, "list the directory", expected=expected, found=found, advice=advice)


def _ignore(name: bytes) -> None:
    pass
