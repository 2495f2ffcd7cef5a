"""`rdc check SRC DST`: says what differs between two trees, and changes neither.

It compares content, whatever sizes, times and catalogs say; rdc/session/checking/CHECK.md has what holds.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

from rdc.cli.environment import Environment
from rdc.cli.malloc_settings import keep_freed_memory
from rdc.cli.options.check_options import CHECK_OPTIONS, CheckRequest, parse_check, read_check
from rdc.cli.options.filter_options import read_rule_file
from rdc.cli.options.table import options_help
from rdc.cli.reporting_frame import reporting, reporting_usage
from rdc.errors import ExitCode, RdcError
from rdc.model.check import CheckOptions, CheckReport, EntryDiffers
from rdc.model.location import Location, RemoteShell
from rdc.progress import Reporter
from rdc.typed import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike

    from rdc.catalog.location import UserCatalog
    from rdc.catalog.store import SignatureStore

__all__ = ["OPTIONS", "SUMMARY", "Checker", "help_text", "run"]

OPTIONS = CHECK_OPTIONS

SUMMARY = "compare two directories by content, here or on another host, and change neither"

_INTRODUCTION = """\
Usage: rdc check [OPTIONS] SRC DST

Examples:
  rdc check src/ backup/                 say what differs between both, and how
  rdc check src/ host:backup/            the same over ssh; contents stay where they are
  rdc check src/ rdc://host/module/      the same with a daemon; it may be a read-only module
  rdc check --no-times --exclude='*.o' src/ backup/
  rdc check --sample=1% src/ backup/     compare all metadata, and the content of a hundredth of the files
  rdc check -q src/ backup/ && echo equal

SRC and DST mean what they mean for rdc sync. Both ends read every file, at the same time, and compare
digests. Sizes, times and the catalog are not trusted to tell that content is equal. Neither end changes.
Each line names how an entry differs, then the entry. The words are: missing (at DST), extra (at DST), kind,
content, symlink, time, mode, owner, group, links, acls, xattrs.
"""

_CLOSING = """
Exit codes: 0 equal, 1 different, 64 usage, 23 something could not be read, 24 files changed meanwhile,
2 the far side is no rdc that can check, 5 refused by a daemon, 10, 12, 30, 35 and 127 as for rdc sync.
"""


class Checker(Protocol):
    """The signature of rdc.session.check.check, which tests replace."""

    def __call__(
        self,
        source: Location,
        destination: Location,
        options: CheckOptions,
        *,
        shell: RemoteShell,
        reporter: Reporter,
        on_difference: Callable[[EntryDiffers], None],
        catalog: SignatureStore | UserCatalog | None,
        keys: str | PathLike[str] | None,
    ) -> CheckReport: ...


class _Output(Reporter, Protocol):
    def start(self) -> None: ...
    def differs(self, found: EntryDiffers) -> None: ...
    def finish(self, report: CheckReport) -> None: ...
    def fail(self, error: RdcError) -> None: ...
    def close(self) -> None: ...


def help_text() -> str:
    """Returns the text of --help."""
    return _INTRODUCTION + options_help(OPTIONS) + _CLOSING


def run(words: Sequence[str], environment: Environment, *, checker: Checker | None = None) -> ExitCode:
    """Runs `rdc check` with the words after it. Raises RdcError, which the caller prints."""
    with reporting_usage(words, lambda: _json_output(environment)), _own_codes():
        parsed = parse_check(list(words))
        if parsed.has("--help"):
            environment.show_help(help_text())
            return ExitCode.OK
        request = read_check(parsed, lambda name: read_rule_file(name, environment))
    if checker is None:
        from rdc.session.check import check

        keep_freed_memory()
        checker = check
    return _perform(request, environment, checker)


@contextlib.contextmanager
def _own_codes() -> Iterator[None]:
    """Exit code 1 of this verb means that the trees differ, so wrong usage gets another one."""
    try:
        yield
    except RdcError as error:
        if error.code is ExitCode.USAGE:
            error.code = ExitCode.CHECK_USAGE
        raise


def _perform(request: CheckRequest, environment: Environment, checker: Checker) -> ExitCode:
    sync = request.sync
    output = _json_output(environment) if sync.json else _terminal_output(request, environment)
    with reporting(output), _own_codes():
        output.start()
        with sync.catalog.store() as catalog:
            report = checker(
                sync.source,
                sync.destination,
                request.options,
                shell=sync.shell,
                reporter=output,
                on_difference=output.differs,
                catalog=catalog if request.options.trust_catalog else None,
                keys=sync.keys,
            )
        output.finish(report)
    return report.exit


def _json_output(environment: Environment) -> _Output:
    from rdc.report.check_json import CheckJson

    return CheckJson(environment.data, environment.flush, environment.clock)


def _terminal_output(request: CheckRequest, environment: Environment) -> _Output:
    from rdc.report.check_terminal import CheckTerminal

    style = request.sync.style
    progress = environment.progress(
        quiet=style.quiet, scrolling=environment.stdout_is_terminal, lines=style.progress
    )
    return CheckTerminal(
        environment.data,
        environment.talk,
        progress,
        environment.clock,
        quiet=style.quiet,
        local=style.local,
    )
