"""Bundles: many small changed files are compared together, and committed once their bundle is verified.

Other files come by delta one by one: long ones, new ones, those that changed meanwhile, and those of a bundle
that fails verification.
"""

from __future__ import annotations

from array import array
from itertools import accumulate
from operator import or_

from blake3 import blake3

from rdc.errors import FileError, ProtocolError
from rdc.files.bulk.open_many import Look, Snapshot, SnapshotContent, identities_of, look
from rdc.kernel import LITERAL, assemble, fetched_ranges, instructions_of_range, take_ranges
from rdc.lean.records import Record
from rdc.limits import (
    BUNDLE_BYTES,
    BUNDLE_FILES,
    BUNDLE_FILES_LEAST,
    BUNDLED_FILE_BYTES,
    BUNDLES_CACHED_BYTES,
    BUNDLES_IN_FLIGHT,
    PACKED_BYTES,
)
from rdc.plan.bundle import BundleLayout
from rdc.plan.check_blocks import check_block_digests, check_block_ranges, context_rows
from rdc.plan.search import BundleSearch
from rdc.protocol import messages
from rdc.protocol.messages import RangeRequest
from rdc.protocol.messages.content import LEAF_WIDTH, block_size
from rdc.protocol.messages.field_types import CHECK_BLOCK_BYTES, Claims
from rdc.protocol.wire.stream import unpack_literals
from rdc.session.binaries import RangeOffsets, decode, looks_like
from rdc.session.runtime.commands import Conversation, Flush, Send, agreed_features
from rdc.session.transfer.compare import MASKING_BYTES, Gaps, rounds_left
from rdc.session.transfer.destination import LEAF_BLOCK, Destination, Transfer
from rdc.session.transfer.range_requests import KNOWN_PER_PACKED, Corrections
from rdc.session.trees.sites import MismatchError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from rdc.files.root.source_file import SourceFile
    from rdc.protocol.messages import (
        BlockRequest,
        BundleAnswer,
        BundleRequest,
        Code,
        Correction,
        Data,
        LikelyBlocks,
        Table,
    )
    from rdc.session.transfer.delta import DeltaFiles


# One bundle at the destination: many small changed files that are compared, rebuilt and verified as one.


class Rebuilt(Record):
    """The new content of a verified bundle."""

    files: tuple[int, ...]
    sizes: array[int]
    """Bytes of each file."""
    content: bytes
    """The content of these files, back to back."""
    literals: int
    """The number of its bytes that came from the source."""


