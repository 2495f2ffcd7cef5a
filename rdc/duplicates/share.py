"""Sharer: makes identical files, or equal ranges of files, share their blocks on disk."""

from __future__ import annotations

import errno
from array import array
from collections.abc import Iterable, Iterator, Sequence

from rdc.duplicates.group import Inode, SharedPlaces, Tree, by_volume, choose_source
from rdc.errors import FileError
from rdc.files.base.paths import changed
from rdc.files.facts.extents import (
    NO_EXTENTS,
    Part,
    Use,
    Volume,
    compare_places,
    extents,
    leave_out_checksums,
    volume_of,
)
from rdc.files.facts.file_facts import spans_with_data
from rdc.files.names.leased_files import (
    NO_SHARING,
    PAIR_ERRORS,
    SLICE_BYTES,
    TARGET_ERRORS,
    can_share,
    dedupe_range,
    sharing_failure,
)
from rdc.files.replace.replacement import Replacement
from rdc.files.root.source_file import SPAN_BYTES, SourceFile
from rdc.lean.records import Record, field, replace
from rdc.limits import RUN_CHUNKS
from rdc.model.duplicates import Action, EqualRuns, Instance, RootedPath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.duplicates.run_totals import RunTotals
    from rdc.files.root.root import Root
    from rdc.signature.tree import SignatureTree


# RunFinder: finds equal ranges in files that differ, aligned to blocks so that they can be shared.
#
# Chunk boundaries depend on content, block boundaries do not. A run of equal chunks can be shared only if it
# lies at the same distance from a block boundary in both files. So edits in place are found (disk images,
# databases, files that grew). Content shifted by an insertion is found only if the shift is a multiple of the
# block size.


class ChunkedFile(Record):
    """One file with its chunks."""

    location: RootedPath
    volume: bytes
    """Id of the volume. Files with equal ids can share blocks."""
    block_size: int
    """Bytes."""
    tree: SignatureTree
    protected: bool
    """True if the file may be shared with but not changed."""


class _Match(Record):
    """A range of this file that an earlier file, or this one at a lower offset, contains too."""

    source: int
    source_offset: int
    offset: int
    length: int

    def joined(self, after: _Match, own: int) -> _Match | None:
        """Return both matches as one if they are adjacent in both files, else None. A match within one file
        (`own`) must not overlap its source."""
        length = self.length + after.length
        neighbours = (
            after.source == self.source
            and after.source_offset == self.source_offset + self.length
            and after.offset == self.offset + self.length
        )
        if not neighbours or (self.source == own and self.source_offset + length > self.offset):
            return None
        return _Match(self.source, self.source_offset, self.offset, length)

    def aligned(self, source: ChunkedFile, file: ChunkedFile) -> _Match | None:
        """Return the whole blocks of the match. Its last block may be short if both files end with it."""
        lead = -self.offset % file.block_size
        match = _Match(self.source, self.source_offset + lead, self.offset + lead, self.length - lead)
        ends = match.offset + match.length == file.tree.size
        source_ends = match.source_offset + match.length == source.tree.size
        length = match.length if ends and source_ends else match.length - match.length % file.block_size
        return replace(match, length=length) if length > 0 else None


class _Columns(Record, frozen=False):
    source_offsets: array[int] = field(default_factory=lambda: array("Q"))
    offsets: array[int] = field(default_factory=lambda: array("Q"))
    lengths: array[int] = field(default_factory=lambda: array("Q"))


