"""What of an entry may fail while its content arrives, and how a failure is taken."""

from __future__ import annotations

import errno
from enum import Enum

from rdc.lean.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

__all__ = ["STOPS_THE_RUN", "Attempt", "Shortfall", "Shortfalls", "strictly"]

STOPS_THE_RUN = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
"""Errors that concern the whole file system: no later entry would fare better."""


class Shortfall(Enum):
    """What failed. The values are the words of messages."""

    OWNER = "owner and group"
    MODE = "permissions"
    TIME = "modification time"
    SYMLINK = "symlink"
    NODE = "special file"


@dataclass(frozen=True, slots=True)
class Shortfalls:
    """The entries for which one thing failed."""

    count: int
    path: bytes
    """The first of them."""
    error: int
    """Its errno; 0: the call succeeded and had no effect."""


Attempt: TypeAlias = "Callable[[Shortfall, Callable[[], None]], bool]"
"""Calls the function. Returns False if it failed and the failure was noted. Raises OSError otherwise."""


def strictly(what: Shortfall, call: Callable[[], None]) -> bool:
    """Call it: the Attempt that notes no failure."""
    call()
    return True
