"""Output: what shows a job, and sizes, counts, times and names as text.

A job reports events while it runs. At its end it has a report, or the error that ended it. Here are the
parts of every form for people. The JSON form is in rdc/report/json_output.py.
"""

from __future__ import annotations

from rdc.errors import ExitCode, RdcError, one_line, printable
from rdc.lean.typed import Protocol
from rdc.progress import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any


# Sizes, counts, durations and names as text: for people, for programs and for tables.

_UNITS = ("KB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB")


def size_text(count: int) -> str:
    """Return `count` bytes with three or four digits and a decimal unit: `999 B`, `48.0 KB`, `1.2 GB`."""
    if count < 1000:
        return f"{count} B"
    value = float(count)
    for unit in _UNITS:
        value /= 1000
        # 999.95 would be rounded to 1000.0.
        if value < 999.95 or unit == _UNITS[-1]:
            return f"{value:.1f} {unit}"
    raise AssertionError("unreachable")


def binary_text(count: int) -> str:
    """Return `count` bytes with a binary unit: `999 B`, `46.9 KiB`, `1.1 GiB`."""
    if count < 1024:
        return f"{count} B"
    value = float(count)
    for unit in _UNITS:
        value /= 1024
        if value < 1023.95 or unit == _UNITS[-1]:
            return f"{value:.1f} {unit[0]}iB"
    raise AssertionError("unreachable")


def exact_text(count: int) -> str:
    """Return the exact number of bytes: `1,234,567 bytes`."""
    return f"{count:,} byte" if count == 1 else f"{count:,} bytes"


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """`1 round trip`, `1,204 round trips`, `2 entries`."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def duration_text(seconds: float) -> str:
    """`0:07`, `12:34`, `1:02:03`."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def elapsed_text(seconds: float) -> str:
    """`0.04 s`, `7.2 s`, then as duration_text."""
    if seconds < 1:
        return f"{seconds:.2f} s"
    return f"{seconds:.1f} s" if seconds < 59.95 else duration_text(seconds)


def rate_text(count: int, seconds: float) -> str:
    """`24.6 KB/s`. `seconds` is more than 0."""
    return f"{size_text(int(count / seconds))}/s"


def percent(part: float) -> str:
    """Return a share in per cent. What differs is never shown with 100 %."""
    return f"{min(part * 100, 99.9 if part < 1 else 100.0):5.1f}"


def null_names(names: Iterable[bytes]) -> bytes:
    """Return the bytes of each name followed by NUL. An empty name ends the group."""
    return b"\0".join([*names, b"", b""])


def csv_name(name: bytes) -> str:
    """Return two cells: the name as quoted text, and its bytes in base64 if the text differs from the name.
    It differs if it has escapes or the prefix that `plain_text` adds."""
    import base64

    shown = plain_text(printable(name))
    exact = "" if shown.encode("utf-8") == name else base64.b64encode(name).decode("ascii")
    quoted = shown.replace('"', '""')
    return f'"{quoted}",{exact}'


def plain_text(text: str) -> str:
    """Return `text` as a cell that a spreadsheet does not execute. File names may begin like a formula.

    Such text gets a prefix, and so does text that begins with the prefix, so that the cell can be decoded.
    """
    return f"'{text}" if text[:1] in {"=", "+", "-", "@", "'"} else text


# Output: what shows a job. Its terminal form is here, its JSON form in rdc/report/json_output.py.
#
# A job reports events while it runs. At its end it has a report, or the error that ended it.

LINES = 10
"""Problems of one kind that get lines of their own. The others are counted."""

KINDS = 1000
"""Kinds that are told apart. Problems of further kinds all get lines."""

_NUMBERS = str.maketrans("", "", "0123456789,")
"""Takes away what numbers are made of. This module is loaded at each start, so it uses no patterns."""


CONNECTING = "connecting"
"""The word that a job shows while it waits for another machine, before anybody is asked for a password."""


class Bar(Protocol):
    """The progress of one job on a terminal: a bar, or lines where no bar can be drawn."""

    def follow(self, event: object) -> None:
        """Show what an event says of the progress."""

    def line(self, text: str) -> bool:
        """Print `text` above the bar. Return whether this was done; otherwise the caller prints it."""

    def hide(self) -> None:
        """Remove the bar until the next event draws it again."""

    def wait(self, word: str) -> None:
        """Show that the job waits for another machine."""

    def close(self) -> None:
        """Remove the bar. May be called twice."""


class Output:
    """Shows one job. A Reporter of any job: an event that a form does not show is ignored."""

    def start(self) -> None:
        """Show that the job begins."""

    def __call__(self, event: object, /) -> None:
        """Show one event."""

    def finish(self, report: Any) -> None:
        """Show the result of a job that came to its end."""

    def fail(self, error: RdcError) -> None:
        """Show the error that ended the job. The command line prints it to stderr, for every verb alike."""
        self.close()

    def close(self) -> None:
        """End the output. May be called twice."""


