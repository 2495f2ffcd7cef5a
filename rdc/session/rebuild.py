"""Rebuilds one wanted file aside, from a base and from literals as they arrive, verified chunk by chunk."""

from __future__ import annotations

from array import array

from blake3 import blake3

from rdc.errors import printable
from rdc.kernel.naming import name_parts
from rdc.kernel.pieces import LITERAL, put_tiles, tile_reads
from rdc.limits import SIZE_LIMIT
from rdc.plan.base_reads import by_base
from rdc.plan.descent import Fetch, Patch, Repeat, Reuse, ReuseChunk
from rdc.session.mending import Mending
from rdc.session.mismatch import MismatchError
from rdc.signature.build import TreeBuilder
from rdc.signature.digests import DIGEST_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from rdc.chunking.params import ChunkParams
    from rdc.files.replace import Replacement
    from rdc.plan.descent import Part
    from rdc.session.corrections import Corrections
    from rdc.session.open_base import OpenBase
    from rdc.signature.build import Column

__all__ = ["Rebuild"]

BATCH_BYTES = 256 << 10
"""Bytes of chunks that are put together, hashed and written at once: they stay in the second-level cache, and
fill the lanes of a vector."""

CLOSE_BYTES = 4 << 10
"""Bytes of a base between two copies that cost less to read than another system call."""


