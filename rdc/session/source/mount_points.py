"""Announces the directories of the source that are on other file systems and were not entered."""

from __future__ import annotations

from collections import deque

from rdc.errors import ExitCode, RdcError
from rdc.limits.sessions import MOUNT_POINTS
from rdc.limits.wire import ITEMS_BYTES, ITEMS_PER_MESSAGE
from rdc.protocol.messages import MountPoints
from rdc.session.runtime.commands import Send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.session.runtime.commands import Conversation
    from rdc.session.trees.mount_boundary import MountBoundary

__all__ = ["send_mount_points"]


def send_mount_points(boundary: MountBoundary, round_: int) -> Conversation[None]:
    """Sends the mount points that `boundary` did not let a walk enter. Raises RdcError if there are too
    many."""
    left = deque(boundary.beyond)
    if len(left) > MOUNT_POINTS:
        raise RdcError(
            f"{len(left)} directories of the source lie on other file systems,"
            f" {MOUNT_POINTS} are the most; exclude some",
            code=ExitCode.PARTIAL,
        )
    while left:
        paths, size = [left.popleft()], 0
        while left and len(paths) < ITEMS_PER_MESSAGE:
            size += len(paths[-1]) + 1
            if size + len(left[0]) + 1 > ITEMS_BYTES:
                break
            paths.append(left.popleft())
        yield Send(MountPoints(tuple(paths)), round_)
