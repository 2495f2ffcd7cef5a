"""Traits of a file below 64 KiB, computed as for a large one, to find similar files across that size."""

from __future__ import annotations

from rdc.kernel import Cutter
from rdc.kernel.constants import FEW_FEATURES_BELOW
from rdc.limits.wire import CHUNK_MIN_LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["coarse_traits"]

_ZEROS = bytes(FEW_FEATURES_BELOW)


def coarse_traits(data: Buffer) -> bytes:
    """Traits made of the features that a stream of 64 KiB or more would have: nine bytes, or b"" without any.

    A smaller file samples four times as many features. So a file of 60 KiB and its next version of 66 KiB
    would share few traits. Zeros after the data make it a large stream. A window of zeros alone is no feature
    (its lead is 123 or more). The zeros can add a feature only in the 15 windows across the end, which
    happens in one of 17 files.
    """
    with memoryview(data).cast("B") as view:
        cutter = Cutter(CHUNK_MIN_LIMIT, 2 * CHUNK_MIN_LIMIT)
        cutter.feed(view)
        cutter.feed(_ZEROS[len(view) :])
        cutter.finish()
        return cutter.traits()
