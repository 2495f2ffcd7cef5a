"""StorageUse: what one run may ask of storage."""

from __future__ import annotations

from rdc.lean.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.depth.read_rate import ReadRate
    from rdc.files.root.root import Root

__all__ = ["StorageUse"]


class StorageUse:
    """How many calls are in flight, and how many bytes are read in a second. Several trees share the rate."""

    def __init__(self, depth: int = 0, max_rate: int = 0) -> None:
        """`depth`: calls in flight at a time; 0: by their waits. `max_rate`: bytes a second; 0: no bound."""
        self._depth = depth
        self._rate: ReadRate | None = None
        if max_rate:
            from rdc.files.depth.read_rate import ReadRate

            self._rate = ReadRate(max_rate)

    @property
    def rate(self) -> ReadRate | None:
        """What bounds the bytes that are read in a second."""
        return self._rate

    def bind(self, root: Root) -> Root:
        """Return `root` as it obeys."""
        return root.having(replace(root.reads, depth=self._depth, rate=self._rate))
