"""Has a source take symlinks for what they lead to."""

from __future__ import annotations

import os

from rdc.errors import FileError, printable
from rdc.files.root.followed_links import FollowedLinks, UnfollowedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.root.root import Root
    from rdc.model.symlinks import LinkChoice
    from rdc.session.trees.destination_root import Site

__all__ = ["follow_links"]


def follow_links(
    root: Root, only: bytes | None, choice: LinkChoice, site: Site, destination: bytes | None
) -> None:
    """Has `root` follow the chosen links, to referents that `site` may read. `only`: the one entry that is
    synced. `destination`: its path, if it is on this machine.

    Raises FileError if `only` is a link that cannot be followed.
    """
    top = site.top()
    try:
        links = FollowedLinks(
            root,
            top,
            choice,
            only=only,
            title=site.title,
            destination=None if destination is None else os.path.realpath(destination),
        )
        root.followed, root.views = links, (links, *root.views)
        if only is not None:
            links.follow_top(root, only)
    except (OSError, UnfollowedError) as error:
        top.release()
        raise FileError(
            b"", f"{printable(root.shown(only or b''))}: cannot follow its links: {error}"
        ) from error
