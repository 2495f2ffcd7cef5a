"""Values that a thread makes before they are asked for."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.lean.threads import Threads
from rdc.store.snapshot_tree import ahead

MOST = 3


def thread_names() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name.startswith("rdc chunks")]


@given(st.lists(st.binary(max_size=3), max_size=12), st.integers(1, 5))
def test_the_values_come_in_order(values: list[bytes], most: int) -> None:
    assert list(ahead(iter(values), most)) == values
    assert not thread_names()


def test_an_error_comes_after_the_values_before_it() -> None:
    def values() -> Iterator[int]:
        yield 1
        yield 2
        raise OSError("the third")

    found = ahead(values(), MOST)
    assert [next(found), next(found)] == [1, 2]
    with pytest.raises(OSError, match="the third"):
        next(found)
    assert not thread_names()


def test_no_more_are_made_than_may_wait() -> None:
    made, go_on = list[int](), threading.Semaphore(0)

    def values() -> Iterator[int]:
        for number in range(20):
            made.append(number)
            go_on.release()
            yield number

    found = ahead(values(), MOST)
    assert next(found) == 0
    for _ in range(MOST):
        go_on.acquire()
    found.close()
    assert len(made) <= 1 + MOST
    assert not thread_names()


def test_a_reader_that_stops_waits_for_the_value_in_the_making() -> None:
    begun, ended = threading.Event(), threading.Event()
    going = threading.Event()

    def values() -> Iterator[int]:
        yield 0
        begun.set()
        going.wait(10)
        ended.set()
        yield 1

    found = ahead(values(), MOST)
    next(found)
    begun.wait(10)
    threading.Timer(0.05, going.set).start()
    found.close()
    assert ended.is_set()


def test_without_a_thread_the_values_come_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Threads, *_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Threads, "submit", refuse)
    assert list(ahead(iter([1, 2, 3]), MOST)) == [1, 2, 3]
