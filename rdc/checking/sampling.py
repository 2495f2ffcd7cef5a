"""The choice of the files whose content a check reads."""

from __future__ import annotations

from blake3 import blake3

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.model.check import Sample

__all__ = ["sampled"]

_BITS = 64


def sampled(paths: Sequence[bytes], sample: Sample) -> list[int]:
    """The indexes of the chosen paths. A path's choice depends on nothing but the sample and the path."""
    key = blake3(b"rdc 1 sample %d" % sample.seed).digest()
    bound = int(sample.share * (1 << _BITS))
    return [
        at
        for at, path in enumerate(paths)
        if int.from_bytes(blake3(path, key=key).digest(length=_BITS // 8), "big") < bound
    ]
