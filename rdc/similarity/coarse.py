"""Traits of a smaller file as if it were a large one, to find kin on the other side of the border by."""

from __future__ import annotations

from rdc.kernel import Cutter
from rdc.kernel.constants import FEW_FEATURES_BELOW
from rdc.limits import CHUNK_MIN_LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["coarse_traits"]

_ZEROS = bytes(FEW_FEATURES_BELOW)


def coarse_traits(data: Buffer) -> bytes:
    """Nine bytes, of the features that the traits of a stream of 64 KiB and more have; b"" without any.

    Smaller ones take four times as many, which leaves little resemblance between one file of 60 KiB and its
    next version of 66. Zeros behind the data make a large stream of it: a window of zeros alone is no feature
    (its lead is 123 or more), so all they add is one of the 15 windows across the end, once in 17 files.
    """
    with memoryview(data).cast("B") as view:
        cutter = Cutter(CHUNK_MIN_LIMIT, 2 * CHUNK_MIN_LIMIT)
        cutter.feed(view)
        cutter.feed(_ZEROS[len(view) :])
        cutter.finish()
        return cutter.traits()
