"""Counts content bytes to compare and to fetch, bytes done, and where they came from."""

from __future__ import annotations

from rdc.progress import Progressed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.session.runtime.event_relay import EventRelay

__all__ = ["TransferProgress"]

PROGRESS_BYTES = 1 << 20
"""Content bytes between two progress events. A fast disk gives some tens of events per second."""


class TransferProgress:
    """Counts bytes of content and reports progress once per PROGRESS_BYTES at most."""

    def __init__(self, events: EventRelay) -> None:
        self._events = events
        self.literal_bytes = 0
        """Bytes of content that came from the source."""
        self.reused_bytes = 0
        """Bytes of content that the destination had."""
        self.total_bytes = 0
        """Bytes of all files to be fetched."""
        self.compare_bytes = 0
        """Bytes to compare with local files, counted by the sizes of the new versions."""
        self._done = 0
        self._shown = 0
        self._compared = 0
        self._compare_shown = 0
        self._compare_total: int | None = None

    def count_total(self, size: int, *, compared: bool) -> None:
        """Counts a file to be fetched. `compared`: it is compared with a local file first."""
        self.total_bytes += size
        if compared:
            self.count_compared(size)

    def count_compared(self, size: int) -> None:
        """Counts a file to be compared with local files; `size` is that of its new version, in bytes."""
        self.compare_bytes += size

    def plan_known(self) -> None:
        """Reports how much there is to compare. All files were counted."""
        if self.compare_bytes:
            self._compare_total = self.compare_bytes
            self._events.report(Progressed("compare", self._compared, self._compare_total))

    def compared(self, size: int) -> None:
        """Counts a compared file of `size` bytes."""
        self._compared += size
        self._show_compared(self._compared)

    def comparing(self, done: int) -> None:
        """Reports that `done` bytes of the current file were compared."""
        self._show_compared(self._compared + done)

    def advance(self, size: int) -> None:
        """Counts a complete file of `size` bytes."""
        self._done += size
        self._show(self._done)

    def arriving(self, done: int) -> None:
        """Reports that `done` bytes of the current file have arrived."""
        self._show(self._done + done)

    def _show_compared(self, done: int) -> None:
        if done - self._compare_shown >= PROGRESS_BYTES or done == self._compare_total:
            self._compare_shown = done
            self._events.report(Progressed("compare", done, self._compare_total))

    def _show(self, done: int) -> None:
        if done - self._shown >= PROGRESS_BYTES:
            self._shown = done
            self._events.report(Progressed("transfer", min(done, self.total_bytes), self.total_bytes))
