"""RowAdder: adds the rows of parts to tables in a thread, while the next rows are read and checked."""

from __future__ import annotations

from collections import deque

from rdc.lean.threads import Task, Threads
from rdc.survey.read.ordered_threads import usable_workers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array

    from rdc.kernel import ChunkTable

__all__ = ["RowAdder"]

THREAD_ROWS = 16_384
"""With so many rows, adding takes a millisecond, which is worth a thread."""

IN_FLIGHT = 2
"""Rows that wait, in sections: at most 1.5 MB each."""


class RowAdder:
    """Rows are added in the order in which they come. `wait_for` comes before anything else is done with a
    table, and `finish` before the end."""

    def __init__(self) -> None:
        self._threads: Threads | None = None
        self._added: deque[tuple[ChunkTable, Task[None]]] = deque()

    def add(self, table: ChunkTable, keys: array[int], sizes: array[int], counts: array[int]) -> None:
        """Raises MemoryError, also for rows that came before."""
        if len(keys) < THREAD_ROWS or usable_workers() == 1:
            self.wait_for(table)
            table.add(keys, sizes, counts)
            return
        if self._threads is None:
            self._threads = Threads(1, "rdc merge")
        while len(self._added) >= IN_FLIGHT:
            self._next()
        self._added.append((table, self._threads.submit(table.add, keys, sizes, counts)))

    def wait_for(self, table: ChunkTable) -> None:
        """Returns once no rows wait for `table`. Raises MemoryError."""
        while any(one is table for one, _ in self._added):
            self._next()

    def finish(self) -> None:
        """Returns once all rows are in their tables. Raises MemoryError."""
        while self._added:
            self._next()

    def _next(self) -> None:
        _, task = self._added.popleft()
        task.result()

    def close(self) -> None:
        """Ends the thread, after the rows that wait."""
        if self._threads is not None:
            self._threads.close()
            self._threads = None