class Bundle:
    """One bundle between its BundleRequest and its commit."""

    def __init__(
        self,
        request: BundleRequest,
        sizes: Sequence[int],
        base: Snapshot,
        secret: bytes,
    ) -> None:
        """`sizes`: bytes of each new version, in the order of the request. `base`: the old versions, in the
        order of the layout. `secret`: the session's."""
        self.request = request
        self.sizes = sizes
        self.base = base
        self.layout = BundleLayout.of(request.files, sizes, request.block)
        """The order of the requested files; after `take` of those that the source put into the bundle."""
        self.digest = b""
        self.open_requests = 0
        """Requests without an answer, except for a BundleRequest whose answer has the fingerprints."""
        self.is_described = False
        """The fingerprints are known, and the answer to the BundleRequest has none."""
        self.failed = False
        self._secret = secret
        self._search: BundleSearch | None = None
        self._gaps: Gaps | None = None
        self._corrections: Corrections | None = None
        self._offsets: RangeOffsets | None = None
        self._ranges = array("Q")
        """The requested ranges, as rows (offset, length)."""
        self._context = array("Q")
        """The known ranges around the requested ones, as rows (offset, length)."""
        self._sources = array("Q")
        """The parts of the content, as rows of assemble(), once literals are requested."""
        self._literals = bytearray()

    def take(self, message: BundleAnswer, rounds: int) -> None:
        """Take the description and compare it with the old versions.

        `rounds`: the round trips that the block search may take. Raises FileError if an old version changed,
        ProtocolError if the description does not fit the files.
        """
        if message.without:
            self._leave_out(set(message.without))
        self.digest = message.digest
        self._compare(message.fingerprints, rounds)

    def take_described(self, prints: Mapping[int, bytes], rounds: int) -> None:
        """Compare the old versions with the fingerprints of each file's blocks, which are known. Its
        description then needs none. Raises as `take` does."""
        self.is_described = True
        self._compare(b"".join(map(prints.__getitem__, self.layout.order)), rounds)

    def _compare(self, fingerprints: bytes, rounds: int) -> None:
        """Search the old versions for the blocks of all files, in the order of the layout."""
        layout = self.layout
        counts = [
            sum([-(-size // like.block) for size in layout.sizes[like.first : like.stop]])
            for like in layout.likes
        ]
        if len(fingerprints) != sum(counts) * LEAF_WIDTH:
            raise ProtocolError(
                f"{len(fingerprints)} bytes of fingerprints, expected {sum(counts) * LEAF_WIDTH}"
            )
        old = [identity.size for identity in self.base.identities]
        search = BundleSearch(layout, old, LEAF_WIDTH, rounds)
        self._search, self._gaps = search, Gaps(self.request.bundle, self._secret, search, self._open_base)
        at = 0
        for count in counts:
            self._gaps.take(fingerprints[at : at + count * LEAF_WIDTH])
            at += count * LEAF_WIDTH

    def _leave_out(self, without: set[int]) -> None:
        """Leave out the requested files in these rows: the source did not put them into the bundle."""
        gone = {self.request.files[row] for row in without}
        self.base = self.base.chosen([row for row, file in enumerate(self.layout.order) if file not in gone])
        rows = [row for row in range(len(self.sizes)) if row not in without]
        self.sizes = [self.sizes[row] for row in rows]
        files = [self.request.files[row] for row in rows]
        self.layout = BundleLayout.of(files, self.sizes, self.request.block)

    def _content(self) -> bytes:
        """Return the old versions, back to back. Raises MismatchError if one changed."""
        content = self.base.content()
        if content is None:
            raise MismatchError(b"", "old versions of a bundle's files changed while they were used")
        return content

    def _open_base(self, opened: dict[int, SourceFile], number: int) -> SourceFile:
        """Return the old versions as one base, from those that are `opened`."""
        if number not in opened:
            opened[number] = SnapshotContent(self.base.root, self._content())
        return opened[number]

    def block_requests(self) -> list[BlockRequest]:
        """Make the next block requests."""
        return [] if self._gaps is None else self._gaps.requests()

    def take_blocks(self, fingerprints: bytes) -> None:
        """Take the answer to the oldest block request. Raises FileError if an old version changed."""
        if self._gaps is None or self._offsets is not None:
            raise ProtocolError(f"blocks of bundle {self.request.bundle} that were not asked for")
        self._gaps.take(fingerprints)

    def range_request(self, *, pack: bool) -> RangeRequest | None:
        """Make the request for literals, once there are no more block requests.

        Returns None if everything is here. Raises FileError if an old version changed.
        """
        if self._search is None:
            return None
        found = self._search.copies()
        size = self.layout.size
        instructions = instructions_of_range(found, 0, size)
        self._ranges = array("Q", fetched_ranges(instructions, 0))
        wanted = sum(self._ranges[1::2])
        self._sources = _sources(instructions)
        self._search = self._gaps = None
        self._offsets = RangeOffsets(self._ranges)
        self._corrections = Corrections(size)
        claimed = _check_blocks(found)
        if not (self._ranges or claimed):
            return None
        digests = self._digests(claimed, found)
        if self._ranges:
            self._context = context_rows(self._ranges, size)
        known = sum(self._context[1::2])
        packs = pack and bool(self._ranges) and wanted <= PACKED_BYTES and known >= KNOWN_PER_PACKED * wanted
        request = RangeRequest.of(
            self.request.bundle, self._ranges, pack=packs, claims=Claims(tuple(claimed), digests)
        )
        self._corrections.ask(request)
        return request

    def _digests(self, numbers: Sequence[int], copies: array[int]) -> bytes:
        """Return the digests of these check blocks, with zeros for literals."""
        if not numbers:
            return b""
        size = self.layout.size
        instructions = [
            instructions_of_range(copies, start, min(stop, size) - start)
            for start, stop in check_block_ranges(numbers)
        ]
        sources = _sources(b"".join(instructions))
        missing = sum(
            [length for at, length in zip(sources[0::2], sources[1::2], strict=True) if at == LITERAL]
        )
        content = assemble(sources, self._content(), bytes(missing))
        return check_block_digests(self._secret, content)

    def take_correction(self, message: Correction) -> None:
        if self._corrections is None:
            raise ProtocolError(f"a correction of bundle {message.file} where nothing was claimed")
        self._corrections.take(message)

    def take_data(self, message: Data | Code | Table) -> None:
        """Take some literals; they come in order."""
        self._literals += decode(message, self._offsets)

    def unpack(self, packed: bytes) -> None:
        """Take all literals in one message. Raises MismatchError if they cannot be unpacked: what is known
        around them is wrong."""
        wanted = sum(self._ranges[1::2])
        image, _ = self._assemble(bytes(wanted))
        context = take_ranges(self._context, 0, image)
        try:
            self._literals += unpack_literals(packed, context, wanted)
        except ValueError as error:
            raise MismatchError(b"", str(error)) from error

    def finish(self) -> Rebuilt:
        """Return the verified content. Raises MismatchError if it does not have the announced digest."""
        content, corrected = self._assemble(bytes(self._literals))
        if blake3(content).digest() != self.digest:
            raise MismatchError(b"", "the bundle put together does not have the announced digest")
        return Rebuilt(self.layout.order, self.layout.sizes, bytes(content), len(self._literals) + corrected)

    def _assemble(self, literals: bytes) -> tuple[bytes | bytearray, int]:
        """Return the content, and how many bytes of it were corrected."""
        content = assemble(self._sources, self._content(), literals)
        return (content, 0) if self._corrections is None else self._corrections.amend(0, content)


def _sources(instructions: bytes) -> array[int]:
    """Turn copy instructions into rows of assemble(): (offset, length) in the only base, in memory."""
    numbers = array("Q", instructions)
    sources = array("Q", bytes(len(instructions) // 3 * 2))
    # The number of the only base is 0, and LITERAL has all bits set: `or` keeps offsets and marks literals.
    sources[0::2] = array("Q", map(or_, numbers[0::3], numbers[1::3]))
    sources[1::2] = numbers[2::3]
    return sources


def _check_blocks(copies: array[int]) -> list[int]:
    """Return the numbers of the check blocks that these copies touch."""
    numbers: set[int] = set()
    for offset, length in zip(copies[0::4], copies[3::4], strict=True):
        numbers.update(range(offset // CHECK_BLOCK_BYTES, (offset + length - 1) // CHECK_BLOCK_BYTES + 1))
    return sorted(numbers)


# Bundles: many small changed files are compared together, and committed once their bundle is verified.
#
# Other files come by delta one by one: long ones, new ones, those that changed meanwhile, and those of a
# bundle that fails verification.

_ABOUT_FILES = (
    messages.BlockAnswer,
    messages.Correction,
    messages.Targets,
    messages.Literals,
    messages.Data,
    messages.Code,
    messages.Table,
    messages.FileEnd,
    messages.FileFailed,
)
"""Messages that name a file or a bundle."""


class Bundles(Transfer):
    """The transfer of files in bundles: at most BUNDLES_IN_FLIGHT at a time, with at most
    BUNDLES_CACHED_BYTES of old versions in memory."""

    rank = 2
    answers = (*_ABOUT_FILES, messages.BundleAnswer)

    def __init__(self, context: Destination, delta_files: DeltaFiles, more: Callable[[], bool]) -> None:
        """`more`: whether further files may be added soon, so that only full bundles are requested."""
        self._more = more
        self._context = context
        self._delta_files = delta_files
        self._waiting: list[int] = []
        self._sizes = 0
        """Bytes of the files that wait."""
        self._bundles: dict[int, Bundle] = {}
        self._made = 0
        """Bundles requested so far."""
        self._prints: dict[int, bytes] = {}
        """The fingerprints of the blocks of files, where they came unasked."""
        self._cached = 0
        """Bytes of old versions in memory."""

    @property
    def idle(self) -> bool:
        return not (self._waiting or self._bundles)

    @property
    def waits(self) -> bool:
        """Files wait for `pump`."""
        return bool(self._waiting)

    def add(self, file: int, size: int) -> None:
        """Add a changed file, whose new version has `size` bytes."""
        if size > BUNDLED_FILE_BYTES or self._context.landing.is_new(file):
            self._delta_files.add(file)
        else:
            self._waiting.append(file)
            self._sizes += size

    def release(self, files: AbstractSet[int]) -> list[int]:
        """Take back those of `files` that wait."""
        released = [file for file in self._waiting if file in files]
        self._waiting = [file for file in self._waiting if file not in files]
        self._sizes -= sum(self._context.manifest.sizes_of(released)) if released else 0
        return released

    def described(self, blocks: LikelyBlocks) -> None:
        """Take the fingerprints of files before they are added. Raises ProtocolError if they do not fit the
        listed sizes."""
        at, fingerprints = 0, bytes(blocks.fingerprints)
        for file, size in zip(blocks.files, self._context.manifest.sizes_of(blocks.files), strict=True):
            end = at + -(-size // block_size(size, LEAF_BLOCK)) * LEAF_WIDTH
            self._prints[file] = fingerprints[at:end]
            at = end
        if at != len(fingerprints):
            raise ProtocolError(f"{len(fingerprints)} bytes of fingerprints of likely files, expected {at}")

    def pump(self, round_: int, *, planned: bool) -> Conversation[None]:
        """Request as many bundles as there is room for, once all files are known."""
        if not planned:
            return
        more = self._more()
        if more and self._sizes < 2 * BUNDLE_BYTES:
            return
        files, self._waiting, self._sizes = sorted(self._waiting), [], 0
        if len(files) < BUNDLE_FILES_LEAST or "bundle" not in (yield from agreed_features()):
            for file in files:
                self._delta_files.add(file)
            return
        asked = []
        known = [file for file in files if file in self._prints]
        groups = [
            *self._groups(known),
            *self._groups([file for file in files if file not in self._prints]),
        ]
        while groups and len(self._bundles) < BUNDLES_IN_FLIGHT and not (more and len(groups) == 1):
            bundle = self._begin(groups.pop(0))
            if bundle is not None:
                asked.append(bundle)
                yield Send(bundle.request, round_)
                if bundle.request.files[0] in self._prints:
                    yield from self._begin_described(bundle, round_)
        for group in groups:
            self._waiting += group
            self._sizes += sum(self._context.manifest.sizes_of(group))
        yield Flush()
        for bundle in asked:
            for size in bundle.sizes:
                self._context.progress.comparing(size, ends=True)

    def _groups(self, files: Sequence[int]) -> Iterator[list[int]]:
        """Split files into groups, one for each bundle."""
        group: list[int] = []
        total = 0
        for file, size in zip(files, self._context.manifest.sizes_of(files), strict=True):
            if len(group) == BUNDLE_FILES or total + size > BUNDLE_BYTES:
                yield group
                group, total = [], 0
            group.append(file)
            total += size
        if group:
            yield group

    def _begin(self, files: list[int]) -> Bundle | None:
        """Read the old versions and make a bundle. Returns None if no file is left for it."""
        # long because it handles many files at once, and a call for each would cost more than the work
        context = self._context
        names, sizes = context.manifest.paths(files), context.manifest.sizes_of(files)
        order = BundleLayout.of(range(len(files)), sizes, LEAF_BLOCK).order
        paths = [names[row] for row in order]
        found: Look = look(context.root, paths)
        indexes, gone, at = [], set(), 0
        for index, (row, identity) in enumerate(zip(order, found.identities, strict=True)):
            start, at = at, at + (0 if identity is None else identity.size)
            # A file comes by delta alone if it has a partial file, or if its old version is empty or long.
            if (
                start == at
                or context.partial_files.of(names[row]) is not None
                or self._is_x86(found, start, at)
            ):
                self._delta_files.add(files[row])
                gone.add(row)
            else:
                indexes.append(index)
        if not indexes:
            return None
        if gone:
            found, paths = found.chosen(indexes), [paths[index] for index in indexes]
            rows = [row for row in range(len(files)) if row not in gone]
            files, sizes = [files[row] for row in rows], [sizes[row] for row in rows]
        identities = [identity for identity in found.identities if identity is not None]
        base = Snapshot(context.root, paths, identities, found.content)
        request = messages.BundleRequest(len(context.manifest) + self._made, tuple(files), LEAF_BLOCK)
        self._made += 1
        bundle = self._bundles[request.bundle] = Bundle(request, sizes, base, context.secret)
        self._cache(base)
        return bundle

    def _begin_described(self, bundle: Bundle, round_: int) -> Conversation[None]:
        """Compare a bundle whose fingerprints are known, and send the next block requests with its own."""
        bundle.open_requests = 1
        try:
            bundle.take_described(self._prints, rounds_left(round_))
        except FileError:
            bundle.failed = True
            return
        for asked in bundle.block_requests():
            bundle.open_requests += 1
            yield Send(asked, round_)

    def _is_x86(self, found: Look, start: int, end: int) -> bool:
        """Tell whether the old version at [start, end) is x86 code to be compared with masked displacements.

        Only a file alone can be masked. In bundles pandas and scipy, whose modules have a few hundred KB,
        took 11 and 16 % more (measured). Content without zeros is text.
        """
        if end - start < MASKING_BYTES or found.content.find(0, start, end) < 0:
            return False
        return looks_like(SnapshotContent(self._context.root, found.content[start:end]))

    def _cache(self, base: Snapshot) -> None:
        """Keep the old versions in memory if there is room."""
        if self._cached + base.cached_bytes > BUNDLES_CACHED_BYTES:
            base.drop()
        self._cached += base.cached_bytes

    def expects(self, message: messages.Message) -> bool:
        # Bundles have numbers beyond those of all entries.
        if isinstance(message, _ABOUT_FILES):
            return message.file >= len(self._context.manifest)
        return isinstance(message, messages.BundleAnswer)

    def take(self, message: messages.Message, round_: int) -> Conversation[None]:
        """Take a message about a bundle. Raises ProtocolError if no such message was requested."""
        if isinstance(message, messages.BundleAnswer):
            yield from self._take_description(message, round_)
            return
        if not isinstance(message, _ABOUT_FILES):
            raise ProtocolError(f"{type(message).__name__} is no answer about a bundle")
        bundle = self._bundles.get(message.file)
        if bundle is None:
            raise ProtocolError(f"an answer about bundle {message.file}, of which nothing was asked")
        if isinstance(message, messages.BlockAnswer):
            yield from self._take_blocks(bundle, message.fingerprints, round_)
        elif isinstance(message, messages.Correction):
            bundle.take_correction(message)
        elif isinstance(message, messages.FileFailed):
            self._take_failure(bundle)
        elif isinstance(message, messages.Literals):
            self._take_literals(bundle, message.packed)
        elif isinstance(message, messages.FileEnd):
            self._finish(bundle)
        elif isinstance(message, messages.Targets):
            raise ProtocolError(f"targets of bundle {message.file}, whose blocks have theirs")
        else:
            bundle.take_data(message)

    def _take_description(self, message: messages.BundleAnswer, round_: int) -> Conversation[None]:
        bundle = self._bundles[message.bundle]
        if bundle.is_described:
            bundle.digest = message.digest
            # The blocks that were asked for are then those of other places.
            bundle.failed = bundle.failed or bool(message.without)
            yield from self._answered(bundle, round_)
            return
        for row in message.without:
            self._delta_files.add(bundle.request.files[row])
        self._cached -= bundle.base.cached_bytes
        try:
            bundle.take(message, rounds_left(round_))
        except FileError:
            self._cached += bundle.base.cached_bytes
            self._give_up(bundle)
            return
        self._cached += bundle.base.cached_bytes
        yield from self._continue(bundle, round_)

    def _answered(self, bundle: Bundle, round_: int) -> Conversation[None]:
        """Note that one of the requests is answered, and go on after the last one."""
        bundle.open_requests -= 1
        if not bundle.open_requests:
            yield from self._continue(bundle, round_)

    def _take_blocks(self, bundle: Bundle, fingerprints: bytes, round_: int) -> Conversation[None]:
        try:
            if not bundle.failed:
                bundle.take_blocks(fingerprints)
        except FileError:
            bundle.failed = True
        yield from self._answered(bundle, round_)

    def _take_literals(self, bundle: Bundle, packed: bytes) -> None:
        try:
            bundle.unpack(packed)
        except FileError:
            self._give_up(bundle)
        else:
            self._finish(bundle)

    def _take_failure(self, bundle: Bundle) -> None:
        """Give the bundle up once all its requests are answered: the source could not answer one.

        Each file is then requested alone, and the file at fault gets the error.
        """
        bundle.failed = True
        bundle.open_requests = max(0, bundle.open_requests - 1)
        if not bundle.open_requests:
            self._give_up(bundle)

    def _continue(self, bundle: Bundle, round_: int) -> Conversation[None]:
        """Send the next block requests, or the request for literals, or commit."""
        if bundle.failed:
            self._give_up(bundle)
            return
        requests = bundle.block_requests()
        bundle.open_requests = len(requests)
        for asked in requests:
            yield Send(asked, round_)
        if requests:
            return
        try:
            request = bundle.range_request(pack=self._context.pack)
        except FileError:
            self._give_up(bundle)
            return
        if request is None:
            self._finish(bundle)
        else:
            yield Send(request, round_)

    def _finish(self, bundle: Bundle) -> None:
        """Verify and commit a bundle."""
        try:
            rebuilt = bundle.finish()
        except FileError as error:
            self._give_up(bundle, error)
            return
        self._commit(bundle, rebuilt)
        self._end(bundle)

    def _commit(self, bundle: Bundle, rebuilt: Rebuilt) -> None:
        """Commit the new versions. A file whose old version changed meanwhile comes by delta instead."""
        context, base = self._context, bundle.base
        files, sizes, content = rebuilt.files, rebuilt.sizes, rebuilt.content
        changed, singly = context.landing.commit_versions(files, base.paths, content)
        left = {*changed, *singly}
        context.progress.arriving(sum([size for row, size in enumerate(sizes) if row not in left]), ends=True)
        if singly:
            ends = list(accumulate(sizes))
            now = identities_of(context.root, base.paths)
            for row in singly:
                if now[row] == base.identities[row] and not context.flush_links(base.paths[row]):
                    self._commit_one(files[row], base, row, content[ends[row] - sizes[row] : ends[row]])
                else:
                    changed.append(row)
        for row in sorted(changed):
            self._delta_files.add(files[row])
        context.progress.literal_bytes += rebuilt.literals
        context.progress.reused_bytes += len(content) - rebuilt.literals

    def _commit_one(self, file: int, base: Snapshot, row: int, content: bytes) -> None:
        """Commit one file that could not be committed with the others."""
        context, path = self._context, base.paths[row]
        listed = context.landing.listed.of(file)
        try:
            with context.new_version(path, listed, len(content)) as temporary:
                temporary.write(content)
                temporary.hand_over()
        except FileError as error:
            context.problem(path, error)
            return
        metadata = context.metadata(file, None)
        context.landing.commit(file, path, temporary, metadata, listed)
        context.progress.arriving(len(content), ends=True)

    def _give_up(self, bundle: Bundle, error: FileError | None = None) -> None:
        """Leave all files of a bundle to come by delta, one by one. `error`: why, if that may be the
        source's fault."""
        if isinstance(error, MismatchError):
            self._context.guesses.failed(())
        for file in bundle.layout.order:
            self._delta_files.add(file)
        self._end(bundle)

    def _end(self, bundle: Bundle) -> None:
        self._cached -= bundle.base.cached_bytes
        del self._bundles[bundle.request.bundle]
