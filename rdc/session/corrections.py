"""What a source corrects of the blocks that a file is put together from, and when it can be relied on."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from typing import TYPE_CHECKING

from rdc.errors import ProtocolError
from rdc.limits import SIZE_LIMIT
from rdc.protocol.claims import CELL_BYTES, rests

if TYPE_CHECKING:
    from rdc.protocol.messages import Correction, RangeRequest

__all__ = ["Corrections"]


class Corrections:
    """Of one file, of the requests for its ranges, which are answered in order.

    Blocks before `settled` are right, or their right bytes are here: an answer's ranges come after all that
    is corrected. What is kept is at most what two requests make claims about.
    """

    __slots__ = ("_answering", "_asked", "_offsets", "_pieces", "_size", "settled")

    def __init__(self, size: int) -> None:
        self._size = size
        self._asked: deque[RangeRequest] = deque()
        self._answering = False
        """The ranges of the oldest request have begun to come."""
        self._offsets: list[int] = []
        self._pieces: list[bytes] = []
        self.settled = SIZE_LIMIT

    def ask(self, request: RangeRequest) -> None:
        """This is going to be sent; further ones are about later parts of the file."""
        self._asked.append(request)
        self._settle()

    def take(self, message: Correction) -> None:
        """ProtocolError where it is not as long as what it corrects."""
        found = list(rests(self._asked[0].ranges, message.cells, self._size))
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

    def settle(self) -> None:
        """The ranges of the oldest request begin to come: nothing more of its cells is wrong."""
        self._answering = True
        self._settle()

    def end(self, written: int) -> None:
        """The oldest request is answered, and the first `written` bytes of the file are."""
        if self._asked:
            self._asked.popleft()
        self._answering = False
        gone = 0
        while gone < len(self._pieces) and self._offsets[gone] + len(self._pieces[gone]) <= written:
            gone += 1
        del self._offsets[:gone], self._pieces[:gone]
        self._settle()

    def amend(self, start: int, content: bytes) -> tuple[bytes, int]:
        """`content`, which blocks make at offset `start`, with what was corrected; of how many bytes."""
        row = max(0, bisect_right(self._offsets, start) - 1)
        end = start + len(content)
        amended, count = bytearray(), 0
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
        return (bytes(amended), count) if count else (content, 0)

    def _settle(self) -> None:
        self.settled = SIZE_LIMIT
        for number, request in enumerate(self._asked):
            if request.claims.cells and (number or not self._answering):
                self.settled = request.claims.cells[0] * CELL_BYTES
                return
