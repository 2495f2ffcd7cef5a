"""One line at the bottom of a terminal that is drawn anew as things change, whatever its width becomes."""

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
    """The first of `parts`, and of the others those before the first that has no room, joined by two blanks;
    cut where even the first has none."""
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
    """On `stream`, until close(), which wipes it. Follows the window's size while it is open."""

    def __init__(
        self, stream: TextIO, *, color: bool, size: Callable[[], int] | None = None, encoding: str = ""
    ) -> None:
        """`size`: columns of the terminal; None: asks it."""
        self._stream = stream
        self._color = color
        self._size = size or self._ask
        self._encoding = encoding or getattr(stream, "encoding", None) or "ascii"
        self._parts: Sequence[str] = ()
        self._good = True
        self._drawn = 0
        """Columns that the line takes on the screen; 0: none is there."""
        self._busy = False
        self._resized = False
        self._before: Callable[[int, FrameType | None], object] | int | None = None
        self._listening = False

    def show(self, parts: Sequence[str], *, good: bool = True) -> None:
        """`parts`: printable, the most important first. `good`: nothing is wrong."""
        self._parts, self._good = parts, good
        self._listen()
        self._write(self._wipe() + self._draw())

    def line(self, text: str) -> bool:
        """Print `text` above; False where nothing is shown yet and the caller prints it."""
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
        """Takes the line away, and leaves the cursor where it began: a terminal that became narrower has
        broken it into several."""
        rows = -(-self._drawn // max(1, self._size())) if self._drawn else 1
        self._drawn = 0
        up = f"\x1b[{rows - 1}A" if rows > 1 else ""
        return f"\r{up}\x1b[J"

    def _draw(self) -> str:
        # One column less: a line that fills its row would leave the cursor in the next one on some terminals.
        text = fitted(self._parts, self._size() - 1)
        text = text.encode(self._encoding, "replace").decode(self._encoding)
        self._drawn = columns(text)
        if not self._color:
            return text
        word, blank, rest = text.partition(" ")
        return f"\x1b[{GREEN if self._good else YELLOW}m{word}\x1b[0m{blank}{rest}"

    def _write(self, text: str) -> None:
        self._busy = True
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:
            pass  # nobody looks any more
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
        # It may break into a write: streams cannot be written to twice at a time.
        if self._busy:
            self._resized = True
        elif self._drawn:
            self._write(self._wipe() + self._draw())
