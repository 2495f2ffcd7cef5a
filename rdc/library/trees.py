"""`rdc.sync`, `rdc.check`, `rdc.watch`, `rdc.undo` and `rdc.unite`: jobs on a tree and its copy.

Each function loads its session when it is called, so that a start of one loads nothing of the others.
"""

from __future__ import annotations

import contextlib
import os
import time

from rdc.catalog.store import USER_CATALOG, NoCatalog, UserCatalog
from rdc.errors import ExitCode, UsageError
from rdc.lean.checks import check_argument, check_callable
from rdc.lean.records import replace
from rdc.library import (
    Forward,
    check_far,
    check_job,
    location_list,
    location_of,
    options_of,
    public,
    reporting,
)
from rdc.model.location import Location, RemoteShell
from rdc.progress import silent, stopping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.catalog.store import SignatureStore
    from rdc.checking.records import CheckOptions, CheckReport, EntryDiffers
    from rdc.model.runs import SyncReport
    from rdc.model.selection import SelectedPaths
    from rdc.model.sync import SyncOptions
    from rdc.progress import Progressed, Reporter, StopSignal
    from rdc.undoing.records import UndoableSync, UndoOptions, UndoReport
    from rdc.undoing.undo import UndoReporter
    from rdc.uniting.records import UniteOptions, UnitePair, UniteReport, UniteReporter
    from rdc.watching.records import WatchOptions, WatchReport, WatchReporter


def _ignore(event: object, /) -> None:
    """Ignore the event."""


_ONE_SOURCE = "--files-from takes one SRC: the directory that the listed names are below"


@public
def sync(
    source: Location | str | bytes | os.PathLike[str] | Sequence[Location | str | bytes | os.PathLike[str]],
    destination: Location | str | bytes | os.PathLike[str],
    options: SyncOptions | None = None,
    *,
    shell: RemoteShell | None = None,
    reporter: Reporter = silent,
    progress: Callable[[Progressed], None] | None = None,
    catalog: SignatureStore | UserCatalog | None = USER_CATALOG,
    keys: str | os.PathLike[str] | None = None,
    stop: StopSignal | None = None,
    **keywords: object,
) -> SyncReport:
    """Make `destination` equal to `source`, as `rdc sync` does.

    A string is read as on the command line: "src/" means the contents of the directory src, "src" the
    directory itself. A pathlib.Path is a local path and never ends with a slash.

    Options are one record, or keywords: every field of SyncOptions is one, and further ones are `include`,
    `exclude`, `backup_dir`, `link_dest`, `compare_dest` and `copy_dest`. A keyword also accepts text or a
    pathlib.Path for bytes, a list for a tuple, and for a number the text of the command line, such as "500M".
    Rules of `rules` come first, then those of `include`, then those of `exclude`.

    Either may be on another host, and both: everything then passes through this machine, and `catalog` is not
    used.

    Several sources are a list or tuple of them, all on one host. Where they have the same names, the first
    file counts, and directories become one.

    `reporter` receives all events, and `progress` those about progress alone, whose figures never go back.
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
        >>> rdc.sync("src/", "backup/", delete=True, exclude=["*.o"], catalog=None).files
        1
    """
    from rdc.model.sync import SyncOptions

    sources = location_list("sync", source)
    destination = location_of("sync", "destination", destination)
    options = options_of("sync", SyncOptions, options, keywords)
    reporter = reporting("sync", reporter, progress)
    check_job("sync", reporter, catalog, stop)
    check_far("sync", shell, keys)
    source, selected = selected_of(sources, options)
    if source.host is not None and destination.host is not None:
        from rdc.session.between_hosts import check_between, run_between
        from rdc.session.sync_run import SyncRun

        check_between(sources, destination, options)
        run = SyncRun(source, destination, options, stopping(reporter, stop), NoCatalog(), stop, selected)
        return _finished(run_between(run, shell or RemoteShell(), keys), reporter)
    if options.files_from is not None:
        if source.host is None and destination.host is None:
            raise UsageError("a list at the remote side: neither source nor destination is on another host")
        options = replace(options, files_from=replace(options.files_from, relative=options.relative))
    far, near = (destination, sources) if source.host is None else (source, ())
    shell = shell or RemoteShell()
    wire = None
    with contextlib.ExitStack() as stack:
        if far.host is not None:
            from rdc.session.far.far_host import dial_early

            wire = dial_early(far, near, shell)
        if wire is not None:
            stack.callback(wire.close)
        from rdc.catalog.catalog import opened_catalog
        from rdc.session.sync_run import SyncRun, run_session

        store = stack.enter_context(opened_catalog(catalog, reporter))
        run = SyncRun(source, destination, options, stopping(reporter, stop), store, stop, selected)
        stack.callback(run.close)
        return _finished(run_session(run, far, shell, keys, wire), reporter)


