"""`dupes`: groups of identical files."""

from __future__ import annotations

import os

from rdc.catalog.arguments import check_job, local_path_list
from rdc.catalog.location import USER_CATALOG
from rdc.checks import check_argument
from rdc.library.codes import CodeReporter
from rdc.model.duplicates import DuplicateOptions, DuplicateReport
from rdc.progress import silent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.catalog.location import UserCatalog
    from rdc.catalog.store import SignatureStore
    from rdc.progress import Reporter, StopSignal

__all__ = ["dupes"]


def dupes(
    paths: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]],
    options: DuplicateOptions | None = None,
    *,
    catalog: SignatureStore | UserCatalog | None = USER_CATALOG,
    reporter: Reporter = silent,
    stop: StopSignal | None = None,
) -> DuplicateReport:
    """Finds the groups of identical regular files at and below `paths` (several, or one).

    A file that cannot be read, vanishes or changes meanwhile is reported as a Problem and is in no group.
    Large files that `catalog` knows are not read. Nothing is changed. Raises StoppedError once `stop` is set.

        >>> import os, rdc
        >>> os.mkdir("photos")
        >>> for name in ("a", "b", "c"):
        ...     with open(f"photos/{name}", "wb") as file:
        ...         _ = file.write(b"1" if name == "c" else b"two")
        >>> report = rdc.dupes("photos", catalog=None)
        >>> [[file.path for file in group.files] for group in report.groups]
        [[b'photos/a', b'photos/b']]
        >>> report.summary.waste, report.exit
        (3, <ExitCode.OK: 0>)
    """
    given = local_path_list("dupes", "paths", paths)
    check_argument("dupes", "options", options, DuplicateOptions, None)
    check_job("dupes", reporter, catalog, stop)
    from rdc.survey.duplicates import find_duplicates

    codes = CodeReporter(reporter)
    found = find_duplicates(given, options or DuplicateOptions(), codes, catalog, stop)
    return DuplicateReport(found, found.summary, codes.code)
