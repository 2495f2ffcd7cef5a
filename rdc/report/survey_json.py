"""The JSON events of every survey: start, progress, error, summary; one a line, as those of a sync."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rdc.progress import Event, Problem, Progressed
from rdc.report.json_events import JsonEvents, Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rdc.errors import ExitCode

__all__ = ["SurveyJson", "Value"]


class SurveyJson(JsonEvents):
    """A Reporter that writes events; what was found is queued between `start` and `finish`."""

    def __call__(self, event: Event, /) -> None:
        if isinstance(event, Problem):
            self.problem(event)
        elif isinstance(event, Progressed):
            self.progressed(event)

    def finish(self, summary: Mapping[str, Value], code: ExitCode) -> None:
        self.tell("summary", **summary, seconds=self.seconds, exit=int(code))
