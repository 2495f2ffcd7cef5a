"""Tables of numbers among the ranges of a file: they travel as differences of rows, if that is shorter."""

from __future__ import annotations

from rdc.kernel import difference_words, nonzero_bytes, sum_words
from rdc.session.code import SAMPLED_BYTES, sample_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterable

__all__ = ["tabled", "untabled"]

STRIDES = (8, 24)
"""Bytes of a row that are tried: of a library's table of functions, and of its relocations."""

FEWER = 2
"""Times fewer bytes that are not 0 there must be. Such tables of LibreOffice, Arrow and OpenCV have 2.3 to
3.1 times fewer and take 70 to 25 % of the bytes compressed; those of symbols have up to 1.3 times fewer, and
take more (measured)."""


PLAINLY_NOT = 1.5
"""Times fewer at least there are in a sample of what is looked at as a whole."""


def tabled(content: bytearray, places: array[int]) -> int:
    """Makes differences of `content`, which is at these `places` of a file, if it pays: the stride, or 0."""
    strides: Iterable[int] = STRIDES
    if len(content) >= SAMPLED_BYTES:
        sample, where = sample_of(content, places)
        most = nonzero_bytes(sample) / PLAINLY_NOT
        strides = [stride for stride in STRIDES if _left(sample, where, stride)[0] <= most]
    least = nonzero_bytes(content) // FEWER if strides else 0
    for stride in strides:
        left, trial = _left(content, places, stride)
        if left < least:
            content[:] = trial
            return stride
    return 0


def _left(content: bytearray, places: array[int], stride: int) -> tuple[int, bytearray]:
    """How many bytes are not 0 in its differences, and these."""
    trial = bytearray(content)
    difference_words(trial, places, stride)
    return nonzero_bytes(trial), trial


def untabled(payload: bytes | bytearray | memoryview, places: array[int], stride: int) -> bytearray:
    """What tabled() made this of."""
    content = bytearray(payload)
    sum_words(content, places, stride)
    return content