class RunFinder:
    """Takes files one after another, protected ones first. Each is compared with all files before it.

    Chunks are identified by 8 bytes of their digest; the kernel compares the bytes before it shares them.
    """

    def __init__(self, most_chunks: int = RUN_CHUNKS) -> None:
        self._most = most_chunks
        self._known: dict[bytes, int] = {}
        """File number and offset, by the first bytes of the digest, the offset within a block, and the
        volume."""
        self._volumes: dict[bytes, int] = {}
        self._files: list[ChunkedFile] = []
        self._roots: set[tuple[bytes, bytes]] = set()
        self.forgotten = 0
        """Chunks that were not stored for lack of memory."""

    def add(self, file: ChunkedFile) -> list[EqualRuns]:
        """Return the ranges of this file that earlier files contain, grouped by source. Empty for a file
        identical to an earlier one."""
        whole = (file.volume, file.tree.root)
        if whole in self._roots:
            return []
        self._roots.add(whole)
        number = len(self._files)
        self._files.append(file)
        found: dict[int, _Columns] = {}
        for run in _merged(self._matches(file, number), number):
            aligned = run.aligned(self._files[run.source], file)
            if aligned is not None and not file.protected:
                columns = found.setdefault(run.source, _Columns())
                columns.source_offsets.append(aligned.source_offset)
                columns.offsets.append(aligned.offset)
                columns.lengths.append(aligned.length)
        return [
            EqualRuns(
                self._files[source].location,
                file.location,
                columns.source_offsets,
                columns.offsets,
                columns.lengths,
            )
            for source, columns in found.items()
        ]

    def _matches(self, file: ChunkedFile, number: int) -> Iterator[_Match]:
        """Yield the chunks that are known already."""
        volume = self._volumes.setdefault(file.volume, len(self._volumes)).to_bytes(4, "little")
        for digest, offset, length in _chunks(file.tree):
            key = digest[:8] + (offset % file.block_size).to_bytes(4, "little") + volume
            location = self._known.get(key)
            if location is None:
                if len(self._known) < self._most:
                    self._known[key] = number << 64 | offset
                else:
                    self.forgotten += 1
                continue
            source, source_offset = location >> 64, location & ((1 << 64) - 1)
            # The kernel shares ranges within one file only if they do not overlap.
            if source != number or source_offset + length <= offset:
                yield _Match(source, source_offset, offset, length)


def _chunks(tree: SignatureTree) -> Iterator[tuple[bytes, int, int]]:
    level = tree.levels[0]
    offset = 0
    for record, (length, count) in enumerate(zip(level.lengths, level.counts, strict=True)):
        digest = level.digest(record)
        for _ in range(count):
            yield digest, offset, length
            offset += length


def _merged(matches: Iterable[_Match], own: int) -> Iterator[_Match]:
    """Join adjacent matches."""
    run: _Match | None = None
    for match in matches:
        joined = None if run is None else run.joined(match, own)
        if joined is None and run is not None:
            yield run
        run = match if joined is None else joined
    if run is not None:
        yield run


class _Range(Record):
    source_offset: int
    offset: int
    length: int


class _Refusal(Record):
    """The kernel does not let a file share with this source; it may with another one."""

    error: FileError
    of_target: bool
    """True if the file cannot change at all, rather than not fit the source."""


class _RefusedError(Exception):
    """Carries a _Refusal."""

    def __init__(self, refusal: _Refusal) -> None:
        super().__init__(refusal)
        self.refusal = refusal


class _Sums(Record):
    """Bytes of parts by use."""

    content: int = 0
    same: int = 0
    own: int = 0
    compressed: int = 0
    held: int = 0
    unsure: int = 0


