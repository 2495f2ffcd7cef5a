"""Calls run in order or in parallel, and result() raises their exceptions."""

from __future__ import annotations

import gc
import threading
import time
from threading import Event, Thread

import pytest

from rdc.lean.threads import Threads


def names() -> list[str]:
    return sorted(thread.name for thread in threading.enumerate() if thread.name.startswith("rdc test"))


def test_results_are_those_of_the_calls() -> None:
    threads = Threads(3, "rdc test")
    tasks = [threads.submit(pow, 3, i) for i in range(200)]
    assert [task.result() for task in tasks] == [3**i for i in range(200)]
    assert all(task.done() for task in tasks)
    assert tasks[7].result() == 3**7
    assert names() == ["rdc test 0", "rdc test 1", "rdc test 2"]
    threads.close()
    assert names() == []


def test_no_more_threads_than_there_was_work_for() -> None:
    threads = Threads(4, "rdc test")
    threads.submit(len, "")
    assert names() == ["rdc test 0"]
    threads.close()


def test_work_goes_on_side_by_side() -> None:
    """Each of the two calls waits for the other."""
    threads, here, there = Threads(2, "rdc test"), Event(), Event()

    def meet(mine: Event, other: Event) -> bool:
        mine.set()
        return other.wait(120)

    tasks = [threads.submit(meet, here, there), threads.submit(meet, there, here)]
    assert all(task.result() for task in tasks)
    threads.close()


@pytest.mark.parametrize("error", [ZeroDivisionError("x"), KeyboardInterrupt(), SystemExit(3)])
def test_what_a_call_raises_is_raised_to_whoever_waits(error: BaseException) -> None:
    def fail() -> None:
        raise error

    threads = Threads(1, "rdc test")
    failing, next_one = threads.submit(fail), threads.submit(len, "abc")
    for _ in range(2):
        with pytest.raises(type(error)) as caught:
            failing.result()
        assert caught.value is error
    assert next_one.result() == 3
    threads.close()


def test_what_is_cancelled_in_time_is_not_called() -> None:
    threads, going, called = Threads(1, "rdc test"), Event(), list[int]()
    first = threads.submit(going.wait, 120)
    second, third = threads.submit(called.append, 2), threads.submit(called.append, 3)
    assert not first.done()
    second.cancel()
    going.set()
    third.result()
    assert called == [3]
    first.cancel()
    assert first.result()
    threads.close()


def test_closing_waits_for_all_that_was_submitted() -> None:
    threads, called = Threads(2, "rdc test"), list[int]()
    for i in range(50):
        threads.submit(called.append, i)
    threads.close()
    assert sorted(called) == list(range(50))
    threads.close()
    Threads(2, "rdc test").close()


def test_threads_end_with_the_object() -> None:
    threads = Threads(2, "rdc test")
    tasks = [threads.submit(len, "a" * i) for i in range(5)]
    del threads
    gc.collect()
    assert [task.result() for task in tasks] == [0, 1, 2, 3, 4]
    end = time.monotonic() + 120
    while names() and time.monotonic() < end:
        time.sleep(0.01)
    assert names() == []


def test_where_the_system_has_no_more_threads_those_that_run_do(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = Threads(3, "rdc test")
    threads.submit(len, "").result()

    def refuse(_: Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Thread, "start", refuse)
    assert threads.submit(len, "ab").result() == 2
    with pytest.raises(RuntimeError, match="start"):
        Threads(1, "rdc test").submit(len, "")
    assert names() == ["rdc test 0"]
    threads.close()
