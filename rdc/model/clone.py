"""A range of a new version that begins as a clone of a base."""

from __future__ import annotations

from rdc.lean.typed import NamedTuple

__all__ = ["Clone"]


class Clone(NamedTuple):
    """Bytes `start` to `stop` of a new version that begin as those of a base, `shift` bytes further on."""

    start: int
    stop: int
    base: int
    """Number of the base."""
    shift: int
