"""Several calls to storage in flight, whatever the storage and the options are."""

from __future__ import annotations

from rdc.files.depth import Depths

__all__ = ["force_depth", "forced"]


def forced(depth: int) -> tuple[int, ...]:
    """The defaults of Depths.__init__ with that depth."""
    return (depth, *(Depths.__init__.__defaults__ or ())[1:])


def force_depth(depth: int) -> None:
    """Has each tree that this process opens from now on so many calls in flight, unless --depth says
    otherwise. 0: rdc decides by itself."""
    Depths.__init__.__defaults__ = forced(depth)
