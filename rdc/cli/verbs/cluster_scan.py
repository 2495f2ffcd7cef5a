"""`rdc scan --cluster`: the slices of a scan as tasks of an engine, and the report of all."""

from __future__ import annotations

from functools import partial

from rdc.cli.verbs.cluster_parts import cluster_parts
from rdc.library.merge import merge
from rdc.library.scan_parts import scan_parts
from rdc.model.scan import MergeOptions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.cli.options.scan_options import ScanRequest
    from rdc.model.scan import ScanReport
    from rdc.progress import Reporter, StopSignal

__all__ = ["cluster_scan"]


def cluster_scan(request: ScanRequest, reporter: Reporter, stop: StopSignal) -> ScanReport:
    """Raises RdcError. What is done by then stays in the directory of parts."""
    assert request.cluster is not None  # noqa: S101 - the caller asked
    assert request.part is not None  # noqa: S101 - read_scan refuses it
    make = partial(scan_parts, request.paths, options=request.options, reporter=reporter, stop=stop)
    parts = cluster_parts(request.cluster, request.slices, request.part, b"rdcscan", make)
    return merge(parts, MergeOptions(request.options.memory), stop=stop)