class Sharer:
    """Shares blocks. In a dry run it only computes what that would free. It never changes the content of a
    file."""

    def __init__(self, trees: Sequence[Tree], totals: RunTotals) -> None:
        self._trees = trees
        self._totals = totals
        self._unable: set[int] = set()
        """Devices whose file systems cannot share blocks. This is reported once; their other files are only
        counted."""
        self._able: set[int] = set()
        """Devices whose file systems can."""

    # Whole files

    def group(self, inodes: Sequence[Inode]) -> None:
        """Make the inodes of one group share the blocks of one of them, separately on each volume."""
        for part in by_volume(inodes, _volume_id):
            self._totals.groups += self._whole_files(part)

    def _whole_files(self, members: Sequence[Inode]) -> bool:
        """Return whether something was, or would be, shared.

        A file that a source refuses is tried with the next one. One that all refuse is a source for the files
        after it. First of all, the source gets the holes of the others: so its zeros take no space in any of
        them, and a second run finds all files alike.
        """
        places = SharedPlaces(members, [not inode.stays for inode in members])
        first = choose_source(members, places)
        if not first.stays:
            places.changes(first)
            places.remains(first)
        sources = [first, *(inode for inode in members if inode.protected and inode is not first)]
        others = [inode for inode in members if inode is not first and not inode.protected]
        # Files that cannot change come first, so that the others can share with them.
        others.sort(key=lambda inode: not inode.stays)
        shared = False
        if not first.stays:
            for inode in members:
                if inode is not first and inode.use is not None and inode.use.sparse:
                    shared |= self._whole_file(inode, first, places, holes=True) is True
        left: dict[int, FileError] = {}
        """Why a source shares with no other file, by its number."""
        for number, inode in enumerate(others):
            if self._totals.capped:
                break
            if inode.facts.identity.device in self._unable:
                self._totals.skipped += len(others) - number
                break
            began = self._totals.advanced
            if not inode.stays:
                places.changes(inode)
            refusal: _Refusal | None = None
            for at, source in enumerate(sources):
                outcome = self._whole_file(source, inode, places)
                if not isinstance(outcome, _Refusal):
                    shared |= outcome
                    refusal = None
                    left.pop(at, None)
                    break
                refusal = refusal or outcome
                if outcome.of_target:
                    break
            if refusal is not None:
                if refusal.of_target:
                    self._totals.problem(refusal.error)
                else:
                    left[len(sources)] = refusal.error
                sources.append(inode)
                places.remains(inode)
            self._totals.reach(began + inode.facts.identity.size)
        for error in left.values():
            self._totals.skip(error.path_bytes, str(error))
        return shared

    def _whole_file(
        self, source: Inode, inode: Inode, places: SharedPlaces, *, holes: bool = False
    ) -> bool | _Refusal:
        """Share one file with a source; with `holes`, only the source's holes. Returns whether something
        was, or would be, shared."""
        location = source.names[0]
        try:
            with self._opened(location) as file:
                whole = [_Range(0, 0, source.facts.identity.size)]
                return self._pair(
                    *(file, location, inode.names[0], whole), inode=inode, places=places, holes=holes
                )
        except FileError as error:
            self._totals.problem(error)
            return False

    # Parts of files

    def runs(self, runs: Sequence[EqualRuns]) -> None:
        """Make ranges of one file share blocks with other files. All of `runs` must have the same
        destination."""
        if not runs:
            return
        location = runs[0].destination
        root = self._trees[location.root].root
        shared = False
        try:
            with root.open_read(location.path) as file:
                if file.identity.device in self._unable:
                    self._totals.skipped += 1
                    return
                moved = self._to_move(root, location.path, file, runs)
                if moved and self._totals.options.apply and not self._totals.capped:
                    # Moved first: after a kill in between, the next run still finds extents to free.
                    move(root, location.path, file, moved)
            for one in runs:
                columns = zip(one.source_offsets, one.offsets, one.lengths, strict=True)
                ranges = [_Range(*row) for row in columns]
                with self._opened(one.source) as source:
                    done = self._pair(source, one.source, location, ranges, by_blocks=bool(moved))
                if isinstance(done, _Refusal):
                    self._totals.problem(done.error)
                else:
                    shared |= done
        except FileError as error:
            self._totals.problem(error)
        self._totals.groups += shared

    def _opened(self, location: RootedPath) -> SourceFile:
        return self._trees[location.root].root.open_read(location.path)

    def _to_move(self, root: Root, path: bytes, file: SourceFile, runs: Sequence[EqualRuns]) -> list[Span]:
        """Return the spans that must move so that sharing frees the extents around them."""
        if not self._volume_of(root, path, file).whole_extents:
            return []
        spans = [
            Span(start, start + length)
            for one in runs
            for start, length in zip(one.offsets, one.lengths, strict=True)
        ]
        try:
            return spans_to_move(file.fileno(), file.size, sorted(spans, key=lambda span: span.start))
        except OSError:
            return []  # the file system does not report extents

    # One pair

    def _pair(
        self,
        source: SourceFile,
        source_location: RootedPath,
        destination: RootedPath,
        ranges: Sequence[_Range],
        *,
        by_blocks: bool = False,
        inode: Inode | None = None,
        places: SharedPlaces | None = None,
        holes: bool = False,
    ) -> bool | _Refusal:
        """Share ranges of one pair. Returns whether something was, or would be, shared. Other errors of the
        destination are reported and not raised.

        `by_blocks`: sharing frees single blocks, even on a volume that frees whole extents only. `inode` and
        `places`: those of the destination in a group.
        """
        shown = self._trees[source_location.root].root.shown(source_location.path)
        root, path = self._trees[destination.root].root, destination.path
        total = Instance(Action.SHARE, root.shown(path), shown, 0, 0, 0)
        refusal: _Refusal | None = None
        try:
            with root.open_read(path) as other:
                volume = self._volume_of(root, path, other)
                if by_blocks:
                    volume = replace(volume, whole_extents=False)
                job = _Pair(source, other, root, path, volume, inode, places, holes)
                for part in ranges:
                    # A file may have shrunk since the range was found.
                    if (
                        part.source_offset + part.length > source.size
                        or part.offset + part.length > other.size
                    ):
                        raise changed(path, root.shown(path), "the sizes that were compared", "smaller ones")
                    total = self._range(job, part, total)
                    if self._totals.capped:
                        break
        except _RefusedError as refused:
            refusal = refused.refusal
        except FileError as error:
            self._totals.problem(error)
        if not total.bytes:
            return False if refusal is None else refusal
        self._totals.done(total)
        if refusal is not None:
            self._totals.problem(refusal.error)
        return True

    def _range(self, job: _Pair, part: _Range, total: Instance) -> Instance:
        """Share one range. Returns `total` with the range added."""
        parts = job.parts(part)
        before = job.sums(parts, dry_run=not self._totals.options.apply)
        if not before.content:
            self._totals.already += min(before.same, part.length)
            return total
        self._check_ability(job)
        if not self._totals.take(part.length, another=not total.bytes):
            return total
        try:
            if self._totals.options.apply:
                for start, end in _joined(parts, part.length):
                    self._share(job, _Range(part.source_offset + start, part.offset + start, end - start))
                after = job.sums(job.parts(part), dry_run=False)
            else:
                can_share(job.source.fileno(), job.other.fileno())
                if job.inode is not None and job.inode.use is not None and job.inode.use.immutable:
                    raise OSError(errno.EPERM, "")  # the kernel looks at that only with bytes
                if not self._totals.searched:
                    _compare(job, part)
                after = _Sums()
        except OSError as error:
            self._totals.untake(part.length, another=not total.bytes)
            raise self._failure(job, error) from error
        self._totals.already += min(before.same, part.length)
        compressed = max(0, before.compressed - after.compressed)
        held = max(0, before.held - after.held)
        unsure = max(0, before.unsure - after.unsure)
        return replace(
            total,
            bytes=total.bytes + min(part.length, before.content),
            won=total.won + max(0, before.own - after.own),
            perhaps=total.perhaps + compressed + held + unsure,
            compressed=total.compressed + compressed,
            held=total.held + held,
        )

    def _check_ability(self, job: _Pair) -> None:
        """Ask once for each device whether its file system can share blocks at all. Raises FileError."""
        device = job.other.identity.device
        if device in self._able:
            return
        try:
            can_share(job.source.fileno(), job.other.fileno())
        except OSError as error:
            if error.errno in NO_SHARING:
                self._unable.add(device)
                raise sharing_failure(job.root, job.path, error) from error
        self._able.add(device)

    def _failure(self, job: _Pair, error: OSError) -> Exception:
        failure = sharing_failure(job.root, job.path, error)
        if not isinstance(failure, FileError) or error.errno not in PAIR_ERRORS | TARGET_ERRORS:
            return failure
        return _RefusedError(_Refusal(failure, error.errno in TARGET_ERRORS))

    def _share(self, job: _Pair, part: _Range) -> None:
        done = 0
        while done < part.length:
            shared = dedupe_range(
                job.source.fileno(),
                part.source_offset + done,
                min(SLICE_BYTES, part.length - done),
                job.other.fileno(),
                part.offset + done,
            )
            if shared is None:
                raise job.differs()
            done += shared
            self._totals.advance(shared)

    def _volume_of(self, root: Root, path: bytes, file: SourceFile) -> Volume:
        with root.failing(path, "look at its file system", reading=True):
            return volume_of(file.fileno())


