"""`merge`: one report of several scans."""

from __future__ import annotations

import contextlib
import os

from rdc.catalog.arguments import check_job, path_list
from rdc.checks import check_argument
from rdc.errors import ExitCode, RdcError
from rdc.model.scan import MergeOptions
from rdc.progress import Progressed, check_stop, silent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.model.scan import ScanReport
    from rdc.progress import Reporter, StopSignal
    from rdc.survey.parts.merge import PartSource

__all__ = ["merge"]


def merge(
    parts: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]],
    options: MergeOptions | None = None,
    *,
    part: str | bytes | os.PathLike[str] | None = None,
    reporter: Reporter = silent,
    stop: StopSignal | None = None,
) -> ScanReport:
    """Merges the parts that `rdc.scan` wrote into one report, as if one scan had read all files.

    `part`: a file to write what was merged to, as a part again. `reporter` receives Progressed events of the
    phase 'read', in bytes of parts, before each part and at the end. Once `stop` is set, the merge raises
    StoppedError before the next part. Raises RdcError for a part that cannot be read or is damaged, and
    UsageError for parts of different options; both name the part.

        >>> import os, rdc
        >>> os.mkdir("data")
        >>> with open("data/file", "wb") as file:
        ...     _ = file.write(b"content" * 1000)
        >>> for name in ("a.rdcscan", "b.rdcscan"):
        ...     _ = rdc.scan("data", catalog=None, part=name)
        >>> rdc.merge(["a.rdcscan", "b.rdcscan"]).duplicate_bytes
        7000
    """
    names = [os.fsdecode(path) for path in path_list("merge", "parts", parts)]
    check_argument("merge", "options", options, MergeOptions, None)
    check_argument("merge", "part", part, str, bytes, os.PathLike, None)
    check_job("merge", reporter, None, stop)
    from rdc.survey.parts.merge import merge_parts
    from rdc.survey.scan.summary import report_of

    with contextlib.ExitStack() as stack:
        sources = [_opened(name, stack) for name in names]
        memory = (options or MergeOptions()).memory
        outcome = merge_parts(_noted(sources, reporter, stop), memory)
    if part is not None:
        from rdc.survey.parts.part_file import write_part

        write_part(outcome, os.fsdecode(part))
    return report_of(outcome)


def _opened(name: str, stack: contextlib.ExitStack) -> PartSource:
    from rdc.survey.parts.merge import PartSource

    try:
        return PartSource(name, stack.enter_context(open(name, "rb")))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise RdcError(f"{name}: cannot read the part: {reason}", code=ExitCode.FILE_IO) from error


def _noted(sources: list[PartSource], reporter: Reporter, stop: StopSignal | None) -> Iterator[PartSource]:
    sizes = [os.fstat(source.stream.fileno()).st_size for source in sources]
    done = 0
    for source, size in zip(sources, sizes, strict=True):
        check_stop(stop)
        reporter(Progressed("read", done, sum(sizes)))
        yield source
        done += size
    reporter(Progressed("read", done, done))