def _finished(report: SyncReport, reporter: Reporter) -> SyncReport:
    if isinstance(reporter, Forward) and report.exit is ExitCode.OK:
        reporter.finish()
    return report


def selected_of(
    sources: Sequence[Location], options: SyncOptions
) -> tuple[Location, tuple[SelectedPaths, ...] | None]:
    """Return where the sources are, and what is selected there, which is None for all that one source means.

    Raises UsageError for sources on several hosts or in several modules, and for more than a run takes.
    """
    first = sources[0]
    if options.files_from is not None:
        if len(sources) > 1:
            raise UsageError(_ONE_SOURCE)
        return first, None
    if len(sources) == 1 and _is_whole(options):
        return first, None
    from rdc.model.selection import check_bounds, select_listed, select_operands

    for other in sources[1:]:
        if (other.host, other.port) != (first.host, first.port):
            raise UsageError(f"{first} and {other} are on two hosts: all SRC have to be on one")
        if first.port is not None and _module(other) != _module(first):
            raise UsageError(f"{first} and {other} are in two modules: all SRC have to be in one")
    if options.files is None:
        selected = select_operands([source.inner or b"." for source in sources], relative=options.relative)
    elif len(sources) > 1:
        raise UsageError(_ONE_SOURCE)
    else:
        selected = select_listed(first.inner or b".", options.files.names, relative=options.relative)
    check_bounds(selected)
    return replace(first, path=b"." if first.port is None else _module(first)), selected


def _is_whole(options: SyncOptions) -> bool:
    """Return whether one SRC stands for all that it has."""
    asks_for_missing = options.delete_missing_args
    return options.recursive and not (options.relative or asks_for_missing) and options.files is None


def _module(source: Location) -> bytes:
    return source.path.partition(b"/")[0]


@public
def check(
    source: Location | str | bytes | os.PathLike[str],
    destination: Location | str | bytes | os.PathLike[str],
    options: CheckOptions | None = None,
    *,
    shell: RemoteShell | None = None,
    reporter: Reporter = silent,
    progress: Callable[[Progressed], None] | None = None,
    on_difference: Callable[[EntryDiffers], None] = _ignore,
    catalog: SignatureStore | UserCatalog | None = USER_CATALOG,
    keys: str | os.PathLike[str] | None = None,
    stop: StopSignal | None = None,
    **keywords: object,
) -> CheckReport:
    """Compare two trees by content, as `rdc check` does. Nothing changes at either end.

    The places, `shell`, `keys` and `reporter` are those of `rdc.sync`. `on_difference` takes each entry that
    differs. `catalog` tells what syncs learned of the file systems; its signatures are believed and filled
    only with `options.trust_catalog`. Once `stop` is set, the run ends with StoppedError. Raises UsageError
    for options that mean nothing to a check, and RdcError if the run as a whole cannot go on.

        >>> import os, rdc
        >>> for name in ("one", "other"):
        ...     os.mkdir(name)
        ...     with open(f"{name}/file", "w") as file:
        ...         _ = file.write(name)
        >>> found = []
        >>> report = rdc.check("one/", "other/", rdc.CheckOptions(times=False), on_difference=found.append)
        >>> report.different, int(report.exit)
        (1, 1)
        >>> found[0].path, found[0].aspects
        ('file', <Aspect.CONTENT: 8>)
    """
    from rdc.catalog.catalog import opened_catalog
    from rdc.checking.records import CheckOptions
    from rdc.checking.run import run_check

    source, destination = (
        location_of("check", "source", source),
        location_of("check", "destination", destination),
    )
    options = options_of("check", CheckOptions, options, keywords)
    reporter = reporting("check", reporter, progress)
    check_job("check", reporter, catalog, stop)
    check_callable("check", "on_difference", on_difference)
    check_far("check", shell, keys)
    if source.host is not None and destination.host is not None:
        raise UsageError("one of SRC and DST must be on this machine")
    reporter = stopping(reporter, stop)
    with opened_catalog(catalog, reporter) as store:
        return run_check(
            source,
            destination,
            options,
            shell=shell or RemoteShell(),
            reporter=reporter,
            on_difference=on_difference,
            catalog=store,
            keys=keys,
            stop=stop,
        )


