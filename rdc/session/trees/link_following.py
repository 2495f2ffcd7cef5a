"""Takes symlinks for what they lead to."""

from __future__ import annotations

import os

from rdc.errors import FileError, printable
from rdc.files.root.followed_links import FollowedLinks, UnfollowedError
from rdc.lean.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.root.root import Root
    from rdc.model.options import LinkChoice
    from rdc.session.trees.sites import Site

__all__ = ["follow_links", "links_from"]


def follow_links(
    root: Root, only: bytes | None, choice: LinkChoice, site: Site, destination: bytes | None
) -> Root:
    """Returns `root` as it follows the chosen links, to referents that `site` may read. `only`: the one entry
    that is synced. `destination`: its path, if it is on this machine.

    Raises FileError if `only` is a link that cannot be followed.
    """
    links = links_from(root, choice, site, destination, only=only)
    try:
        if only is not None:
            links.follow_top(root, only)
    except UnfollowedError as error:
        links.top.release()
        raise _unfollowed(root, only, error) from error
    return root.having(replace(root.reads, followed=links))


def links_from(
    root: Root, choice: LinkChoice, site: Site, destination: bytes | None, *, only: bytes | None = None
) -> FollowedLinks:
    """What follows the chosen links below `root`; see `follow_links`. Raises FileError."""
    top = site.top()
    try:
        return FollowedLinks(
            root,
            top,
            choice,
            only=only,
            title=site.title,
            destination=None if destination is None else os.path.realpath(destination),
        )
    except (OSError, UnfollowedError) as error:
        top.release()
        raise _unfollowed(root, only, error) from error


def _unfollowed(root: Root, only: bytes | None, error: Exception) -> FileError:
    return FileError(b"", f"{printable(root.shown(only or b''))}: cannot follow its links: {error}")
