"""ChunkTaker: receives the chunks of one file as they are cut, so that they need not be stored."""

from __future__ import annotations

from rdc.lean.records import dataclass
from rdc.lean.typed import Protocol
from rdc.limits.chunks import NODE_RECORDS_MAX
from rdc.signature.digests import DIGEST_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.signature.tree import SignatureTree

__all__ = ["Both", "ChunkTaker", "StreamedFile", "TopColumn", "replayed"]

REPLAY_RECORDS = 4096
"""Records of a known signature passed at a time: about as many as a span of 16 MiB gives."""


class ChunkTaker(Protocol):
    """Receives the chunks of one stream in order. A TreeBuilder is one."""

    def add(self, digests: list[bytes], lengths: list[int], /) -> None:
        """Receives the next chunks: 32-byte digests and lengths in bytes, one each."""

    def repeat(self, digest: bytes, length: int, count: int, /) -> None:
        """Receives a run of `count` equal chunks. A long hole comes this way."""


@dataclass(frozen=True, slots=True)
class StreamedFile:
    """The result of streaming a file."""

    root: bytes
    """32 bytes."""
    traits: bytes
    known: bool
    """Whether the signature came from the catalog and the file was not read."""


@dataclass(frozen=True, slots=True)
class Both:
    """A ChunkTaker that passes everything to two others."""

    first: ChunkTaker
    second: ChunkTaker

    def add(self, digests: list[bytes], lengths: list[int], /) -> None:
        self.first.add(digests, lengths)
        self.second.add(digests, lengths)

    def repeat(self, digest: bytes, length: int, count: int, /) -> None:
        self.first.repeat(digest, length, count)
        self.second.repeat(digest, length, count)


class TopColumn:
    """A column of a TreeBuilder that keeps its bytes only while its level can still be the top level.

    The root digest needs no more than that. A level that grows beyond a top level's size is dropped. The
    resulting tree has a valid root; its other levels are incomplete and must not be used.
    """

    __slots__ = ("_data", "_over")

    def __init__(self) -> None:
        self._data = bytearray()
        self._over = False

    def append(self, data: bytes) -> None:
        if not self._over:
            self._data += data
            if len(self._data) > NODE_RECORDS_MAX * DIGEST_BYTES:
                self._over, self._data = True, bytearray()

    def view(self) -> memoryview:
        return memoryview(self._data)


def replayed(tree: SignatureTree, taker: ChunkTaker) -> Iterator[int]:
    """Passes the chunk list of `tree` to `taker`. Yields the bytes passed so far."""
    chunks, done = tree.levels[0], 0
    for start in range(0, chunks.records, REPLAY_RECORDS):
        stop = min(start + REPLAY_RECORDS, chunks.records)
        digests, lengths, counts = [], [], chunks.counts[start:stop].tolist()
        for record, length, count in zip(
            range(start, stop), chunks.lengths[start:stop].tolist(), counts, strict=True
        ):
            digest = chunks.digest(record)
            done += length * count
            if count == 1:
                digests.append(digest)
                lengths.append(length)
                continue
            taker.add(digests, lengths)
            digests, lengths = [], []
            taker.repeat(digest, length, count)
        taker.add(digests, lengths)
        yield done
