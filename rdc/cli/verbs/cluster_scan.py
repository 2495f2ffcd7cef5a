"""`rdc scan --cluster`: the slices of a scan as tasks of an engine, and the report of all."""

from __future__ import annotations

import os

from rdc.cluster.engines import opened_engine
from rdc.cluster.part_directory import slices_in
from rdc.errors import ExitCode, FileError, StoppedError, printable
from rdc.library.merge import merge
from rdc.library.scan_parts import scan_parts
from rdc.model.scan import MergeOptions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.cli.options.scan_options import ScanRequest
    from rdc.model.scan import ScanReport
    from rdc.progress import Reporter, StopSignal

__all__ = ["SLICES_PER_SLOT", "cluster_scan"]

SLICES_PER_SLOT = 4
"""Slices for each task that runs at a time. They differ in size, and with several each the last ones end
nearer together. Every slice walks all directories, so more of them cost more walks."""


def cluster_scan(request: ScanRequest, reporter: Reporter, stop: StopSignal) -> ScanReport:
    """Raises RdcError. What is done by then stays in the directory of parts."""
    assert request.cluster is not None  # noqa: S101 - the caller asked
    assert request.part is not None  # noqa: S101 - read_scan refuses it
    directory = os.fsencode(request.part)
    try:
        os.makedirs(directory, exist_ok=True)
    except OSError as error:
        name = printable(directory)
        raise FileError(
            directory, f"{name}: cannot make the directory of parts: {error.strerror}", code=ExitCode.FILE_IO
        ) from error
    with opened_engine(request.cluster) as engine:
        slices = request.slices or slices_in(directory) or SLICES_PER_SLOT * engine.slots
        try:
            parts = scan_parts(
                request.paths,
                engine.executor,
                slices,
                directory,
                request.options,
                reporter=reporter,
                stop=stop,
            )
        except StoppedError as error:
            raise StoppedError(
                f"interrupted; the parts in {printable(directory)} stay, and the same command goes on there"
            ) from error
    return merge(parts, MergeOptions(request.options.memory), stop=stop)
