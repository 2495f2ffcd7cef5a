"""Processes of this machine as an executor."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import connection, get_context, parent_process

__all__ = ["local_processes"]


def local_processes(number: int) -> ProcessPoolExecutor:
    """Processes that begin anew: a fork would copy the locks of threads of this one, such as a progress
    bar's."""
    return ProcessPoolExecutor(number, mp_context=get_context("spawn"), initializer=_begin)


def _begin() -> None:
    """Ctrl-C reaches all processes of a terminal. The first one ends the others, in order. If it was killed,
    they end by themselves: a pool leaves them waiting."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, name="rdc parent", daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
