"""`rdc.similar`: files that resemble each other, or one file, and directories that overlap. And
`rdc.similar_documents`: near-duplicate documents, also in slices by jobs or by the workers of an executor."""

from __future__ import annotations

import os

from rdc.catalog.catalog import opened_catalog
from rdc.catalog.store import USER_CATALOG, UserCatalog
from rdc.errors import ExitCode, UsageError, printable
from rdc.files.own.output_file import Claims, Output, claim_directory, claim_outputs, write_output
from rdc.lean.checks import check_argument, check_method
from rdc.lean.records import replace
from rdc.library import CodeReporter, check_job, local_path_list, options_of, path_list, public, reporting
from rdc.model.scan import ScanSlice
from rdc.model.similar import (
    FORMATS,
    LINKS,
    SHINGLE_UNITS,
    DocumentOptions,
    DocumentReport,
    DocumentSlice,
    SimilarOptions,
    SimilarReport,
)
from rdc.progress import Problem, silent, stopping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor

    from rdc.catalog.store import SignatureStore
    from rdc.documents.gather import Gathered
    from rdc.progress import Progressed, Reporter, StopSignal


@public
def similar(
    paths: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]],
    options: SimilarOptions | None = None,
    *,
    catalog: SignatureStore | UserCatalog | None = USER_CATALOG,
    reporter: Reporter = silent,
    progress: Callable[[Progressed], None] | None = None,
    stop: StopSignal | None = None,
    **keywords: object,
) -> SimilarReport:
    """Find files at and below `paths` that resemble each other without being identical.

    With `options.to` it ranks the files that resemble one file, with `options.folders` it finds directories
    that overlap. A file that cannot be read is reported as a Problem. Nothing is changed. Raises UsageError
    for options that exclude each other, and StoppedError once `stop` is set.

        >>> import os, rdc
        >>> os.mkdir("texts")
        >>> lines = b"".join(b"line %d of a text\\n" % number for number in range(2000))
        >>> for name, text in (("old", lines), ("new", lines + b"one more")):
        ...     with open(f"texts/{name}", "wb") as file:
        ...         _ = file.write(text)
        >>> report = rdc.similar("texts", catalog=None)
        >>> [[file.path for file in group.files] for group in report.groups]
        [['texts/new', 'texts/old']]
    """
    given = local_path_list("similar", "paths", paths)
    options = options_of("similar", SimilarOptions, options, keywords)
    reporter = reporting("similar", reporter, progress)
    check_job("similar", reporter, catalog, stop)
    search = _Search(given, options, stopping(reporter, stop), stop)
    with opened_catalog(catalog, reporter) as store:
        return search.run(store)


class _Search:
    def __init__(
        self, paths: list[bytes], options: SimilarOptions, reporter: Reporter, stop: StopSignal | None
    ) -> None:
        if options.to is not None and options.folders:
            raise UsageError("SimilarOptions: to and folders exclude each other")
        self._paths = paths
        self._options = options
        self._report = CodeReporter(reporter)
        self._stop = stop

    def run(self, catalog: SignatureStore) -> SimilarReport:
        if self._options.to is not None:
            return self._ranked(os.fsencode(self._options.to), catalog)
        from rdc.survey.similar import find_similar, read_files

        read = read_files(self._paths, self._options, self._report, catalog, self._stop)
        found = find_similar(
            read, self._options, self._report, more_pairs=self._options.folders, stop=self._stop
        )
        if not self._options.folders:
            return SimilarReport(found, (), (), found.summary, self._report.code)
        from rdc.survey.similar import folder_overlaps

        overlaps = folder_overlaps(read, found, self._options.threshold)
        if overlaps.boilerplate:
            self._note(f"{overlaps.boilerplate:,} contents with too many copies say nothing about folders")
        if overlaps.dropped:
            self._note(f"{overlaps.dropped:,} matches of files were left out: too many pairs of folders")
        return SimilarReport((), (), overlaps.pairs, found.summary, self._report.code)

    def _ranked(self, name: bytes, catalog: SignatureStore) -> SimilarReport:
        from rdc.survey.similar import rank_similar, read_files

        if os.path.isdir(name):
            raise UsageError(f"{printable(name)}: a file is expected, not a directory")
        alone = SimilarOptions(min_size=0)
        query = read_files([name], alone, self._report, catalog, self._stop)
        read = read_files(self._paths, self._options, self._report, catalog, self._stop)
        ranked = rank_similar(query, read, self._options.top, self._options, self._report)
        return SimilarReport((), tuple(ranked), (), None, self._report.code)

    def _note(self, text: str) -> None:
        self._report(Problem(ExitCode.OK, b"", text))


