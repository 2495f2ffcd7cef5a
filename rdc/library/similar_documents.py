"""`similar_documents` and `merge_documents`: near-duplicate documents of one corpus, or of two."""

from __future__ import annotations

import os

from rdc.catalog.arguments import check_job, path_list
from rdc.checks import check_argument
from rdc.errors import UsageError
from rdc.model.documents import SHINGLE_UNITS, DocumentOptions, DocumentReport
from rdc.progress import silent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.documents.gather import Gathered
    from rdc.progress import Reporter, StopSignal

__all__ = ["check_documents", "merge_documents", "similar_documents"]


def similar_documents(
    paths: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]],
    options: DocumentOptions | None = None,
    *,
    part: str | bytes | os.PathLike[str] | None = None,
    reporter: Reporter = silent,
    stop: StopSignal | None = None,
) -> DocumentReport:
    """Finds documents at and below `paths` that resemble each other.

    A document is a plain text file, a row of a JSONL file or a row of a Parquet file. `part`: a file to write
    what was read to, for `merge_documents`. What cannot be read is reported as a Problem and left out.
    Nothing is changed. Raises UsageError for options out of range, and StoppedError once `stop` is set.

        >>> import json, rdc
        >>> text = " ".join(f"word{number}" for number in range(300))
        >>> with open("corpus.jsonl", "w") as file:
        ...     for words in (text, text + " more", "another text"):
        ...         print(json.dumps({"text": words}), file=file)
        >>> report = rdc.similar_documents("corpus.jsonl")
        >>> [[one.document.row for one in group.documents] for group in report.groups]
        [[1, 2]]
        >>> [document.row for document in report.kept]
        [1, 3]
    """
    given = path_list("similar_documents", "paths", paths)
    chosen = _checked("similar_documents", options, part, reporter, stop)
    from rdc.documents.gather import gather

    return _searched(gather(given, chosen, reporter, stop), chosen, part, reporter, stop)


def merge_documents(
    parts: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]],
    options: DocumentOptions | None = None,
    *,
    part: str | bytes | os.PathLike[str] | None = None,
    reporter: Reporter = silent,
    stop: StopSignal | None = None,
) -> DocumentReport:
    """Finds documents that resemble each other among those of several parts.

    The report is that of one search of all documents, however they were divided and in whatever order the
    parts come. Of `options`, threshold, against and workers count. `part`: a file to write all of it to, as a
    part again. Raises RdcError for a part that cannot be read or is damaged, and UsageError for parts of
    different shingles; both name the part.

        >>> import json, rdc
        >>> for name, word in (("a", "more"), ("b", "else")):
        ...     with open(f"{name}.jsonl", "w") as file:
        ...         text = " ".join(f"word{number}" for number in range(300))
        ...         print(json.dumps({"text": f"{text} {word}"}), file=file)
        ...     _ = rdc.similar_documents(f"{name}.jsonl", part=f"{name}.rdcdocs")
        >>> report = rdc.merge_documents(["b.rdcdocs", "a.rdcdocs"])
        >>> [group.label.path for group in report.groups]
        [b'a.jsonl']
    """
    names = [os.fsdecode(path) for path in path_list("merge_documents", "parts", parts)]
    chosen = _checked("merge_documents", options, part, reporter, stop)
    if not names:
        raise UsageError("nothing to merge: no part was given")
    from rdc.documents.gather import opened_parts
    from rdc.documents.parts.open_parts import PartSource

    gathered = opened_parts([PartSource(name) for name in names], reporter, stop)
    return _searched(gathered, chosen, part, reporter, stop)


def _checked(function: str, options: object, part: object, reporter: object, stop: object) -> DocumentOptions:
    check_argument(function, "part", part, str, bytes, os.PathLike, None)
    check_job(function, reporter, None, stop)
    return check_documents(function, options)


def check_documents(function: str, options: object) -> DocumentOptions:
    """The options of a search, in range. `function`: the caller in messages. Raises TypeError and
    UsageError."""
    check_argument(function, "options", options, DocumentOptions, None)
    chosen = options if isinstance(options, DocumentOptions) else DocumentOptions()
    if not 0.1 <= chosen.threshold <= 1:
        raise UsageError(f"threshold {chosen.threshold}: a share from 0.1 to 1 is expected")
    if chosen.shingle not in SHINGLE_UNITS:
        raise UsageError(f"shingle {chosen.shingle!r}: expected {' or '.join(SHINGLE_UNITS)}")
    return chosen


def _searched(
    gathered: Gathered,
    options: DocumentOptions,
    part: str | bytes | os.PathLike[str] | None,
    reporter: Reporter,
    stop: StopSignal | None,
) -> DocumentReport:
    from rdc.documents.gather import with_older
    from rdc.documents.report import search_report

    if part is not None:
        from rdc.documents.ordered_part import ordered_part
        from rdc.files.own.output_file import write_output

        write_output(os.fsencode(part), ordered_part(gathered))
    older = options.against is not None
    if options.against is not None:
        gathered = with_older(gathered, os.fsdecode(options.against))
    return search_report(gathered, options, reporter, stop, older=older)
