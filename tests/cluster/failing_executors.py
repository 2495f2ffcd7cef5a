"""Executors that lose tasks, kill workers and change what a worker sees."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

__all__ = ["InThreads", "Killing", "killing_pool", "process_pool"]


class InThreads(ThreadPoolExecutor):
    """Threads that call `before` with the number of the task, from 0, in place of or before its work."""

    def __init__(self, before: Callable[[int], None] = lambda _: None, workers: int = 1) -> None:
        super().__init__(workers)
        self._before = before
        self.submitted = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        number, self.submitted = self.submitted, self.submitted + 1

        def work() -> Any:
            self._before(number)
            return fn(*args, **kwargs)

        return super().submit(work)


def process_pool() -> Executor:
    return ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("forkserver"))


def _killed_once(marks: str, number: int, fn: Callable[..., Any], *args: Any) -> Any:
    try:
        Path(marks, f"{number}").touch(exist_ok=False)
    except FileExistsError:
        return fn(*args)
    os.kill(os.getpid(), signal.SIGKILL)
    return None


class Killing(Executor):
    """Gives tasks to `pool`. The first worker that takes one of the tasks `numbers` kills itself."""

    def __init__(self, pool: Executor, marks: Path, numbers: set[int]) -> None:
        marks.mkdir(exist_ok=True)
        self._pool = pool
        self._marks = marks
        self._numbers = numbers
        self._submitted = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        number, self._submitted = self._submitted, self._submitted + 1
        if number in self._numbers:
            return self._pool.submit(_killed_once, str(self._marks), number, fn, *args, **kwargs)
        return self._pool.submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._pool.shutdown(wait, cancel_futures=cancel_futures)


def killing_pool(marks: Path, numbers: set[int]) -> Callable[[], Executor]:
    return lambda: Killing(process_pool(), marks, numbers)