class _Pair(Record):
    """Two open files, the second of which is to share the first one's blocks."""

    source: SourceFile
    other: SourceFile
    root: Root
    path: bytes
    volume: Volume
    inode: Inode | None
    places: SharedPlaces | None
    holes: bool
    """True if only the first one's holes are shared."""

    def parts(self, part: _Range) -> list[Part]:
        """Compare where both ranges lie on disk. If the file system does not report extents, the whole
        range is of unknown use."""
        length = part.length
        if part.offset + length == self.other.size:
            length = self.volume.rounded(length)
        try:
            parts = compare_places(
                *(self.source.fileno(), part.source_offset, self.other.fileno(), part.offset, length),
                whole_extents=self.volume.whole_extents,
            )
            return [one for one in parts if one.beside_hole] if self.holes else list(parts)
        except OSError as error:
            if error.errno not in NO_EXTENTS:
                raise self.root.failure(error, self.path, "look at its blocks", reading=True) from error
            return [Part(0, length, Use.PARTIAL, 0, beside_hole=False)]

    def sums(self, parts: Iterable[Part], *, dry_run: bool) -> _Sums:
        """Add up what becomes free. What a later file of the group refers to as well counts there."""
        content = same = own = compressed = held = unsure = 0
        for one in parts:
            length = one.end - one.start
            if one.use is Use.SAME:
                same += length
                continue
            content += length
            if one.use is Use.OWN:
                own += length
            elif one.use is Use.COMPRESSED:
                compressed += length
            elif one.use is Use.PARTIAL:
                unsure += length
            elif self.places is None:
                held += length
            else:
                for piece in self.places.split(one.physical, one.physical + length):
                    if piece.by_later:
                        continue
                    if dry_run and piece.by_several:
                        unsure += piece.length
                    else:
                        held += piece.length
        return _Sums(content, same, own, compressed, held, unsure)

    def differs(self) -> FileError:
        shown = self.root.shown(self.path)
        return changed(self.path, shown, "the content that was compared", "another")


