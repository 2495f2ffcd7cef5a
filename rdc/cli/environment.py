"""What a verb sees of its process: streams, environment variables and a clock, so that tests hand in
fakes."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import time
from collections.abc import Callable, Mapping

from rdc.errors import ExitCode, RdcError
from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO, TextIO

    from rdc.report.progress_bar import ProgressBar
    from rdc.report.progress_lines import ProgressLines

__all__ = ["Environment", "OutputClosedError", "process_environment"]


class OutputClosedError(Exception):
    """Whoever read stdout has gone; not an RdcError, because no file is to blame and nobody is left to
    tell."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Data goes to stdout, talk to stderr."""

    stdin: BinaryIO
    stdout: TextIO
    stderr: TextIO
    environ: Mapping[str, str]
    stdout_is_terminal: bool
    stderr_is_terminal: bool
    clock: Callable[[], float]
    """Seconds that never go back."""

    def data(self, text: str) -> None:
        """Write to stdout. Raises OutputClosedError for a closed pipe, RdcError (11) for a full disk."""
        try:
            self.stdout.write(text)
        except OSError as error:
            raise _output_error(error) from error

    def show_help(self, text: str) -> None:
        """Write a help text to stdout, folded to the width there is; raises as data() does."""
        from rdc.cli.help_page import folded, page_width

        self.data(folded(text, page_width(self.stdout, self.environ)))

    def binary(self, data: bytes) -> None:
        """As data(), of bytes that are no text, such as names."""
        try:
            self.stdout.flush()
            self.stdout.buffer.write(data)
        except OSError as error:
            raise _output_error(error) from error

    def flush(self) -> None:
        """Push out what was written to stdout; raises as data() does."""
        try:
            self.stdout.flush()
        except OSError as error:
            raise _output_error(error) from error

    def talk(self, text: str) -> None:
        """Write to stderr; where nobody listens there is nobody to tell."""
        with contextlib.suppress(OSError):
            self.stderr.write(text)
            self.stderr.flush()

    @property
    def color(self) -> bool:
        """Colour is wanted unless NO_COLOR is set and not empty (https://no-color.org)."""
        return not self.environ.get("NO_COLOR")

    @property
    def can_redraw(self) -> bool:
        """stderr is a terminal that can move its cursor."""
        return self.stderr_is_terminal and self.environ.get("TERM", "") not in ("", "dumb")

    def progress(
        self, *, quiet: bool, scrolling: bool = False, lines: bool = False
    ) -> ProgressBar | ProgressLines | None:
        """What shows how far a verb is: a bar where one can be drawn, else `lines` where they are asked for.

        `scrolling`: names go to the same terminal; they are progress enough, and a bar would tear them apart.
        """
        if self.can_redraw and not quiet and not scrolling:
            from rdc.report.progress_bar import ProgressBar

            return ProgressBar(self.stderr, self.clock, color=self.color)
        if lines and not quiet:
            from rdc.report.progress_lines import ProgressLines

            return ProgressLines(self.talk, self.clock)
        return None


def process_environment() -> Environment:
    """The Environment of this process; a stream that was closed at its start is replaced by /dev/null."""
    if sys.stdin is None or sys.stdout is None or sys.stderr is None:
        null = os.open(os.devnull, os.O_RDWR)
        sys.stdin = sys.stdin or os.fdopen(os.dup(null), "r")
        sys.stdout = sys.stdout or os.fdopen(os.dup(null), "w")
        sys.stderr = sys.stderr or os.fdopen(os.dup(null), "w")
        os.close(null)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A locale that lacks a character of a file's name must not end the run.
            stream.reconfigure(errors="backslashreplace")
    return Environment(
        stdin=sys.stdin.buffer,
        stdout=sys.stdout,
        stderr=sys.stderr,
        environ=os.environ,
        stdout_is_terminal=sys.stdout.isatty(),
        stderr_is_terminal=sys.stderr.isatty(),
        clock=time.monotonic,
    )


def _output_error(error: OSError) -> Exception:
    if isinstance(error, BrokenPipeError):
        return OutputClosedError()
    return RdcError(f"cannot write to standard output: {error.strerror}", code=ExitCode.FILE_IO)
