"""Progress as plain lines, for a log or for a terminal that also lists names."""

from __future__ import annotations

from collections.abc import Callable

from rdc.progress import Event
from rdc.report.progress_track import ProgressTrack, progress_text
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
        phase_progress, now = self._track.phase_progress, self._clock()
        if phase_progress.phase != self._phase:
            self._phase, self._phase_began = phase_progress.phase, now
        complete = bool(phase_progress.total) and phase_progress.done == phase_progress.total
        if not phase_progress.done and phase_progress.total is None:
            return  # nothing has happened yet
        if not complete and now - self._written < LINE_INTERVAL:
            return
        text = progress_text(phase_progress)
        if phase_progress.total and not complete:
            text += f", {phase_progress.done * 100 // phase_progress.total} %"
            if phase_progress.done:
                left = (
                    (now - self._phase_began)
                    * (phase_progress.total - phase_progress.done)
                    / phase_progress.done
                )
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
