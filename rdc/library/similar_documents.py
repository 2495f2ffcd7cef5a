"""`similar_documents` and `merge_documents`: near-duplicate documents of one corpus, or of two."""

from __future__ import annotations

import os

from rdc.catalog.arguments import check_job, path_list
from rdc.checks import check_argument
from rdc.errors import UsageError
from rdc.files.own.claims import Claims
from rdc.files.own.output_file import Output, claim_outputs, write_output
from rdc.model.documents import FORMATS, SHINGLE_UNITS, DocumentOptions, DocumentReport
from rdc.progress import silent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.documents.gather import Gathered
    from rdc.progress import Reporter, StopSignal

__all__ = [
    "check_documents",
    "merge_claimed",
    "merge_documents",
    "search_claimed",
    "similar_documents",
    "stage_of",
]


def similar_documents(
    paths: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]],
    options: DocumentOptions | None = None,
    *,
    part: str | bytes | os.PathLike[str] | None = None,
    overwrite: bool = False,
    reporter: Reporter = silent,
    stop: StopSignal | None = None,
) -> DocumentReport:
    """Finds documents at and below `paths` that resemble each other.

    A document is a plain text file, a row of a JSONL file or a row of a Parquet file. `part`: a file to write
    what was read to, for `merge_documents`. It never replaces a file that is read, and another file that is
    no part only with `overwrite`. What cannot be read is reported as a Problem and left out. Nothing is
    changed. Raises UsageError for options out of range, and StoppedError once `stop` is set.

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
    chosen = _checked("similar_documents", options, part, overwrite, reporter, stop)
    output = _output(part, overwrite=overwrite)
    claims = claim_outputs([output] if output else [], stage_of(chosen))
    return search_claimed(given, chosen, output, claims, reporter=reporter, stop=stop)


def search_claimed(
    paths: Sequence[bytes],
    options: DocumentOptions,
    part: Output | None,
    claims: Claims,
    *,
    reporter: Reporter,
    stop: StopSignal | None = None,
) -> DocumentReport:
    """Search as `similar_documents` does. `claims`: all results of this run, `part` among them, which the
    search must not read."""
    from rdc.documents.gather import gather

    claims.check_named(_older(options))
    return _searched(gather(paths, options, reporter, stop, claims), options, part, reporter, stop)


def stage_of(options: DocumentOptions) -> list[bytes]:
    """Return the directory that a search fills with what it reads, if it has one."""
    return [] if options.stage is None else [os.fsencode(options.stage)]


def _older(options: DocumentOptions) -> list[bytes]:
    return [] if options.against is None else [os.fsencode(options.against)]


def _output(part: str | bytes | os.PathLike[str] | None, *, overwrite: bool) -> Output | None:
    from rdc.documents.parts.part_file import DOCUMENT_PART

    return None if part is None else Output(os.fsencode(part), DOCUMENT_PART, overwrite)


def merge_documents(
    parts: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]],
    options: DocumentOptions | None = None,
    *,
    part: str | bytes | os.PathLike[str] | None = None,
    overwrite: bool = False,
    reporter: Reporter = silent,
    stop: StopSignal | None = None,
) -> DocumentReport:
    """Finds documents that resemble each other among those of several parts.

    The report is that of one search of all documents, however they were divided and in whatever order the
    parts come. Of `options`, threshold, against and workers count. `part`: a file to write all of it to, as a
    part again. It never replaces one of `parts`, and another file that is no part only with `overwrite`.
    Raises RdcError for a part that cannot be read or is damaged, and UsageError for parts of
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
    chosen = _checked("merge_documents", options, part, overwrite, reporter, stop)
    output = _output(part, overwrite=overwrite)
    claims = claim_outputs([output] if output else [])
    return merge_claimed(names, chosen, output, claims, reporter=reporter, stop=stop)


def merge_claimed(
    names: Sequence[str],
    options: DocumentOptions,
    part: Output | None,
    claims: Claims,
    *,
    reporter: Reporter,
    stop: StopSignal | None = None,
) -> DocumentReport:
    """Merge as `merge_documents` does. `claims`: all results of this run, `part` among them, which it must
    not read."""
    if not names:
        raise UsageError("nothing to merge: no part was given")
    claims.check_named([*map(os.fsencode, names), *_older(options)])
    from rdc.documents.gather import opened_parts
    from rdc.documents.parts.open_parts import PartSource

    gathered = opened_parts([PartSource(name) for name in names], reporter, stop)
    return _searched(gathered, options, part, reporter, stop)


def _checked(
    function: str, options: object, part: object, overwrite: object, reporter: object, stop: object
) -> DocumentOptions:
    check_argument(function, "part", part, str, bytes, os.PathLike, None)
    check_argument(function, "overwrite", overwrite, bool)
    check_job(function, reporter, None, stop)
    return check_documents(function, options)


def check_documents(function: str, options: object) -> DocumentOptions:
    """The options of a search, in range. `function`: the caller in messages. Raises TypeError and
    UsageError."""
    check_argument(function, "options", options, DocumentOptions, None)
    chosen = options if isinstance(options, DocumentOptions) else DocumentOptions()
    if not 0.1 <= chosen.threshold <= 1:
        raise UsageError(f"threshold {chosen.threshold}: a share from 0.1 to 1 is expected")
    if chosen.format not in FORMATS:
        raise UsageError(f"format {chosen.format!r}: expected {', '.join(FORMATS)}")
    if chosen.shingle not in SHINGLE_UNITS:
        raise UsageError(f"shingle {chosen.shingle!r}: expected {' or '.join(SHINGLE_UNITS)}")
    return chosen


def _searched(
    gathered: Gathered,
    options: DocumentOptions,
    part: Output | None,
    reporter: Reporter,
    stop: StopSignal | None,
) -> DocumentReport:
    from rdc.documents.gather import with_older
    from rdc.documents.report import search_report

    if part is not None:
        from rdc.documents.ordered_part import ordered_part

        write_output(part, ordered_part(gathered))
    older = options.against is not None
    if options.against is not None:
        gathered = with_older(gathered, os.fsdecode(options.against))
    return search_report(gathered, options, reporter, stop, older=older)
