"""The second and third stage of a file by delta: what no base has is fetched, and the new version is rebuilt.

`FileFetch.run` is the whole way from the recipe to the verified temporary, with all retries. `Rebuild`
writes the new version from bases and literals as they arrive, and verifies it chunk by chunk.
`ChunkRepair` lists chunks that have to come again because a matched block was wrong.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from functools import partial
from operator import attrgetter

from blake3 import blake3

from rdc.errors import FileError, RdcError, printable
from rdc.files.base.spool import Spool
from rdc.files.bulk.open_many import MemoryFile
from rdc.files.replace.replacement import Replacement, is_zeros
from rdc.files.replace.staged_clones import CLONED_FILE_BYTES
from rdc.kernel import LITERAL, assemble, plan_reads, short_references
from rdc.kernel.blake3_many import equal_parts, name_parts
from rdc.lean.records import Record
from rdc.limits import CACHED_FILE_BYTES, SIZE_LIMIT, TREES_IN_FLIGHT_BYTES
from rdc.plan.check_blocks import by_base
from rdc.plan.descent import Fetch, Part, Patch, Repeat, Reuse, ReuseChunk, literal_rows, plan_clones
from rdc.protocol.messages import Code, Correction, Data, FileEnd, Literals, Table, Targets
from rdc.session.binaries import RangeOffsets, decode
from rdc.session.transfer.bases import Bases, Chunks, OpenBase, Recipe, SignedFile
from rdc.session.transfer.compare import NEXT_ANSWER, AskedFile, Steps
from rdc.session.transfer.range_requests import Corrections, literal_requests, range_requests, unpacked
from rdc.session.trees.sites import MismatchError
from rdc.signature.codec import sign_short
from rdc.signature.tree import DIGEST_BYTES, Column, SignatureTree, TreeBuilder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from rdc.chunking import ChunkParams
    from rdc.files.replace.cloning import ClonedRanges
    from rdc.files.root.source_file import SourceFile
    from rdc.protocol.messages import RangeRequest
    from rdc.session.transfer.destination import Destination


# Rebuild of one file from bases and arriving literals into a temporary, verified chunk by chunk.
#
# `ChunkRepair` lists chunks that have to come again because a matched block was wrong.


class WrongChunk(Record):
    """A chunk that was written although its digest does not fit its reference. Offset and length in bytes."""

    offset: int
    length: int
    reference: bytes


class ChunkRepair(Record, frozen=False, eq=False):
    """The wrong chunks of one file, in file order. Each is requested once more and keeps its length."""

    wrong: list[WrongChunk]
    _digests: dict[int, bytes]
    """Digests of the right chunks, by offset in the file."""

    def add(self, offset: int, length: int, reference: bytes) -> None:
        """Add a wrong chunk; it lies behind all added before."""
        self.wrong.append(WrongChunk(offset, length, reference))

    def ranges(self) -> array[int]:
        """Return ranges (offset, length) of the wrong chunks."""
        return array("Q", (number for wrong in self.wrong for number in (wrong.offset, wrong.length)))

    def put(self, wrong: WrongChunk, digest: bytes) -> None:
        """Record the digest of a chunk that was written again."""
        self._digests[wrong.offset] = digest

    def repaired_tree(
        self, tree: SignatureTree, params: ChunkParams, column: Callable[[], Column]
    ) -> SignatureTree:
        """Return the tree of the repaired file. `tree`: the tree of what was written at first."""
        if not self._digests:
            return tree
        builder = TreeBuilder(params, column)
        level, at, offsets = tree.levels[0], 0, list(self._digests)
        for row in range(level.records):
            digest, length = level.digest(row), level.lengths[row]
            # One record may stand for a run of equal chunks, and some of them may have been repaired.
            stop = at + length * level.counts[row]
            for offset in offsets[bisect_left(offsets, at) : bisect_left(offsets, stop)]:
                if offset > at:
                    builder.repeat(digest, length, (offset - at) // length)
                builder.repeat(self._digests[offset], length, 1)
                at = offset + length
            if stop > at:
                builder.repeat(digest, length, (stop - at) // length)
            at = stop
        return builder.finish()


BATCH_BYTES = 256 << 10
"""Bytes of chunks that are assembled, hashed and written at once. They stay in the second-level cache, and
fill the vector lanes of BLAKE3."""

CLOSE_BYTES = 4 << 10
"""Bytes of a base between two copies that cost less to read than another system call costs."""


class Rebuild:
    """Writes `temporary` from a recipe. `push` literal bytes in file order; `finish` compares the root.

    Every byte is hashed in memory before it is written. Base chunks are compared with the base's signature,
    literals with their references, and everything with the 32-byte root. A chunk assembled from wrong blocks
    does not fit its reference. `repair` tells which chunks are wrong; push their right bytes afterwards.
    """

    def __init__(
        self,
        path: bytes,
        params: ChunkParams,
        temporary: Replacement,
        parts: Sequence[Part],
        bases: Sequence[OpenBase],
        secret: bytes,
        width: int,
        column: Callable[[], Column],
        corrections: Corrections | None = None,
        clones: ClonedRanges | None = None,
    ) -> None:
        """`params`: chunk sizes. `bases`: numbered as in `parts`. `secret`: keys references of `width` bytes.
        `column`: makes spools for the tree. `corrections`: chunks assembled from blocks wait for it.
        `clones`: what begins as a clone of a base."""
        self.path = path
        self.temporary = temporary
        self.literal_bytes = 0
        self.reused_bytes = 0
        self._bases = bases
        self._secret = secret
        self._width = width
        self._params = params
        self._column = column
        self._corrections = corrections
        self._clones = clones
        self._builder = TreeBuilder(params, column)
        self._inbox = bytearray()
        self._run: Generator[None] | None = self._write(parts)
        self._chunk_repair = ChunkRepair([], {})
        self._repairing = False
        """The wrong chunks were requested."""
        self._unreferenced: bytes | None = None
        """Digests of the chunks of a file that was assembled without references: its root verifies it."""
        self._unreferenced_lengths = array("Q")
        """Their lengths in bytes."""
        self._repeating = False

    def push(self, payload: bytes | bytearray | memoryview) -> None:
        """Take the next literal bytes and write what they complete.

        Raises MismatchError if a chunk does not fit its reference and cannot be repaired.
        """
        self.literal_bytes += len(payload)
        self._inbox += payload
        self.advance()

    def finish(self, root: bytes) -> None:
        """Check that the file is complete and has this root. Raises MismatchError otherwise."""
        if self._run is not None or self._inbox:
            raise self._mismatch("its literals do not fill its gaps")
        tree = self._builder.finish()
        if self._chunk_repair.wrong:
            tree = self._chunk_repair.repaired_tree(tree, self._params, self._column)
        if tree.root != root:
            raise self._mismatch("the rebuilt content does not have the announced root")

    def mismatched(self, root: bytes) -> bool:
        """Tell whether an assembled chunk is wrong, once everything is written."""
        if self._run is not None or self._unreferenced is None:
            return bool(self._chunk_repair.wrong)
        builder = TreeBuilder(self._params, self._column)
        builder.add(equal_parts(self._unreferenced, DIGEST_BYTES), self._unreferenced_lengths.tolist())
        return builder.finish().root != root

    def repair(self) -> array[int]:
        """Start to repair wrong chunks, once everything is written.

        Returns their rows (offset, length); push their bytes in this order. Returns no rows if no chunk is
        wrong, or if a repair was started before.
        """
        if self._run is not None or not self._chunk_repair.wrong or self._repairing:
            return array("Q")
        self._repairing = True
        self._run = self._rewrite_wrong()
        return self._chunk_repair.ranges()

    def _rewrite_wrong(self) -> Generator[None]:
        """Replace each wrong chunk when its bytes are here."""
        for wrong in self._chunk_repair.wrong:
            while len(self._inbox) < wrong.length:
                yield
            chunk = bytes(self._inbox[: wrong.length])
            del self._inbox[: wrong.length]
            self._chunk_repair.put(wrong, self._verified_digest(chunk, wrong.reference))
            self.temporary.rewrite(wrong.offset, chunk)

    def advance(self) -> None:
        """Write as far as the pushed bytes reach: at first, up to the first literal. Raises MismatchError as
        `push` does, and if a base changed since it was signed."""
        if self._run is not None:
            try:
                next(self._run)
            except StopIteration:
                self._run = None

    def _write(self, parts: Sequence[Part]) -> Generator[None]:
        """Write all parts. Yields where it needs more literal bytes."""
        row = 0
        while row < len(parts):
            part = parts[row]
            row += 1
            if isinstance(part, Fetch | Patch):
                # Complete chunks are written at once, so a kill does not lose them.
                while not (some := self._ready(parts, row - 1)):
                    yield
                self._assemble(some)
                row += len(some) - 1
            elif isinstance(part, Reuse):
                for _ in range(part.count):
                    self._copy(part)
            elif isinstance(part, ReuseChunk):
                self._copy_chunk(part)
            else:
                yield from self._repeat(part)

    def _ready(self, parts: Sequence[Part], first: int) -> list[Fetch | Patch]:
        """Return chunks from part `first` on whose bytes are here: about BATCH_BYTES, at least one chunk.

        A repeated chunk comes alone. Returns none if bytes are missing or corrections may follow.
        """
        corrected = SIZE_LIMIT if self._corrections is None else self._corrections.corrected_up_to
        ready: list[Fetch | Patch] = []
        end, wanted, here = self.temporary.size, 0, len(self._inbox)
        last = end + BATCH_BYTES
        for row in range(first, len(parts)):
            part = parts[row]
            end += part.length
            if isinstance(part, Patch):
                wanted += part.chunk_recipe.fetched
                if end > corrected:
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

    def _assemble(self, chunks: Sequence[Fetch | Patch]) -> None:
        """Assemble chunks from bases and literals, verify and write them. A single chunk may repeat."""
        at, count = self.temporary.size, chunks[0].count
        lengths = array("Q", map(attrgetter("length"), chunks))
        recipes = []
        for chunk in chunks:
            if isinstance(chunk, Patch):
                recipes.append(chunk.chunk_recipe.instructions)
            else:
                recipes.append(array("Q", (LITERAL, 0, chunk.length)).tobytes())
        instructions = b"".join(recipes)
        wanted, reads, sources = plan_reads(instructions, CLOSE_BYTES)
        # True if all ranges of the base cloned here were read from the clone.
        from_clone, copied = False, []
        for base, rows in by_base(array("Q", reads)):
            cloned = None if self._clones is None else self._clones.read_ranges(base, rows, sum(lengths))
            from_clone = from_clone or cloned is not None
            copied.append(self._bases[base].source.read_ranges(rows) if cloned is None else cloned)
        content: bytes | bytearray
        with memoryview(self._inbox) as inbox, inbox[:wanted] as literals:
            content = assemble(sources, b"".join(copied), literals)
        del self._inbox[:wanted]
        self.reused_bytes += (len(content) - wanted) * count
        if self._corrections is not None:
            content, corrected = self._corrections.amend(at, content)
            from_clone = from_clone and not corrected
            self.reused_bytes -= corrected * count
            self.literal_bytes += corrected
        if len(content) > self._params.max_size and not chunks[0].reference:
            # The file was described by its blocks alone.
            signed = sign_short(content, lengths, self._params, plain=True)
            digests, lengths = signed.digests, array("Q", signed.lengths)
        else:
            digests = name_parts(content, lengths)
        self._check(chunks, digests, lengths, at)
        if count > 1:
            self._put(content, digests, count)
        else:
            self._builder.add(equal_parts(digests, DIGEST_BYTES), lengths.tolist())
            if from_clone and self._clones is not None:
                self._clones.put_assembled(instructions, content)
            else:
                self.temporary.write(content)

    def _check(self, chunks: Sequence[Fetch | Patch], digests: bytes, lengths: array[int], at: int) -> None:
        """Compare chunks, the first at offset `at`, with their references, and note the wrong ones."""
        references, width = self._references(digests), self._width
        for row, chunk in enumerate(chunks):
            if isinstance(chunk, Patch) and not chunk.reference:
                self._unreferenced, self._unreferenced_lengths = digests, lengths
            if chunk.reference and chunk.reference != references[row * width : (row + 1) * width]:
                self._note_wrong(chunk, at)
            at += chunk.length

    def _references(self, digests: bytes) -> bytes:
        """Return the references that stand for chunks with these digests, back to back."""
        if self._width == DIGEST_BYTES:
            return digests
        return short_references(self._secret, digests, DIGEST_BYTES, self._width)

    def _note_wrong(self, chunk: Fetch | Patch, at: int) -> None:
        """Note a wrong chunk for repair. Raises MismatchError unless it is a single one, made of blocks."""
        if isinstance(chunk, Fetch):
            raise self._mismatch("a chunk that arrived is not the one its reference names")
        if chunk.count > 1 or self._repeating:
            raise self._mismatch("a chunk put together from blocks is not the one its reference names")
        self._chunk_repair.add(at, chunk.length, chunk.reference)

    def _verified_digest(self, chunk: bytes, reference: bytes) -> bytes:
        """Return the digest of a chunk that arrived. Raises MismatchError if it does not fit `reference`."""
        digest = blake3(chunk).digest()
        if reference and self._references(digest) != reference:
            raise self._mismatch("a chunk that arrived is not the one its reference names")
        return digest

    def _repeat(self, part: Repeat) -> Generator[None]:
        """Write a repeated sequence of parts."""
        start, outside = self.temporary.size, self._repeating
        self._repeating = True
        yield from self._write(part.parts)
        self._repeating = outside
        # The repetitions equal what was just written and verified. It is read back and hashed chunk by chunk.
        runs = list(self._runs(part.parts))
        for _ in range(part.count - 1):
            at = start
            for length, count in runs:
                chunk = self.temporary.pread(at, length)
                self._put(chunk, blake3(chunk).digest(), count)
                at += length * count

    def _runs(self, parts: Sequence[Part]) -> Iterator[tuple[int, int]]:
        """Yield the runs of equal chunks that `parts` make: the length of one in bytes, and their number."""
        for part in parts:
            if isinstance(part, Reuse):
                for _ in range(part.count):
                    yield from self._bases[part.base].runs(part.first, part.stop)
            elif isinstance(part, Repeat):
                for _ in range(part.count):
                    yield from self._runs(part.parts)
            else:
                yield part.length, part.count

    def _put(self, chunk: bytes | bytearray, digest: bytes, count: int) -> None:
        self._builder.repeat(digest, len(chunk), count)
        if count > 1 and is_zeros(chunk):
            self.temporary.write_zeros(len(chunk) * count)
            return
        many = max(1, BATCH_BYTES // len(chunk))
        for done in range(0, count, many):
            self.temporary.write(chunk * min(many, count - done))

    def _copy_chunk(self, part: ReuseChunk) -> None:
        base = self._bases[part.base]
        chunk = base.chunk(part.row, part.length, self._reader(part.base))
        self.reused_bytes += part.length * part.count
        self._put_copied(part.base, base.offsets[part.row], chunk._replace(times=part.count))

    def _copy(self, part: Reuse) -> None:
        """Copy consecutive records of a base: one hash per chunk, one write per read."""
        self.reused_bytes += part.length
        base = self._bases[part.base]
        at = base.offsets[part.first]
        read = None if self._clones is None else self._reader(part.base)
        for chunks in base.chunks(part.first, part.stop, read):
            self._put_copied(part.base, at, chunks)
            at += len(chunks.content) * chunks.times

    def _reader(self, base: int) -> Callable[[int, int], bytes] | None:
        """Return a function that reads a base in place, if a part of it may be there already; else None."""
        return None if self._clones is None else partial(self._clones.read, base)

    def _put_copied(self, base: int, offset: int, chunks: Chunks) -> None:
        """Write verified chunks that a base has at `offset`."""
        if self._clones is None:
            if chunks.times > 1:
                self._put(chunks.content, chunks.digests, chunks.times)
                return
            self.temporary.write(chunks.content)
        elif chunks.times > 1:
            self._clones.put_repeated(chunks.content, chunks.times)
        else:
            self._clones.put_copied(base, offset, chunks.content)
        if chunks.times > 1:
            self._builder.repeat(chunks.digests, len(chunks.content), chunks.times)
        else:
            self._builder.add(equal_parts(chunks.digests, DIGEST_BYTES), chunks.lengths.tolist())

    def _mismatch(self, why: str) -> MismatchError:
        return MismatchError(self.path, f"{printable(self.path)}: {why}")


# The second and third stage of a file by delta: what no base has is fetched, and the new version is rebuilt.
#
# `FileFetch.run` is the whole way from the recipe to the verified temporary, with all retries.

READ_WHOLE_BYTES = 1 << 20
"""A single base up to this size is read into memory before the new version is made from it."""


class FileFetch:
    """One file between its recipe and the hand-over of its new version.

    `run` is the whole way. After an error only `close` may be called; it releases everything.
    """

    __slots__ = (
        "_context",
        "_corrections",
        "_known",
        "_offsets",
        "_one",
        "_paths",
        "_rebuild",
        "_recipe",
        "_root",
        "_signed",
        "_sources",
    )

    def __init__(
        self, context: Destination, one: AskedFile, recipe: Recipe, root: bytes, signed: Bases
    ) -> None:
        """`root`: 32 bytes, the root of the new version. `signed`: keeps the bases of all files."""
        self._context = context
        self._one = one
        self._recipe = recipe
        self._root = root
        self._signed = signed
        self._paths = list(map(attrgetter("path"), recipe.bases))
        self._known = array("Q")
        """The ranges that expected literals are compressed with, as rows (offset, length)."""
        self._offsets: RangeOffsets | None = None
        """The positions of expected literals in the file."""
        self._corrections: Corrections | None = None
        """The source's corrections, once literals are requested."""
        self._sources: list[SourceFile] = []
        """The open bases, while the file is written."""
        self._rebuild: Rebuild | None = None

    def run(self) -> Steps[Rebuild]:
        """Request what no base has, write the new version into a temporary, and verify it.

        A file of which nothing is missing is written without a request. If its root is wrong then, it is
        written again, with claims about the matched blocks, so that the source corrects them. A chunk that
        does not fit its reference is requested once more. Raises ChangedBaseError if a base changed since it
        was signed, another MismatchError if content does not fit its digest even so, and another FileError if
        the file cannot be written.
        """
        one, ranges = self._one, literal_rows(self._recipe.parts)
        requests = self._requests(ranges) if ranges or self._recipe.masked else []
        while True:
            for request in requests:
                yield one.ask(request)
            while one.unanswered:
                self._take((yield NEXT_ANSWER))
            rebuild = self._started()
            if self._corrections is None and rebuild.mismatched(self._root):
                self.close()
                requests = self._requests(ranges)
            elif wrong := rebuild.repair():
                self._offsets = RangeOffsets(wrong)
                requests = range_requests(one.file, wrong)
            else:
                break
        rebuild.finish(self._root)
        self._rebuild = None
        return rebuild

    def _requests(self, ranges: array[int]) -> list[RangeRequest]:
        """Make requests for `ranges`, rows (offset, length), with claims about the matched blocks. Raises
        ChangedBaseError if a base has changed or is gone."""
        one = self._one
        try:
            left = TREES_IN_FLIGHT_BYTES - one.room.used  # negative where one large file takes more
            asked = literal_requests(self._recipe, ranges, self._context, left, self._base)
        except FileError as error:
            raise one.changed(error) from error
        self._offsets, self._known, self._corrections = asked.offsets, asked.known, asked.corrections
        one.estimate += asked.mask_bytes
        one.room.count(0, asked.mask_bytes)
        self._context.guesses.claimed(self._paths, asked.claimed)
        return asked.requests

    def _take(self, message: object) -> None:
        """Take one message of the answer to the oldest request, and write what it completes."""
        one, corrections = self._one, self._corrections
        if isinstance(message, Data | Code | Table):
            rebuild = self._started()
            if corrections is not None:
                corrections.mark_corrected()
            rebuild.push(decode(message, self._offsets))
            if one.bases.leftover is not None:
                self._signed.outgrow(one.bases, rebuild.temporary.size)
            self._context.progress.arriving(rebuild.temporary.size)
        elif isinstance(message, FileEnd):
            one.unanswered.popleft()
            if corrections is not None:
                # A masked file without literals is written only now: this message ends its corrections.
                masked = self._recipe.masked
                started = self._started() if masked else self._rebuild
                corrections.end(0 if started is None else started.temporary.size)
                if masked and started is not None:
                    started.push(b"")
        elif isinstance(message, Literals):
            one.unanswered.popleft()
            rebuild = self._started()
            literals = unpacked(self._recipe, message.packed, self._known, self._base, corrections)
            if corrections is not None:
                corrections.mark_corrected()
            rebuild.push(literals)
            self._context.progress.arriving(rebuild.temporary.size)
        elif isinstance(message, Correction):
            self._take_correction(message)
        elif isinstance(message, Targets):
            if corrections is not None:
                corrections.take_displacements(message)
        else:
            raise one.unexpected(message, "literals")

    def _take_correction(self, message: Correction) -> None:
        if self._corrections is not None:
            self._corrections.take(message)
        guesses = self._context.guesses
        guesses.wrong(self._paths, len(message.cells))
        if any(map(guesses.is_spent, self._paths)):
            path = self._recipe.path
            raise MismatchError(path, f"{printable(path)}: too many matched blocks have other content")

    def keep(self) -> None:
        """Leave what is written for the next run to resume from."""
        if self._rebuild is not None:
            self._rebuild.temporary.keep()

    def close(self) -> None:
        """Drop what was written and close the bases. The file may then be written again."""
        if self._rebuild is not None:
            self._rebuild.temporary.abandon()
        for source in self._sources:
            source.close()
        self._sources = []
        self._rebuild = None

    def _base(self, number: int) -> SourceFile:
        """Return an open base by its number in the recipe, while the file is written."""
        return self._sources[number]

    def _started(self) -> Rebuild:
        """Return the rebuild. Opens bases and temporary at the first call, when literals come: a file that
        still waits has no descriptors open."""
        if self._rebuild is None:
            root, recipe = self._context.root, self._recipe
            bases = []
            if self._context.root.writes.overwrites:
                self._context.flush_links(self._recipe.path)
            for base in self._recipe.bases:
                if base.path == self._recipe.path:
                    base.check(root)
                on_disk = not self._sources and self._may_clone(base)
                self._sources.append(base.open(root, on_disk=on_disk))
                bases.append(OpenBase(self._sources[-1], base.tree))
            may_clone_bases = self._sources[0].fileno() >= 0 and self._may_clone(recipe.bases[0])
            temporary = self._new_version(self._recipe.size, reserved=not may_clone_bases)
            try:
                clones = self._clones(bases, temporary) if may_clone_bases else None
                source = self._sources[0]
                if clones is None and len(bases) == 1 and CACHED_FILE_BYTES < source.size <= READ_WHOLE_BYTES:
                    # Most of it is copied in pieces: one read is cheaper.
                    with source:
                        content = source.pread(0, source.size)
                    memory = MemoryFile(root, source.path, source.identity, content)
                    self._sources[0] = bases[0].source = memory
            except RdcError:
                temporary.abandon()
                raise
            self._rebuild = Rebuild(
                self._recipe.path,
                self._context.signer.params,
                temporary,
                self._recipe.parts,
                bases,
                self._context.secret,
                self._one.width,
                Spool,
                self._corrections,
                clones,
            )
            self._rebuild.advance()
        return self._rebuild

    def _new_version(self, size: int, *, reserved: bool) -> Replacement:
        """Return the Replacement that the new version is written to."""
        recipe, root = self._recipe, self._context.root
        expected = None
        if root.writes.overwrites:
            first = recipe.bases[0]
            if first.path == recipe.path:
                expected = first.identity
            else:
                expected = self._context.expected(recipe.file, recipe.path)
        allocated = recipe.allocated
        if allocated is None and set(map(attrgetter("taken"), self._sources)) - {None}:
            # The source has no holes, but an old version has, and keeps them.
            allocated = sum([source.taken or source.size for source in self._sources])
            allocated += sum(literal_rows(recipe.parts)[1::2])
        return self._context.new_version(recipe.path, expected, size, allocated=allocated, reserved=reserved)

    def _may_clone(self, base: SignedFile) -> bool:
        """Return whether ranges of a base may become clones; False if its file system has refused one."""
        if base.tree.size <= CACHED_FILE_BYTES or self._recipe.size < CLONED_FILE_BYTES:
            return False
        if self._context.root.writes.overwrites and base.path == self._recipe.path:
            return False  # it keeps its blocks
        from rdc.files.replace.cloning import may_clone

        return may_clone(self._context.root, base.identity.device)

    def _clones(self, bases: Sequence[OpenBase], temporary: Replacement) -> ClonedRanges | None:
        """Return the ranges that begin as clones of bases. Where there are none, reserves the space."""
        from rdc.files.replace.cloning import ClonedRanges, accepts_clones, block_bytes

        source, recipe = bases[0].source, self._recipe
        if accepts_clones(temporary, source):

            def offset(base: int, row: int) -> int:
                return bases[base].offsets[row]

            clones = plan_clones(recipe.parts, recipe.trees, offset, block_bytes(source))
            if clones:
                return ClonedRanges(temporary, self._sources, clones)
        temporary.reserve()
        return None
