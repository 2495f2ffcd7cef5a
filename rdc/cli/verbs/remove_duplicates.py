"""The part of `rdc dupes` that removes duplicates: --delete, --move and --symlink."""

from __future__ import annotations

import os

from rdc.cli.reporting_frame import reporting
from rdc.duplicates.group import is_below
from rdc.duplicates.remove import Remover
from rdc.duplicates.run_totals import DedupeReporter
from rdc.errors import ExitCode, UsageError, printable
from rdc.library.dedupe_operands import Operands, open_operands
from rdc.library.duplicate_groups import find_groups
from rdc.model.home import state_directory
from rdc.model.removal import RemovalOptions
from rdc.records import replace
from rdc.typed import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.catalog.location import UserCatalog
    from rdc.catalog.store import SignatureStore
    from rdc.cli.environment import Environment
    from rdc.cli.options.removal_options import RemovalRequest
    from rdc.errors import RdcError
    from rdc.model.duplicates import DuplicateOptions
    from rdc.model.instances import DedupeReport

__all__ = ["remove_duplicates"]


class _Output(DedupeReporter, Protocol):
    def start(self) -> None: ...
    def finish(self, report: DedupeReport, journal: bytes | None) -> None: ...
    def fail(self, error: RdcError) -> None: ...
    def close(self) -> None: ...


def remove_duplicates(
    paths: list[bytes],
    request: RemovalRequest,
    search: DuplicateOptions,
    store: SignatureStore | UserCatalog | None,
    environment: Environment,
    *,
    json: bool,
    quiet: bool,
) -> ExitCode:
    """Finds the sets and removes all files of each but one. Raises RdcError."""
    from rdc.catalog.location import opened_catalog
    from rdc.progress import Problem

    output = (
        _json_output(request, environment) if json else _terminal_output(request, environment, quiet=quiet)
    )

    def notice(event: object) -> None:
        if isinstance(event, Problem):
            output(event)

    with reporting(output):
        output.start()
        operands = open_operands(paths, request.keep_in)
        try:
            remover = Remover(operands.trees, _options(request, operands, paths, environment), output)
            try:
                remover.clear()
                with opened_catalog(store, notice) as catalog:
                    search = replace(search, links=True, verify=False)
                    remover.groups(find_groups(operands, search, catalog, output, remover.failed))
                report = remover.finish()
            finally:
                remover.close()
        finally:
            operands.close()
        output.finish(report, remover.journal)
    return report.exit


def _options(
    request: RemovalRequest, operands: Operands, paths: list[bytes], environment: Environment
) -> RemovalOptions:
    state = state_directory(environment.environ)
    journal, pointer = request.journal, None
    if request.apply and journal is None:
        journal = _journal_path(state)
    elif request.apply and state is not None:
        pointer = _journal_path(state)
    return RemovalOptions(
        action=request.action,
        apply=request.apply,
        rules=request.rules,
        keep_in=operands.keep,
        only_in=tuple(os.path.realpath(path) for path in request.only_in),
        destination=_destination(request, operands),
        sources=_sources(operands, paths),
        journal=journal,
        pointer=pointer,
        journals=None if state is None else os.fsencode(state),
    )


def _destination(request: RemovalRequest, operands: Operands) -> bytes:
    """Returns the real DIR of --move. Raises UsageError if it lies in what is searched."""
    destination = os.path.realpath(request.destination) if request.destination else b""
    for operand in operands.all:
        if destination and (
            is_below(destination, operand.tree.real)
            if operand.only is None
            else destination == operand.tree.real
        ):
            raise UsageError(
                f"--move={printable(request.destination)} lies in {printable(operand.label)}, so that the"
                " next run would find the moved files again; name a directory elsewhere"
            )
    return destination


def _sources(operands: Operands, paths: list[bytes]) -> frozenset[int]:
    """Returns the numbers of the trees that are PATHs or lie in one."""
    real = [os.path.realpath(path) for path in paths]
    found = set()
    for number, operand in enumerate(operands.all):
        top = os.path.join(operand.tree.real, operand.only or b"").rstrip(b"/") or b"/"
        if any(is_below(top, path) for path in real):
            found.add(number)
    return frozenset(found)


def _journal_path(directory: str | None) -> bytes:
    """Returns a new path in the user's state directory."""
    from datetime import datetime

    if directory is None:
        raise UsageError("there is no home directory for the journal; name a file with --journal=FILE")
    name = f"dupes-{datetime.now():%Y%m%d-%H%M%S-%f}-{os.getpid()}.journal"
    return os.fsencode(os.path.join(directory, name))


def _json_output(request: RemovalRequest, environment: Environment) -> _Output:
    from rdc.report.dedupe_json import DedupeJson

    return DedupeJson(environment.data, environment.flush, environment.clock, dry_run=not request.apply)


def _terminal_output(request: RemovalRequest, environment: Environment, *, quiet: bool) -> _Output:
    from rdc.report.removal_terminal import RemovalTerminal

    progress = environment.progress(quiet=quiet, scrolling=environment.stdout_is_terminal)
    return RemovalTerminal(
        environment.data, environment.talk, progress, dry_run=not request.apply, quiet=quiet
    )