class Rebuild:
    """Writes `temporary` from a recipe. `push` literal bytes in file order; `finish` compares the root.

    Every byte written was hashed in memory on its way: base chunks against the base's signature, literals
    against their references, and all of them together against the wanted 32-byte root. Chunks put together
    from blocks that were not what their fingerprints promised are `wrong`: after `mend` their right bytes are
    to be pushed.
    """

    def __init__(
        self,
        path: bytes,
        params: ChunkParams,
        temporary: Replacement,
        parts: Sequence[Part],
        bases: Sequence[OpenBase],
        reference: Callable[[bytes], bytes],
        column: Callable[[], Column],
        corrections: Corrections | None = None,
    ) -> None:
        """`corrections`: what the source says of chunks put together from blocks, which wait for it."""
        self.path = path
        self.temporary = temporary
        self.literal_bytes = 0
        self.reused_bytes = 0
        self._bases = bases
        self._reference = reference
        self._params = params
        self._column = column
        self._corrections = corrections
        self._builder = TreeBuilder(params, column)
        self._inbox = bytearray()
        self._run: Generator[None] | None = self._write(parts)
        self._mending = Mending()
        self._asked_again = False
        """The chunks that were wrong are coming."""
        self._unnamed: tuple[bytes, int] | None = None
        """Digest and length of a chunk that was put together and that only the root names."""
        self._repeating = False

    def start(self) -> None:
        """Writes up to the first literal. Raises MismatchError when the base is not what was signed."""
        self._step()

    def push(self, payload: bytes | bytearray | memoryview) -> None:
        """Takes the next literal bytes. Raises MismatchError as soon as a chunk is wrong."""
        self.literal_bytes += len(payload)
        self._inbox += payload
        self._step()

    def finish(self, root: bytes) -> None:
        """Raises MismatchError unless exactly the promised file was written."""
        if self._run is not None or self._inbox:
            raise self._mismatch("its literals do not fill its gaps")
        tree = self._mending.mended(self._builder.finish(), self._params, self._column)
        if tree.root != root:
            raise self._mismatch("the rebuilt content does not have the announced root")

    def deceived(self, root: bytes) -> bool:
        """Whether a chunk that was put together is wrong, once everything is written."""
        if self._run is not None or self._unnamed is None:
            return bool(self._mending.wrong)
        builder = TreeBuilder(self._params, self._column)
        builder.repeat(*self._unnamed, 1)
        return builder.finish().root != root

    def mend(self) -> array[int]:
        """The ranges of the chunks that are wrong, offset and length by turns, once everything is written;
        their bytes are to be pushed, in order. None: all is well, or was mended before."""
        if self._run is not None or not self._mending.wrong or self._asked_again:
            return array("Q")
        self._asked_again = True
        self._run = self._mend()
        return self._mending.rows()

    def _mend(self) -> Generator[None]:
        for wrong in self._mending.wrong:
            while len(self._inbox) < wrong.length:
                yield
            chunk = bytes(self._inbox[: wrong.length])
            del self._inbox[: wrong.length]
            self._mending.put(wrong, self._named(chunk, wrong.reference))
            self.temporary.rewrite(wrong.offset, chunk)

    def _step(self) -> None:
        if self._run is not None:
            try:
                next(self._run)
            except StopIteration:
                self._run = None

    def _write(self, parts: Sequence[Part]) -> Generator[None]:
        row = 0
        while row < len(parts):
            part = parts[row]
            row += 1
            if isinstance(part, Fetch | Patch):
                # What is complete is written: no more is lost by a kill.
                while not (some := self._ready(parts, row - 1)):
                    yield
                self._put_together(some)
                row += len(some) - 1
            elif isinstance(part, Reuse):
                for _ in range(part.count):
                    self._copy(part)
            elif isinstance(part, ReuseChunk):
                self._copy_chunk(part)
            else:
                yield from self._repeat(part)

    def _ready(self, parts: Sequence[Part], first: int) -> list[Fetch | Patch]:
        """The chunks from part `first` on of which everything is here, BATCH_BYTES of them or one. What comes
        several times is alone."""
        settled = SIZE_LIMIT if self._corrections is None else self._corrections.settled
        ready: list[Fetch | Patch] = []
        end, wanted, here = self.temporary.size, 0, len(self._inbox)
        last = end + BATCH_BYTES
        for row in range(first, len(parts)):
            part = parts[row]
            end += part.length
            if isinstance(part, Patch):
                wanted += part.pieces.fetched
                if end > settled:
                    break
            elif isinstance(part, Fetch):
                wanted += part.length
            else:
                break
            if wanted > here:
                break
            if ready and (part.count > 1 or end > last):
                break
            ready.append(part)
            if part.count > 1:
                break
        return ready

    def _put_together(self, chunks: Sequence[Fetch | Patch]) -> None:
        """Makes them of what is here, checks them, and writes them; a single one as often as it comes."""
        at, count = self.temporary.size, chunks[0].count
        wanted, reads, sources = tile_reads(b"".join(map(_tiles, chunks)), CLOSE_BYTES)
        bases = by_base(array("Q", reads))
        held = b"".join([self._bases[base].source.read_ranges(rows) for base, rows in bases])
        content: bytes | bytearray
        with memoryview(self._inbox) as inbox, inbox[:wanted] as literals:
            content = put_tiles(sources, held, literals)
        del self._inbox[:wanted]
        self.reused_bytes += (len(content) - wanted) * count
        if self._corrections is not None:
            content, corrected = self._corrections.amend(at, content)
            self.reused_bytes -= corrected * count
            self.literal_bytes += corrected
        lengths = [chunk.length for chunk in chunks]
        digests = name_parts(content, array("Q", lengths))
        self._check(chunks, digests, at)
        if count > 1:
            self._put(content, digests, count)
        else:
            self._builder.add(_separate(digests), lengths)
            self.temporary.write(content)

    def _check(self, chunks: Sequence[Fetch | Patch], digests: bytes, at: int) -> None:
        """Whether each of them, from offset `at` on, is what its reference names."""
        references = self._reference(digests)
        width = len(references) // len(chunks)
        for row, chunk in enumerate(chunks):
            if isinstance(chunk, Patch) and not chunk.reference:
                self._unnamed = (digests, chunk.length)
            if chunk.reference and chunk.reference != references[row * width : (row + 1) * width]:
                self._doubt(chunk, at)
            at += chunk.length

    def _doubt(self, chunk: Fetch | Patch, at: int) -> None:
        """A chunk that is not the one its reference names can be mended only where it was made of blocks."""
        if isinstance(chunk, Fetch):
            raise self._mismatch("a chunk that arrived is not the one its reference names")
        if chunk.count > 1 or self._repeating:
            raise self._mismatch("a chunk put together from blocks is not the one its reference names")
        self._mending.doubt(at, chunk.length, chunk.reference)

    def _named(self, chunk: bytes, reference: bytes) -> bytes:
        """The digest of a chunk that arrived."""
        digest = blake3(chunk).digest()
        if reference and self._reference(digest) != reference:
            raise self._mismatch("a chunk that arrived is not the one its reference names")
        return digest

    def _repeat(self, part: Repeat) -> Generator[None]:
        start, outside = self.temporary.size, self._repeating
        self._repeating = True
        yield from self._write(part.parts)
        self._repeating = outside
        # The rest of the run is what was just written and checked; it is read back in pieces and hashed again
        # by the chunks of its first appearance.
        pieces = list(self._chunk_lengths(part.parts))
        for _ in range(part.count - 1):
            at = start
            for length in pieces:
                chunk = self.temporary.pread(at, length)
                self._put(chunk, blake3(chunk).digest(), 1)
                at += length

    def _chunk_lengths(self, parts: Sequence[Part]) -> Iterator[int]:
        for part in parts:
            for _ in range(part.count):
                if isinstance(part, Reuse):
                    yield from self._bases[part.base].lengths(part.first, part.stop)
                elif isinstance(part, Repeat):
                    yield from self._chunk_lengths(part.parts)
                else:
                    yield part.length

    def _put(self, chunk: bytes | bytearray, digest: bytes, count: int) -> None:
        self._builder.repeat(digest, len(chunk), count)
        for _ in range(count):
            self.temporary.write(chunk)

    def _copy_chunk(self, part: ReuseChunk) -> None:
        chunk = self._bases[part.base].chunk(part.row, part.length)
        self.reused_bytes += part.length * part.count
        self._put(chunk.content, chunk.digests, part.count)

    def _copy(self, part: Reuse) -> None:
        """Whole records: one hash a chunk, one write a read."""
        self.reused_bytes += part.length
        for chunks in self._bases[part.base].chunks(part.first, part.stop):
            if chunks.times > 1:
                self._put(chunks.content, chunks.digests, chunks.times)
            else:
                self._builder.add(_separate(chunks.digests), chunks.lengths.tolist())
                self.temporary.write(chunks.content)

    def _mismatch(self, why: str) -> MismatchError:
        return MismatchError(self.path, f"{printable(self.path)}: {why}")


def _tiles(chunk: Fetch | Patch) -> bytes:
    """What it is made of, as the kernel has it."""
    if isinstance(chunk, Patch):
        return chunk.pieces.tiles
    return array("Q", (LITERAL, 0, chunk.length)).tobytes()


def _separate(digests: bytes) -> list[bytes]:
    return [digests[at : at + DIGEST_BYTES] for at in range(0, len(digests), DIGEST_BYTES)]
