"""Limits on what a destination may have the source read and send: multiples of what the source announced.

Each request is charged with its highest possible cost before it is answered. A destination that follows the
protocol stays far below the limits; only a hostile one is refused.
"""

from __future__ import annotations

from collections import OrderedDict

from rdc.errors import ProtocolError
from rdc.limits.sessions import BUNDLES_IN_FLIGHT
from rdc.limits.wire import (
    ASKED_FILE_BYTES,
    ASKED_FREELY_BYTES,
    ASKED_NODE_BYTES,
    COMPARED_TIMES,
    PACKED_CONTEXT_BYTES,
    SENT_TIMES,
)
from rdc.protocol import messages
from rdc.protocol.messages.field_types import CHECK_BLOCK_BYTES, AboutFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.tree.manifest import Manifest

__all__ = ["CLOSE_BYTES", "Demand"]

CLOSE_BYTES = 16 << 10
"""Bytes between two ranges of a file that cost less to read than a separate read costs."""


class Demand:
    """The demand of one session or one turn. Every method raises ProtocolError if it exceeds a limit."""

    def __init__(self, manifest: Manifest) -> None:
        """`manifest`: what was announced; it may still grow, or be made again."""
        self._manifest = manifest
        self._announced = 0
        """Bytes announced at the last count."""
        self._grown: dict[int, int] = {}
        """Sizes of files that grew after they were listed; few, unless the source changes a lot."""
        self._grown_bytes = 0
        self._bundles: OrderedDict[int, int] = OrderedDict()
        """Bytes of each of the last bundles."""
        self.sent = 0
        """Bytes of content requested so far."""
        self.compared = 0
        """Bytes to read for comparisons requested so far."""

    def take(self, message: messages.Message) -> None:
        """Charges a request."""
        if isinstance(message, messages.FileRequest):
            self._send(self._bytes_of(message.files))
        elif isinstance(message, messages.RangeRequest):
            self._send(sum(message.lengths))
            around = min(PACKED_CONTEXT_BYTES, self._size(message.file)) if message.pack else 0
            self.compare(self._read(message) + around + len(message.claims.cells) * CHECK_BLOCK_BYTES)
        elif isinstance(message, messages.BlockRequest):
            self.compare(self._read(message))
        elif isinstance(message, messages.NodeRequest):
            self.compare(ASKED_FILE_BYTES + len(message.nodes) * ASKED_NODE_BYTES)
        elif isinstance(message, messages.BundleRequest):
            size = self._bundles[message.bundle] = self._bytes_of(message.files)
            if len(self._bundles) > BUNDLES_IN_FLIGHT:
                self._bundles.popitem(last=False)
            self.compare(size)
        elif isinstance(message, AboutFiles):
            self.compare(self._bytes_of(message.files))

    def compare(self, size: int) -> None:
        """Charges `size` bytes that are about to be read for a comparison."""
        self.compared += size
        if self.compared > ASKED_FREELY_BYTES:
            self._check(self.compared, COMPARED_TIMES, "compare")

    def grew(self, file: int, listed: int, size: int) -> None:
        """Charges the growth of a file that is sent whole: it had `listed` bytes and has `size` now."""
        known = self._grown.get(file, listed)
        if size > known:
            self._grown[file] = size
            self._grown_bytes += size - known
        if size > listed:
            self._send(size - listed)

    def _send(self, size: int) -> None:
        self.sent += size
        if self.sent > ASKED_FREELY_BYTES:
            self._check(self.sent, SENT_TIMES, "send")

    def _check(self, asked: int, times: int, what: str) -> None:
        if asked <= times * self._announced + ASKED_FREELY_BYTES:
            return
        # The total is counted only here. It grows while a listing is sent.
        manifest = self._manifest
        now = manifest.total_size + len(manifest) * ASKED_FILE_BYTES + self._grown_bytes
        self._announced = max(self._announced, now)
        if asked > times * self._announced + ASKED_FREELY_BYTES:
            raise ProtocolError(
                f"the far side asked this one to {what} {asked} bytes: more than {times} times"
                f" the {self._announced} that it was told of"
            )

    def _bytes_of(self, files: tuple[int, ...]) -> int:
        """Returns the cost of reading these files. The answer reports entries that are no files."""
        if files[-1] >= len(self._manifest):
            return 0
        return sum(self._manifest.sizes_of(files)) + len(files) * ASKED_FILE_BYTES

    def _size(self, file: int) -> int:
        """Returns the size of a file or a bundle, in bytes."""
        if file < len(self._manifest):
            return self._grown.get(file, 0) or self._manifest.sizes_of((file,))[0]
        return self._bundles.get(file, 0)

    def _read(self, message: messages.BlockRequest | messages.RangeRequest) -> int:
        """Returns the cost of reading ranges and the short gaps between them. A bundle may be read whole."""
        if message.file >= len(self._manifest):
            return ASKED_FILE_BYTES + self._bundles.get(message.file, 0)
        if not message.lengths:
            return ASKED_FILE_BYTES
        spanned = message.end - message.gaps[0]
        return ASKED_FILE_BYTES + min(spanned, sum(message.lengths) + len(message.lengths) * CLOSE_BYTES)
