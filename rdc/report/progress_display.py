"""The progress on a terminal while a job runs: a bar, or lines where no bar can be drawn, or one status line.

A ProgressTrack makes of the events a value that only grows. StatusLine draws.
"""

from __future__ import annotations

import os

from rdc.lean.enums import signal
from rdc.lean.records import Record
from rdc.progress import ItemChanged, PlanKnown, Progressed
from rdc.report.output import counted, duration_text, rate_text, size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType
    from typing import TextIO


PHASES = {
    "compare": "comparing",
    "transfer": "transferring",
    "delete": "deleting",
    "undo": "undoing",
    "read": "reading",
    "share": "sharing",
    "excerpts": "reading again",
    "write": "writing",
}
"""Phases in order, with the words shown to users. A scan has only "read"."""


COUNTED = frozenset(("delete", "undo", "excerpts", "write"))
"""Phases that count entries or documents. The others count bytes."""


class PhaseProgress(Record):
    """The progress at one moment."""

    phase: str
    done: int
    """Entries in a phase of COUNTED, bytes in the others."""
    total: int | None
    """None while unknown."""


_ORDER = {phase: order for order, phase in enumerate(PHASES)}


class ProgressTrack:
    """Follows the events of one job. Phases come in order; a late event of an earlier phase is ignored.

    Files are transferred while others are still compared. The comparison is shown until it ends, if its total
    is known, because only then is the total of the transfer known.
    """

    def __init__(self) -> None:
        self._progress_by_phase = {phase: PhaseProgress(phase, 0, None) for phase in PHASES}
        self._phase = "compare"
        self._plan: PlanKnown | None = None
        self._entries = 0

    @property
    def entries_text(self) -> str:
        """`120/300 entries` of a transfer; "" while there is nothing to tell. A far destination names no
        entries without -i or -v, so that only their total is known: `300 entries`."""
        if self._phase != "transfer" or self._plan is None or not self._plan.files:
            return ""
        total = self._plan.files
        done = f"{min(self._entries, total):,}/" if self._entries else ""
        return f"{done}{counted(total, 'entry', 'entries')}"

    @property
    def phase_progress(self) -> PhaseProgress:
        return self._progress_by_phase[self._phase]

    def follow(self, event: object) -> None:
        if isinstance(event, PlanKnown):
            if self._plan is None:
                self._plan = event
                # A first copy transfers while it still compares; the plan then only adds the total.
                self._advance("transfer", 0, None)
        elif isinstance(event, ItemChanged):
            self._entries += event.change[:1] != "*"
        elif isinstance(event, Progressed):
            self._advance(event.phase, event.done, event.total)

    def _advance(self, phase: str, done: int, total: int | None) -> None:
        if phase not in _ORDER or _ORDER[phase] < _ORDER[self._phase]:
            return
        before = self._progress_by_phase[phase]
        total = self._total(before, total)
        if total is not None:
            total = max(total, before.done)
            done = min(done, total)
        self._progress_by_phase[phase] = PhaseProgress(phase, max(before.done, done), total)
        compare = self._progress_by_phase["compare"]
        compared = compare.total is None or compare.done >= compare.total
        if self._phase != "compare" or phase not in ("compare", "transfer"):
            self._phase = phase
        elif compared and (phase == "transfer" or self._plan is not None):
            self._phase = "transfer"
            self._progress_by_phase["transfer"] = self._bounded(self._progress_by_phase["transfer"])

    def _bounded(self, phase_progress: PhaseProgress) -> PhaseProgress:
        total = self._total(phase_progress, None)
        return (
            phase_progress
            if total is None
            else PhaseProgress(phase_progress.phase, min(phase_progress.done, total), total)
        )

    def _total(self, before: PhaseProgress, announced: int | None) -> int | None:
        """Return the first total announced, so that growing files cannot move the bar back."""
        if before.total is not None:
            return before.total
        if before.phase not in ("transfer", "delete"):
            return announced
        if self._plan is None:
            return None
        return self._plan.bytes if before.phase == "transfer" else self._plan.deletes


def detail_text(phase_progress: PhaseProgress) -> str:
    """Done and total: `1.2 GB of 3.4 GB`, `7 of 9`."""
    shown = "{:,}".format if phase_progress.phase in COUNTED else size_text
    done = shown(phase_progress.done)
    return done if phase_progress.total is None else f"{done} of {shown(phase_progress.total)}"


