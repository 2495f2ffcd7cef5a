"""How much content there is to compare and to fetch, how much of it is done, and what it was made of."""

from __future__ import annotations

from rdc.progress import Progressed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.session.news import News

__all__ = ["Tally"]

PROGRESS_BYTES = 1 << 20
"""Content bytes between two progress events: some tens a second on a fast disk."""


class Tally:
    """Counts bytes of content, and tells the user of them at most every PROGRESS_BYTES."""

    def __init__(self, news: News) -> None:
        self._news = news
        self.literal_bytes = 0
        """Bytes of content that came from the source."""
        self.reused_bytes = 0
        """Bytes of content that were here already."""
        self.total_bytes = 0
        """Of all files to be fetched."""
        self.compare_bytes = 0
        """Bytes of files held here that are read to learn what differs, by the size of their new versions."""
        self._done = 0
        self._shown = 0
        self._compared = 0
        self._compare_shown = 0
        self._compare_total: int | None = None

    def plan_known(self) -> None:
        """How much there is to compare is known, and told before it begins."""
        if self.compare_bytes:
            self._compare_total = self.compare_bytes
            self._news.report(Progressed("compare", self._compared, self._compare_total))

    def compared(self, size: int) -> None:
        """A file of so many bytes was compared."""
        self._compared += size
        self._show_compared(self._compared)

    def comparing(self, done: int) -> None:
        """So much of the file that is being compared was read."""
        self._show_compared(self._compared + done)

    def advance(self, size: int) -> None:
        """A file of so many bytes is complete."""
        self._done += size
        self._show(self._done)

    def arriving(self, done: int) -> None:
        """So much of the file that is being fetched is here."""
        self._show(self._done + done)

    def _show_compared(self, done: int) -> None:
        if done - self._compare_shown >= PROGRESS_BYTES or done == self._compare_total:
            self._compare_shown = done
            self._news.report(Progressed("compare", done, self._compare_total))

    def _show(self, done: int) -> None:
        if done - self._shown >= PROGRESS_BYTES:
            self._shown = done
            self._news.report(Progressed("transfer", min(done, self.total_bytes), self.total_bytes))
