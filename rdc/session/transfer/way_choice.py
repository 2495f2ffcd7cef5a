"""The choice between the ways of changed files, by what they cost on the line of this session.

Files whose size has changed wait here until all are known. `rdc.plan.ways` says which of them come whole. If
the line is known (--line, --bwlimit, both sides in one process), that is decided at once. Otherwise the first
exchange tells whether the other side is near, and files are asked for in windows, the shortest first, which
tell the rate.

Some files always come by delta, because a whole one would lose what the destination has: see `_must_stay`.
"""

from __future__ import annotations

from array import array
from contextlib import suppress

from rdc.errors import FileError
from rdc.files.facts.file_systems import SHARING_TYPES, type_of
from rdc.limits import SMALL_FILE_BYTES
from rdc.plan.ways import (
    NEAR_SECONDS,
    WHOLE_BYTES,
    Line,
    Packing,
    Windows,
    best_packing,
    whole_up_to,
)
from rdc.protocol.messages import Data, FileBatch, FileEnd, Holes, Resized
from rdc.session.runtime.commands import AskArrival, Conversation
from rdc.session.transfer.destination import Destination, Transfer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Set as AbstractSet

    from rdc.protocol.messages import Message
    from rdc.session.transfer.whole import WholeFiles


CONTENT = (Data, FileBatch, FileEnd, Holes, Resized)
"""The messages of a window. Other messages may be under way before it."""


class WayChoice(Transfer):
    """Changed files that wait for the choice of their way."""

    rank = 1
    answers = ()

    def __init__(
        self,
        context: Destination,
        line: Line,
        wholes: Callable[[], WholeFiles],
        by_delta: Callable[[int, int], None],
    ) -> None:
        """`wholes`: makes the part that fetches whole files, at the first call. `by_delta`: takes a file and
        its size in bytes."""
        self._context = context
        self._line = line
        self._wholes = wholes
        self._by_delta = by_delta
        self._files, self._sizes = array("Q"), array("Q")
        self._windows = Windows()
        self._window = 0
        """Bytes of content of the window that is arriving; 0: none is."""
        self._packing = Packing.AS_EVER
        """Its packing."""
        self._begun = self._last = AskArrival()
        """The time of its request, or of the last other message before it; the time of its last message."""
        self._lead = 0.0
        """Seconds from `_begun` until the source could begin with it."""

    @property
    def idle(self) -> bool:
        return not self._files

    @property
    def takes_all(self) -> bool:
        """Return whether all changed files come whole, so far."""
        return self._line.rate == float("inf")

    @property
    def seeks(self) -> bool:
        """Return whether the ways are still to be found out, by whole files first."""
        return bool(self._line.rate) or self._context.meter.round_trip <= NEAR_SECONDS

    def add(self, file: int, size: int) -> None:
        """Add a changed file, whose new version has `size` bytes."""
        if self._must_stay(file, size):
            self._by_delta(file, size)
        elif self.takes_all:
            self._wholes().add(file, size)
        else:
            self._files.append(file)
            self._sizes.append(size)

    def _must_stay(self, file: int, size: int) -> bool:
        """Return whether a whole file would lose what the destination has: holes of the old version, blocks
        that it shares with a snapshot, a partial file, the blocks that --inplace leaves alone.

        Small files are written without their zeros and shared by no delta either.
        """
        context = self._context
        path = context.manifest.entry(file).path
        if context.partial_files.any_found and context.partial_files.of(path) is not None:
            return True
        if size <= SMALL_FILE_BYTES:
            return False
        if context.root.writes.overwrites:
            return True
        with suppress(FileError), context.root.open_read(path) as base:
            return base.taken is not None or type_of(base.fileno()) in SHARING_TYPES
        return False

    def release(self, files: AbstractSet[int]) -> list[int]:
        """Take back those of `files` that wait and will come by delta."""
        if self.seeks:
            return []
        kept = [
            (file, size) for file, size in zip(self._files, self._sizes, strict=True) if file not in files
        ]
        released = [file for file in self._files if file in files]
        self._files, self._sizes = (array("Q", [row[at] for row in kept]) for at in (0, 1))
        return released

    def pump(self, round_: int, *, planned: bool) -> Conversation[None]:
        """Decide about the files that wait, once all are known. A window is asked for when the one before it
        has come."""
        if not planned or (self._window and not self._wholes().idle):
            return
        if self._window:
            self._end_window()
        if not self.seeks:
            self._finish(WHOLE_BYTES, Packing.AS_EVER)
        elif self._line.rate:
            line = Line(self._line.rate, self._near)
            self._finish(whole_up_to(self._sizes, line), best_packing(line.rate))
        else:
            most = self._windows.whole_up_to(self._sizes, self._near)
            self._next_window(most)
            if self._window:
                self._begun = self._last = AskArrival()
                self._lead = self._near
                yield self._begun

    @property
    def _near(self) -> float:
        """The round trip as far as it is known, else 0."""
        found = self._context.meter.round_trip
        return found if found < float("inf") else 0.0

    def _finish(self, most: float, packing: Packing) -> None:
        """Decide about all files that wait."""
        files, sizes = self._files, self._sizes
        self._files, self._sizes = array("Q"), array("Q")
        self._wholes().packing = packing
        for file, size in zip(files, sizes, strict=True):
            if size <= most:
                self._wholes().add(file, size)
            else:
                self._by_delta(file, size)

    def _next_window(self, most: float) -> None:
        """Ask for the next files, the shortest first, of at most `most` bytes; longer ones come by delta,
        and so do all while nothing tells the rate."""
        order = sorted(zip(self._sizes, self._files, strict=True))
        room, packing, self._window = self._windows.room, self._windows.packing, 0
        strict = self._windows.is_strict
        self._packing = self._wholes().packing = packing
        left = list[tuple[int, int]]()
        for size, file in order:
            if size > most:
                self._by_delta(file, size)
            elif self._window < room and (not strict or self._window + size <= room):
                self._wholes().add(file, size)
                self._window += size
            else:
                left.append((size, file))
        if not self._window:
            for size, file in left:
                self._by_delta(file, size)
            left = []
        self._files, self._sizes = (array("Q", [row[at] for row in left]) for at in (1, 0))

    def heard(self, message: Message) -> Conversation[None]:
        """Note that a message came. Call it before anything is done with the message."""
        if not self._window:
            return
        arrival = AskArrival()
        yield arrival
        if isinstance(message, CONTENT):
            self._last = arrival
        elif self._last is self._begun:
            self._begun = self._last = arrival
            self._lead = 0.0

    def _end_window(self) -> None:
        """Take what the window that has come tells of the line."""
        begun, last = self._begun, self._last
        if begun.now is not None and last.now is not None:
            seconds, carried = last.now - begun.now - self._lead, last.received - begun.received
            self._windows.ended(self._window, carried, seconds, self._packing)
        self._window = 0