def progress_text(phase_progress: PhaseProgress) -> str:
    return f"{PHASES[phase_progress.phase]}: {detail_text(phase_progress)}"


class _Phase:
    """A track with the time since its phase began."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` returns seconds and never goes back."""
        self.clock = clock
        self.track = ProgressTrack()
        self._name = ""
        self._began = clock()
        self._from = self._line = self._line_from = 0

    def follow(self, event: object) -> PhaseProgress:
        self.track.follow(event)
        progress = self.track.phase_progress
        if isinstance(event, Progressed) and event.line_bytes is not None:
            self._line = event.line_bytes
        if progress.phase != self._name:
            self._name, self._began, self._from = progress.phase, self.clock(), progress.done
            self._line_from = self._line
        return progress

    def left(self) -> str:
        """Return how long the phase will take: `0:07 left`; "" while that is unknown."""
        progress = self.track.phase_progress
        if not progress.total or not progress.done or progress.done == progress.total:
            return ""
        seconds = (self.clock() - self._began) * (progress.total - progress.done) / progress.done
        return f"{duration_text(seconds)} left"

    def rate(self) -> str:
        """Return the bytes a second of content, and in a transfer those on the line; "" without any."""
        seconds, done = self.clock() - self._began, self.track.phase_progress.done - self._from
        if self._name in COUNTED or not done or seconds <= 0:
            return ""
        line = self._line - self._line_from if self._name == "transfer" else 0
        return rate_text(done, seconds) + (f", line {rate_text(line, seconds)}" if line else "")


SHOW_AFTER = 0.5
"""Seconds of work before a bar appears. A bar that vanishes at once tells nothing."""

BAR_WIDTH = 20
"""Columns of a bar, between its brackets."""

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
        self._clock = clock
        self._status = StatusLine(stream, color=color, size=None if width is None else lambda: width)
        self._phase = _Phase(clock)
        self._began = clock()
        self._drawn = float("-inf")

    def wait(self, word: str) -> None:
        """Show that the job waits for another machine."""
        self._status.note(word)

    def follow(self, event: object) -> None:
        progress = self._phase.follow(event)
        now = self._clock()
        if now - self._began < SHOW_AFTER or now - self._drawn < REFRESH_INTERVAL:
            return
        self._drawn = now
        parts = [progress_text(progress), self._phase.left()]
        if progress.total:
            filled = BAR_WIDTH * progress.done // progress.total
            parts.append(f"[{'#' * filled:.<{BAR_WIDTH}}]")
        parts += [self._phase.rate(), self._phase.track.entries_text]
        # Parts without room are left out from the end: the figures matter most.
        self._status.show(list(filter(None, parts)))

    def line(self, text: str) -> bool:
        """Print `text` above the bar. Returns False if there is no bar; the caller then prints it."""
        return self._status.line(text)

    def hide(self) -> None:
        """Remove the bar until an event draws it again."""
        self._status.hide()

    def close(self) -> None:
        self._status.close()


LINE_INTERVAL = 1.0
"""Seconds between two lines, as in rsync."""


class ProgressLines:
    """Writes at most one line per second, and one when a phase with a known total reaches it."""

    def __init__(self, talk: Callable[[str], None], clock: Callable[[], float]) -> None:
        """`talk` takes whole lines. `clock` returns seconds and never goes back."""
        self._talk = talk
        self._clock = clock
        self._phase = _Phase(clock)
        self._written = clock()
        self._last = ""

    def wait(self, word: str) -> None:
        """Do nothing: a line is about progress."""

    def follow(self, event: object) -> None:
        progress, now = self._phase.follow(event), self._clock()
        complete = bool(progress.total) and progress.done == progress.total
        if not progress.done and progress.total is None:
            return  # nothing has happened yet
        if not complete and now - self._written < LINE_INTERVAL:
            return
        share = f"{progress.done * 100 // progress.total} %" if progress.total and not complete else ""
        text = ", ".join(filter(None, (progress_text(progress), share, self._phase.left())))
        if text == self._last:
            return
        self._last, self._written = text, now
        self._talk(text + "\n")

    def line(self, text: str) -> bool:
        """Do nothing: the caller prints `text`."""
        return False

    def hide(self) -> None:
        """Do nothing: lines stay."""

    def close(self) -> None:
        """Do nothing: there is nothing to remove from a terminal."""


