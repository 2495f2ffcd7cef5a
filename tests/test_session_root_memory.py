"""Roots remembered by row and ctime: what was put last comes back while the ctime is the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rdc.session.root_memory import RootMemory

ENTRIES = 4

rows = st.integers(0, ENTRIES - 1)
ctimes = st.sampled_from([0, 1, 2, -1, (1 << 63) - 1, -(1 << 63)])
roots = st.binary(min_size=32, max_size=32)
steps = st.lists(st.tuples(rows, ctimes, st.none() | roots), max_size=30)


@given(steps)
def test_it_is_a_dictionary_of_the_last_ones(told: list[tuple[int, int, bytes | None]]) -> None:
    """A ctime of 0 is that of an entry that was never read."""
    memory, plain = RootMemory(ENTRIES), dict[int, tuple[int, bytes]]()
    for file, ctime, root in told:
        if root is not None:
            memory.put(file, ctime, root)
            plain[file] = ctime, root
        for other in range(ENTRIES):
            then, kept = plain.get(other, (0, b""))
            assert memory.of(other, ctime) == (kept if ctime and ctime == then else b"")
