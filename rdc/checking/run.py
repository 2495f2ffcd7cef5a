"""One check of two trees, in this process or with an rdc on another host. CHECK.md says what holds.

The far end is the source of the session, whichever operand it is: it can only be read then.
"""

from __future__ import annotations

import os
import stat

from rdc.catalog.store import FactsAlone
from rdc.checking.records import CheckOptions, CheckReport, EntryDiffers
from rdc.errors import ExitCode, RdcError, UsageError
from rdc.lean.records import Record, replace
from rdc.model.entries import Kind
from rdc.model.sync import OPTIONS
from rdc.progress import Problem
from rdc.protocol.connection import READS_FRESH
from rdc.protocol.messages import Describe, Done, Role
from rdc.session.runtime.commands import Conversation, Send, pace_of
from rdc.session.runtime.driver import RefusedError
from rdc.session.serve import send_open
from rdc.session.sync_run import SyncRun, run_session
from rdc.session.trees.destination_root import keeps
from rdc.session.trees.sites import announced, entry_of
from rdc.tree.filters import FilteredTree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.catalog.store import SignatureStore
    from rdc.checking.conversation import ClosedDirectories, Counts
    from rdc.files.replace.staged_clones import StagedClones
    from rdc.model.location import Location, RemoteShell
    from rdc.model.preserved import Preserved
    from rdc.model.runs import SyncReport
    from rdc.progress import Event, Reporter, StopSignal
    from rdc.protocol.messages import Start


def run_check(
    source: Location,
    destination: Location,
    options: CheckOptions,
    *,
    shell: RemoteShell,
    reporter: Reporter,
    on_difference: Callable[[EntryDiffers], None],
    catalog: SignatureStore,
    keys: str | os.PathLike[str] | None,
    stop: StopSignal | None,
) -> CheckReport:
    """Compare two trees, of which one at least is on this machine, as `rdc.check` does."""
    _check_options(options)
    operands = operands_of(source, destination)
    if not options.trust_catalog:
        catalog = FactsAlone(catalog)
    while True:
        run = CheckRun(operands, options, reporter, on_difference, catalog, stop)
        try:
            report = run_session(run, operands.far, shell, keys)
        except _FileInDirectoryError:
            # DST is a directory and SRC a file: the far end has SRC's counterpart in that directory.
            operands = replace(operands, far=_below(operands.far, operands.near_name or b""))
            continue
        except RefusedError as error:
            if run.has_begun or operands.may_be_inside or not operands.near_name:
                raise
            raise _with_advice(error, source, destination) from error
        finally:
            run.close()
        return run.report(report)


def _with_advice(error: RefusedError, source: Location, destination: Location) -> RdcError:
    """Return the error of a remote DST that lacks SRC's name, with the command that compares the contents."""
    if error.code is not ExitCode.PARTIAL:
        return error
    command = f"rdc check {source}/ {str(destination).rstrip('/')}/"
    text = str(error).removesuffix("; check the path")
    return RdcError(f"{text}; for the contents of both, end SRC with a slash: {command}", code=error.code)


def _check_options(options: CheckOptions) -> None:
    """Raise UsageError for an option that means nothing to a check, and for a share out of range."""
    for name, declared in OPTIONS.items():
        if not declared.check and getattr(options.session, name) != declared.default:
            raise UsageError(f"SyncOptions.{name} has no effect on a check; leave it at its default")
    if options.sample is not None and not 0 < options.sample.share <= 1:
        raise UsageError(f"Sample.share: expected more than 0 and at most 1, found {options.sample.share}")


class _FileInDirectoryError(Exception):
    """DST turned out to be a directory, and SRC is one file."""


class Operands(Record):
    """Both trees: the far one as the source of a session, and this end's."""

    far: Location
    near: Location
    far_is_source: bool
    near_name: bytes | None = None
    """SRC's one entry, b"" for all entries, if this end is SRC; else None."""
    may_be_inside: bool = False
    """The far path may be a directory that has SRC's counterpart."""


def operands_of(source: Location, destination: Location) -> Operands:
    if destination.host is None:
        return Operands(source, destination, True)
    name = entry_of(source.path)
    if not name:
        whole = destination if not entry_of(destination.inner) else _below(destination, b"")
        return Operands(whole, source, False, b"")
    try:
        is_directory = stat.S_ISDIR(os.lstat(source.path).st_mode)
    except OSError:
        is_directory = True  # the run reports it
    if is_directory or not entry_of(destination.inner):
        return Operands(_below(destination, name), source, False, name)
    return Operands(destination, source, False, name, may_be_inside=True)


