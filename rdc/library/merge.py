"""`merge`: one report of several scans."""

from __future__ import annotations

import os
from functools import partial
from itertools import accumulate

from rdc.catalog.arguments import check_job, path_list
from rdc.checks import check_argument
from rdc.errors import ExitCode, RdcError
from rdc.model.scan import MergeOptions
from rdc.progress import Progressed, check_stop, silent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import BinaryIO

    from rdc.model.scan import ScanReport
    from rdc.progress import Reporter, StopSignal

__all__ = ["merge"]


def merge(
    parts: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]],
    options: MergeOptions | None = None,
    *,
    part: str | bytes | os.PathLike[str] | None = None,
    overwrite: bool = False,
    reporter: Reporter = silent,
    stop: StopSignal | None = None,
) -> ScanReport:
    """Merges the parts that `rdc.scan` wrote into one report, as if one scan had read all files.

    `part`: a file to write what was merged to, as a part again. It never replaces one of `parts`, and another
    file that is no part only with `overwrite`. `reporter` receives Progressed events of the
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
    check_argument("merge", "overwrite", overwrite, bool)
    check_job("merge", reporter, None, stop)
    from rdc.files.own.output_file import Output, claim_outputs, write_output
    from rdc.survey.parts.sections import SCAN_PART

    output = None if part is None else Output(os.fsencode(part), SCAN_PART, overwrite)
    claim_outputs([output] if output else []).check_named(map(os.fsencode, names))
    from rdc.survey.parts.merge import PartSource, merge_parts
    from rdc.survey.scan.summary import report_of

    sizes = [_size(name) for name in names]
    done = list(accumulate(sizes, initial=0))

    def before(number: int) -> None:
        check_stop(stop)
        reporter(Progressed("read", done[number], done[-1]))

    sources = [PartSource(name, partial(_opened, name)) for name in names]
    outcome = merge_parts(sources, (options or MergeOptions()).memory, before=before)
    reporter(Progressed("read", done[-1], done[-1]))
    if output is not None:
        from rdc.survey.parts.part_file import encode_part

        write_output(output, encode_part(outcome))
    return report_of(outcome)


def _opened(name: str) -> BinaryIO:
    try:
        return open(name, "rb")
    except (OSError, ValueError) as error:
        raise _unreadable(name, error) from error


def _size(name: str) -> int:
    """Bytes of a part. A pipe has none until it is read."""
    try:
        return os.stat(name).st_size
    except (OSError, ValueError) as error:
        raise _unreadable(name, error) from error


def _unreadable(name: str, error: OSError | ValueError) -> RdcError:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return RdcError(f"{name}: cannot read the part: {reason}", code=ExitCode.FILE_IO)
