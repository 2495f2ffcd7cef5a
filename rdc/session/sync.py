"""`rdc.sync`: one run from a source to a destination, each of them here or on another machine."""

from __future__ import annotations

import os

from rdc.catalog.arguments import check_far, check_job, location_of
from rdc.catalog.location import USER_CATALOG, UserCatalog, opened_catalog
from rdc.catalog.store import NoCatalog
from rdc.checks import check_argument
from rdc.errors import UsageError
from rdc.model.location import Location, RemoteShell
from rdc.model.sync import SyncOptions
from rdc.model.sync_report import SyncReport
from rdc.progress import silent, stopping
from rdc.records import replace
from rdc.session.far_end import run_session
from rdc.session.sources import selected_of, sources_of
from rdc.session.sync_run import SyncRun

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.catalog.store import SignatureStore
    from rdc.progress import Reporter, StopSignal

__all__ = ["sync"]


def sync(
    source: Location | str | os.PathLike[str] | Sequence[Location | str | os.PathLike[str]],
    destination: Location | str | os.PathLike[str],
    options: SyncOptions | None = None,
    *,
    shell: RemoteShell | None = None,
    reporter: Reporter = silent,
    catalog: SignatureStore | UserCatalog | None = USER_CATALOG,
    keys: str | os.PathLike[str] | None = None,
    stop: StopSignal | None = None,
) -> SyncReport:
    """Makes `destination` equal to `source`, as `rdc sync` does.

    A string is read as on the command line: "src/" means the contents of the directory src, "src" the
    directory itself. A pathlib.Path is a local path and never ends with a slash.

    Either may be on another host, and both: everything then passes through this machine, and `catalog` is not
    used.

    Several sources are a list or tuple of them, all on one host. Where they have the same names, the first
    file counts, and directories become one.

    Problems with single files go to `reporter` and into the report's exit code. Raises RdcError if the run
    as a whole cannot go on; every path of the destination is then either old or new.

    `catalog`: stores signatures of local files. The default is the path in RDC_CATALOG or else the user's
    cache directory; None stores nothing. A catalog that the caller passes is flushed and stays open.
    `keys`: the key directory for rdc://; None for RDC_KEYS or the user's own directory.
    `stop`: once another thread sets it, the run ends with StoppedError. The next run resumes.

        >>> import os, rdc
        >>> os.mkdir("src")
        >>> with open("src/file", "w") as file:
        ...     _ = file.write("data")
        >>> rdc.sync("src/", "backup/", rdc.SyncOptions(delete=True), catalog=None).files
        1
    """
    sources = sources_of("sync", source)
    destination = location_of("sync", "destination", destination)
    check_argument("sync", "options", options, SyncOptions, None)
    check_job("sync", reporter, catalog, stop)
    check_far("sync", shell, keys)
    options = options or SyncOptions()
    source, selected = selected_of(sources, options)
    if source.host is not None and destination.host is not None:
        from rdc.session.between_hosts import check_between, run_between

        check_between(sources, destination, options)
        run = SyncRun(source, destination, options, stopping(reporter, stop), NoCatalog(), stop, selected)
        return run_between(run, shell or RemoteShell(), keys)
    if options.files_from is not None:
        if source.host is None and destination.host is None:
            raise UsageError("a list at the far side: neither source nor destination is on another host")
        options = replace(options, files_from=replace(options.files_from, relative=options.relative))
    with opened_catalog(catalog, reporter) as store:
        run = SyncRun(source, destination, options, stopping(reporter, stop), store, stop, selected)
        far = destination if source.host is None else source
        try:
            return run_session(run, far, shell or RemoteShell(), keys)
        finally:
            run.close()
