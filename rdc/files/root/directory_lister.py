"""DirectoryLister: the operations of Root that list one directory."""

from __future__ import annotations

import errno
import os

from rdc.errors import RdcError
from rdc.files.base.relative_path import check_path
from rdc.files.root.confined_access import ConfinedAccess
from rdc.files.root.lister import list_directory
from rdc.files.root.listing_reference import look_at
from rdc.limits.paths import DIRECTORY_BYTES, NAME_BYTES, PATH_DEPTH
from rdc.model.entries import Kind
from rdc.model.listed import BadCall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.depth.depth import Looking
    from rdc.model.entries import Listing
    from rdc.model.listed import BadEntry, Listed

__all__ = ["DirectoryLister"]

_BOUNDS = {
    errno.EOVERFLOW: (
        f"names and metadata of at most {DIRECTORY_BYTES >> 20} MiB",
        "more entries than that",
        "move some of them to a directory of their own, then run again",
    ),
}
"""Bounds of a directory, by the errno that reports them: expected, found, advice."""


class DirectoryLister(ConfinedAccess):
    """Lists directories. Each listing opens its directory from the root, because walks open each one once."""

    only: bytes | None = None
    """The one entry of the root that a run is about, if there is one. Where the root may be entered and not
    listed, it is looked at by its name."""

    lists_root = True
    """Whether the root is listed for `only`, if it may be: for rdc's own temporaries there, and for names
    that the file system takes for the same one."""

    def list(self, path: bytes) -> Listing:
        """Return the entries of `listed` alone, unpacked: for who need not know what else is there."""
        return self.listed(path).unpacked()

    def listed(self, path: bytes) -> Listed:
        """Return what a directory is shown to have, sorted by name bytes. Raises RdcError."""
        return self.viewed(path, self.list_unviewed(path))

    @property
    def lists_ahead(self) -> bool:
        """Whether threads may list several directories at a time: none depends on what others showed."""
        return self.followed is None

    def list_unviewed(
        self, path: bytes, *, limit: int = DIRECTORY_BYTES, looking: Looking | None = None
    ) -> Listed:
        """Return what `listed` returns before `viewed` sees it.

        `limit`: bytes, as DIRECTORY_BYTES counts them; more are a FileError. `looking`: how many entries
        are looked at at a time; None: as `depths` has it. Threads may call it.
        """
        top, below = self._directory.fd, path
        if self.followed is not None and (referent := self.followed.referent(path)) is not None:
            top, below = self.followed.top.fileno(), referent
        if not path and self.only is not None and not self.lists_root:
            return self._named(self.only)
        try:
            # A shorter path is within both bounds of paths, so it needs no check.
            if len(below) > PATH_DEPTH:
                check_path(below)
            # One call opens and lists: a walk does little else.
            return list_directory(top, below, limit=limit, depth=looking or self.depths.looking)
        except OSError as error:
            check_path(below)
            if not path and self.only is not None and error.errno == errno.EACCES:
                return self._named(self.only)
            raise self._listing_failure(error, path) from error

    def _named(self, name: bytes) -> Listed:
        """Return the root as if it had this entry alone. Raises RdcError."""
        try:
            return look_at(name, self._directory.fd)
        except OSError as error:
            raise self._listing_failure(error, b"") from error

    def viewed(self, path: bytes, listed: Listed) -> Listed:
        """Return what is shown of a directory, where that differs from what is there."""
        for view in self.views:
            listed = view.shown(self, path, listed)
        if self.shown_nodes and Kind.SPECIAL in listed.listing.kinds:
            from rdc.files.root.node_kinds import with_node_kinds

            listed = with_node_kinds(self, path, listed)
        return listed

    def unlisted(self, path: bytes, bad: BadEntry) -> RdcError:
        """Return the error of an entry that could not be looked at, whose path is `path`."""
        doing = "read the link" if bad.call is BadCall.READ_LINK else "look at it"
        if bad.call is BadCall.NAME:
            expected, found, advice = f"a name of at most {NAME_BYTES} bytes", "a longer one", "rename it"
        elif bad.call is BadCall.KIND:
            expected, found, advice = "a kind of entry that systems know", "another", "check the file system"
        else:
            return self.failure(OSError(bad.errno, os.strerror(bad.errno)), path, doing)
        return self.refused(path, doing, expected=expected, found=found, advice=f"{advice}, then run again")

    def _listing_failure(self, error: OSError, path: bytes) -> RdcError:
        if error.errno not in _BOUNDS:
            return self.failure(error, path, "list the directory", reading=True)
        expected, found, advice = _BOUNDS[error.errno]
        return self.refused(path, "list the directory", expected=expected, found=found, advice=advice)
