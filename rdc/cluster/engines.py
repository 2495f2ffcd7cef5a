"""Engines: what runs tasks, named by a URL: processes of this machine, a Dask cluster or a Ray cluster."""

from __future__ import annotations

import contextlib
import os
import re
from importlib.util import find_spec

from rdc.cluster.unreachable import unreachable
from rdc.errors import ExitCode, FileError, RdcError, StoppedError, UsageError, printable
from rdc.files.own.opened_path import make_directory
from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Executor
    from typing import TypeAlias

    MakeParts: TypeAlias = "Callable[[Executor | Callable[[], Executor], int, bytes], tuple[str, ...]]"

__all__ = ["PROCESSES", "Engine", "EngineUrl", "opened_engine", "parse_engine", "parts_on_engine"]

PROCESSES = 1024
"""Most processes of `processes:N`."""

CONNECT_SECONDS = 15
"""The longest wait for a scheduler."""

_EXPECTED = "processes:N, dask://HOST:PORT, ray://HOST:PORT or ray:local"


@dataclass(frozen=True, slots=True)
class EngineUrl:
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


@dataclass(frozen=True, slots=True)
class Engine:
    executor: Executor | Callable[[], Executor]
    """The executor, as rdc.scan_parts takes it."""
    slots: int
    """Tasks that run at a time."""


def parse_engine(url: str) -> EngineUrl:
    """Raises UsageError for a URL that names no engine, and for an engine that is not installed."""
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
    """Connects to the engine, and ends the connection afterwards. Raises RdcError if it cannot be reached."""
    if url.kind == "processes":
        from functools import partial

        from rdc.cluster.local_processes import local_processes

        yield Engine(partial(local_processes, url.processes), url.processes)
    elif url.kind == "dask":
        with _dask(url.address) as engine:
            yield engine
    else:
        from rdc.cluster.ray_executor import opened_ray

        with opened_ray(url.address) as (executor, slots):
            yield Engine(executor, slots)


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
        raise unreachable("dask", address, error) from error
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


SLICES_PER_SLOT = 4
"""Slices for each task that runs at a time. They differ in size, and with several each the last ones end
nearer together. Each costs the merge some milliseconds, and a search for documents a walk."""


def parts_on_engine(
    url: EngineUrl, slices: int | None, out: str, ending: bytes, make: MakeParts
) -> tuple[str, ...]:
    """The parts that `make` makes with an executor, a number of slices and the directory `out`.

    `ending`: of the names of parts. Raises RdcError. What is done by then stays in the directory.
    """
    from rdc.cluster.part_directory import slices_in

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