@public
def watch(
    source: Location | str | bytes | os.PathLike[str],
    destination: Location | str | bytes | os.PathLike[str],
    options: WatchOptions | None = None,
    *,
    shell: RemoteShell | None = None,
    reporter: WatchReporter = _ignore,
    progress: Callable[[Progressed], None] | None = None,
    catalog: SignatureStore | UserCatalog | None = USER_CATALOG,
    keys: str | os.PathLike[str] | None = None,
    stop: StopSignal | None = None,
    sleep: Callable[[float], None] = time.sleep,
    **keywords: object,
) -> WatchReport:
    """Keep `destination` in sync with the directory `source` until `stop` is set, as `rdc watch` does.

    `reporter` receives the events of single entries and those of the watch itself, such as InStep after each
    turn. `progress` receives those about progress alone; its figures start again in each turn.
    KeyboardInterrupt ends the watch as `stop` does: the report says what was done until then.

    Places, `shell`, `catalog` and `keys` are those of `rdc.sync`; both may be on other hosts. `sleep` waits
    for some seconds. Raises RdcError if the first comparison of the trees fails, and for a later error that
    no wait repairs. Other errors are reported, and the remote side is dialled again.

        >>> import os, rdc, threading
        >>> os.mkdir("src")
        >>> stop = threading.Event()
        >>> def reporter(event):
        ...     if isinstance(event, rdc.InStep):
        ...         stop.set()
        >>> rdc.watch("src/", "copy/", reporter=reporter, catalog=None, stop=stop).turns
        1
    """
    from rdc.watching.records import InStep, WatchOptions
    from rdc.watching.watch import run_watch

    source, destination = (
        location_of("watch", "source", source),
        location_of("watch", "destination", destination),
    )
    options = options_of("watch", WatchOptions, options, keywords)
    check_job("watch", reporter, catalog, stop)
    check_far("watch", shell, keys)
    return run_watch(
        source,
        destination,
        options,
        shell=shell or RemoteShell(),
        reporter=reporting("watch", reporter, progress, InStep),
        catalog=catalog,
        keys=keys,
        stop=stop,
        sleep=sleep,
    )


@public
def undo(
    destination: str | bytes | os.PathLike[str],
    options: UndoOptions | None = None,
    *,
    reporter: UndoReporter = _ignore,
    progress: Callable[[Progressed], None] | None = None,
    **keywords: object,
) -> UndoReport:
    """Take the latest sync into a local directory back, as `rdc undo` does.

    That sync must have had `SyncOptions.keep_undo`. What was changed since is newer work: it stays,
    `reporter` gets a Problem that names it, and the report has exit code 23. `progress` receives the events
    about progress alone. Raises RdcError if the undo as a whole cannot go on; the next call continues it.

        >>> import os, rdc
        >>> os.mkdir("src")
        >>> with open("src/file", "w") as file:
        ...     _ = file.write("data")
        >>> keep = rdc.SyncOptions(keep_undo=rdc.KeepUndo(days=30))
        >>> _ = rdc.sync("src/", "copy/", keep, catalog=None)
        >>> rdc.undo("copy/").removed
        1
    """
    from rdc.undoing.records import UndoOptions
    from rdc.undoing.undo import undo_latest

    check_argument("undo", "destination", destination, str, bytes, os.PathLike)
    options = options_of("undo", UndoOptions, options, keywords)
    reporter = reporting("undo", reporter, progress)
    return undo_latest(os.fsencode(destination), options, reporter)


@public
def undoable_syncs(destination: str | bytes | os.PathLike[str]) -> tuple[UndoableSync, ...]:
    """Return the syncs into a local directory that `rdc.undo` can take back, most recent last. Raises
    RdcError.

    >>> import rdc
    >>> rdc.undoable_syncs(".")
    ()
    """
    check_argument("undoable_syncs", "destination", destination, str, bytes, os.PathLike)
    from rdc.undoing.undo import list_syncs

    return list_syncs(os.fsencode(destination))


