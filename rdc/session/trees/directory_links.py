"""Has a destination take its symlinks to directories for these directories, where the source has directories.

Only links that lead to a directory of the destination's own tree are followed. Others stay, and what would be
below them is named, since no path leads there. A link counts as it is when its directory is compared, before
anything in there changes. So no link that the source sends in a run is followed in that run.
"""

from __future__ import annotations

import os

from rdc.errors import FileError, printable
from rdc.files.root.followed_links import FollowedLinks, UnfollowedError
from rdc.files.root.listing_view import restated
from rdc.files.root.root import Root
from rdc.lean.records import dataclass, replace
from rdc.model.entries import Kind, Listed, Listing
from rdc.model.options import LinkChoice

__all__ = ["DirectoryLinks", "follow_directory_links"]


class _Reached(FollowedLinks):
    """Where paths lead through the links that were followed. It shows nothing by itself."""

    def shown(self, root: object, path: bytes, listed: Listed) -> Listed:
        return listed


@dataclass(frozen=True, slots=True)
class DirectoryLinks:
    """The links of one run."""

    root: Root
    links: FollowedLinks

    def existing(self, path: bytes, wanted: Listing, existing: Listing) -> Listing:
        """The destination's entries of one directory, in which links are directories where `wanted`, the
        source's entries, has directories. Raises RdcError."""
        if not existing.targets:
            return existing
        directories = {wanted.names[row] for row in wanted.rows_of(Kind.DIRECTORY)}
        stats: dict[int, os.stat_result] = {}
        for row, target in existing.links().items():
            name = existing.names[row]
            if name in directories:
                try:
                    found = self.links.follow(self.root, path, name, target)
                except UnfollowedError:
                    # A directory that cannot be opened, since no path leads through a link: it is named.
                    found = os.stat(b".", dir_fd=self.root.directory(path).fd)
                if found is not None:
                    stats[row] = found
        return restated(existing, stats) if stats else existing


def follow_directory_links(root: Root) -> DirectoryLinks:
    """Returns what goes through such links below `root`; its own root does. Raises FileError."""
    top = Root(os.open(b".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=root.fileno()), root.label)
    try:
        links = _Reached(root, top, LinkChoice(directories=True), only=None)
    except (OSError, UnfollowedError) as error:
        top.release()
        raise FileError(b"", f"{printable(root.shown(b''))}: cannot keep its links: {error}") from error
    return DirectoryLinks(root.having(replace(root.reads, followed=links)), links)
