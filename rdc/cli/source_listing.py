"""`rdc sync --list-only SRC`, and `rdc sync SRC` without a DST: lists what would be synced."""

from __future__ import annotations

import os

from rdc.cli.environment import Environment
from rdc.cli.options.filter_options import read_rule_file
from rdc.cli.options.sync_options import read_request
from rdc.cli.options.table import Words
from rdc.cli.reporting_frame import reporting
from rdc.errors import ExitCode, StoppedError, UsageError
from rdc.limits.paths import SELECTED_LIST_BYTES
from rdc.report.entry_lines import entry_line
from rdc.report.trouble import Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.errors import RdcError
    from rdc.progress import Event
    from rdc.session.listing import ListedEntry

__all__ = ["list_operand"]


class _Output:
    """What a listing prints: entries on stdout, problems on stderr."""

    def __init__(self, environment: Environment, *, level: int, quiet: bool) -> None:
        self._data = environment.data
        self._level = level
        self._trouble = Trouble(environment.talk, None, quiet=quiet)

    def __call__(self, event: Event, /) -> None:
        self._trouble(event)

    def entry(self, entry: ListedEntry) -> None:
        self._data(entry_line(entry, level=self._level) + "\n")

    def fail(self, error: RdcError) -> None:
        """The command line prints the error."""

    def close(self) -> None:
        self._trouble.close()


def list_operand(words: Words, environment: Environment) -> ExitCode:
    """Lists the first operand. Raises RdcError."""
    if words.has("--json"):
        raise UsageError("--list-only and --json exclude each other: a listing has no events")
    # The destination takes no part; the options are read as for any.
    operands = (words.operands[0], os.devnull) if len(words.operands) == 1 else words.operands
    request = read_request(
        Words(words.given, operands),
        lambda name: read_rule_file(name, environment),
        read_list=lambda name: read_rule_file(name, environment, limit=SELECTED_LIST_BYTES, of="paths"),
    )
    environment.buffer(request.buffering)
    from rdc.session.listing import list_source

    output = _Output(environment, level=request.style.level, quiet=request.style.quiet)
    with reporting(output):
        try:
            report = list_source(
                request.source,
                request.options,
                output.entry,
                shell=request.shell,
                reporter=output,
                keys=request.keys,
                stop=request.deadline,
            )
        except StoppedError as error:
            if request.deadline is None:
                raise
            raise request.deadline.error from error
    return report.exit
