"""The lines that begin in one range of bytes of a file."""

from __future__ import annotations

from rdc.limits.searches import READ_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

__all__ = ["line_spans"]


def line_spans(stream: BinaryIO, start: int, end: int) -> Iterator[bytes]:
    """Yields whole lines, in spans of at most READ_BYTES: those that begin from `start` on and before `end`.

    The last one may end behind `end`. So ranges that follow one another have each line once. A range within
    one line has none, and reads no further than `end`. Raises OSError.
    """
    if start >= end:
        return
    # A line begins where the byte before it ends another one.
    at = max(start - 1, 0)
    stream.seek(at)
    begun = start == 0
    while span := stream.read(READ_BYTES):
        first = 0
        if not begun:
            newline = span.find(b"\n", 0, max(end - 1 - at, 0))
            if newline < 0:
                at += len(span)
                if at >= end - 1:
                    return
                continue
            begun, first = True, newline + 1
        last = span.find(b"\n", max(end - 1 - at, first))
        if last >= 0:
            yield span[first : last + 1]
            return
        if first < len(span):
            yield span[first:]
        at += len(span)
