"""A guess which vanished file each new one is, and the queue of files that wait."""

from __future__ import annotations

import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from rdc.model.entries import Identity
from rdc.session.transfer.destination import FileQueue
from rdc.session.transfer.renames import RemovedContent, RenameGuess

ROOTS = [bytes([number]) * 32 for number in range(3)]


def guess() -> RenameGuess:
    made = RenameGuess([(4, 20), (7, 3), (9, 11)])
    for number, root in enumerate(ROOTS):
        made.add(RemovedContent(Identity(1, number, 2, 3, 4), root, b""))
    return made


def test_it_is_right_for_all_or_for_none() -> None:
    made = guess()
    assert made.is_right(blake3(b"".join(ROOTS)).digest())
    assert not made.is_right(blake3(b"".join(ROOTS[::-1])).digest())
    assert not made.is_right(blake3(b"".join(ROOTS[:2])).digest())
    assert list(made.pairs()) == [(4, 20), (7, 3), (9, 11)]
    assert [made.identity(at).inode for at in range(3)] == [0, 1, 2]


@pytest.mark.parametrize(("dropped", "left"), [(4, [(7, 3), (9, 11)]), (9, [(4, 20), (7, 3)])])
def test_without_one_file_the_digest_says_nothing(dropped: int, left: list[tuple[int, int]]) -> None:
    made = guess()
    made.drop(dropped)
    assert list(made.pairs()) == left
    others = [root for file, root in zip((4, 7, 9), ROOTS, strict=True) if file != dropped]
    assert not made.is_right(blake3(b"".join(others)).digest())
    assert not made.is_right(blake3(b"".join(ROOTS)).digest())


def test_a_file_of_another_guess_is_no_part_of_it() -> None:
    with pytest.raises(ValueError, match="not in"):
        guess().drop(5)


@given(st.lists(st.integers(0, 1000), unique=True), st.lists(st.integers(1, 20), min_size=1))
def test_a_queue_gives_the_first_ones_and_each_once(files: list[int], takes: list[int]) -> None:
    queue = FileQueue(files)
    for most in takes:
        taken = queue.drained(most)
        assert list(taken) == sorted(files[:most])
        files = files[most:]
        assert list(queue) == files
