"""`similar`: files that resemble each other, or one file, and directories that overlap."""

from __future__ import annotations

import os

from rdc.catalog.arguments import check_job, local_path_list
from rdc.catalog.location import USER_CATALOG, opened_catalog
from rdc.checks import check_argument
from rdc.errors import ExitCode, UsageError, printable
from rdc.library.codes import CodeReporter
from rdc.model.similar import SimilarOptions, SimilarReport
from rdc.progress import Problem, silent, stopping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.catalog.location import UserCatalog
    from rdc.catalog.store import SignatureStore
    from rdc.progress import Reporter, StopSignal

__all__ = ["similar"]


def similar(
    paths: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]],
    options: SimilarOptions | None = None,
    *,
    catalog: SignatureStore | UserCatalog | None = USER_CATALOG,
    reporter: Reporter = silent,
    stop: StopSignal | None = None,
) -> SimilarReport:
    """Finds files at and below `paths` that resemble each other without being identical.

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
        [[b'texts/new', b'texts/old']]
    """
    given = local_path_list("similar", "paths", paths)
    check_argument("similar", "options", options, SimilarOptions, None)
    check_job("similar", reporter, catalog, stop)
    search = _Search(given, options or SimilarOptions(), stopping(reporter, stop), stop)
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
        from rdc.survey.similar.similar_files import find_similar, read_files

        read = read_files(self._paths, self._options, self._report, catalog, self._stop)
        found = find_similar(
            read, self._options, self._report, more_pairs=self._options.folders, stop=self._stop
        )
        if not self._options.folders:
            return SimilarReport(found, (), (), found.summary, self._report.code)
        from rdc.survey.similar.overlapping_folders import folder_overlaps

        overlaps = folder_overlaps(read, found, self._options.threshold)
        if overlaps.boilerplate:
            self._note(f"{overlaps.boilerplate:,} contents with too many copies say nothing about folders")
        if overlaps.dropped:
            self._note(f"{overlaps.dropped:,} matches of files were left out: too many pairs of folders")
        return SimilarReport((), (), overlaps.pairs, found.summary, self._report.code)

    def _ranked(self, name: bytes, catalog: SignatureStore) -> SimilarReport:
        from rdc.survey.similar.similar_files import rank_similar, read_files

        if os.path.isdir(name):
            raise UsageError(f"{printable(name)}: a file is expected, not a directory")
        alone = SimilarOptions(min_size=0)
        query = read_files([name], alone, self._report, catalog, self._stop)
        read = read_files(self._paths, self._options, self._report, catalog, self._stop)
        ranked = rank_similar(query, read, self._options.top, self._options, self._report)
        return SimilarReport((), tuple(ranked), (), None, self._report.code)

    def _note(self, text: str) -> None:
        self._report(Problem(ExitCode.OK, b"", text))
