"""Engines: what runs tasks, named by a URL: processes of this machine, a Dask cluster or a Ray cluster."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import threading
from concurrent.futures import Executor, ProcessPoolExecutor
from functools import partial
from importlib.util import find_spec
from multiprocessing import connection, get_context, parent_process

from rdc.errors import ExitCode, FileError, RdcError, StoppedError, UsageError, one_line, printable
from rdc.files.own.output_file import make_directory
from rdc.lean.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future
    from typing import Any, TypeAlias

    from typing_extensions import ParamSpec, TypeVar

    P = ParamSpec("P")
    T = TypeVar("T")

    MakeParts: TypeAlias = "Callable[[Executor | Callable[[], Executor], int, bytes], tuple[str, ...]]"

PROCESSES = 1024
"""Most processes of `processes:N`."""

CONNECT_SECONDS = 15
"""The longest wait for a scheduler."""

OBJECTS_BYTES = 128 << 20
"""Shared memory of a local cluster of Ray. Results of tasks are some hundred bytes, and parts are files."""

CONNECTS = 3
"""Attempts to connect to Ray. A client server forks a process for each client, and gRPC's handlers of a fork
may end it as it begins: 8 of 24 on a busy machine. It is a fault of Ray."""

_EXPECTED = "processes:N, dask://HOST:PORT, ray://HOST:PORT or ray:local"


class EngineUrl(Record):
    """A checked URL of an engine."""

    kind: str
    """'processes', 'dask' or 'ray'."""
    address: str
    """HOST:PORT, or 'local'; '' for processes."""
    processes: int = 0

    @property
    def is_here(self) -> bool:
        """True if workers share the working directory of this process."""
        return self.kind == "processes"


class Engine(Record):
    executor: Executor | Callable[[], Executor]
    """The executor, as rdc.scan_parts takes it."""
    slots: int
    """Tasks that run at a time."""


def parse_engine(url: str) -> EngineUrl:
    """Parse the URL of an engine. Raises UsageError for a URL that names no engine, and for an engine that is
    not installed."""
    local = re.fullmatch(r"processes:(\d{1,4})", url, re.ASCII)
    if local is not None and 1 <= int(local[1]) <= PROCESSES:
        return EngineUrl("processes", "", int(local[1]))
    if url == "ray:local":
        return _installed(url, EngineUrl("ray", "local"))
    remote = re.fullmatch(r"(dask|ray)://(\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z.-]+):(\d{1,5})", url, re.ASCII)
    if remote is None or not 1 <= int(remote[3]) <= 65_535:
        # A URL may hold a password, so it is not repeated.
        raise UsageError(f"--cluster: expected {_EXPECTED}; a user, a password or a path has no place there")
    return _installed(url, EngineUrl(remote[1], f"{remote[2]}:{remote[3]}"))


def _installed(url: str, engine: EngineUrl) -> EngineUrl:
    module = {"dask": "distributed", "ray": "ray"}[engine.kind]
    if find_spec(module) is None:
        raise UsageError(
            f"--cluster={url} needs {engine.kind}: python3 -m pip install 'rdc-sync[{engine.kind}]', here and"
            " on the workers"
        )
    return engine


@contextlib.contextmanager
def opened_engine(url: EngineUrl) -> Iterator[Engine]:
    """Connect to the engine, and end the connection afterwards. Raises RdcError if it cannot be reached."""
    if url.kind == "processes":
        yield Engine(partial(local_processes, url.processes), url.processes)
        return
    with (_dask if url.kind == "dask" else _ray)(url.address) as engine:
        yield engine


def _unreachable(kind: str, address: str, error: Exception) -> RdcError:
    """Return the error for an engine that cannot be reached."""
    # An engine's message may have a traceback of another process behind it; its last line has the reason.
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = one_line(": ".join(dict.fromkeys([*lines[:1], *lines[-1:]])))[:400]
    # A server of Ray does not answer a client without its token.
    what = "host, port and token" if kind == "ray" else "host and port"
    return RdcError(
        f"{kind}://{printable(address)}: expected a scheduler, found none: {text}; check {what}",
        code=ExitCode.UNREACHABLE,
    )


def local_processes(number: int) -> ProcessPoolExecutor:
    """Return a pool of processes that are spawned, not forked: a fork would copy the locks of this process's
    threads, such as a progress bar's."""
    return _Processes(number, mp_context=get_context("spawn"), initializer=_begin)


