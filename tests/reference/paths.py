"""Paths of manifest rows, joined from its columns, in plain Python: the definition for row_paths.c."""

from __future__ import annotations

from array import array
from bisect import bisect_right

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["row_paths"]


def row_paths(
    text: ReadableBuffer,
    texts: ReadableBuffer,
    firsts: ReadableBuffer,
    rows: ReadableBuffer,
    reached: tuple[int, int],
    /,
) -> tuple[bytes, tuple[int, int]]:
    """Returns the paths of ascending `rows`, each followed by NUL, and a position for the next call.

    Columns are those of rdc.tree.manifest with native u64 numbers. The position is the row after the last one
    and the offset of its name in `text`. `reached` is the position from an earlier call for the same
    manifest, or zeros; a large directory is then continued from there. ValueError if the columns do not fit
    together. The caller must only ask for existing rows: a row past the end may give a wrong name.
    """
    # long because the definition stands in one piece, to be compared with the C form
    packed = bytes(text)
    try:
        starts, begins, wanted = array("Q", bytes(texts)), array("Q", bytes(firsts)), array("Q", bytes(rows))
    except ValueError:
        raise _misfit() from None
    if len(starts) != len(begins) or (wanted and (not begins or begins[0])):
        raise _misfit()
    paths = []
    before, last, cursor = -1, -1, reached
    for row in wanted:
        directory = bisect_right(begins, row) - 1
        at = starts[directory]
        head = packed.rfind(b"\0", 0, at - 1) if 2 <= at <= len(packed) and not packed[at - 1] else -1
        if row <= before or head < 0:
            raise _misfit()
        first = begins[directory]
        if directory == last:
            first, at = reached
        elif first < cursor[0] <= row and at < cursor[1] <= len(packed):
            first, at = cursor
        for _ in range(first, row):
            at = packed.find(b"\0", at) + 1
            if not at:
                raise _misfit()
        end = packed.find(b"\0", at)
        if end < 0:
            raise _misfit()
        above = packed[head + 1 : starts[directory] - 1]
        paths.append((above + b"/" if above else b"") + packed[at : end + 1])
        before, last, reached = row, directory, (row + 1, end + 1)
    return b"".join(paths), reached


def _misfit() -> ValueError:
    return ValueError("paths of rows: columns of a manifest, and increasing rows that it has")
