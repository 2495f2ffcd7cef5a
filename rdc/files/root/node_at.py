"""is_node: whether a path leads to a certain special file."""

from __future__ import annotations

import stat

from rdc.files.root.confined_access import stat_entry
from rdc.files.root.faked_listing import faked_at
from rdc.files.root.node_kinds import FORMAT_OF_KIND, node_of
from rdc.model.entries import DEVICES, Kind, device_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.root.confined_access import ConfinedAccess

__all__ = ["is_node"]


def is_node(root: ConfinedAccess, path: bytes, kind: Kind, number: int) -> bool:
    """Return whether the entry at `path` is a special file of that kind and device number, or stands for one
    (--fake-super). Raises FileError."""
    try:
        if not root.fakes:
            return node_of(root.perform(path, "look at it", stat_entry)) == (kind, number)
        faked = faked_at(root, path)
        if faked is None or stat.S_IFMT(faked.mode) != FORMAT_OF_KIND[kind]:
            return False
        return kind not in DEVICES or device_number(faked.major, faked.minor) == number
    except (KeyError, ValueError):
        return False  # no special file, or a device that no listing can have
