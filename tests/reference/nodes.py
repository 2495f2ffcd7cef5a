"""The input of manifest node digests, gathered from the columns, in plain Python: the definition for
manifest_nodes.c."""

from __future__ import annotations

from array import array
from bisect import bisect_right

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["node_columns", "node_names"]

SYMLINK = 2
"""rdc.model.entries.Kind.SYMLINK."""


def node_names(
    text: ReadableBuffer,
    texts: ReadableBuffer,
    firsts: ReadableBuffer,
    kinds: ReadableBuffer,
    links: ReadableBuffer,
    ends: ReadableBuffer,
    position: tuple[int, int, int],
    /,
) -> tuple[bytes, bytes, tuple[int, int, int]]:
    """Returns the input of the names digests of some nodes one after another, the bytes of each (native u64),
    and the position of the next node.

    Columns are those of rdc.tree.manifest. `ends`: native u64, the row after each node's last. `links`: link
    targets. `position`: the first row of the first node, the offset of its name in `text` (ignored if a
    directory begins there), and the offset of the next link target in `links`. ValueError if
    these do not fit together.
    """
    # long because the definition stands in one piece, to be compared with the C form
    text, kinds, links = bytes(text), bytes(kinds), bytes(links)
    starts, rows = array("Q", bytes(texts)), array("Q", bytes(firsts))
    row, at, link = position
    nodes, sizes = [], array("Q")
    stops = array("Q", bytes(ends))
    if stops and (not rows or rows[0] or len(rows) != len(starts) or row >= len(kinds) or link > len(links)):
        raise _misfit()
    for end in stops:
        if not row < end <= len(kinds):
            raise _misfit()
        directory = bisect_right(rows, row) - 1
        first, begin = row, link
        if rows[directory] == row:
            at = starts[directory]
        start, above = at, starts[directory]
        head = text.rfind(b"\0", 0, above - 1) if above >= 2 and text[above - 1 : above] == b"\0" else -1
        if head < 0:
            raise _misfit()
        while row < end:
            if directory + 1 < len(rows) and rows[directory + 1] == row:
                directory += 1
                at = starts[directory]
            at = _past_string(text, at)
            if kinds[row] == SYMLINK:
                link = _past_string(links, link)
            row += 1
        if at < start:
            raise _misfit()
        names = (text[head:above], text[start:at], b"\0", kinds[first:end], links[begin:link])
        nodes.append((end - first).to_bytes(4, "little") + b"".join(names))
        sizes.append(len(nodes[-1]))
    return b"".join(nodes), sizes.tobytes(), (row, at, link)


def node_columns(
    ends: ReadableBuffer, first: int, columns: tuple[tuple[ReadableBuffer, int], ...], /
) -> bytes:
    """Returns the rows of each node from all columns: node by node, column by column.

    `columns` has pairs of a column and its width in bytes, 1 to 8. The first node begins at row `first`.
    ValueError if a node reaches past the end of a column, or, without nodes, if `first` does.
    """
    stops = array("Q", bytes(ends))
    views = [(bytes(column), width) for column, width in columns]
    if len(views) > 8 or any(not 1 <= width <= 8 for _, width in views):
        raise _misfit()
    last = stops[-1] if stops else first
    if any(last > len(view) // width for view, width in views):
        raise _misfit()
    parts = []
    for end in stops:
        if end < first:
            raise _misfit()
        parts += [view[width * first : width * end] for view, width in views]
        first = end
    return b"".join(parts)


def _past_string(text: bytes, at: int) -> int:
    end = text.find(b"\0", at)
    if end < 0:
        raise _misfit()
    return end + 1


def _misfit() -> ValueError:
    return ValueError("nodes of a manifest: columns, ends and position do not fit together")