@public
def similar_documents(
    paths: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]],
    options: DocumentOptions | None = None,
    *,
    part: str | bytes | os.PathLike[str] | None = None,
    overwrite: bool = False,
    reporter: Reporter = silent,
    progress: Callable[[Progressed], None] | None = None,
    stop: StopSignal | None = None,
    **keywords: object,
) -> DocumentReport:
    """Find documents at and below `paths` that resemble each other.

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
    options = options_of("similar_documents", DocumentOptions, options, keywords)
    reporter = reporting("similar_documents", reporter, progress)
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
    if options.excerpts and options.against is not None:
        raise UsageError("excerpts and against exclude each other: a part holds no texts")
    directory = None if options.clean is None else os.fsencode(options.clean)
    if directory is not None:
        claim_directory(directory)
    gathered = gather(paths, options, reporter, stop, claims)
    return _searched(gathered, options, part, reporter, stop, directory)


def stage_of(options: DocumentOptions) -> list[bytes]:
    """Return the directory that a search fills with what it reads, if it has one."""
    return [] if options.stage is None else [os.fsencode(options.stage)]


def _older(options: DocumentOptions) -> list[bytes]:
    return [] if options.against is None else [os.fsencode(options.against)]


def _output(part: str | bytes | os.PathLike[str] | None, *, overwrite: bool) -> Output | None:
    from rdc.documents.parts.part_file import DOCUMENT_PART

    return None if part is None else Output(os.fsencode(part), DOCUMENT_PART, overwrite)


@public
def merge_documents(
    parts: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]],
    options: DocumentOptions | None = None,
    *,
    part: str | bytes | os.PathLike[str] | None = None,
    overwrite: bool = False,
    reporter: Reporter = silent,
    progress: Callable[[Progressed], None] | None = None,
    stop: StopSignal | None = None,
    **keywords: object,
) -> DocumentReport:
    """Find documents that resemble each other among those of several parts.

    The report is that of one search of all documents, however they were divided and in whatever order the
    parts come. Of `options`, threshold, link, against and workers count. `part`: a file to write all of it
    to, as a part again. It never replaces one of `parts`, and another file that is no part only with
    `overwrite`. Raises RdcError for a part that cannot be read or is damaged, and UsageError for parts of
    different shingles; both name the part.

        >>> import json, rdc
        >>> for name, word in (("a", "more"), ("b", "else")):
        ...     with open(f"{name}.jsonl", "w") as file:
        ...         text = " ".join(f"word{number}" for number in range(300))
        ...         print(json.dumps({"text": f"{text} {word}"}), file=file)
        ...     _ = rdc.similar_documents(f"{name}.jsonl", part=f"{name}.rdcdocs")
        >>> report = rdc.merge_documents(["b.rdcdocs", "a.rdcdocs"])
        >>> [group.label.path for group in report.groups]
        ['a.jsonl']
    """
    names = [os.fsdecode(path) for path in path_list("merge_documents", "parts", parts)]
    options = options_of("merge_documents", DocumentOptions, options, keywords)
    reporter = reporting("merge_documents", reporter, progress)
    chosen = _checked("merge_documents", options, part, overwrite, reporter, stop)
    _refuse_texts("merge_documents", chosen)
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
    return _check_documents(function, options)


def _check_documents(function: str, options: object) -> DocumentOptions:
    """Return the options of a search, in range. `function`: the caller in messages. Raises TypeError and
    UsageError."""
    check_argument(function, "options", options, DocumentOptions, None)
    chosen = options if isinstance(options, DocumentOptions) else DocumentOptions()
    if not 0.1 <= chosen.threshold <= 1:
        raise UsageError(f"threshold {chosen.threshold}: a share from 0.1 to 1 is expected")
    if chosen.format not in FORMATS:
        raise UsageError(f"format {chosen.format!r}: expected {', '.join(FORMATS)}")
    if chosen.shingle not in SHINGLE_UNITS:
        raise UsageError(f"shingle {chosen.shingle!r}: expected {' or '.join(SHINGLE_UNITS)}")
    if chosen.link not in LINKS:
        raise UsageError(f"link {chosen.link!r}: expected {' or '.join(LINKS)}")
    if chosen.link != LINKS[0] and chosen.against is not None:
        raise UsageError("link and against exclude each other: against makes no groups")
    return chosen


def _refuse_texts(function: str, options: DocumentOptions) -> None:
    """Raise UsageError for options that need the texts, of which a part holds none."""
    for name in ("excerpts", "clean"):
        if getattr(options, name):
            raise UsageError(
                f"{function}: {name} needs the texts, which parts do not hold; search without parts"
            )


def _searched(
    gathered: Gathered,
    options: DocumentOptions,
    part: Output | None,
    reporter: Reporter,
    stop: StopSignal | None,
    clean: bytes | None = None,
) -> DocumentReport:
    """Search, and read documents again for excerpts and for the directory `clean`."""
    from rdc.documents.find.search import search_documents, search_report
    from rdc.documents.gather import with_older

    if part is not None:
        from rdc.documents.slice_part import ordered_part

        write_output(part, ordered_part(gathered))
    older = options.against is not None
    if options.against is not None:
        gathered = with_older(gathered, os.fsdecode(options.against))
    search = search_documents(gathered, options, reporter, stop, older=older)
    units = gathered.units
    if units is not None and options.excerpts:
        from rdc.documents.reread.differences import Excerpts

        alike = search.alike_numbers()
        search.excerpts = Excerpts(
            units, search.corpus, alike, options.field, options.shingle, reporter, stop
        )
    report = search_report(search, gathered)
    if units is None or clean is None:
        return report
    from rdc.documents.reread.clean_copy import CleanCopy

    copy = CleanCopy(clean, units, search.corpus, options.field, reporter, stop)
    return replace(report, exit=copy.write(search.kept_numbers(), report.summary.kept) or report.exit)


@public
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
    """Read documents below `paths` in `slices` slices, each a task of `executor`, and return their parts
    for `rdc.merge_documents`.

    A file belongs to one slice by a hash of its path. A JSONL or Parquet file of 8 MiB or more is divided
    into ranges of lines or of row groups, unless it is packed. All other arguments, attempts, checks of
    workers and errors are as those of `rdc.scan_parts`. Of `options`, against, link, stage, threshold and
    workers mean nothing here.

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
        ['texts/a.jsonl']
    """
    given = path_list("document_parts", "paths", paths)
    if not callable(executor):
        check_method("document_parts", "executor", executor, "submit")
    check_argument("document_parts", "slices", slices, int)
    check_argument("document_parts", "out", out, str, bytes, os.PathLike)
    check_argument("document_parts", "threads", threads, int)
    check_job("document_parts", reporter, None, stop)
    chosen = _check_documents("document_parts", options)
    _refuse_texts("document_parts", chosen)
    if not given:
        raise UsageError("a search needs at least one path")
    from rdc.cluster.jobs import DocumentJob
    from rdc.cluster.make_parts import make_parts

    job = DocumentJob(tuple(given), chosen)
    return make_parts(job, executor, slices, out, threads=threads, reporter=reporter, stop=stop)


@public
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
    """Read one slice of the documents below `paths`, and write its part for `rdc.merge_documents`.

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
    chosen = _check_documents("document_slice", options)
    _refuse_texts("document_slice", chosen)
    from rdc.documents.slice_part import write_slice

    return write_slice(given, chosen, slice, os.fsencode(part), reporter, stop, overwrite=overwrite)
