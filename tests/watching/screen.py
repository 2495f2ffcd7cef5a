"""What a terminal shows of a program that draws one line anew: finished lines, and the line at the bottom."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence

from tests.support.daemon.daemons import WAIT_SECONDS

__all__ = ["Screen", "Terminal"]

_WIPE = re.compile(r"\r(?:\x1b\[(\d+)A)?\x1b\[J")
_COLOR = re.compile(r"\x1b\[\d*m")


class Screen:
    """A terminal that breaks lines anew when its width changes, as most do today."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.lines: list[str] = []
        self.bottom = ""
        self.shown: list[str] = []
        """All that was at the bottom, however short the time."""
        self.coloured = False

    def feed(self, text: str) -> None:
        """AssertionError for a line that is too long, is not wiped whole, or for any other control."""
        at = 0
        for wipe in _WIPE.finditer(text):
            self._print(text[at : wipe.start()])
            rows = max(1, -(-len(self.bottom) // self.width))
            assert int(wipe[1] or 0) == rows - 1, (wipe[0], self.bottom, self.width)
            self.shown.append(self.bottom)
            self.bottom = ""
            at = wipe.end()
        self._print(text[at:])

    def _print(self, text: str) -> None:
        plain = _COLOR.sub("", text)
        self.coloured = self.coloured or plain != text
        *ended, rest = plain.replace("\r\n", "\n").split("\n")
        for line in ended:
            self.lines.append(self.bottom + line)
            self.bottom = ""
        self.bottom += rest
        assert self.bottom.isprintable(), repr(self.bottom)
        assert all(line.isprintable() for line in ended), ended
        assert not rest or len(self.bottom) < self.width, (self.bottom, self.width)


class Terminal:
    """A program on a terminal of its own, which is its stderr and stdout."""

    def __init__(self, words: Sequence[str], environ: Mapping[str, str], width: int) -> None:
        self._fd, inner = pty.openpty()
        self.screen = Screen(width)
        self._held = b""
        self._set_width(width)
        self.process = subprocess.Popen(
            list(words), stdin=inner, stdout=inner, stderr=inner, env=dict(environ), start_new_session=True
        )
        os.close(inner)

    def _set_width(self, width: int) -> None:
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))

    def resize(self, width: int) -> None:
        self.screen.width = width
        self._set_width(width)
        self.process.send_signal(signal.SIGWINCH)

    def wait(self, condition: Callable[[Screen], object]) -> None:
        """Until what is shown is so."""
        end = time.monotonic() + WAIT_SECONDS
        while not condition(self.screen):
            assert time.monotonic() < end, (self.screen.lines, self.screen.bottom)
            if self._readable(0.1):
                try:
                    self._held += os.read(self._fd, 65_536)
                except OSError:  # the program has ended
                    self.screen.feed(self._held.decode())
                    self._held = b""
                    assert condition(self.screen), (self.screen.lines, self.screen.bottom)
                    return
                # A sequence may come in pieces, and so may a character.
                done = 0 if self._readable(0.02) else len(self._held)
                self.screen.feed(self._held[:done].decode())
                self._held = self._held[done:]

    def _readable(self, seconds: float) -> bool:
        poll = select.poll()  # select takes no descriptor past 1,023
        poll.register(self._fd, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._fd)
