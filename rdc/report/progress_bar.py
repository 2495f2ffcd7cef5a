"""A progress bar on a terminal, drawn by rich. rich is imported when the first bar appears."""

from __future__ import annotations

from collections.abc import Callable

from rdc.progress import Event
from rdc.report.progress_track import PHASES, PhaseProgress, ProgressTrack, detail_text
from rdc.report.sizes import rate_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

    from rich.progress import Progress, TaskID

__all__ = ["REFRESH_INTERVAL", "SHOW_AFTER", "ProgressBar"]

SHOW_AFTER = 0.5
"""Seconds of work before a bar appears. A bar that vanishes at once tells nothing."""

BAR_WIDTH = 50
"""Columns from which there is room for a bar beside the figures."""

TIME_WIDTH = 42
"""Columns for `transferring 999.9 MB of 999.9 GB 0:00:00`."""

RATE_WIDTH = 72
"""Columns from which there is room for a rate, `999.9 MB/s`."""

ENTRIES_WIDTH = 100
"""Columns from which there is room for the entries, `9,999/9,999 entries`."""

REFRESH_INTERVAL = 0.1
"""Seconds between redraws. Events trigger them; there is no drawing thread."""


class ProgressBar:
    """Shows the progress of one job on `stream` until close(), which removes it. A later event draws it
    again."""

    def __init__(
        self,
        stream: TextIO,
        clock: Callable[[], float],
        *,
        color: bool,
        width: int | None = None,
    ) -> None:
        """`clock` returns seconds. `width` in columns; None: the terminal's."""
        self._stream = stream
        self._clock = clock
        self._color = color
        self._width = width
        self._began = clock()
        self._drawn = float("-inf")
        self._track = ProgressTrack()
        self._progress: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._phase = ""
        self._phase_began = self._began
        self._phase_from = 0

    def follow(self, event: Event) -> None:
        self._track.follow(event)
        now = self._clock()
        if self._track.phase_progress.phase != self._phase:
            self._phase, self._phase_began = self._track.phase_progress.phase, now
            self._phase_from = self._track.phase_progress.done
        if now - self._began < SHOW_AFTER or now - self._drawn < REFRESH_INTERVAL:
            return
        self._drawn = now
        if self._progress is None:
            self._progress = self._open()
        self._show(self._progress, self._track.phase_progress)

    def line(self, text: str) -> bool:
        """Prints `text` above the bar. Returns False if there is no bar; the caller then prints it."""
        if self._progress is None:
            return False
        self._progress.console.print(text, markup=False, highlight=False, soft_wrap=True)
        return True

    def close(self) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None
            self._tasks.clear()  # they belong to the bar that is gone

    def _show(self, progress: Progress, phase_progress: PhaseProgress) -> None:
        task = self._tasks.get(phase_progress.phase)
        if task is None:
            for earlier in self._tasks.values():
                progress.update(earlier, visible=False)
            task = progress.add_task(PHASES[phase_progress.phase], total=phase_progress.total, detail="")
            self._tasks[phase_progress.phase] = task
        progress.update(
            task,
            completed=phase_progress.done,
            total=phase_progress.total,
            detail=self._detail(progress.console.width, phase_progress),
        )
        progress.refresh()

    def _detail(self, width: int, phase_progress: PhaseProgress) -> str:
        """What is done, and as far as there is room, the rate and the entries."""
        text = detail_text(phase_progress)
        seconds = self._clock() - self._phase_began
        done = phase_progress.done - self._phase_from
        if width >= RATE_WIDTH and phase_progress.phase != "delete" and done and seconds > 0:
            text += f", {rate_text(done, seconds)}"
        if width >= ENTRIES_WIDTH and (entries := self._track.entries_text):
            text += f", {entries}"
        return text

    def _open(self) -> Progress:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn

        console = Console(
            file=self._stream,
            force_terminal=True,
            no_color=not self._color,
            color_system="standard" if self._color else None,
            width=self._width,
        )
        # The figures matter most and must not be cut off to make room for the rest.
        columns: list[ProgressColumn] = [
            TextColumn("{task.description}"),
            TextColumn("{task.fields[detail]}"),
        ]
        if console.width >= BAR_WIDTH:
            figures = 55 if console.width >= ENTRIES_WIDTH else 33 if console.width >= RATE_WIDTH else 20
            columns.insert(1, BarColumn(max(5, min(40, console.width - 24 - figures))))
        if console.width >= TIME_WIDTH:
            columns.append(TimeRemainingColumn())
        progress = Progress(
            *columns,
            console=console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            get_time=self._clock,
        )
        progress.start()
        return progress
