"""`document_parts` and `document_slice`: the parts of one search for documents, made by workers or by jobs of
their own."""

from __future__ import annotations

import os

from rdc.catalog.arguments import check_job, path_list
from rdc.checks import check_argument, check_method
from rdc.errors import UsageError
from rdc.library.similar_documents import check_documents
from rdc.model.documents import DocumentOptions, DocumentSlice
from rdc.model.scan import ScanSlice
from rdc.progress import silent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor

    from rdc.progress import Reporter, StopSignal

__all__ = ["document_parts", "document_slice"]


def document_parts(
    paths: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]],
    executor: Executor | Callable[[], Executor],
    slices: int,
    out: str | bytes | os.PathLike[str],
    options: DocumentOptions | None = None,
    *,
    threads: int = 1,
    reporter: Reporter = silent,
    stop: StopSignal | None = None,
) -> tuple[str, ...]:
    """Reads documents below `paths` in `slices` slices, each a task of `executor`, and returns their parts
    for `rdc.merge_documents`.

    A file belongs to one slice by a hash of its path. A JSONL or Parquet file of 8 MiB or more is divided
    into ranges of lines or of row groups, unless it is packed. All other arguments, attempts, checks of
    workers and errors are as those of `rdc.scan_parts`. Of `options`, against, stage, threshold and workers
    mean nothing here.

        >>> import json, os, rdc
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> os.makedirs("texts"), os.mkdir("parts")
        (None, None)
        >>> for name, word in (("a", "more"), ("b", "else")):
        ...     with open(f"texts/{name}.jsonl", "w") as file:
        ...         text = " ".join(f"word{number}" for number in range(300))
        ...         print(json.dumps({"text": f"{text} {word}"}), file=file)
        >>> with ThreadPoolExecutor(2) as executor:
        ...     parts = rdc.document_parts("texts", executor, 3, "parts")
        >>> [group.label.path for group in rdc.merge_documents(parts).groups]
        [b'texts/a.jsonl']
    """
    given = path_list("document_parts", "paths", paths)
    if not callable(executor):
        check_method("document_parts", "executor", executor, "submit")
    check_argument("document_parts", "slices", slices, int)
    check_argument("document_parts", "out", out, str, bytes, os.PathLike)
    check_argument("document_parts", "threads", threads, int)
    check_job("document_parts", reporter, None, stop)
    chosen = check_documents("document_parts", options)
    if not given:
        raise UsageError("a search needs at least one path")
    from rdc.cluster.document_job import DocumentJob
    from rdc.cluster.make_parts import make_parts

    job = DocumentJob(tuple(given), chosen)
    return make_parts(job, executor, slices, out, threads=threads, reporter=reporter, stop=stop)


def document_slice(
    paths: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]],
    slice: ScanSlice,  # noqa: A002 - as the option is called
    part: str | bytes | os.PathLike[str],
    options: DocumentOptions | None = None,
    *,
    overwrite: bool = False,
    reporter: Reporter = silent,
    stop: StopSignal | None = None,
) -> DocumentSlice:
    """Reads one slice of the documents below `paths`, and writes its part for `rdc.merge_documents`.

    Every slice needs the same paths and options. The part never replaces a file that is read, and another
    file that is no part only with `overwrite`. Raises UsageError for options out of range, RdcError if the
    part cannot be written, and StoppedError once `stop` is set. What cannot be read is reported as a Problem.

        >>> import os, rdc
        >>> os.mkdir("pages")
        >>> for name in ("one", "two"):
        ...     with open(f"pages/{name}", "w") as file:
        ...         _ = file.write("a page with the same words as the other one")
        >>> parts = [f"{number}.rdcdocs" for number in (1, 2)]
        >>> for number, part in enumerate(parts, 1):
        ...     _ = rdc.document_slice("pages", rdc.ScanSlice(number, 2), part)
        >>> rdc.merge_documents(parts).summary.copies
        1
    """
    given = path_list("document_slice", "paths", paths)
    check_argument("document_slice", "slice", slice, ScanSlice)
    check_argument("document_slice", "part", part, str, bytes, os.PathLike)
    check_argument("document_slice", "overwrite", overwrite, bool)
    check_job("document_slice", reporter, None, stop)
    chosen = check_documents("document_slice", options)
    from rdc.documents.slice_part import write_slice

    return write_slice(given, chosen, slice, os.fsencode(part), reporter, stop, overwrite=overwrite)