GREEN, YELLOW = 32, 33

ELLIPSIS = "…"


def columns(text: str) -> int:
    """Columns that printable text takes on a terminal: none for combining characters, two for wide ones."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


def fitted(parts: Sequence[str], width: int) -> str:
    """Join parts by two blanks. The first part is always taken, cut if it is too long. The others are taken
    up to the first that has no room."""
    text = parts[0]
    for part in parts[1:]:
        if columns(text) + 2 + columns(part) > width:
            break
        text += "  " + part
    if columns(text) <= width:
        return text
    while text and columns(text) > width - 1:
        text = text[:-1]
    return text + ELLIPSIS if width > 0 else ""


class StatusLine:
    """Shows a line on `stream` until close(), which removes it. It follows the window's size while it is
    open."""

    def __init__(
        self, stream: TextIO, *, color: bool, size: Callable[[], int] | None = None, encoding: str = ""
    ) -> None:
        """`size`: columns of the terminal; None: ask it."""
        self._stream = stream
        self._color = color
        self._size = size or self._ask
        self._encoding = encoding or getattr(stream, "encoding", None) or "ascii"
        self._parts: Sequence[str] = ()
        self._good = True
        self._drawn = 0
        """Columns of the line on the screen; 0 if there is none."""
        self._busy = False
        self._resized = False
        self._before: Callable[[int, FrameType | None], object] | int | None = None
        self._listening = False

    def show(self, parts: Sequence[str], *, good: bool = True) -> None:
        """Show `parts`: printable text, the most important first. `good`: whether nothing is wrong."""
        self._parts, self._good = parts, good
        self._listen()
        self._write(self._wipe() + self._draw())

    def note(self, word: str) -> None:
        """Show a word and leave the cursor at its start: what another program asks on the terminal, such as
        ssh for a password, takes its place. It has to be shorter than any such question."""
        self._parts, self._drawn = (), columns(word)
        self._write(f"{word}\r")

    def line(self, text: str) -> bool:
        """Print `text` above the line. Returns False if no line is shown; the caller then prints it."""
        if not self._drawn:
            return False
        self._write(self._wipe() + text + "\n" + self._draw())
        return True

    def hide(self) -> None:
        """Remove the line until it is shown again."""
        if self._drawn:
            self._write(self._wipe())

    def close(self) -> None:
        self.hide()
        if self._listening:
            self._listening = False
            signal.signal(signal.SIGWINCH, self._before or signal.SIG_DFL)

    def _wipe(self) -> str:
        """Remove the line and move the cursor to its start. A terminal that became narrower has wrapped it
        into several lines."""
        rows = -(-self._drawn // max(1, self._size())) if self._drawn else 1
        self._drawn = 0
        up = f"\x1b[{rows - 1}A" if rows > 1 else ""
        return f"\r{up}\x1b[J"

    def _draw(self) -> str:
        if not self._parts:
            return ""
        # One column less: on some terminals, a full row would move the cursor to the next one.
        text = fitted(self._parts, self._size() - 1)
        text = text.encode(self._encoding, "replace").decode(self._encoding)
        self._drawn = columns(text)
        if not self._color:
            return text
        word, space, rest = text.partition(" ")
        return f"\x1b[{GREEN if self._good else YELLOW}m{word}\x1b[0m{space}{rest}"

    def _write(self, text: str) -> None:
        self._busy = True
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:
            pass  # the terminal is gone
        finally:
            self._busy = False
        if self._resized:
            self._resized = False
            self._write(self._wipe() + self._draw())

    def _ask(self) -> int:
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or 80
        except (OSError, ValueError):
            return 80

    def _listen(self) -> None:
        if self._listening:
            return
        try:
            self._before = signal.signal(signal.SIGWINCH, self._on_resize)
            signal.siginterrupt(signal.SIGWINCH, False)
        except ValueError:
            return  # not the main thread
        self._listening = True

    def _on_resize(self, _number: int, _frame: FrameType | None) -> None:
        # A signal may interrupt a write, and a stream cannot be written to while it is being written to.
        if self._busy:
            self._resized = True
        elif self._drawn:
            self._write(self._wipe() + self._draw())
