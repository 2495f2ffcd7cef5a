"""ObjectLister: lists the directories of a walk over a bucket, and begins the next ones while the walk waits.

A walk knows which directories come next: those of its stack. Begun ahead, they wait for the store
together. The walk still gets one after the other, in its own order, each with its own error.
"""

from __future__ import annotations

from time import perf_counter_ns

from rdc.files.depth.depth import DEPTH_MOST, RowsSeen
from rdc.files.objects.object_listing import PageReader
from rdc.limits.wire import AHEAD_BYTES, LISTING_EMPTY_PAGES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from rdc.files.depth.depth import Depth
    from rdc.lean.threads import Task, Threads

__all__ = ["ObjectLister"]


class _Listing:
    """One directory whose listing has begun."""

    def __init__(self, pages: PageReader, asked: dict[str, Any]) -> None:
        self.pages = pages
        self.asked = asked
        """The parameters of the request for the next page."""
        self.more = True
        self.waited = 0
        """Nanoseconds of the first page."""


class ObjectLister:
    """For one walk over one bucket. It raises what the store's library raises, and ValueError for what no
    store lists."""

    def __init__(
        self,
        ask: Callable[[Mapping[str, Any]], Mapping[str, Any]],
        bucket: str,
        depth: Depth,
        stopped: Callable[[], bool],
    ) -> None:
        """`ask`: returns one page. `depth`: how many first pages are under way. `stopped`: asked before
        each page; True ends a listing where it is."""
        self._ask = ask
        self._bucket = bucket
        self._depth = depth
        self._stopped = stopped
        self._tasks: dict[str, Task[_Listing]] = {}
        """The listings that were begun ahead and that nobody took yet."""
        self._threads: Threads | None = None

    def single(self, prefix: str, name: str) -> PageReader:
        """The listing of one entry: the first whose key begins with `prefix` and `name`."""
        listing = self._new(prefix)
        listing.asked.update(Prefix=prefix + name, MaxKeys=1)
        if not self._stopped():
            listing.pages.add(self._ask(listing.asked))
        return listing.pages

    def take(self, prefix: str, following: Sequence[str]) -> PageReader:
        """Lists one directory. `following`: those that come after it, the next one last."""
        begun = perf_counter_ns()
        if self._depth.now > 1:
            self._submit(prefix, following)
        task = self._tasks.pop(prefix, None)
        listing = self._begin(prefix) if task is None else task.result()
        self._depth.saw(RowsSeen(1, 1, listing.waited, perf_counter_ns() - begun, 0, 0))
        empty = 0
        while listing.more and not self._stopped():
            before = listing.pages.bytes
            self._add_page(listing)
            empty = 0 if listing.pages.bytes > before else empty + 1
            if empty > LISTING_EMPTY_PAGES:
                raise ValueError("expected the listing to end, found no end")
        return listing.pages

    def close(self) -> None:
        """Waits for what is under way."""
        for task in self._tasks.values():
            task.cancel()
        self._tasks = {}
        if self._threads is not None:
            self._threads.close()

    def _new(self, prefix: str) -> _Listing:
        return _Listing(PageReader(prefix), {"Bucket": self._bucket, "Prefix": prefix, "Delimiter": "/"})

    def _begin(self, prefix: str) -> _Listing:
        """The first page of a directory. Runs in any thread."""
        listing, begun = self._new(prefix), perf_counter_ns()
        if not self._stopped():
            self._add_page(listing)
        listing.waited = perf_counter_ns() - begun
        return listing

    def _add_page(self, listing: _Listing) -> None:
        page = self._ask(listing.asked)
        listing.pages.add(page)
        token = page.get("NextContinuationToken")
        listing.more = bool(page.get("IsTruncated") and token)
        if listing.more and token == listing.asked.get("ContinuationToken"):
            raise ValueError("expected the listing to end, found no end")
        listing.asked["ContinuationToken"] = token

    def _submit(self, prefix: str, following: Sequence[str]) -> None:
        """Begins `prefix` and the next ones, as many as the depth and the bound of memory let be."""
        ended = [task for task in self._tasks.values() if task.done()]
        running = len(self._tasks) - len(ended)
        if sum(map(_bytes_of, ended)) > AHEAD_BYTES // 2:
            return
        for one in (prefix, *following[: -1 - 4 * self._depth.now : -1]):
            if running >= self._depth.now:
                return
            if one not in self._tasks:
                if self._threads is None:
                    from rdc.lean.threads import Threads

                    self._threads = Threads(max(self._depth.now, DEPTH_MOST), "rdc list")
                try:
                    self._tasks[one] = self._threads.submit(self._begin, one)
                except RuntimeError:
                    # The system refuses even one thread.
                    self._depth.saw(RowsSeen(0, 0, 0, 0, 0, 1))
                    return
                running += 1


def _bytes_of(task: Task[_Listing]) -> int:
    """The bytes of memory that an ended listing takes."""
    try:
        return task.result().pages.bytes
    except Exception:  # noqa: BLE001 - it is raised when its turn comes
        return 0
