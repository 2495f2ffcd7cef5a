"""Corrections: what the source says about blocks that the destination found, before the literals come.

The destination claims check blocks with their digests. The source answers with the right bytes of check
blocks that differ, and with the displacements of masked x86 code.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import deque
from itertools import accumulate, chain

from rdc.errors import ProtocolError
from rdc.limits.wire import SIZE_LIMIT
from rdc.protocol.messages.claims import CELL_BYTES, rests
from rdc.session.binaries.filters import MASK_BYTES, Displacements, displacement_counts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.protocol.messages.registry import Correction, RangeRequest, Targets

__all__ = ["Corrections"]


class Corrections:
    """The corrections of one file, for its range requests, which are answered in order.

    Blocks before offset `settled` are right, or their right bytes are here. Memory holds what at most
    two requests claim, and an eighth more for the masks of x86 code.
    """

    __slots__ = (
        "_displacements",
        "_masks",
        "_offsets",
        "_payload",
        "_pieces",
        "_ranges_began",
        "_requests",
        "_size",
        "_wrong",
        "settled",
    )

    def __init__(self, size: int, masks: Iterator[tuple[tuple[int, ...], bytes]] | None = None) -> None:
        """`size`: bytes of the file.

        `masks`: iterates over the check blocks that the requests will claim, in file order. Each item is
        (block numbers, bitmap); a set bit marks a byte that belongs to a masked x86 displacement.
        """
        self._size = size
        self._masks = iter(()) if masks is None else masks
        self._payload = bytearray()
        """Displacements that answer the oldest request, as they came."""
        self._wrong: set[int] = set()
        """Check blocks of the oldest request that were corrected."""
        self._displacements: deque[Displacements] = deque()
        """Displacements in file order, not yet behind what is written."""
        self._requests: deque[RangeRequest] = deque()
        """Requests that are not answered completely."""
        self._ranges_began = False
        """The ranges of the oldest request have begun to come."""
        self._offsets: list[int] = []
        self._pieces: list[bytes] = []
        """Offsets in the file and right bytes of what was corrected, in file order."""
        self.settled = SIZE_LIMIT

    def ask(self, request: RangeRequest) -> None:
        """Notes a request before it is sent. Later requests are about later parts of the file."""
        self._requests.append(request)
        self._update()

    def take(self, message: Correction) -> None:
        """Takes right bytes. Raises ProtocolError if their number differs from what they correct."""
        found = list(rests(self._requests[0].rows, message.cells, self._size))
        expected = sum(length for _, _, length in found)
        if expected != len(message.payload):
            raise ProtocolError(
                f"a correction of file {message.file} with {len(message.payload)} bytes, expected {expected}"
            )
        payload, at = bytes(message.payload), 0
        for _, offset, length in found:
            self._offsets.append(offset)
            self._pieces.append(payload[at : at + length])
            at += length
        self._wrong.update(message.cells)

    def take_targets(self, message: Targets) -> None:
        """Takes displacements. They are located once all wrong check blocks of the request are known."""
        self._payload += message.payload

    def settle(self) -> None:
        """Notes that the ranges of the oldest request begin to come: all its corrections are here.

        Raises FileError if `masks` cannot read a base.
        """
        if not self._ranges_began:
            self._locate_displacements()
        self._ranges_began = True
        self._update()

    def end(self, written: int) -> None:
        """Notes that the oldest request is answered, and forgets what is before offset `written`.

        Raises FileError if `masks` cannot read a base.
        """
        if self._requests:
            if not self._ranges_began:
                self._locate_displacements()
            self._requests.popleft()
        self._ranges_began = False
        gone = 0
        while gone < len(self._pieces) and self._offsets[gone] + len(self._pieces[gone]) <= written:
            gone += 1
        del self._offsets[:gone], self._pieces[:gone]
        while self._displacements and self._displacements[0].stop <= written:
            self._displacements.popleft()
        self._update()

    def amend(self, start: int, content: bytes | bytearray) -> tuple[bytes | bytearray, int]:
        """Corrects `content`, which was copied for offset `start`. Changes a bytearray in place.

        Returns the right content and how many of its bytes were corrected.
        """
        row = max(0, bisect_right(self._offsets, start) - 1)
        end = start + len(content)
        amended, count = content if isinstance(content, bytearray) else bytearray(), 0
        while row < len(self._offsets) and self._offsets[row] < end:
            begin = max(start, self._offsets[row])
            stop = min(end, self._offsets[row] + len(self._pieces[row]))
            if begin < stop:
                amended = amended or bytearray(content)
                piece = self._pieces[row]
                amended[begin - start : stop - start] = piece[
                    begin - self._offsets[row] : stop - self._offsets[row]
                ]
                count += stop - begin
            row += 1
        for displacements in self._displacements:
            if displacements.start >= end:
                break
            if displacements.stop > start:
                amended = amended or bytearray(content)
                count += displacements.put(amended, start)
        return amended or content, count

    def _locate_displacements(self) -> None:
        """Finds the place of each displacement of the oldest request.

        Their number is wrong only if a wrong check block has the right digest by chance. Some chunks do not
        fit their digests then, and are repaired.
        """
        request = self._requests[0] if self._requests else None
        if request is None or not request.blank:
            return
        came, at, row = memoryview(self._payload), 0, 0
        numbers = request.claims.cells
        while row < len(numbers):
            some, bits = self._next_masks(len(numbers) - row)
            row += len(some)
            for wrong in self._wrong.intersection(some):
                first = some.index(wrong) * MASK_BYTES
                none = bytes(len(bits[first : first + MASK_BYTES]))
                bits = bits[:first] + none + bits[first + MASK_BYTES :]
            ends = array("Q", accumulate(displacement_counts(bits), initial=0))
            here = bytes(came[at : at + ends[-1]]).ljust(ends[-1], b"\0")
            at += ends[-1]
            if here:
                self._displacements.append(Displacements(some, bits, here, ends))
        self._payload = bytearray()
        self._wrong.clear()

    def _next_masks(self, most: int) -> tuple[tuple[int, ...], bytes]:
        """Takes the masks of at most `most` check blocks."""
        numbers, bits = next(self._masks)
        if len(numbers) > most:
            self._masks = chain([(numbers[most:], bits[most * MASK_BYTES :])], self._masks)
            numbers, bits = numbers[:most], bits[: most * MASK_BYTES]
        return numbers, bits

    def _update(self) -> None:
        """Sets `settled`: the first claimed check block with outstanding corrections, if any."""
        self.settled = SIZE_LIMIT
        for number, request in enumerate(self._requests):
            if request.claims.cells and (number or not self._ranges_began):
                self.settled = request.claims.cells[0] * CELL_BYTES
                return