@public
def unite(
    left: Location | str | bytes | os.PathLike[str],
    right: Location | str | bytes | os.PathLike[str],
    options: UniteOptions | None = None,
    *,
    shell: RemoteShell | None = None,
    reporter: UniteReporter = _ignore,
    progress: Callable[[Progressed], None] | None = None,
    keys: str | os.PathLike[str] | None = None,
    stop: StopSignal | None = None,
    **keywords: object,
) -> UniteReport:
    """Bring two directories together that both changed, as `rdc unite` does. One may be on another machine.

    What only one side changed goes to the other. What both changed is a conflict: both versions stay, and
    `reporter` gets a UniteConflict. The report has exit code 41 then, and 23 if entries were held or failed.
    Once `stop` is set, the run ends with StoppedError, and the next one goes on. Raises RdcError if the run
    as a whole cannot go on; no version is lost then. `shell`, `keys` and `progress` are those of `rdc.sync`.
    With `watch`, runs follow until `stop` is set, and the report sums them up.

        >>> import os, rdc
        >>> for name in ("one", "two"):
        ...     os.mkdir(name)
        ...     with open(f"{name}/of {name}", "w") as file:
        ...         _ = file.write(name)
        >>> report = rdc.unite("one", "two")
        >>> report.left, report.right, os.path.exists("two/of one")
        (1, 1, True)
    """
    from rdc.uniting.records import UniteOptions

    one, other = location_of("unite", "left", left), location_of("unite", "right", right)
    options = options_of("unite", UniteOptions, options, keywords)
    reporter = reporting("unite", reporter, progress)
    check_job("unite", reporter, None, stop)
    check_far("unite", shell, keys)
    if one.host is not None and other.host is not None:
        raise UsageError(
            "one of LEFT and RIGHT must be on this machine: run rdc unite at one of the two hosts"
        )
    if options.watch:
        from rdc.uniting.watch import watch_united

        return watch_united(one, other, options, reporter, stop, shell or RemoteShell(), keys)
    if one.host is None and other.host is None:
        from rdc.uniting.run import unite as run_unite

        return run_unite(one.path, other.path, options, reporter, stop)
    from rdc.uniting.remote import unite_remote

    return unite_remote(one, other, options, reporter, stop, shell or RemoteShell(), keys)


@public
def unite_status(
    left: Location | str | bytes | os.PathLike[str], right: Location | str | bytes | os.PathLike[str]
) -> UnitePair | None:
    """Return what two directories remember of their last `rdc.unite`; None: nothing. Raises RdcError. One on
    another machine is not asked.

    >>> import os, rdc
    >>> for name in ("one", "two"):
    ...     os.mkdir(name)
    >>> rdc.unite_status("one", "two") is None
    True
    """
    from rdc.uniting.run import known_pair

    one, other = location_of("unite_status", "left", left), location_of("unite_status", "right", right)
    here, there = (one, other) if one.host is None else (other, one)
    if here.host is not None:
        raise UsageError("one of LEFT and RIGHT must be on this machine")
    if there.host is None:
        return known_pair(here.path, os.path.realpath(there.path), there.path)
    found = known_pair(here.path, os.fsencode(str(there)), None)
    return found if found is None or here is one else found.seen_from_the_right()


@public
def forget_united(
    left: Location | str | bytes | os.PathLike[str], right: Location | str | bytes | os.PathLike[str]
) -> int:
    """Remove what two directories remember of each other, so that their next `rdc.unite` is a first one. One
    on another machine is left as it is: what it remembers is worth nothing without the other half. A
    directory that is gone is forgotten by its place.

    Return at how many of them something was. No file is touched. Raises RdcError.

    >>> import os, rdc
    >>> for name in ("one", "two"):
    ...     os.mkdir(name)
    >>> _ = rdc.unite("one", "two")
    >>> rdc.forget_united("one", "two")
    2
    """
    from rdc.uniting.run import forget, forget_place

    one, other = location_of("forget_united", "left", left), location_of("forget_united", "right", right)
    here, there = (one, other) if one.host is None else (other, one)
    if here.host is not None:
        raise UsageError("one of LEFT and RIGHT must be on this machine")
    if there.host is not None:
        return forget_place(here.path, os.fsencode(str(there)))
    for path, gone in ((one.path, other.path), (other.path, one.path)):
        if os.path.isdir(path) and not os.path.lexists(gone):
            removed = forget_place(path, os.path.realpath(gone))
            if removed:
                return removed
    return forget(one.path, other.path)
