"""How hard to compress: text and few bytes of code as hard as pays at all, much code, and new files, only
where the link is slow enough."""

from __future__ import annotations

from enum import Enum

from rdc.protocol.pressing import HARD, PLAIN, QUICK, QUICKEST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.protocol.pressing import Pressing

__all__ = ["Content", "Pressure"]

HARD_FIRST = 512 << 10
"""Bytes of code that are compressed hard in a session whatever the link: 4 ms for some 10 KB less. Of the
next 1.5 MiB 12 to 50 KB would be saved in 14 ms (measured)."""

SLOW = 4 << 20
"""Bytes a second. Of 25 MB that a descent could not find in libraries, pressing harder makes 0.5 MB less in
0.17 s more (measured): a link that carries 3 MB/s takes as long for these."""


FAST = 32 << 20
"""Bytes a second. Of the literals of three rebuilt packages pressing least makes 0.6 MB more, and both sides
take 0.03 s less (measured): a link that carries 20 MB/s takes as long for these."""


class Content(Enum):
    """What is to be sent."""

    NEW = "files of which nothing is there"
    TEXT = "what no base has of a file that is no code"
    """It shrinks by a tenth or more where code does by a twentieth: pressing it hard pays on every link."""
    CODE = "what no base has of machine code"


class Pressure:
    """Of one direction of a session."""

    __slots__ = ("_carried", "_code", "_limit", "_seconds")

    def __init__(self) -> None:
        self._code = 0
        self._limit = 0
        self._carried = 0
        self._seconds = 0.0

    def limit(self, bandwidth: int) -> None:
        """No more than so many bytes a second are to be sent; 0: as many as the link takes."""
        self._limit = bandwidth

    def held_up(self, carried: int, seconds: float) -> None:
        """For so long there was more to send than the link took, which was so many bytes."""
        self._carried += carried
        self._seconds += seconds

    @property
    def slow(self) -> bool:
        """Whether the link is slower than pressing hard pays for, as far as it showed."""
        return 0 < self._limit < SLOW or self._carried < SLOW * self._seconds

    @property
    def fast(self) -> bool:
        """Whether it is so fast that pressing at all hardly pays, as far as it showed."""
        return not 0 < self._limit < FAST and self._carried >= FAST * self._seconds

    def pressing(self, content: Content, size: int = 0) -> Pressing:
        """What pays for what comes next. `size`: bytes of it, if it is code."""
        if content is Content.NEW:
            return HARD if self.slow else PLAIN
        if content is Content.TEXT:
            return HARD
        self._code += size
        if self._code <= HARD_FIRST or self.slow:
            return HARD
        return QUICKEST if self.fast else QUICK
