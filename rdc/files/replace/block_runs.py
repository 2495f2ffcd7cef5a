"""BlockRuns: a state for each block of a file, held as runs, so that a hole of any length is one."""

from __future__ import annotations

from bisect import bisect_right

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["BlockRuns"]


class BlockRuns:
    """The states of blocks 0, 1, 2, ...: small integers, 0 for a block that was not set."""

    __slots__ = ("_starts", "_states", "stop")

    def __init__(self) -> None:
        self.stop = 0
        """Number of blocks."""
        self._starts: list[int] = []
        """The first block of each run. Neighbouring runs have different states."""
        self._states: list[int] = []

    def grow(self, stop: int) -> None:
        """Have at least `stop` blocks. New ones are in state 0."""
        if stop > self.stop:
            first, self.stop = self.stop, stop
            if not self._states or self._states[-1]:
                self._starts.append(first)
                self._states.append(0)

    def at(self, block: int) -> tuple[int, int]:
        """Return the state of a block, and the first block after it that has another state or does not
        exist."""
        run = bisect_right(self._starts, block) - 1
        return self._states[run], self._end(run)

    def runs(self, state: int) -> Iterator[tuple[int, int]]:
        """Yield the runs of blocks in this state, in order: from, to."""
        for run, found in enumerate(self._states):
            if found == state:
                yield self._starts[run], self._end(run)

    def set(self, first: int, stop: int, state: int) -> None:
        """Set the state of blocks [first, stop), which exist."""
        if first >= stop:
            return
        begin, end = bisect_right(self._starts, first) - 1, bisect_right(self._starts, stop - 1) - 1
        starts, states = [first], [state]
        if self._starts[begin] < first:
            starts.insert(0, self._starts[begin])
            states.insert(0, self._states[begin])
        if stop < self._end(end):
            starts.append(stop)
            states.append(self._states[end])
        # One run more on either side, to be joined with these if its state is the same.
        if begin:
            begin -= 1
            starts.insert(0, self._starts[begin])
            states.insert(0, self._states[begin])
        if end + 1 < len(self._starts):
            end += 1
            starts.append(self._starts[end])
            states.append(self._states[end])
        kept = [row for row in range(len(states)) if not row or states[row] != states[row - 1]]
        self._starts[begin : end + 1] = [starts[row] for row in kept]
        self._states[begin : end + 1] = [states[row] for row in kept]

    def _end(self, run: int) -> int:
        return self._starts[run + 1] if run + 1 < len(self._starts) else self.stop
