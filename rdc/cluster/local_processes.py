"""Processes of this machine as an executor."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import connection, get_context, parent_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from typing_extensions import ParamSpec, TypeVar

    P = ParamSpec("P")
    T = TypeVar("T")

__all__ = ["local_processes"]


def local_processes(number: int) -> ProcessPoolExecutor:
    """Processes that begin anew: a fork would copy the locks of threads of this one, such as a progress
    bar's."""
    return _Processes(number, mp_context=get_context("spawn"), initializer=_begin)


class _Processes(ProcessPoolExecutor):
    """Ctrl-C reaches all processes of a terminal. The first one ends the others, in order: a process that
    ended by itself while it began would leave the pool waiting."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        # A process that begins in here inherits the mask for good.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return super().submit(fn, *args, **kwargs)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin() -> None:
    """If the first process was killed, the others end by themselves: a pool leaves them waiting."""
    threading.Thread(target=_end_with_parent, name="rdc parent", daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