class TerminalOutput(Output):
    """Text for people: results on stdout, problems, progress and a summary on stderr.

    Problems are of one kind if nothing but paths and numbers differs. Each kind gets LINES lines. Subclasses
    add their events and their results.
    """

    def __init__(
        self,
        data: Callable[[str], None],
        talk: Callable[[str], None],
        bar: Bar | None = None,
        *,
        quiet: bool = False,
        unseen: bool = False,
        dials: bool = False,
    ) -> None:
        """Take `data`, which writes whole lines to stdout, and `talk`, which writes them to stderr.

        `quiet`: only problems and results, neither notices nor a summary. `unseen`: neither is a terminal,
        and a run that went well without a notice has no summary, which cron would mail. `dials`: the job
        begins with a connection to another machine.
        """
        self._write_data = data
        self._talk = talk
        self._bar = bar
        self._quiet = quiet
        self._unseen = unseen
        self._dials = dials
        self._kinds: dict[str, int] = {}
        """The number of problems of each kind."""
        self._last: dict[str, str] = {}
        """The text of the last problem of a kind, for kinds of which some are only counted."""
        self.reported = False
        """True if a problem or a notice was printed."""

    def start(self) -> None:
        """Show that a connection is being made."""
        if self._dials and self._bar is not None:
            self._bar.wait(CONNECTING)

    def _data(self, text: str) -> None:
        """Write to stdout, where a bar may be on the same terminal: the next event draws it below."""
        if self._bar is not None:
            self._bar.hide()
        self._write_data(text)

    def _is_silent(self, code: ExitCode) -> bool:
        """Return whether a run that ended with `code` has no summary."""
        return self._quiet or (self._unseen and not self.reported and code is ExitCode.OK)

    def __call__(self, event: object, /) -> None:
        if isinstance(event, Problem):
            self._take(event)
        elif self._bar is not None:
            self._bar.follow(event)

    def finish(self, report: Any) -> None:
        """Show the summary, after everything else is gone from the screen."""
        self.close()
        if not self._is_silent(getattr(report, "exit", ExitCode.OK)) and (text := self.summary(report)):
            self._talk(text + "\n")

    def summary(self, report: Any) -> str:
        """Return the last lines of a run; "" for none."""
        return ""

    def settle(self) -> None:
        """Tell how many problems got no lines, and begin to count again."""
        for kind, said in self._last.items():
            mark = "note: " if kind.startswith("note: ") else ""
            self._say(f"rdc: {mark}{self._kinds[kind] - LINES:,} more like this: {said}")
        self._kinds.clear()
        self._last.clear()

    def close(self) -> None:
        """Tell what was only counted, and remove the bar, before the results are printed."""
        self.settle()
        if self._bar is not None:
            self._bar.close()

    def _take(self, event: Problem) -> None:
        notice = event.code is ExitCode.OK
        if notice and self._quiet:
            return
        message = one_line(event.message)
        mark = "note: " if notice else ""
        said = _without_path(message, event.path_bytes)
        kind = mark + said.translate(_NUMBERS)
        count = self._kinds.get(kind, 0) + 1
        if count > 1 or len(self._kinds) < KINDS:
            self._kinds[kind] = count
        if count <= LINES:
            self._say(f"rdc: {mark}{message}")
        else:
            self._last[kind] = said

    def _say(self, line: str) -> None:
        self.reported = True
        if self._bar is None or not self._bar.line(line):
            self._talk(line + "\n")


class ListOutput(TerminalOutput):
    """Prints all results at the end, then a summary."""

    def __init__(
        self,
        data: Callable[[str], None],
        talk: Callable[[str], None],
        bar: Bar | None,
        *,
        binary: Callable[[bytes], None],
        flush: Callable[[], None],
        results: Callable[[Any], Iterable[str | bytes]],
        last_line: Callable[[Any], str] | None,
    ) -> None:
        """Take `binary`, which writes bytes to stdout, and `flush`, which flushes it. `results` returns what
        stdout gets of a report, `last_line` the summary; None: without it."""
        super().__init__(data, talk, bar)
        self._binary = binary
        self._flush = flush
        self._results = results
        self._last_line = last_line

    def finish(self, report: Any) -> None:
        self.close()
        for text in self._results(report):
            if isinstance(text, bytes):
                self._binary(text)
            else:
                self._data(text)
        if self._last_line is not None and (last := self._last_line(report)):
            # The list precedes the summary if both go to one terminal.
            self._flush()
            self._talk(last + "\n")


def _without_path(message: str, path: bytes) -> str:
    """Return what a message says of the entry at `path`."""
    before, colon, said = message.partition(f"{printable(path)}: ")
    return said if colon and path else before + colon + said
