"""Progress as plain lines, for a log or for a terminal that also lists names."""

from __future__ import annotations

from collections.abc import Callable

from rdc.progress import Event
from rdc.report.progress_track import ProgressTrack, standing_text
from rdc.report.sizes import duration_text

__all__ = ["LINE_INTERVAL", "ProgressLines"]

LINE_INTERVAL = 1.0
"""Seconds between two lines, as in rsync."""


class ProgressLines:
    """Writes at most one line per second, and one when a phase with a known total reaches it."""

    def __init__(self, talk: Callable[[str], None], clock: Callable[[], float]) -> None:
        """`talk` takes whole lines. `clock` returns seconds and never goes back."""
        self._talk = talk
        self._clock = clock
        self._track = ProgressTrack()
        self._written = clock()
        self._phase = ""
        self._phase_began = clock()
        self._last = ""

    def follow(self, event: Event) -> None:
        self._track.follow(event)
        standing, now = self._track.standing, self._clock()
        if standing.phase != self._phase:
            self._phase, self._phase_began = standing.phase, now
        complete = bool(standing.total) and standing.done == standing.total
        if not standing.done and standing.total is None:
            return  # nothing has happened yet
        if not complete and now - self._written < LINE_INTERVAL:
            return
        text = standing_text(standing)
        if standing.total and not complete:
            text += f", {standing.done * 100 // standing.total} %"
            if standing.done:
                left = (now - self._phase_began) * (standing.total - standing.done) / standing.done
                text += f", {duration_text(left)} left"
        if text == self._last:
            return
        self._last, self._written = text, now
        self._talk(text + "\n")

    def line(self, text: str) -> bool:
        """Does nothing: the caller prints `text`."""
        return False

    def close(self) -> None:
        """Does nothing: there is nothing to remove from a terminal."""
