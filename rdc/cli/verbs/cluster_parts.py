"""`--cluster`: the slices of a job as tasks of an engine."""

from __future__ import annotations

import os

from rdc.cluster.engines import opened_engine
from rdc.cluster.part_directory import slices_in
from rdc.errors import ExitCode, FileError, StoppedError, printable
from rdc.files.own.opened_path import make_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor
    from typing import TypeAlias

    from rdc.cluster.engines import EngineUrl

    MakeParts: TypeAlias = "Callable[[Executor | Callable[[], Executor], int, bytes], tuple[str, ...]]"

__all__ = ["SLICES_PER_SLOT", "cluster_parts"]

SLICES_PER_SLOT = 4
"""Slices for each task that runs at a time. They differ in size, and with several each the last ones end
nearer together. Each costs the merge some milliseconds, and a search for documents a walk."""


def cluster_parts(
    cluster: EngineUrl, slices: int | None, out: str, ending: bytes, make: MakeParts
) -> tuple[str, ...]:
    """The parts that `make` makes with an executor, a number of slices and the directory `out`.

    `ending`: of the names of parts. Raises RdcError. What is done by then stays in the directory.
    """
    directory = os.fsencode(out)
    try:
        make_directory(directory)
    except OSError as error:
        name = printable(directory)
        raise FileError(
            directory, f"{name}: cannot make the directory of parts: {error.strerror}", code=ExitCode.FILE_IO
        ) from error
    with opened_engine(cluster) as engine:
        number = slices or slices_in(directory, ending) or SLICES_PER_SLOT * engine.slots
        try:
            return make(engine.executor, number, directory)
        except StoppedError as error:
            raise StoppedError(
                f"interrupted; the parts in {printable(directory)} stay, and the same command goes on there"
            ) from error
