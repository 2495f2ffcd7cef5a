"""RowAdder: adds the rows of parts to tables in a thread, while the next rows are read and checked."""

from __future__ import annotations

from collections import deque

from rdc.survey.read.ordered_threads import usable_workers
from rdc.threads import Threads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array

    from rdc.kernel.chunk_counts import ChunkTable
    from rdc.threads import Task

__all__ = ["RowAdder"]

THREAD_ROWS = 16_384
"""With so many rows, adding takes a millisecond, which is worth a thread."""

IN_FLIGHT = 2
"""Rows that wait, in sections: at most 1.5 MB each."""


class RowAdder:
    """Rows are added in the order in which they come. `wait` comes before anything else is done with a
    table."""

    def __init__(self) -> None:
        self._threads: Threads | None = None
        self._added: deque[Task[None]] = deque()

    def add(self, table: ChunkTable, keys: array[int], sizes: array[int], counts: array[int]) -> None:
        """Raises MemoryError, also for rows that came before."""
        if len(keys) < THREAD_ROWS or usable_workers() == 1:
            self.wait()
            table.add(keys, sizes, counts)
            return
        if self._threads is None:
            self._threads = Threads(1, "rdc merge")
        while len(self._added) >= IN_FLIGHT:
            self._added.popleft().result()
        self._added.append(self._threads.submit(table.add, keys, sizes, counts))

    def wait(self) -> None:
        """Returns once all rows are in their tables. Raises MemoryError."""
        while self._added:
            self._added.popleft().result()

    def close(self) -> None:
        """Ends the thread."""
        if self._threads is not None:
            self._threads.close()
            self._threads = None
