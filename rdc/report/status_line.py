"""StatusLine: one line at the bottom of a terminal that is redrawn, also when the window's width changes."""

from __future__ import annotations

import os
import signal
import unicodedata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType
    from typing import TextIO

__all__ = ["StatusLine", "columns", "fitted"]

GREEN, YELLOW = 32, 33

ELLIPSIS = "…"


def columns(text: str) -> int:
    """Columns that printable text takes on a terminal: none for combining characters, two for wide ones."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


def fitted(parts: Sequence[str], width: int) -> str:
    """Joins parts by two blanks. The first part is always taken, cut if it is too long. The others are taken
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
        """`parts`: printable text, the most important first. `good`: whether nothing is wrong."""
        self._parts, self._good = parts, good
        self._listen()
        self._write(self._wipe() + self._draw())

    def line(self, text: str) -> bool:
        """Prints `text` above the line. Returns False if no line is shown; the caller then prints it."""
        if not self._drawn:
            return False
        self._write(self._wipe() + text + "\n" + self._draw())
        return True

    def close(self) -> None:
        if self._drawn:
            self._write(self._wipe())
        if self._listening:
            self._listening = False
            signal.signal(signal.SIGWINCH, self._before or signal.SIG_DFL)

    def _wipe(self) -> str:
        """Removes the line and moves the cursor to its start. A terminal that became narrower has wrapped it
        into several lines."""
        rows = -(-self._drawn // max(1, self._size())) if self._drawn else 1
        self._drawn = 0
        up = f"\x1b[{rows - 1}A" if rows > 1 else ""
        return f"\r{up}\x1b[J"

    def _draw(self) -> str:
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
        except ValueError:
            return  # not the main thread
        self._listening = True

    def _on_resize(self, _number: int, _frame: FrameType | None) -> None:
        # A signal may interrupt a write, and a stream cannot be written to while it is being written to.
        if self._busy:
            self._resized = True
        elif self._drawn:
            self._write(self._wipe() + self._draw())