def _volume_id(inode: Inode) -> bytes | None:
    """Return the id of the inode's volume. None for a file whose content lies inside metadata, where nothing
    can share it."""
    return None if inode.use is None or inode.use.inline else inode.use.volume.id


def _joined(parts: Sequence[Part], length: int) -> list[tuple[int, int]]:
    """Return the ranges that are to share, in bytes below `length`: neighbours are shared with one call."""
    found: list[tuple[int, int]] = []
    for part in parts:
        start, end = part.start, min(part.end, length)
        if part.use is Use.SAME or start >= end:
            continue
        if found and found[-1][1] == start:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


def _compare(job: _Pair, part: _Range) -> None:
    """Compare the bytes as the kernel would. Raises FileChangedError if they differ."""
    end = part.source_offset + part.length
    step = SPAN_BYTES
    if part.source_offset == part.offset == 0:
        spans = spans_with_data((job.source.fileno(), job.other.fileno()), end, step)
    else:
        spans = ((at, min(step, end - at)) for at in range(part.source_offset, end, step))
    for at, length in spans:
        if job.source.pread(at, length) != job.other.pread(at - part.source_offset + part.offset, length):
            raise job.differs()


# Moving the rest of partly shared extents, so that whole extents can be freed
#
# btrfs keeps an extent on disk while one of its blocks is referenced. A disk image that shares all but a few
# blocks would free nothing. So those few blocks are first written again, into a temporary file beside the
# image, and the image is made to share them with that file. The kernel compares the bytes as for any other
# pair. Once the temporary is removed and the other blocks are shared, nothing references the large extent any
# more.

WORTH = 2
"""Bytes that each rewritten byte must free at least."""

LEAST_BYTES = 4096
"""Smallest size of the temporary. A smaller file would be stored inside metadata, where nothing can share
it."""


class Span(Record):
    """A range of one file, in bytes."""

    start: int
    end: int

    @property
    def length(self) -> int:
        return self.end - self.start


def spans_to_move(fd: int, size: int, shared: Iterable[Span]) -> list[Span]:
    """Return the spans to move so that everything in `shared` (sorted, disjoint) is freed. Empty if moving is
    not needed or not worth it. Raises OSError."""
    spans = list(shared)
    moved: list[Span] = []
    won = 0
    for extent in extents(fd, 0, size):
        if not extent.alone:
            continue
        whole = Span(extent.start, min(extent.end, size))
        left = list(_outside(whole, spans))
        remaining = sum(span.length for span in left)
        if 0 < remaining < whole.length:
            moved += left
            won += whole.length - remaining
    written = sum(span.length for span in moved)
    return moved if LEAST_BYTES <= written <= won // WORTH else []


def _outside(whole: Span, spans: Sequence[Span]) -> Iterator[Span]:
    """Yield the parts of `whole` that no span covers."""
    at = whole.start
    for span in spans:
        if span.end <= at:
            continue
        if span.start >= whole.end:
            break
        if span.start > at:
            yield Span(at, span.start)
        at = span.end
    if at < whole.end:
        yield Span(at, whole.end)


def move(root: Root, path: bytes, file: SourceFile, spans: Sequence[Span]) -> None:
    """Move these spans of a file into extents of their own. Spans are whole blocks, except at the end of the
    file.

    Raises FileError, FileChangedError and OutOfSpaceError; some spans have moved by then.
    """
    # The end of the file comes last. It may be a partial block, which must then be the end of the temporary
    # too.
    with Replacement(root, path) as copy:
        try:
            leave_out_checksums(copy.fileno(), file.fileno())
        except OSError as error:
            raise sharing_failure(root, path, error) from error
        for span in spans:
            for at in range(span.start, span.end, SPAN_BYTES):
                copy.write(file.pread(at, min(SPAN_BYTES, span.end - at)))
        done = 0
        try:
            for span in spans:
                _share_moved(copy, done, file, span, root, path)
                done += span.length
        except OSError as error:
            raise sharing_failure(root, path, error) from error


def _share_moved(
    copy: Replacement, offset: int, file: SourceFile, span: Span, root: Root, path: bytes
) -> None:
    done = 0
    while done < span.length:
        length = min(SLICE_BYTES, span.length - done)
        shared = dedupe_range(copy.fileno(), offset + done, length, file.fileno(), span.start + done)
        if shared is None:
            raise changed(path, root.shown(path), "the content that was copied", "another")
        done += shared
