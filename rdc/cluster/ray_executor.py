"""RayExecutor: tasks of Ray behind the interface of concurrent.futures."""

from __future__ import annotations

import contextlib
import sys
from concurrent.futures import Executor

import ray

from rdc.cluster.unreachable import unreachable
from rdc.errors import ExitCode, RdcError, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future
    from typing import Any

__all__ = ["RayExecutor", "opened_ray"]


OBJECTS_BYTES = 128 << 20
"""Shared memory of a local cluster. Results of tasks are some hundred bytes, and parts are files."""

CONNECTS = 3
"""Attempts to connect. A client server forks a process for each client, and gRPC's handlers of a fork may end
it as it begins: 8 of 24 on a busy machine. It is a fault of Ray."""


class RayExecutor(Executor):
    """One CPU a task. Ray does not run a task again by itself: SliceRuns counts attempts."""

    def __init__(self) -> None:
        self._functions: dict[Callable[..., Any], Any] = {}

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        remote = self._functions.get(fn)
        if remote is None:
            remote = self._functions[fn] = ray.remote(num_cpus=1, max_retries=0)(fn)
        future: Future[Any] = remote.remote(*args, **kwargs).future()
        return future


@contextlib.contextmanager
def opened_ray(address: str) -> Iterator[tuple[RayExecutor, int]]:
    """Connects to the cluster at HOST:PORT, or starts one for 'local'. Yields an executor and the number of
    CPUs. Raises RdcError if there is none."""
    import logging
    import warnings

    # Ray logs on its own; what matters to a user comes as an exception.
    logging.getLogger("ray").setLevel(logging.CRITICAL)
    try:
        if address == "local":
            ray.init(
                address="local",
                include_dashboard=False,
                object_store_memory=OBJECTS_BYTES,
                log_to_driver=False,
                configure_logging=False,
            )
        else:
            with warnings.catch_warnings(action="ignore"):
                _connect(address)
    except (ConnectionError, OSError, RuntimeError, ValueError, TimeoutError) as error:
        raise unreachable("ray", address, error) from error
    # A thread of Ray prints messages about dead workers to stdout, where a report goes.
    with contextlib.redirect_stdout(sys.stderr), _ending():
        slots = int(ray.cluster_resources().get("CPU", 0))
        if not slots:
            raise RdcError(f"ray://{printable(address)}: the cluster has no CPU", code=ExitCode.UNREACHABLE)
        yield RayExecutor(), slots


def _connect(address: str) -> None:
    for left in reversed(range(CONNECTS)):
        try:
            ray.init(address=f"ray://{address}", log_to_driver=False, configure_logging=False)
        except ConnectionAbortedError:
            if not left:
                raise
        else:
            return


@contextlib.contextmanager
def _ending() -> Iterator[None]:
    try:
        yield
    finally:
        ray.shutdown()
