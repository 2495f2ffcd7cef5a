"""The source's side of a watch that was dialled: it follows a directory for a remote user."""

from __future__ import annotations

from rdc.model.watch import WatchOptions
from rdc.session.far.far_host import Traffic
from rdc.tree.filter_list import filter_list
from rdc.watching.follower import Follower
from rdc.watching.listeners import FarUser
from rdc.watching.origin import Origin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.session.runtime.commands import Conversation
    from rdc.session.serve import FollowedTree

__all__ = ["following"]


def following(tree: FollowedTree) -> Conversation[None]:
    """The rest of a session after the far side's Follow."""
    options, mark = tree.options, tree.follow.origin
    origin = Origin(tree.path, options, tree.site, name=tree.name, mark=mark)
    follower = Follower(
        origin,
        WatchOptions(options, tree.follow.rescan),
        filter_list(options.rules),
        tree.secret,
        tree.signer,
        FarUser(),
        lambda: Traffic(0, 0),  # the user's side counts
        again=bool(mark),
    )
    try:
        yield from follower.run(_nothing())
    finally:
        follower.close()
        origin.close()


def _nothing() -> Conversation[None]:
    """An empty opening: Opened came before Follow."""
    yield from ()
