"""The output of the verbs that print a list of what they found."""

from __future__ import annotations

from rdc.report.output import TerminalOutput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from rdc.cli.environment import Environment


class Listing(TerminalOutput):
    """Prints all results at the end, then a summary."""

    def __init__(
        self,
        environment: Environment,
        results: Callable[[Any], Iterable[str | bytes]],
        summary: Callable[[Any], str],
        *,
        quiet: bool,
    ) -> None:
        """`results` returns what stdout gets of a report, `summary` the last line. `quiet`: without it."""
        super().__init__(environment.data, environment.talk, environment.progress(quiet=quiet))
        self._environment = environment
        self._results = results
        self._summary = summary
        self._summarised = not quiet

    def finish(self, report: Any) -> None:
        self.close()
        for text in self._results(report):
            if isinstance(text, bytes):
                self._environment.binary(text)
            else:
                self._data(text)
        if self._summarised and (last := self._summary(report)):
            # The listing precedes the summary if both go to one terminal.
            self._environment.flush()
            self._talk(last + "\n")
