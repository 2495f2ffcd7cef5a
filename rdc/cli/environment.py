"""The streams, environment variables and clock that a verb uses. Tests pass fakes."""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import sys
import time
from collections.abc import Callable, Mapping

from rdc.errors import ExitCode, RdcError, escaped
from rdc.lean.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO, TextIO

    from rdc.report.output import Bar

__all__ = ["Environment", "OutputClosedError", "process_environment"]


_ESCAPE = "rdc.escape"


class OutputClosedError(Exception):
    """The reader of stdout has closed the pipe. Not an RdcError: no message can reach the reader."""


@dataclass(frozen=True, slots=True)
class Environment:
    """The surroundings of one run. Data goes to stdout, messages go to stderr."""

    stdin: BinaryIO
    stdout: TextIO
    stderr: TextIO
    environ: Mapping[str, str]
    stdout_is_terminal: bool
    stderr_is_terminal: bool
    clock: Callable[[], float]
    """A monotonic clock, in seconds."""

    def data(self, text: str) -> None:
        """Write to stdout. Raises OutputClosedError for a closed pipe, RdcError (11) for a full disk."""
        try:
            self.stdout.write(text)
        except OSError as error:
            raise _output_error(error) from error

    def show_help(self, text: str) -> None:
        """Write a help text to stdout, folded to the terminal's width. Raises as data() does."""
        from rdc.cli.help_page import folded, page_width

        self.data(folded(text, page_width(self.stdout, self.environ)))

    def binary(self, data: bytes) -> None:
        """Write bytes to stdout, such as file names. Raises as data() does."""
        try:
            self.stdout.flush()
            self.stdout.buffer.write(data)
        except OSError as error:
            raise _output_error(error) from error

    def buffer(self, mode: str | None) -> None:
        """Set how stdout is buffered: "N" not at all, "L" by lines, "B" by blocks; None leaves it."""
        if mode is not None and isinstance(self.stdout, io.TextIOWrapper):
            self.stdout.reconfigure(line_buffering=mode == "L", write_through=mode == "N")

    def flush(self) -> None:
        """Flush stdout. Raises as data() does."""
        try:
            self.stdout.flush()
        except OSError as error:
            raise _output_error(error) from error

    def talk(self, text: str) -> None:
        """Write to stderr. Ignores errors, because no other place for messages is left."""
        with contextlib.suppress(OSError):
            self.stderr.write(text)
            self.stderr.flush()

    @property
    def color(self) -> bool:
        """Return whether colour is wanted: NO_COLOR is unset or empty (https://no-color.org)."""
        return not self.environ.get("NO_COLOR")

    @property
    def can_redraw(self) -> bool:
        """Return whether stderr is a terminal that can move its cursor."""
        return self.stderr_is_terminal and self.environ.get("TERM", "") not in ("", "dumb")

    def progress(self, *, quiet: bool, scrolling: bool = False, lines: bool = False) -> Bar | None:
        """Return a progress bar, progress lines, or None if the run shows no progress.

        A bar needs a terminal that can redraw. `scrolling` says that names scroll on the same terminal, where
        a bar would interrupt them. `lines` asks for progress lines in place of a bar that is impossible.
        """
        if self.can_redraw and not quiet and not scrolling:
            from rdc.report.progress_display import ProgressBar

            return ProgressBar(self.stderr, self.clock, color=self.color)
        if lines and not quiet:
            from rdc.report.progress_display import ProgressLines

            return ProgressLines(self.talk, self.clock)
        return None


def process_environment() -> Environment:
    """Return the Environment of this process. /dev/null replaces a stream that was closed at the start."""
    if sys.stdin is None or sys.stdout is None or sys.stderr is None:
        null = os.open(os.devnull, os.O_RDWR)
        sys.stdin = sys.stdin or os.fdopen(os.dup(null), "r")
        sys.stdout = sys.stdout or os.fdopen(os.dup(null), "w")
        sys.stderr = sys.stderr or os.fdopen(os.dup(null), "w")
        os.close(null)
    codecs.register_error(_ESCAPE, _escaped)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A file name may hold characters that the locale lacks. They must not end the run.
            stream.reconfigure(errors=_ESCAPE)
    return Environment(
        stdin=sys.stdin.buffer,
        stdout=sys.stdout,
        stderr=sys.stderr,
        environ=os.environ,
        stdout_is_terminal=sys.stdout.isatty(),
        stderr_is_terminal=sys.stderr.isatty(),
        clock=time.monotonic,
    )


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """Escape characters that the stream cannot encode.

    Python's "backslashreplace" shows U+00E9 and the undecodable byte E9 alike; this handler does not.
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(escaped, error.object[error.start : error.end])), error.end


def _output_error(error: OSError) -> Exception:
    """Translate an error of a write to stdout."""
    if isinstance(error, BrokenPipeError):
        return OutputClosedError()
    return RdcError(f"cannot write to standard output: {error.strerror}", code=ExitCode.FILE_IO)
