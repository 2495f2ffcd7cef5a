"""Roots remembered by row and ctime: what was put last comes back while the ctime is the same."""

from __future__ import annotations

from array import array

from hypothesis import given
from hypothesis import strategies as st

from rdc.session.trees.small_file_digests import DigestCache

ENTRIES = 4

rows = st.sets(st.integers(0, ENTRIES - 1), min_size=1).map(sorted)
ctimes = st.sampled_from([0, 1, 2, -1, (1 << 63) - 1, -(1 << 63)])
roots = st.binary(min_size=32, max_size=32)
steps = st.lists(
    st.tuples(rows, st.lists(st.tuples(ctimes, roots), min_size=ENTRIES, max_size=ENTRIES)), max_size=10
)


@given(steps)
def test_it_is_a_dictionary_of_the_last_ones(told: list[tuple[list[int], list[tuple[int, bytes]]]]) -> None:
    """A ctime of 0 is that of an entry that was never read."""
    memory, plain = DigestCache(ENTRIES), dict[int, tuple[int, bytes]]()
    for files, values in told:
        # Asked with all ctimes of this step, told of as many as there are files.
        for first in range(ENTRIES):
            asked = array("Q", range(first, ENTRIES))
            now = array("q", [values[file][0] for file in asked])
            assert memory.find(asked, now) == [
                (number, plain[file][1])
                for number, (file, ctime) in enumerate(zip(asked, now, strict=True))
                if ctime and plain.get(file, (0, b""))[0] == ctime
            ]
        of_files = values[: len(files)]
        memory.put(
            array("Q", files),
            array("q", [ctime for ctime, _ in of_files]),
            b"".join(root for _, root in of_files),
        )
        plain.update(zip(files, of_files, strict=True))
