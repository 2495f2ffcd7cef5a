"""A sync on a terminal: where its guard stops it, the user is asked whether it may go on."""

from __future__ import annotations

from rdc.model.sync_report import DEFAULT_SHARE, is_stop
from rdc.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.cli.environment import Environment
    from rdc.cli.options.sync_options import SyncRequest
    from rdc.cli.options.table import Words
    from rdc.errors import ExitCode, RdcError
    from rdc.model.sync import SyncOptions
    from rdc.model.sync_report import SyncReport
    from rdc.progress import Event
    from rdc.report.log_file import SyncOutput

__all__ = ["asks", "perform_guarded", "with_default_guard"]

ANSWER_BYTES = 64


class _Watched:
    """Passes everything on, and notes whether the guard stopped the run."""

    def __init__(self, output: SyncOutput) -> None:
        self._output = output
        self.stopped = False

    def __call__(self, event: Event, /) -> None:
        self.stopped = self.stopped or is_stop(event)
        self._output(event)

    def start(self) -> None:
        self._output.start()

    def finish(self, report: SyncReport) -> None:
        self._output.finish(report)

    def fail(self, error: RdcError) -> None:
        self._output.fail(error)

    def close(self) -> None:
        self._output.close()


def perform_guarded(
    request: SyncRequest,
    environment: Environment,
    perform: Callable[[SyncRequest, Callable[[SyncOutput], SyncOutput]], ExitCode],
) -> ExitCode:
    """Performs a request. If its guard stops it, asks; on yes the request is performed without a guard.

    What the first run did is done, so the second one has only the rest to do.
    """
    watched: list[_Watched] = []

    def watch(output: SyncOutput) -> SyncOutput:
        watched.append(_Watched(output))
        return watched[-1]

    code = perform(request, watch)
    if request.options.guard is None or not (watched and watched[-1].stopped) or not _agrees(environment):
        return code
    return perform(replace(request, options=replace(request.options, guard=None)), watch)


def _agrees(environment: Environment) -> bool:
    environment.talk("Do it all the same? [y/N] ")
    try:
        answer = environment.stdin.readline(ANSWER_BYTES)
    except OSError:
        return False
    return answer.strip().lower() in (b"y", b"yes")


def asks(words: Words, environment: Environment) -> bool:
    """Whether someone is there who can be asked, and no program reads what is said."""
    silent = words.has("--json", "--dry-run", "--quiet", "--no-guard")
    return not silent and environment.stdin.isatty()


def with_default_guard(options: SyncOptions, words: Words) -> SyncOptions:
    """`options` with the guard that holds where someone can be asked."""
    if not options.delete or words.has("--guard", "--no-guard"):
        return options
    return replace(options, guard=DEFAULT_SHARE)
