"""The byte queue: the same bytes in other lengths, without needless copies."""

from __future__ import annotations

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from rdc.protocol.wire.stream import JOIN_PIECES_BELOW, ByteQueue

sizes = st.integers(0, 3 * JOIN_PIECES_BELOW)


@given(
    st.lists(sizes, max_size=12),
    st.lists(st.tuples(sizes, st.sampled_from(["head", "skip", "take"])), max_size=12),
)
def test_what_was_fed_comes_out_in_order(fed: list[int], taken: list[tuple[int, str]]) -> None:
    stream = bytes(i * 7 % 251 for i in range(sum(fed)))
    queue, at = ByteQueue(), 0
    for size in fed:
        queue.feed(stream[at : at + size])
        at += size
    left = stream
    for size, how in taken:
        assert len(queue) == len(left)
        if how == "head":
            assert bytes(queue.head(size))[:size] == left[:size]
            continue
        count = min(size, len(left))
        if how == "skip":
            queue.skip(count)
        else:
            assert queue.take(count) == left[:count]
        left = left[count:]
    assert queue.take(len(queue)) == left
    assert len(queue) == 0


def test_what_came_in_one_piece_is_not_copied() -> None:
    came = bytes(1 << 20)
    queue = ByteQueue()
    queue.feed(came)
    for size in (1, 1000, 500_000, 10):
        taken = queue.take(size)
        assert isinstance(taken, memoryview)
        assert taken.obj is came


def test_a_trickle_costs_little_more_than_its_bytes() -> None:
    queue = ByteQueue()
    tracemalloc.start()
    for _ in range(100_000):
        queue.feed(b"x")
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(queue) == 100_000
    assert held < 300_000
