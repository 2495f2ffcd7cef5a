"""The conversation below the chunk: asks for blocks of a file's gaps and looks for them in the bases here."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from rdc.kernel import match_blocks
from rdc.plan.blocks import NOWHERE, BlockSearch
from rdc.protocol.comparison import LEAF_WIDTH
from rdc.protocol.messages import BlockRequest
from rdc.session.driver import Send

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.files.confined import Root
    from rdc.files.source import SourceFile
    from rdc.plan.blocks import Window
    from rdc.plan.descent import Part
    from rdc.session.descending_file import HeldFile
    from rdc.session.driver import Conversation

__all__ = ["Gaps"]

SEARCH_BYTES = 4 << 20
"""Bytes of a base looked through at a time: what a window takes in memory."""


class Gaps:
    """One file's search for blocks. `bases`: numbered as in `parts`. `rounds`: how many round trips it may
    take.
    """

    def __init__(
        self,
        file: int,
        root: Root,
        secret: bytes,
        parts: Sequence[Part],
        bases: Sequence[HeldFile],
        rounds: int,
    ) -> None:
        self._file = file
        self._root = root
        self._secret = secret
        self._bases = bases
        self._search = BlockSearch(parts, [held.tree for held in bases], rounds)

    def ask(self, round_: int) -> Conversation[int]:
        """Sends the next requests; how many there were. None: `parts` has all that can be found."""
        asks = self._search.asks()
        for ask in asks:
            ranges = [(found.offset, found.length) for found in ask.ranges]
            yield Send(BlockRequest.of(self._file, ranges, ask.size, ask.width), round_)
        return len(asks)

    def begin(self, size: int, fingerprints: bytes) -> None:
        """Takes the fingerprints of the whole file, a single gap, that came with its tree; as `take`."""
        self._search.begin(size, LEAF_WIDTH)
        self.take(fingerprints)

    def take(self, fingerprints: bytes) -> None:
        """Takes the answer to the oldest request. MismatchError when a base is not what was signed."""
        opened: dict[int, SourceFile] = {}

        def find(window: Window, size: int, width: int, wanted: bytes) -> Sequence[int]:
            if window.base not in opened:
                opened[window.base] = self._bases[window.base].open(self._root)
            return self._find(opened[window.base], window, size, width, wanted)

        try:
            self._search.take(fingerprints, find)
        finally:
            for source in opened.values():
                source.close()

    def parts(self) -> tuple[Part, ...]:
        return self._search.parts()

    def _find(
        self, source: SourceFile, window: Window, size: int, width: int, wanted: bytes
    ) -> Sequence[int]:
        found = array("Q", [NOWHERE]) * (len(wanted) // width)
        end = window.offset + window.length
        # Spans overlap by a block less one byte: no offset is left out, and none looked at twice.
        for at in range(window.offset, end - size + 1, SEARCH_BYTES):
            data = source.pread(at, min(SEARCH_BYTES + size - 1, end - at))
            places = array("Q")
            places.frombytes(match_blocks(self._secret, data, size, width, wanted))
            for row, place in enumerate(places):
                if place != NOWHERE and found[row] == NOWHERE:
                    found[row] = at + place
        return found
