"""`rdc.dupes`: groups of identical files. `rdc.dedupe`: makes them share their blocks, or hard links of them.
And the removal of duplicates for `rdc dupes --delete`, --move and --symlink."""

from __future__ import annotations

import os
from contextlib import closing

from rdc.catalog.catalog import opened_catalog
from rdc.catalog.store import USER_CATALOG, UserCatalog
from rdc.errors import UsageError, printable
from rdc.lean.checks import check_argument
from rdc.lean.records import replace
from rdc.library import CodeReporter, check_job, local_path_list, options_of, public, reporting
from rdc.model.duplicates import (
    DedupeOptions,
    DedupeReport,
    DuplicateListing,
    DuplicateOptions,
    DuplicateOrder,
    DuplicateReport,
    RemovalOptions,
)
from rdc.model.location import state_directory
from rdc.progress import Problem, check_stop, silent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rdc.catalog.store import SignatureStore
    from rdc.duplicates.dedupe import Deduper
    from rdc.duplicates.run_totals import DedupeEvent, DedupeReporter
    from rdc.library.duplicate_groups import Operands
    from rdc.progress import Event, Progressed, Reporter, StopSignal


@public
def dupes(
    paths: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]],
    options: DuplicateOptions | None = None,
    *,
    catalog: SignatureStore | UserCatalog | None = USER_CATALOG,
    reporter: Reporter = silent,
    progress: Callable[[Progressed], None] | None = None,
    stop: StopSignal | None = None,
    **keywords: object,
) -> DuplicateReport:
    """Find the groups of identical regular files at and below `paths` (several, or one).

    A file that cannot be read, vanishes or changes meanwhile is reported as a Problem and is in no group.
    Large files that `catalog` knows are not read. Nothing is changed. Raises StoppedError once `stop` is set.

        >>> import os, rdc
        >>> os.mkdir("photos")
        >>> for name in ("a", "b", "c"):
        ...     with open(f"photos/{name}", "wb") as file:
        ...         _ = file.write(b"1" if name == "c" else b"two")
        >>> report = rdc.dupes("photos", catalog=None)
        >>> [[file.path for file in group.files] for group in report.groups]
        [['photos/a', 'photos/b']]
        >>> report.summary.waste, report.exit
        (3, <ExitCode.OK: 0>)
    """
    given = local_path_list("dupes", "paths", paths)
    options = options_of("dupes", DuplicateOptions, options, keywords)
    reporter = reporting("dupes", reporter, progress)
    check_job("dupes", reporter, catalog, stop)
    from rdc.survey.duplicates import find_duplicates

    codes = CodeReporter(reporter)
    found = find_duplicates(given, options, codes, catalog, stop, directories=True)
    return DuplicateReport(found, found.summary, codes.code, found.directories)


def _silent(event: DedupeEvent, /) -> None:
    """Ignore the event; a DedupeReporter."""


@public
def dedupe(
    paths: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]],
    options: DedupeOptions | None = None,
    *,
    listing: DuplicateListing | None = None,
    catalog: SignatureStore | UserCatalog | None = USER_CATALOG,
    reporter: DedupeReporter = _silent,
    progress: Callable[[Progressed], None] | None = None,
    stop: StopSignal | None = None,
    environ: Mapping[str, str] | None = None,
    **keywords: object,
) -> DedupeReport:
    """Make duplicates at and below `paths` share their blocks, or hard links of them.

    Without `options.apply` it only says what it would do. `listing`: groups that an earlier search found;
    None searches. `progress` receives the events about progress alone. `environ`: the variables that name the
    state directory, where journals lie; None for those of this process. Contents are compared again before a
    file changes, and between any two steps every file is complete. Raises StoppedError once `stop` is set;
    what was done until then stays. Raises UsageError for options that exclude each other, and RdcError if the
    disk is full or the journal cannot be written.

        >>> import os, rdc
        >>> os.mkdir("data")
        >>> for name in ("a", "b"):
        ...     with open(f"data/{name}", "wb") as file:
        ...         _ = file.write(b"the same" * 1000)
        ...     os.utime(f"data/{name}", (0, 0))
        >>> report = rdc.dedupe("data", rdc.DedupeOptions(hardlink=True), catalog=None)
        >>> report.files, report.bytes
        (1, 8000)
        >>> os.path.samefile("data/a", "data/b")
        False
    """
    given = local_path_list("dedupe", "paths", paths)
    options = options_of("dedupe", DedupeOptions, options, keywords)
    check_argument("dedupe", "listing", listing, DuplicateListing, None)
    check_job("dedupe", reporter, catalog, stop)
    reporter = reporting("dedupe", reporter, progress)
    _check_options(options, listing)
    stoppable = _stopping(reporter, stop)
    from rdc.duplicates.dedupe import Deduper
    from rdc.duplicates.run_totals import RunTotals
    from rdc.library.duplicate_groups import open_operands

    state = state_directory(environ or os.environ)
    journal, pointer = options.journal, None
    if options.hardlink and options.apply:
        journal, pointer = _journals(journal, state, "dedupe")
    journals = None if state is None else os.fsencode(state)
    with closing(open_operands(given, options.keep)) as operands:
        full = replace(options, keep=operands.keep, journal=journal)
        totals = RunTotals(full, stoppable, searched=listing is None, journals=journals)
        with closing(Deduper(operands.trees, totals, pointer)) as deduper:
            deduper.clear()
            with opened_catalog(catalog, lambda event: _notice(stoppable, event)) as store:
                _find_and_act(options, listing, operands, deduper, stoppable, store)
            return deduper.finish()


