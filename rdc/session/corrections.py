"""What a source says of the blocks that a file is put together from: corrections, and targets left out."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import deque
from itertools import accumulate, chain

from rdc.errors import ProtocolError
from rdc.kernel import bit_counts, put_targets
from rdc.limits import SIZE_LIMIT
from rdc.protocol.claims import CELL_BYTES, rests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.protocol.messages import Correction, RangeRequest, Targets

__all__ = ["Corrections"]

MASK_BYTES = CELL_BYTES // 8
"""Of a cell's mask, a bit for each of its bytes."""


class _CellTargets:
    """The targets of some cells, as they came, and bits that say where they belong."""

    __slots__ = ("_bits", "_ends", "_offsets", "_targets", "start", "stop")

    def __init__(self, cells: tuple[int, ...], bits: bytes, targets: bytes, ends: array[int]) -> None:
        """`ends`: how many of the targets precede each cell's, and how many there are."""
        self.start = cells[0] * CELL_BYTES
        self.stop = (cells[-1] + 1) * CELL_BYTES
        self._bits = bits
        self._targets = targets
        self._ends = ends
        self._offsets = array("Q", [cell * CELL_BYTES for cell in cells])

    def put(self, content: bytearray, start: int) -> int:
        """Into what is at `start` of the file; of how many bytes."""
        first = bisect_right(self._offsets, start - CELL_BYTES)
        last = bisect_left(self._offsets, start + len(content))
        return put_targets(
            content,
            start,
            self._bits[first * MASK_BYTES : last * MASK_BYTES],
            self._targets[self._ends[first] : self._ends[last]],
            CELL_BYTES,
            self._offsets[first:last],
        )


class Corrections:
    """Of one file, of the requests for its ranges, which are answered in order.

    Blocks before `settled` are right, or their right bytes are here: an answer's ranges come after all that
    is corrected. What is kept is at most what two requests make claims about, an eighth more where targets
    were left out.
    """

    __slots__ = (
        "_answering",
        "_asked",
        "_cell_targets",
        "_masks",
        "_offsets",
        "_pieces",
        "_size",
        "_targets",
        "_wrong",
        "settled",
    )

    def __init__(self, size: int, masks: Iterator[tuple[tuple[int, ...], bytes]] | None = None) -> None:
        """`masks`: where targets were left out: all the cells that requests are going to claim, in order,
        some at a time, and for each byte of these, one behind the other, a bit, set for the targets'."""
        self._size = size
        self._masks = iter(()) if masks is None else masks
        self._targets = bytearray()
        """As they came, in answer to the oldest request."""
        self._wrong: set[int] = set()
        """Cells of it that were corrected."""
        self._cell_targets: deque[_CellTargets] = deque()
        """In order."""
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
        found = list(rests(self._asked[0].rows, message.cells, self._size))
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
        """They are put where they belong once all that is wrong is known."""
        self._targets += message.payload

    def settle(self) -> None:
        """The ranges of the oldest request begin to come: nothing more of its cells is wrong. FileError where
        `masks` meets one."""
        if not self._answering:
            self._place_targets()
        self._answering = True
        self._settle()

    def end(self, written: int) -> None:
        """The oldest request is answered, and the first `written` bytes of the file are. Errors as above."""
        if self._asked:
            if not self._answering:
                self._place_targets()
            self._asked.popleft()
        self._answering = False
        gone = 0
        while gone < len(self._pieces) and self._offsets[gone] + len(self._pieces[gone]) <= written:
            gone += 1
        del self._offsets[:gone], self._pieces[:gone]
        while self._cell_targets and self._cell_targets[0].stop <= written:
            self._cell_targets.popleft()
        self._settle()

    def amend(self, start: int, content: bytes | bytearray) -> tuple[bytes | bytearray, int]:
        """`content`, which blocks make at offset `start`, with what was corrected, and of how many bytes. A
        bytearray is changed itself."""
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
        for targets in self._cell_targets:
            if targets.start >= end:
                break
            if targets.stop > start:
                amended = amended or bytearray(content)
                count += targets.put(amended, start)
        return amended or content, count

    def _place_targets(self) -> None:
        """Those of the oldest request. Should there be more or fewer than where they belong, which takes a
        cell whose digest is right by chance, some chunks will be found wrong."""
        request = self._asked[0] if self._asked else None
        if request is None or not request.blank:
            return
        came, at, row = memoryview(self._targets), 0, 0
        cells = request.claims.cells
        while row < len(cells):
            some, bits = self._next_masks(len(cells) - row)
            row += len(some)
            for wrong in self._wrong.intersection(some):
                place = some.index(wrong) * MASK_BYTES
                none = bytes(len(bits[place : place + MASK_BYTES]))
                bits = bits[:place] + none + bits[place + MASK_BYTES :]
            ends = array("Q", accumulate(array("Q", bit_counts(bits, MASK_BYTES)), initial=0))
            here = bytes(came[at : at + ends[-1]]).ljust(ends[-1], b"\0")
            at += ends[-1]
            if here:
                self._cell_targets.append(_CellTargets(some, bits, here, ends))
        self._targets = bytearray()
        self._wrong.clear()

    def _next_masks(self, most: int) -> tuple[tuple[int, ...], bytes]:
        """Of so many cells, or fewer."""
        cells, bits = next(self._masks)
        if len(cells) > most:
            self._masks = chain([(cells[most:], bits[most * MASK_BYTES :])], self._masks)
            cells, bits = cells[:most], bits[: most * MASK_BYTES]
        return cells, bits

    def _settle(self) -> None:
        self.settled = SIZE_LIMIT
        for number, request in enumerate(self._asked):
            if request.claims.cells and (number or not self._answering):
                self.settled = request.claims.cells[0] * CELL_BYTES
                return
