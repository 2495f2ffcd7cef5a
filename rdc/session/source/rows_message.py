"""One message with rows of the manifest: entries of several nodes, as columns."""

from __future__ import annotations

from rdc.limits.wire import ROWS_PER_PART, ROWS_TEXT_BYTES, TIER_NODES
from rdc.protocol.messages import RowsPart
from rdc.protocol.messages.field_types import Rows, Segment
from rdc.tree.fold import Group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from rdc.tree.manifest import Manifest

__all__ = ["RowsMessage"]


class RowsMessage:
    """Collects entries of several nodes for one RowsPart."""

    __slots__ = ("_complete", "_counts", "_groups", "_manifest", "_owner", "_rows", "_segments", "_text")

    def __init__(self, manifest: Manifest, groups: Group, *, owner: bool) -> None:
        """`groups`: the columns that were requested. `owner`: user and group ids are preserved."""
        self._manifest = manifest
        self._groups = groups
        self._owner = owner
        self._counts: list[int] = []
        self._rows: list[range] = []
        self._segments: list[Segment] = []
        self._text = 0
        self._complete = True

    def full(self, rows: int, text: int) -> bool:
        """Tells whether `rows` more rows, with `text` bytes of names and paths, do not fit."""
        return bool(self._counts) and (
            sum(self._counts) + rows > ROWS_PER_PART
            or self._text + text > ROWS_TEXT_BYTES
            or len(self._counts) >= TIER_NODES
        )

    def add(self, first: int, stop: int, segments: Iterable[Segment], text: int, *, complete: bool) -> None:
        """Adds rows [first, stop) of one node. `complete`: they end the node."""
        self._counts.append(stop - first)
        self._rows.append(range(first, stop))
        self._segments += segments
        self._text += text
        self._complete = complete

    def message(self) -> RowsPart:
        """Returns the message."""
        manifest, groups = self._manifest, self._groups
        names, attributes = bool(groups & Group.NAMES), bool(groups & Group.ATTRIBUTES)
        rows = Rows(
            sum(self._counts),
            tuple(self._segments),
            self._column(names, manifest.kinds, 1),
            self._column(attributes, manifest.modes, 2),
            self._column(attributes, manifest.sizes, 8),
            self._column(attributes and self._owner, manifest.uids, 4),
            self._column(attributes and self._owner, manifest.gids, 4),
            self._column(bool(groups & Group.MTIMES), manifest.mtimes, 8),
        )
        return RowsPart(tuple(self._counts), self._complete, rows)

    def _column(self, wanted: bool, column: bytearray, width: int) -> bytes:
        """Returns the added rows of a column, `width` bytes per row; empty unless `wanted`."""
        if not wanted:
            return b""
        return b"".join(column[width * rows.start : width * rows.stop] for rows in self._rows)