def _below(directory: Location, name: bytes) -> Location:
    return replace(directory, path=directory.path.rstrip(b"/") + b"/" + name)


class CheckRun(SyncRun):
    """One session of a check, seen from the dialling side."""

    def __init__(
        self,
        operands: Operands,
        options: CheckOptions,
        reporter: Reporter,
        on_difference: Callable[[EntryDiffers], None],
        catalog: SignatureStore,
        stop: StopSignal | None = None,
    ) -> None:
        from rdc.checking.conversation import ClosedDirectories

        self._operands = operands
        self._check = options
        self._on_difference = on_difference
        self._reporter = reporter
        self._closed = closed = ClosedDirectories()
        self._counts: Counts | None = None
        self.has_begun = False
        """True if the far end has opened its tree."""
        session = replace(options.session, dry_run=True, items=False)
        super().__init__(operands.far, operands.near, session, _noting(reporter, closed), catalog, stop)

    def report(self, session: SyncReport) -> CheckReport:
        """Return the result, after the session."""
        from rdc.checking.conversation import Counts

        counts = self._counts or Counts()
        different = ExitCode.DIFFERENT if counts.different else ExitCode.OK
        return CheckReport(
            entries=counts.entries,
            files=counts.files,
            total_bytes=counts.total_bytes,
            files_compared=counts.files_compared,
            bytes_compared=counts.bytes_compared,
            different=counts.different,
            missing=counts.missing,
            extra=counts.extra,
            bytes_sent=session.bytes_sent,
            bytes_received=session.bytes_received,
            round_trips=session.round_trips,
            errors=session.errors,
            exit=different if session.exit is ExitCode.OK else session.exit,
        )

    def staged_clones(self) -> None:
        """Make no clones: a check writes nothing, not even a clone without a name."""

    def check_nesting(self) -> None:
        """Accept any nesting: a check changes nothing, so one tree may contain the other."""

    def opening(self, role: Role) -> Conversation[None]:
        yield pace_of(self.options)
        needs = None if self._check.trust_catalog else READS_FRESH
        yield from send_open(role, self.source.path, self._secret, self.options, needs=needs)

    def fetch(self, clones: StagedClones | None = None) -> Conversation[Done]:
        operands = self._operands
        near = operands.near.path
        if operands.near_name:
            near = os.path.dirname(near) or b"."
        preserved = keeps(near, self.options, catalog=self.signer.catalog)
        if not self._check.modes:
            preserved = replace(preserved, modes=0, directory_modes=0)
        yield from self.opening(Role.SOURCE)
        yield Send(Describe(False, preserved), 0)
        yield from self._opened()
        start, round_ = yield from self._started()
        return (yield from self._compare(start, preserved, round_))

    def _compare(self, start: Start, preserved: Preserved, round_: int) -> Conversation[Done]:
        from rdc.checking.conversation import Check, near_tree
        from rdc.session.transfer.destination import Destination, Terms
        from rdc.session.trees.source_tree import boundary_of

        operands = self._operands
        tree = near_tree(operands.near.path, operands.near_name, start.only, start.entry)
        try:
            top = tree.name or start.only or b""
            boundary = boundary_of(tree.root, top, one_file_system=self.options.one_file_system)
            terms = Terms(self.options, self._filters, self._secret, self.signer, pack=False)
            context = Destination(terms, tree, start, self.events, preserved)
            # Both ends list what the rules leave, each by its own rule files.
            own = self._filters.at_source(FilteredTree(tree.root, start.only))
            context.filters = replace(context.filters, listed=own)
            checked = Check(
                context,
                self._check,
                self._closed,
                self._on_difference,
                far_is_source=operands.far_is_source,
                boundary=boundary,
            )
            round_ = yield from checked.run(round_)
        finally:
            tree.root.release()
        self._counts = checked.counts
        done = Done(0, 0, 0, 0, 0, self.events.errors, ExitCode.OK)
        yield Send(done, round_)
        return done

    def _started(self) -> Conversation[tuple[Start, int]]:
        from rdc.session.destination.own_tree import next_message

        received = yield from next_message(self.events)
        start, round_ = announced(received, entry_of(self.source.inner))
        self.has_begun = True
        if self._operands.may_be_inside and start.entry is Kind.DIRECTORY:
            raise _FileInDirectoryError
        return start, round_


def _noting(reporter: Reporter, closed: ClosedDirectories) -> Reporter:
    """Return a Reporter that notes where the far end could not read."""

    def report(event: Event) -> None:
        if isinstance(event, Problem):
            closed.note_far(event)
        reporter(event)

    return report