def _check_options(options: DedupeOptions, listing: DuplicateListing | None) -> None:
    if options.chunks and (options.hardlink or listing is not None):
        raise UsageError("DedupeOptions.chunks makes no sense with hard links or a listing of whole files")
    if options.journal is not None and not options.hardlink:
        raise UsageError("DedupeOptions.journal is for hard links: set hardlink")


def _stopping(reporter: DedupeReporter, stop: StopSignal | None) -> DedupeReporter:
    if stop is None:
        return reporter

    def report(event: DedupeEvent, /) -> None:
        check_stop(stop)
        reporter(event)

    return report


def _find_and_act(
    options: DedupeOptions,
    listing: DuplicateListing | None,
    operands: Operands,
    deduper: Deduper,
    reporter: DedupeReporter,
    catalog: SignatureStore,
) -> None:
    if listing is not None:
        from rdc.library.duplicate_groups import groups_of_report

        deduper.groups(
            groups_of_report(listing.name, listing.text, operands, options.min_size, deduper.failed)
        )
        return
    from rdc.library.duplicate_groups import find_groups

    search = DuplicateOptions(
        rules=options.rules, min_size=max(1, options.min_size), links=True, order=DuplicateOrder.WASTE
    )
    deduper.groups(find_groups(operands, search, catalog, reporter, deduper.failed))
    if options.chunks:
        from rdc.library.duplicate_groups import RunSearch
        from rdc.tree import filter_list

        filters = filter_list(options.rules)
        runs = RunSearch(operands, filters, catalog, options.min_size, reporter, deduper.failed)
        deduper.runs(runs.runs())


def _notice(reporter: DedupeReporter, event: Event) -> None:
    if isinstance(event, Problem):
        reporter(event)


def _journals(journal: bytes | None, state: str | None, verb: str) -> tuple[bytes | None, bytes | None]:
    """Return the journal of a run that acts, and the place of a link to it. `verb`: how its name begins.
    Raises UsageError without a place for it."""
    if state is None and journal is not None:
        return journal, None
    if state is None:
        raise UsageError("there is no home directory for the journal; name a file with --journal=FILE")
    from datetime import datetime

    name = f"{verb}-{datetime.now():%Y%m%d-%H%M%S-%f}-{os.getpid()}.journal"
    own = os.fsencode(os.path.join(state, name))
    # If this run is interrupted, a later run finds its leftovers, and by the link its journal.
    return (own, None) if journal is None else (journal, own)


def remove_duplicates(
    paths: Sequence[bytes],
    removal: RemovalOptions,
    search: DuplicateOptions,
    *,
    listing: DuplicateListing | None = None,
    catalog: SignatureStore | UserCatalog | None,
    reporter: DedupeReporter,
    environ: Mapping[str, str],
) -> DedupeReport:
    """Find the sets of identical files below `paths` and remove all files of each but one.

    `listing`: sets that an earlier search found; None searches. Paths of `removal` are as typed, and what it
    leaves open about journals is chosen here. Raises RdcError.
    """
    from rdc.duplicates.dedupe import Remover
    from rdc.library.duplicate_groups import find_groups, groups_of_report, open_operands

    with closing(open_operands(paths, removal.keep_in)) as operands:
        full = _removal_options(removal, operands, paths, environ)
        with closing(Remover(operands.trees, full, reporter)) as remover:
            remover.clear()
            if listing is not None:
                remover.groups(
                    groups_of_report(listing.name, listing.text, operands, search.min_size, remover.failed)
                )
                return remover.finish()
            with opened_catalog(catalog, lambda event: _notice(reporter, event)) as store:
                search = replace(search, links=True, verify=False)
                remover.groups(find_groups(operands, search, store, reporter, remover.failed))
            return remover.finish()


def _removal_options(
    removal: RemovalOptions, operands: Operands, paths: Sequence[bytes], environ: Mapping[str, str]
) -> RemovalOptions:
    state = state_directory(environ)
    journal, pointer = removal.journal, None
    if removal.apply:
        journal, pointer = _journals(journal, state, "dupes")
    return replace(
        removal,
        keep_in=operands.keep,
        only_in=tuple(os.path.realpath(path) for path in removal.only_in),
        destination=_destination(removal.destination, operands),
        sources=_sources(operands, paths),
        journal=journal,
        pointer=pointer,
        journals=None if state is None else os.fsencode(state),
    )


def _destination(typed: bytes, operands: Operands) -> bytes:
    """Return the real DIR of --move. Raises UsageError if it lies in what is searched."""
    from rdc.duplicates.group import is_below

    destination = os.path.realpath(typed) if typed else b""
    for operand in operands.all:
        if destination and (
            is_below(destination, operand.tree.real)
            if operand.only is None
            else destination == operand.tree.real
        ):
            raise UsageError(
                f"--move={printable(typed)} lies in {printable(operand.label)}, so that the"
                " next run would find the moved files again; name a directory elsewhere"
            )
    return destination


def _sources(operands: Operands, paths: Sequence[bytes]) -> frozenset[int]:
    """Return the numbers of the trees that are PATHs or lie in one."""
    from rdc.duplicates.group import is_below

    real = [os.path.realpath(path) for path in paths]
    found = set()
    for number, operand in enumerate(operands.all):
        top = os.path.join(operand.tree.real, operand.only or b"").rstrip(b"/") or b"/"
        if any(is_below(top, path) for path in real):
            found.add(number)
    return frozenset(found)
