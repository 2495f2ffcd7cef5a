"""FollowedLinks: the symlinks of a source that are taken for what they lead to, as with --copy-links.

A Root follows no link. So a link is followed once, when its directory is listed, and the path without links
that it leads to is its referent. From then on a path at or below the link is opened at its referent, again
without following a link: whoever replaces the link, or a directory on the way, changes nothing but what
fails.
"""

from __future__ import annotations

import os
import stat
from functools import partial

from rdc.errors import ExitCode, printable
from rdc.files.base.paths import (
    has_proc,
    in_directory,
    join,
    lies_in_own_directory,
    path_of_directory,
    refused_component,
)
from rdc.files.root.listing_view import with_stats
from rdc.model.entries import Kind, Listed, strings
from rdc.model.options import LinkChoice, leads_outside
from rdc.progress import Problem, silent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.files.root.policies import Confined
    from rdc.progress import Reporter


LINKS_IN_A_PATH = 40
"""Followed links in one path; as many as the kernel follows in one."""


class UnfollowedError(Exception):
    """Why a link is not followed, as the end of a message."""


class FollowedLinks:
    """A view of a source's entries in which chosen symlinks are what they lead to.

    A link that leads to nothing, back to a directory above it, to what may not be read, or to the destination
    is reported and left out.
    """

    def __init__(
        self,
        root: Confined,
        top: Confined,
        choice: LinkChoice,
        *,
        only: bytes | None,
        title: str = "",
        destination: bytes | None = None,
    ) -> None:
        """`top`: nothing outside of it is read, and errors call it `title`. `only`: the one entry of `root`
        that counts. `destination`: its path without links, if it is on this machine. Raises OSError."""
        self.top = top
        self._on_problem: Reporter = silent
        self._excluded: Callable[[bytes, bool], bool] | None = None
        self._choice = choice
        self._only = only
        self._title = title
        self._top_path = path_of_directory(top.fileno())
        self._base = self._below_top(path_of_directory(root.fileno()))
        self._destination = destination
        self._referents: dict[bytes, bytes] = {}
        """By path of a followed link: its referent, relative to `top`."""

    def begin(self, on_problem: Reporter, excluded: Callable[[bytes, bool], bool]) -> None:
        """Forget all links that were followed, before a new walk. `on_problem` takes what is left out,
        unless filter rules leave it out: `excluded` knows."""
        self._referents.clear()
        self._on_problem, self._excluded = on_problem, excluded

    def referent(self, path: bytes) -> bytes | None:
        """Return where the entry at `path` is below `top`, if its path leads through a followed link."""
        above = path
        while above and self._referents:
            found = self._referents.get(above)
            if found is not None:
                return _joined(found, path[len(above) + 1 :])
            above = above.rpartition(b"/")[0]
        return None

    def follow_top(self, root: Confined, name: bytes) -> None:
        """Follow the entry `name` of `root` now, if it is a link. Raises UnfollowedError, RdcError."""
        directory = root.directory(b"")
        try:
            target = os.readlink(name, dir_fd=directory.fd)
        except OSError:
            return  # no link
        self._followed(directory.fd, b"", name, target)

    def follow(
        self, root: Confined, path: bytes, name: bytes, target: bytes, *, entry: bytes | None = None
    ) -> os.stat_result | None:
        """Follow one link of the directory at `path` now. Return the stat of what it leads to; None: it is no
        chosen link. `entry`: its path in the tree that is shown, if that is another one. Raises
        UnfollowedError for one that leads where it may not, RdcError."""
        return self._followed(root.directory(path).fd, path, name, target, entry)

    def report(self, entry: bytes, target: bytes, reason: UnfollowedError) -> None:
        """Report a link that is left out, unless filter rules leave it out. `entry`: its path in the tree
        that is shown."""
        if self._excluded is None or not self._excluded(entry, False):
            text = f"{printable(entry)}: skipped, {reason}: {printable(target)}"
            self._on_problem(Problem(ExitCode.PARTIAL, entry, text))

    def shown(self, root: Confined, path: bytes, listed: Listed) -> Listed:
        """Return the entries with what the chosen links lead to; see LinkView."""
        return self.shown_as(path, root, path, listed)

    def shown_as(self, shown: bytes, root: Confined, path: bytes, listed: Listed) -> Listed:
        """Return `shown` for the directory of `root` at `path`, which the tree has at the path `shown`."""
        listing = listed.listing
        if Kind.SYMLINK not in listing.kinds:
            return listed
        names, targets = strings(listing.names), strings(listing.targets)
        directory = root.directory(path, reading=True)
        stats: dict[int, os.stat_result] = {}
        dropped: set[int] = set()
        for row, target in zip(listing.rows_of(Kind.SYMLINK), targets, strict=True):
            if not path and self._only not in (None, names[row]):
                continue
            try:
                found = self._followed(directory.fd, path, names[row], target, join(shown, names[row]))
            except UnfollowedError as reason:
                dropped.add(row)
                self.report(join(shown, names[row]), target, reason)
                continue
            if found is not None:
                stats[row] = found
        return with_stats(listed, stats, dropped) if stats or dropped else listed

    def _followed(
        self, directory: int, path: bytes, name: bytes, target: bytes, shown: bytes | None = None
    ) -> os.stat_result | None:
        """Follow a link if it is a chosen one. Return the stat of what it leads to; None: it stays a link.
        `shown`: its path in the tree that is shown.

        Raises UnfollowedError.
        """
        entry = join(path, name)
        self._referents.pop(entry, None)
        inner = entry if shown is None else shown
        certain = self._choice.every or (self._choice.unsafe and leads_outside(target, inner))
        if not (certain or self._choice.directories):
            return None
        try:
            fd = os.open(name, os.O_PATH | os.O_CLOEXEC, dir_fd=directory)
        except OSError as error:
            if not certain:
                return None
            reason = "the link leads to nothing" if isinstance(error, FileNotFoundError) else error.strerror
            raise UnfollowedError(reason) from error
        try:
            found = os.fstat(fd)
            is_directory = stat.S_ISDIR(found.st_mode)
            if not (certain or is_directory):
                return None
            referent = self._below_top(_path_of(fd, directory, name))
            if refused_component(referent) is not None or (is_directory and lies_in_own_directory(fd)):
                raise UnfollowedError("the link leads to what rdc keeps for itself")
        finally:
            os.close(fd)
        if is_directory:
            self._check_directory(path, referent)
        self._referents[entry] = referent
        return found

    def _below_top(self, path: bytes) -> bytes:
        """Return an absolute path relative to `top`. Raises UnfollowedError if it is outside."""
        top = self._top_path.rstrip(b"/") + b"/"
        if path + b"/" == top:
            return b""
        if not path.startswith(top):
            raise UnfollowedError(f"the link leads out of {self._title or 'what may be read'}")
        return path[len(top) :]

    def _check_directory(self, path: bytes, referent: bytes) -> None:
        """Raise UnfollowedError if walking the directory at `referent` would lead back to itself.

        Each directory on the way from the root to `path` lies at or above the end of one piece of `path`
        between two followed links. So a directory that is at or above none of these ends was not entered yet,
        and no walk is endless.
        """
        if self._destination is not None:
            absolute = self._top_path.rstrip(b"/") + b"/" + referent
            if _holds(absolute, self._destination) or _holds(self._destination, absolute):
                raise UnfollowedError("the link leads to the destination")
        ends, above = [self._referent_of_any(path)], path
        while above:
            parent = above.rpartition(b"/")[0]
            if above in self._referents:
                ends.append(self._referent_of_any(parent))
            above = parent
        if len(ends) > LINKS_IN_A_PATH or any(_holds(referent, end) for end in ends):
            raise UnfollowedError("the link leads back to a directory above it")

    def _referent_of_any(self, path: bytes) -> bytes:
        """Return where the entry at `path` is below `top`, followed or not."""
        referent = self.referent(path)
        return _joined(self._base, path) if referent is None else referent


def _joined(parent: bytes, path: bytes) -> bytes:
    return parent + b"/" + path if parent and path else parent or path


def _holds(directory: bytes, path: bytes) -> bool:
    """Return whether `path` is `directory` or below it; b"" holds everything."""
    within = directory.rstrip(b"/") + b"/"
    return within == b"/" or (path + b"/").startswith(within)


def _path_of(fd: int, directory: int, name: bytes) -> bytes:
    """Return the absolute path, free of links, of what is open at `fd`: what the link `name` of an open
    directory leads to. Raises OSError."""
    if has_proc():
        path = os.readlink(b"/proc/self/fd/%d" % fd)
    else:
        path = in_directory(directory, partial(os.path.realpath, name))
        if not os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(fd)):
            raise UnfollowedError("the link was changed meanwhile")
    if not path.startswith(b"/"):
        raise UnfollowedError("the link leads to no file or directory")
    return path
