"""Chooses the compression level. Text and the first bytes of code always get the high level; more code and
new files get it only on a slow link."""

from __future__ import annotations

from enum import Enum

from rdc.protocol.wire.stream import HARD, PLAIN, QUICK, QUICKEST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.protocol.wire.stream import CompressionLevel

__all__ = ["Content", "CompressionPolicy"]

HARD_FIRST = 512 << 10
"""Bytes of code per session that get the high level on any link. Measured: that saves some 10 KB in 4 ms; the
next 1.5 MiB would save 12 to 50 KB in 14 ms."""

SLOW = 4 << 20
"""Bytes per second below which a link is slow. Measured on 25 MB of literals of libraries: the high level
saves 0.5 MB and takes 0.17 s more, as long as a link of 3 MB/s needs for 0.5 MB."""


FAST = 32 << 20
"""Bytes per second above which a link is fast. Measured on the literals of three rebuilt packages: the lowest
level adds 0.6 MB and saves 0.03 s on both sides, as long as a link of 20 MB/s needs for 0.6 MB."""


class Content(Enum):
    """The kinds of content that a session sends."""

    NEW = "files of which nothing is there"
    TEXT = "what no base has of a file that is no code"
    """The high level shrinks text by a tenth or more and code by a twentieth. For text it pays on every
    link."""
    CODE = "what no base has of machine code"


class CompressionPolicy:
    """The compression policy for one direction of a session."""

    __slots__ = ("_carried", "_code", "_limit", "_seconds")

    def __init__(self) -> None:
        self._code = 0
        self._limit = 0
        self._carried = 0
        self._seconds = 0.0

    def limit(self, bandwidth: int) -> None:
        """No more than so many bytes a second are to be sent; 0: as many as the link takes."""
        self._limit = bandwidth

    def note_delay(self, carried: int, seconds: float) -> None:
        """For so long there was more to send than the link took, which was so many bytes."""
        self._carried += carried
        self._seconds += seconds

    @property
    def slow(self) -> bool:
        """Whether the link, as measured so far, is slow enough for the high level to pay."""
        return 0 < self._limit < SLOW or self._carried < SLOW * self._seconds

    @property
    def fast(self) -> bool:
        """Whether the link, as measured so far, is so fast that compression hardly pays."""
        return not 0 < self._limit < FAST and self._carried >= FAST * self._seconds

    def compression(self, content: Content, size: int = 0) -> CompressionLevel:
        """The level for the next content. `size`: its bytes, if it is code."""
        if content is Content.NEW:
            return HARD if self.slow else PLAIN
        if content is Content.TEXT:
            return HARD
        self._code += size
        if self._code <= HARD_FIRST or self.slow:
            return HARD
        return QUICKEST if self.fast else QUICK
