"""The second and third stage of a file by delta: what no base has is fetched, and the new version is rebuilt.

`FileFetch.run` is the whole way from the recipe to the verified temporary, with all retries."""

from __future__ import annotations

from array import array

from rdc.errors import FileError, RdcError, printable
from rdc.files.own.spool import Spool
from rdc.files.replace.cloning import CLONED_FILE_BYTES, accepts_clones, block_bytes, may_clone
from rdc.files.replace.replacement import Replacement
from rdc.files.root.memory_file import MemoryFile
from rdc.kernel import short_references
from rdc.limits.sessions import CACHED_FILE_BYTES
from rdc.plan.descent import literal_rows
from rdc.protocol.messages import Code, Correction, Data, FileEnd, Literals, Table, Targets
from rdc.session.binaries.filters import RangeOffsets, decode
from rdc.session.transfer.bases import OpenBase
from rdc.session.transfer.compare import NEXT_ANSWER
from rdc.session.transfer.range_requests import literal_requests, range_requests, unpacked
from rdc.session.transfer.rebuild import Rebuild
from rdc.session.trees.errors import MismatchError
from rdc.signature.tree import DIGEST_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.files.replace.cloned_ranges import ClonedRanges
    from rdc.files.root.source_file import SourceFile
    from rdc.protocol.messages import RangeRequest
    from rdc.session.transfer.bases import Bases, Recipe, SignedFile
    from rdc.session.transfer.compare import AskedFile, Steps
    from rdc.session.transfer.destination import Destination
    from rdc.session.transfer.range_requests import Corrections

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
        self._paths = [base.path for base in recipe.bases]
        self._known = array("Q")
        """The ranges that expected literals are compressed with, as rows (offset, length)."""
        self._offsets: RangeOffsets | None = None
        """Where expected literals belong in the file."""
        self._corrections: Corrections | None = None
        """The source's corrections, once literals are requested."""
        self._sources: list[SourceFile] = []
        """The open bases, while the file is written."""
        self._rebuild: Rebuild | None = None

    def run(self) -> Steps[Rebuild]:
        """Requests what no base has, writes the new version into a temporary, and verifies it.

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
        """Makes requests for `ranges`, rows (offset, length), with claims about the matched blocks. Raises
        ChangedBaseError if a base has changed or is gone."""
        one = self._one
        try:
            asked = literal_requests(self._recipe, ranges, self._context, one.room.left, self._base)
        except FileError as error:
            raise one.changed(error) from error
        self._offsets, self._known, self._corrections = asked.offsets, asked.known, asked.corrections
        one.grow(asked.mask_bytes)
        claimed = sum([len(request.claims.cells) for request in asked.requests])
        self._context.guesses.claimed(self._paths, claimed)
        return asked.requests

    def _take(self, message: object) -> None:
        """Takes one message of the answer to the oldest request, and writes what it completes."""
        one, corrections = self._one, self._corrections
        if isinstance(message, Data | Code | Table):
            rebuild = self._started()
            if corrections is not None:
                corrections.mark_corrected()
            rebuild.push(decode(message, self._offsets))
            self._signed.outgrow(one.bases, rebuild.temporary.size)
            self._context.progress.arriving(rebuild.temporary.size)
        elif isinstance(message, FileEnd):
            one.unanswered.popleft()
            self._take_end()
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
            raise MismatchError(path, f"{printable(path)}: too much of what was found is not what is there")

    def _take_end(self) -> None:
        """Notes that one request is answered completely."""
        if self._corrections is None:
            return
        # A masked file without literals is written only now: this message ends its corrections.
        rebuild = self._started() if self._recipe.masked else self._rebuild
        self._corrections.end(0 if rebuild is None else rebuild.temporary.size)
        if self._recipe.masked and rebuild is not None:
            rebuild.push(b"")

    def keep(self) -> None:
        """Leaves what is written for the next run to resume from."""
        if self._rebuild is not None:
            self._rebuild.temporary.keep()

    def close(self) -> None:
        """Drops what was written and closes the bases. The file may then be written again."""
        if self._rebuild is not None:
            self._rebuild.temporary.abandon()
        for source in self._sources:
            source.close()
        self._sources = []
        self._rebuild = None

    def _base(self, number: int) -> SourceFile:
        """Returns an open base by its number in the recipe, while the file is written."""
        return self._sources[number]

    def _started(self) -> Rebuild:
        """Returns the rebuild. Opens bases and temporary at the first call, when literals come: a file that
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
                if clones is None:
                    self._read_whole(bases)
            except RdcError:
                temporary.abandon()
                raise
            self._rebuild = Rebuild(
                self._recipe.path,
                self._context.signer.params,
                temporary,
                self._recipe.parts,
                bases,
                _reference_maker(self._context.secret, self._one.width),
                Spool,
                self._corrections,
                clones,
            )
            self._rebuild.start()
        return self._rebuild

    def _read_whole(self, bases: Sequence[OpenBase]) -> None:
        """Reads a small single base into memory. Most of it is copied in pieces: one read is cheaper."""
        source = self._sources[0]
        if len(bases) == 1 and CACHED_FILE_BYTES < source.size <= READ_WHOLE_BYTES:
            with source:
                content = source.pread(0, source.size)
            memory = MemoryFile(self._context.root, source.path, source.identity, content)
            self._sources[0] = bases[0].source = memory

    def _new_version(self, size: int, *, reserved: bool) -> Replacement:
        """Returns what the new version is written to."""
        recipe, root = self._recipe, self._context.root
        expected = None
        if root.writes.overwrites:
            first = recipe.bases[0]
            if first.path == recipe.path:
                expected = first.identity
            else:
                expected = self._context.expected(recipe.file, recipe.path)
        allocated = recipe.allocated
        taken = [source.taken for source in self._sources] if allocated is None else []
        if taken.count(None) < len(taken):
            # The source has no holes, but an old version has, and keeps them.
            allocated = sum([source.taken or source.size for source in self._sources])
            allocated += sum(literal_rows(recipe.parts)[1::2])
        return self._context.new_version(recipe.path, expected, size, allocated=allocated, reserved=reserved)

    def _may_clone(self, base: SignedFile) -> bool:
        """Returns whether ranges of a base may become clones; False if its file system has refused one."""
        if base.tree.size <= CACHED_FILE_BYTES or self._recipe.size < CLONED_FILE_BYTES:
            return False
        if self._context.root.writes.overwrites and base.path == self._recipe.path:
            return False  # it keeps its blocks
        return may_clone(self._context.root, base.identity.device)

    def _clones(self, bases: Sequence[OpenBase], temporary: Replacement) -> ClonedRanges | None:
        """Returns the ranges that begin as clones of bases. Where there are none, reserves the space."""
        source, recipe = bases[0].source, self._recipe
        if accepts_clones(temporary, source):
            from rdc.files.replace.cloned_ranges import ClonedRanges
            from rdc.plan.clone_plan import plan_clones

            def offset(base: int, row: int) -> int:
                return bases[base].offset(row)

            clones = plan_clones(recipe.parts, recipe.trees, offset, block_bytes(source))
            if clones:
                return ClonedRanges(temporary, self._sources, clones)
        temporary.reserve()
        return None


def _reference_maker(secret: bytes, width: int) -> Callable[[bytes], bytes]:
    """Returns the function that makes references of `width` bytes from digests."""
    if width < DIGEST_BYTES:
        return lambda digests: short_references(secret, digests, DIGEST_BYTES, width)
    return lambda digests: digests