class _Processes(ProcessPoolExecutor):
    """A pool whose processes ignore Ctrl-C, which reaches all processes of a terminal. The first process ends
    the others, in order: one that ended by itself while it started would leave the pool waiting."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        # A process that begins in here inherits the mask for good.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return super().submit(fn, *args, **kwargs)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin() -> None:
    """Let this process end when its parent is killed: a pool would leave it waiting."""
    threading.Thread(target=_end_with_parent, name="rdc parent", daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


@contextlib.contextmanager
def _dask(address: str) -> Iterator[Engine]:
    import logging

    from distributed import Client

    # Dask logs on its own; what matters to a user comes as an exception.
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        client = Client(f"tcp://{address}", timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise _unreachable("dask", address, error) from error
    try:
        slots = sum(client.nthreads().values())
        if not slots:
            raise RdcError(
                f"dask://{printable(address)}: no worker is connected; start some: dask worker {address}",
                code=ExitCode.UNREACHABLE,
            )
        executor = client.get_executor(pure=False, retries=0)
        yield Engine(executor, slots)
    finally:
        with contextlib.suppress(OSError, TimeoutError):
            client.close(timeout=CONNECT_SECONDS)


class _RayExecutor(Executor):
    """One CPU a task. Ray does not run a task again by itself: SliceRuns counts attempts."""

    def __init__(self) -> None:
        self._functions: dict[Callable[..., Any], Any] = {}

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        import ray

        remote = self._functions.get(fn)
        if remote is None:
            remote = self._functions[fn] = ray.remote(num_cpus=1, max_retries=0)(fn)
        future: Future[Any] = remote.remote(*args, **kwargs).future()
        return future


@contextlib.contextmanager
def _ray(address: str) -> Iterator[Engine]:
    """Connect to the cluster at HOST:PORT, or start one for 'local'."""
    import logging
    import warnings

    import ray

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
        raise _unreachable("ray", address, error) from error
    # A thread of Ray prints messages about dead workers to stdout, where a report goes.
    with contextlib.redirect_stdout(sys.stderr), contextlib.ExitStack() as stack:
        stack.callback(ray.shutdown)
        slots = int(ray.cluster_resources().get("CPU", 0))
        if not slots:
            raise RdcError(f"ray://{printable(address)}: the cluster has no CPU", code=ExitCode.UNREACHABLE)
        yield Engine(_RayExecutor(), slots)


def _connect(address: str) -> None:
    import ray

    for left in reversed(range(CONNECTS)):
        try:
            ray.init(address=f"ray://{address}", log_to_driver=False, configure_logging=False)
        except ConnectionAbortedError:
            if not left:
                raise
        else:
            return


SLICES_PER_SLOT = 4
"""Slices for each task that runs at a time. They differ in size, and with several each the last ones end
nearer together. Each costs the merge some milliseconds, and a search for documents a walk."""


def parts_on_engine(
    url: EngineUrl, slices: int | None, out: str, ending: bytes, make: MakeParts
) -> tuple[str, ...]:
    """Return the parts that `make` makes with an executor, a number of slices and the directory `out`.

    `ending`: of the names of parts. Raises RdcError. What is done by then stays in the directory.
    """
    from rdc.cluster.make_parts import slices_in

    directory = os.fsencode(out)
    try:
        make_directory(directory)
    except OSError as error:
        name = printable(directory)
        raise FileError(
            directory, f"{name}: cannot make the directory of parts: {error.strerror}", code=ExitCode.FILE_IO
        ) from error
    with opened_engine(url) as engine:
        number = slices or slices_in(directory, ending) or SLICES_PER_SLOT * engine.slots
        try:
            return make(engine.executor, number, directory)
        except StoppedError as error:
            raise StoppedError(
                f"interrupted; the parts in {printable(directory)} stay, and the same command goes on there"
            ) from error
