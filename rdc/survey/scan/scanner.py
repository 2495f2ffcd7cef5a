"""One scan from its options to its outcome: each file that was found is read once and counted. If stopped, it
keeps what was counted."""

from __future__ import annotations

import os
import threading
import time
from array import array
from bisect import bisect_right
from functools import partial
from itertools import accumulate
from operator import eq

from blake3 import blake3

from rdc.catalog.catalog import opened_catalog
from rdc.catalog.signer import BATCH_BYTES as SIGNED_BYTES
from rdc.catalog.signer import FileSigner, Signed, SignTask, replayed, sign_in_order
from rdc.catalog.small_files import SMALL_BYTES
from rdc.catalog.store import SignatureStore, SignedFiles, SmallFiles, UserCatalog
from rdc.errors import ExitCode, FileError, RdcError, UsageError
from rdc.files.bulk.open_many import TOUCHED, content_error
from rdc.files.objects.object_store import is_url
from rdc.files.root.root import Root
from rdc.files.root.source_file import SPAN_BYTES, SourceFile
from rdc.kernel import Folder
from rdc.limits import CATALOG_BYTES
from rdc.model.scan import ScanOptions
from rdc.progress import Event, Problem, Progressed, Reporter, silent
from rdc.signature.tree import DIGEST_BYTES, SignatureTree
from rdc.survey.count.chunk_locations import Candidate, suffix_of
from rdc.survey.count.counters import (
    FILE_LEVEL,
    FINE_PARAMS,
    FOLD_MAX,
    FOLD_MIN,
    FOLDED,
    FOLLOWED,
    NO_HOLES,
    CountedFile,
    Counters,
    FixedBlocks,
    Holes,
    Outcome,
    keys_of,
    mean_of,
    root_key,
    shared_options,
)
from rdc.survey.read import in_order
from rdc.survey.scan.found_files import (
    BATCH_FILES,
    BATCH_MOST,
    Found,
    FoundFile,
    Run,
    ScannedFile,
    SharingDevices,
    SignedBatch,
    SmallBatch,
    located,
    named,
    reader,
    sign_batch,
)
from rdc.survey.scan.walk import Explorer, Gatherer, Walked, is_single_file
from rdc.survey.slices import SliceDivision, SliceSet, WalkTotals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rdc.chunking import ChunkParams
    from rdc.files.objects.object_store import ObjectTree
    from rdc.files.own.output_file import Claims


# ReadBudget: decides when a scan stops reading: at its time limit, at a complete sample, or on request.


class ReadBudget:
    """Knows why reading ends. A request or the time limit stops the scan at once. A complete sample does not:
    files already selected are still read."""

    def __init__(self, options: ScanOptions, stopped: Callable[[], bool], clock: Callable[[], float]) -> None:
        """Start now. `stopped` returns whether the caller wants to end, `clock` returns seconds."""
        self._options = options
        self._asked_to_stop = stopped
        self._clock = clock
        self._deadline = None if options.seconds is None else clock() + options.seconds
        self._enough: float = float("inf")
        self.total = 0
        """Approximate bytes to be read."""
        self.reason = ""
        """The reason, as in Coverage; "" while there is no reason to stop."""

    @property
    def of_a_part(self) -> bool:
        """Return whether only a part of the files may be read. Files must then come in random order."""
        return self._options.seconds is not None or self._options.sample is not None

    @property
    def over(self) -> bool:
        """Return whether reading has ended, without asking again."""
        return self.reason in ("interrupted", "time")

    def expect(self, found: int) -> None:
        """Announce the bytes that were found."""
        self.total = found
        sample = self._options.sample
        if sample is not None and sample < 1:
            self._enough = sample * found
            self.total = int(self._enough)

    def stopped(self) -> bool:
        """Ask whether reading must end."""
        if not self.over:
            if self._asked_to_stop():
                self.reason = "interrupted"
            elif self._deadline is not None and self._clock() >= self._deadline:
                self.reason = "time"
        return self.over

    def wanted(self, runs: Iterable[Run]) -> Iterator[Run]:
        """Yield the runs to read, until there is a reason to stop. The sample ends after the file that
        completes it."""
        taken = 0
        for run in runs:
            if self.stopped():
                return
            if taken and taken >= self._enough:
                self.reason = self.reason or "sample"
                return
            if self._enough != float("inf"):
                taken += run.bytes
            yield run


# LargeFile: counts one large file, or one with holes, chunk by chunk at every level.

PERIOD = FOLD_MAX ** (len(FOLDED) - 1)
"""Equal chunks after which a run repeats itself at every level. Groups of equal keys have the maximal
length."""

LEAD_IN = 2 * PERIOD
"""Equal chunks after which the groups of every level are full and equal. The first group may end up to
FOLD_MAX items into the run, and likewise on the level above."""


def rows_with_long_runs(counts: Sequence[int], digests: bytes) -> list[int]:
    """Return the files that have a run of equal chunks so long that LargeFile counts a part of it by number,
    and perhaps others. Columns: chunks of each file, digests of all chunks."""
    # Of such a run's LEAD_IN + PERIOD chunks, one is at a multiple of LEAD_IN, and the next one is equal.
    column, step = memoryview(digests).cast("Q"), LEAD_IN * DIGEST_BYTES // 8
    same = map(eq, column[::step], column[DIGEST_BYTES // 8 :: step])
    found = [number * LEAD_IN for number, equal in enumerate(same) if equal]
    if not found:
        return []
    ends = list(accumulate(counts))
    rows = sorted({bisect_right(ends, chunk) for chunk in found})
    return [row for row in rows if counts[row] >= LEAD_IN + PERIOD]


class LargeFile:
    """A ChunkTaker that counts one file. After an error, `finish` counts the part that came.

    A chunk that lies wholly in a hole takes no space and is not counted at any level.
    """

    def __init__(
        self,
        counters: Counters,
        location: int,
        read: Callable[[int, int], bytes | None],
        holes: Holes,
    ) -> None:
        self._counters = counters
        self._location = location
        self._read = read
        self._holes = holes
        self._folders = [Folder(FOLD_MIN, FOLD_MAX) for _ in FOLDED[1:]]
        self._offsets = [0] * len(FOLDED)
        """The start of the next chunk of each level."""
        self.size = 0
        """Bytes received so far."""

    def add(self, digests: list[bytes], lengths: list[int], /) -> None:
        if not digests:
            return
        keys, sizes = keys_of(b"".join(digests)), array("Q", lengths).tobytes()
        self.size += sum(lengths)
        self._take(0, keys, sizes)

    def repeat(self, digest: bytes, length: int, count: int, /) -> None:
        """Count a long run in constant time. The middle of the run is a multiple of PERIOD chunks; in it,
        each level repeats one group. So these groups are counted by number, and leaving them out only shifts
        what follows."""
        middle = max(0, count - LEAD_IN) // PERIOD * PERIOD
        self.add([digest] * min(count, LEAD_IN), [length] * min(count, LEAD_IN))
        if middle:
            keys, sizes = keys_of(digest), array("Q", [length]).tobytes()
            self.size += middle * length
            for number, level in enumerate(FOLDED):
                if number:
                    scratch = Folder(FOLD_MIN, FOLD_MAX)
                    scratch.feed(keys * FOLD_MAX, sizes * FOLD_MAX)
                    keys, sizes = scratch.finish()
                self._count_run(number, level, keys, sizes, middle // FOLD_MAX**number)
        rest = count - min(count, LEAD_IN) - middle
        self.add([digest] * rest, [length] * rest)

    def finish(self, key: int, counted: int) -> None:
        """End the file. `key`: of the whole file. `counted`: its bytes without holes."""
        for number, folder in enumerate(self._folders, 1):
            keys, sizes = folder.finish()
            self._take(number, keys, sizes)
        self._counters.levels[FILE_LEVEL].add(array("Q", [key]).tobytes(), array("Q", [counted]).tobytes())
        self._counters.locations.count(self._location, counted)
        self._counters.compress_file(key, self.size, self._read_data, self._holes)

    def _read_data(self, offset: int, length: int) -> bytes | None:
        """Return a range's content outside of holes; None if there is none. Zeros of holes would make the
        rest seem to compress well."""
        if self._holes.cover(offset, offset + length):
            return None
        content = self._read(offset, length)
        return None if content is None else self._holes.data(content, offset)

    def _take(self, number: int, keys: bytes, sizes: bytes) -> None:
        # long because it counts each chunk in one pass, and a call for each would cost more than the work
        if not keys:
            return
        counters, level, start = self._counters, FOLDED[number], self._offsets[number]
        lengths = memoryview(sizes).cast("Q")
        self._offsets[number] += sum(lengths)
        if number + 1 < len(FOLDED):
            self._take(number + 1, *self._folders[number].feed(keys, sizes))
        if self._holes:
            offsets = list(accumulate(lengths, initial=start))
            hollow = map(self._holes.cover, offsets, offsets[1:])
            remaining = [row for row, left_out in enumerate(hollow) if not left_out]
            if len(remaining) < len(lengths):
                column = memoryview(keys).cast("Q")
                keys = array("Q", [column[row] for row in remaining]).tobytes()
                sizes = array("Q", [lengths[row] for row in remaining]).tobytes()
                offsets = [offsets[row] for row in remaining]
        else:
            offsets = []
        counters.levels[level].add(keys, sizes)
        sample = counters.compression.get(level)
        if sample is not None:
            column, lengths = memoryview(keys).cast("Q"), memoryview(sizes).cast("Q")
            for row in sample.wanted(keys):
                at = offsets[row] if offsets else start + sum(lengths[:row])
                content = self._read(at, lengths[row])
                if content is not None and column[row] not in sample.sizes:
                    sample.take(column[row], content)
        if level == FOLLOWED:
            counters.references.add(keys, sizes, array("I", [self._location]) * (len(keys) // 8))

    def _count_run(self, number: int, level: str, keys: bytes, sizes: bytes, count: int) -> None:
        length, start = memoryview(sizes).cast("Q")[0], self._offsets[number]
        self._offsets[number] += length * count
        count -= self._holes.covered(start, length, count)
        counts = array("Q", [count]).tobytes()
        self._counters.levels[level].add(keys, sizes, counts)
        if level == FOLLOWED and count:
            # At most two references: they show that the chunk repeats, without a million rows.
            self._counters.references.add(
                keys * min(count, 2), sizes * min(count, 2), array("I", [self._location]) * min(count, 2)
            )


def count_tree(
    counters: Counters,
    tree: SignatureTree,
    location: int,
    read: Callable[[int, int], bytes | None],
    holes: Holes,
) -> None:
    """Count a whole file by its signature. `read`: reads content again, given offset and length in bytes."""
    stream = LargeFile(counters, location, read, holes)
    for _ in replayed(tree, stream):
        pass
    stream.finish(root_key(tree.root), tree.size - holes.total(tree.size))


def count_chunks(counters: Counters, batch: SmallBatch, signed: SignedFiles) -> None:
    """Count all chunks.

    Files with long runs of equal chunks are counted as large files are, so that a file counts the same
    however it was read.
    """
    signatures, locations, read = signed.signatures, located(batch, signed), reader(batch, signed)
    repeating = rows_with_long_runs(signatures.counts, signatures.digests)
    if not repeating:
        counters.add_columns(signatures, locations, read)
        return
    firsts = array("Q", accumulate(signatures.counts, initial=0))
    for number in repeating:
        tree = signatures.tree(number, firsts[number])
        count_tree(counters, tree, locations[number], partial(read, number), NO_HOLES)
    rest = sorted(set(range(len(signed.rows))).difference(repeating))
    counters.add_columns(
        signatures.chosen(rest),
        [locations[number] for number in rest],
        lambda number, offset, size: read(rest[number], offset, size),
    )


# Scanner: reads every file that was found once, and counts it. If stopped, it keeps what was counted.

STREAMED_BYTES = SIGNED_BYTES
"""Files of at least this size are read one at a time, by all threads together."""

ALONE_FILES = 256
ALONE_BYTES = 16 << 20
"""Limits of the queue of files that are read singly: enough work for all threads."""

FILES_PER_EVENT = 32
"""Files between two progress events: a few milliseconds of work."""


class Scanner:
    """The state of one scan."""

    def __init__(
        self,
        options: ScanOptions,
        store: SignatureStore,
        reporter: Reporter,
        stopped: Callable[[], bool],
        clock: Callable[[], float],
        threads: int | None = None,
        listed: Callable[[Gatherer], Walked] | None = None,
        claims: Claims | None = None,
    ) -> None:
        """Take `listed`, which fills what a walk would fill and returns what the walk met, and `claims`: the
        results of this run, which a walk must not meet."""
        self._options = options
        self._claims = claims
        self._listed = listed
        self._store = store
        self._reporter = reporter
        self._budget = ReadBudget(options, stopped, clock)
        self._signer = FileSigner(FINE_PARAMS, store, workers=threads)
        self._linked: set[tuple[int, int]] = set()
        self._every_inode = False
        self._alone: list[FoundFile] = []
        self._sharing = SharingDevices()
        self._done = 0
        self._unreported = 0
        self.outcome = Outcome(options)

    def run(self, paths: list[bytes]) -> Outcome:
        """Find, read and count. Failures of single files are in the outcome and raise nothing."""
        found = Found()
        try:
            return self._run(paths, found)
        finally:
            found.release()

    def _run(self, paths: list[bytes], found: Found) -> Outcome:
        outcome, budget = self.outcome, self._budget
        outcome.paths = list(paths)
        gatherer = Gatherer(found, outcome.locations, self._report)
        if self._options.slice is not None:
            division = SliceDivision(self._options.slice.of, by_inode=any(map(is_single_file, paths)))
            number = self._options.slice.number
            gatherer = Gatherer(found, outcome.locations, self._report, division, number)
        if self._listed is None:
            explorer = Explorer(self._options, gatherer, budget.stopped, paths, self._claims)
            for path in paths:
                explorer.explore(path)
            walked = explorer.walked
        else:
            walked = self._listed(gatherer)
        self._every_inode = walked.single_files
        outcome.found_files, outcome.found_bytes = len(found), found.bytes
        outcome.slices = self._slices(walked)
        outcome.counters.expect(walked.bytes)
        budget.expect(found.bytes)
        self._progress()
        runs = found.shuffled(self._options.seed) if budget.of_a_part else found.in_order()
        # In random order, a batch is spread over the disk, and a stop must wait for batches in progress. So
        # batches are small.
        batches = self._batches(runs, BATCH_FILES // 8 if budget.of_a_part else BATCH_FILES)
        for done in in_order(self._sign, batches, self._signer.workers, found.waits):
            self._count_batch(done)
        self._sign_alone()
        self._signer.close()
        outcome.counters.flush()
        self._progress()
        outcome.reason = budget.reason
        outcome.interrupted = budget.reason == "interrupted"
        return outcome

    def _slices(self, walked: Walked) -> SliceSet | None:
        own = self._options.slice
        if own is None:
            return None
        totals = WalkTotals(walked.files, walked.bytes, walked.directories, own.number)
        return SliceSet.one(own, shared_options(self._options), walked.roots, totals)

    def _batches(self, runs: Iterable[Run], most: int) -> Iterator[SmallBatch]:
        """Batches of small files, `most` at a time once started. Files that are read singly are handled in
        between."""
        # The first batches are small: they run before threads start, and a small tree has no others.
        batch, enough = SmallBatch(), most // 16
        for run in self._budget.wanted(runs):
            for part in self._split(run):
                if batch and (
                    part.directory.root is not batch.root
                    or len(batch) + len(part) > enough
                    or batch.is_full()
                    or batch.bytes + part.bytes > BATCH_MOST
                ):
                    yield batch
                    batch, enough = SmallBatch(), min(most, 2 * enough)
                batch.add(part, self.outcome.locations.locations_of(part.directory.number, part.names))
        if batch:
            yield batch

    def _split(self, run: Run) -> Iterator[Run]:
        """Yield the parts of `run` that go into a batch. Handles the other files."""
        found, start, stop = run.found, run.start, run.stop
        small = self._largest_in_batches(run.directory.root)
        if (
            not self._every_inode
            and max(found.sizes[start:stop]) <= small
            and max(found.links[start:stop]) <= 1
            and run.bytes <= BATCH_MOST
        ):
            yield run
            return
        for row in range(start, stop):
            size = found.sizes[row]
            if not self._is_first(found, row):
                self.outcome.hardlinks += 1
                self._advance(size)
            elif size <= small:
                yield run.part(row, row + 1)
            elif size >= STREAMED_BYTES:
                self._stream(self._opening(run.file(row)))
            else:
                self._take_alone(run.file(row))

    def _largest_in_batches(self, root: Root | ObjectTree) -> int:
        """Return the bytes of the largest file that goes into a batch. Fixed blocks are cut from files read
        singly."""
        if self._options.fixed:
            return 0
        return STREAMED_BYTES - 1 if isinstance(root, Root) else SMALL_BYTES

    def _is_first(self, found: Found, row: int) -> bool:
        """Return whether this file was not seen under another name. A file with several names is counted at
        the first in the walk's order. An object has no other name."""
        if found.links[row] <= 1 and not (self._every_inode and found.links[row]):
            return True
        before = len(self._linked)
        self._linked.add((found.devices[row], found.inodes[row]))
        return len(self._linked) > before

    def _sign(self, batch: SmallBatch) -> SignedBatch:
        """Sign a batch. Runs in any thread."""
        if not isinstance(batch.root, Root):
            from rdc.survey.scan.objects import sign_objects

            return sign_objects(batch, batch.root, FINE_PARAMS)
        return sign_batch(batch, FINE_PARAMS, self._store, self._sharing, keep=self._options.compress)

    def _count_batch(self, done: SignedBatch) -> None:
        """Count a batch. A file that differs from its listing is read again singly, which reports the
        reason."""
        for row, result in done.outcome.failed:
            found = done.batch.file(row)
            if result == TOUCHED:
                self._failed(found, content_error(result, found.path, found.shown))
                self._advance(found.size)
            else:
                self._take_alone(found)
        for row in done.hollow:
            self._take_alone(done.batch.file(row))
        self.outcome.already_shared_bytes += done.shared
        for signed, known in ((done.outcome.read, False), (done.outcome.known, True)):
            if len(signed.rows):
                self._count_signed(done.batch, signed, known=known)

    def _count_signed(self, batch: SmallBatch, signed: SignedFiles, *, known: bool) -> None:
        outcome, columns = self.outcome, signed.signatures
        count_chunks(outcome.counters, batch, signed)
        keys = array("Q", keys_of(columns.roots))
        directories, names = named(batch, signed)
        outcome.counters.resembling.add_column(keys, columns.sizes, columns.traits, directories, names)
        outcome.counters.identical.add_column(keys, columns.sizes, directories, names)
        if isinstance(batch.root, Root):
            outcome.counters.ages.add(batch.mtimes(signed.rows), columns.sizes)
        size = sum(columns.sizes)
        outcome.files += len(columns)
        outcome.bytes += size
        outcome.allocated_bytes += sum(map(batch.allocated.__getitem__, signed.rows))
        outcome.known_bytes += size if known else 0
        self._advance(size)

    def _take_alone(self, found: FoundFile) -> None:
        """Queue a file to be read singly."""
        self._alone.append(found)
        if len(self._alone) >= ALONE_FILES or sum([file.size for file in self._alone]) >= ALONE_BYTES:
            self._sign_alone()

    def _sign_alone(self) -> None:
        files, self._alone = self._alone, []
        if self._budget.over:
            return
        for signed in sign_in_order(self._signer, self._tasks(files)):
            self._count(signed)

    def _opening(self, found: FoundFile) -> ScannedFile:
        blocks = None
        if self._options.fixed:
            blocks = FixedBlocks(tuple(mean_of(level) for level in self._options.fixed))
        return ScannedFile(found, self._sharing, blocks)

    def _tasks(self, files: Sequence[FoundFile]) -> Iterator[SignTask[ScannedFile]]:
        opening = [self._opening(found) for found in files]
        if not all(isinstance(found.root, Root) for found in files):
            from rdc.survey.scan.objects import fetch_objects

            fetch_objects(opening)
            if self._budget.over:
                return
        for file in opening:
            yield SignTask(file, file.found.size, file.open)

    def _count(self, signed: Signed[ScannedFile]) -> None:
        file, tree = signed.key, signed.tree
        if tree is None:
            if signed.error is not None:
                self._failed(file.found, signed.error)
            self._advance(file.found.size)
            return
        self._seen(file, tree.size, known=signed.known)
        self._note_file(file, root_key(tree.root), tree.size, tree.traits)
        location = self._location(file.found)
        if file.holes or any(count != 1 for count in tree.levels[0].counts):
            count_tree(self.outcome.counters, tree, location, file.read, file.holes)
        else:
            self.outcome.counters.add(CountedFile(tree, location, file.read))
        if file.blocks is not None:
            if file.holes:
                self._hollow_blocks(file, file.blocks, tree.size)
            self.outcome.counters.add_blocks(file.blocks, file.read)
        self._advance(file.found.size)

    def _hollow_blocks(self, file: ScannedFile, blocks: FixedBlocks, size: int) -> None:
        """Cut fixed blocks of a file with holes, by reading its data again."""
        for start, end in file.holes.uncovered(size, SPAN_BYTES):
            for at in range(start, end, SPAN_BYTES):
                content = file.read(at, min(SPAN_BYTES, end - at))
                if content is not None:
                    blocks.cut(content, at, file.holes)
                    self.outcome.counters.add_blocks(blocks, file.read)

    def _stream(self, file: ScannedFile) -> None:
        """Read and count a large file. If it fails or the scan stops, the part read so far is counted."""
        stream: LargeFile | None = None
        key, done = None, 0
        try:
            with file.open() as source:
                read = partial(_pread, source)
                stream = LargeFile(self.outcome.counters, self._location(file.found), read, file.holes)
                work = self._signer.streaming(source, stream)
                while True:
                    try:
                        step = next(work)
                    except StopIteration as stop:
                        key = root_key(stop.value.root)
                        self._seen(file, source.size, known=stop.value.known)
                        self._note_file(file, key, source.size, stop.value.traits)
                        stream.finish(key, source.size - file.holes.total(source.size))
                        if file.blocks is not None and file.holes:
                            self._hollow_blocks(file, file.blocks, source.size)
                        break
                    if file.blocks is not None:
                        self.outcome.counters.add_blocks(file.blocks, read)
                    self._advance(step - done)
                    done = step
                    if self._budget.stopped():
                        work.close()
                        break
        except FileError as error:
            self._failed(file.found, error)
        if stream is not None and key is None and stream.size:
            self._seen(file, stream.size, known=False)
            # A part of a file has no digest, so it counts as different from all other files.
            key = root_key(blake3(b"rdc survey part" + file.found.shown).digest())
            stream.finish(key, stream.size - file.holes.total(stream.size))
        self._advance(file.found.size - done)

    def _seen(self, file: ScannedFile, size: int, *, known: bool) -> None:
        outcome = self.outcome
        hollow = file.holes.total(size)
        outcome.files += 1
        outcome.bytes += size - hollow
        outcome.holes_bytes += hollow
        outcome.allocated_bytes += file.allocated
        if isinstance(file.found.root, Root):
            outcome.counters.ages.add((file.identity.mtime_ns,), (size - hollow,))
        outcome.already_shared_bytes += file.shared
        outcome.known_bytes += size if known else 0

    def _note_file(self, file: ScannedFile, key: int, size: int, traits: bytes) -> None:
        counters, found = self.outcome.counters, file.found
        name = found.path.rpartition(b"/")[2]
        counters.resembling.add(key, Candidate(size, traits, found.directory, name))
        data = size - file.holes.total(size)
        counters.identical.add_column((key,), (data,), (found.directory,), (name,))

    def _failed(self, found: FoundFile, error: RdcError) -> None:
        # The file may still be readable under another name.
        self._linked.discard(found.inode)
        self._report(Problem(error.code, found.shown, str(error)))

    def _location(self, found: FoundFile) -> int:
        return self.outcome.locations.location(found.directory, suffix_of(found.path))

    def _report(self, event: Event, /) -> None:
        if isinstance(event, Problem) and event.code is not ExitCode.OK:
            self.outcome.problem(event)
        self._reporter(event)

    def _advance(self, count: int) -> None:
        self._done += count
        self._unreported += 1
        if count >= STREAMED_BYTES // 4 or self._unreported >= FILES_PER_EVENT:
            self._progress()

    def _progress(self) -> None:
        self._unreported = 0
        self._reporter(Progressed("read", self._done, self._budget.total))


def _pread(source: SourceFile, offset: int, length: int) -> bytes | None:
    try:
        return source.pread(offset, length)
    except FileError:
        return None


# CappedStore: a signature store that limits what one scan may store, so that it does not evict everything
# else.


class CappedStore(SignatureStore):
    """A SignatureStore over another one, for what a scan asks: signatures. Lookups pass through; of new
    entries, about `most` bytes are stored. Objects of a store have no descriptor, and nothing of them is
    looked up or stored."""

    def __init__(self, store: SignatureStore, most: int, *, finds: bool = True) -> None:
        """Cap `store`. `finds`: False makes every lookup fail, for callers that need each file's content."""
        self._store = store
        self._left = most
        self._finds = finds
        self._lock = threading.Lock()

    def now(self) -> int:
        return self._store.now()

    def get(self, source: SourceFile, params: ChunkParams) -> SignatureTree | None:
        return self._store.get(source, params) if self._finds and source.fileno() >= 0 else None

    def root(self, source: SourceFile, params: ChunkParams) -> bytes | None:
        return self._store.root(source, params) if self._finds and source.fileno() >= 0 else None

    def put(self, source: SourceFile, tree: SignatureTree, began: int) -> None:
        if source.fileno() < 0:
            return
        size = tree.levels[0].records * 36 + 200
        with self._lock:
            if size > self._left:
                return
            self._left -= size
        self._store.put(source, tree, began)

    def find_small(self, files: SmallFiles, params: ChunkParams) -> list[tuple[int, bytes]]:
        return self._store.find_small(files, params) if self._finds else []

    def find_roots(self, files: SmallFiles, params: ChunkParams) -> list[tuple[int, bytes]]:
        return self._store.find_roots(files, params) if self._finds else []

    def put_small(self, files: SmallFiles, signed: SignedFiles, chosen: Sequence[int], began: int) -> None:
        counts, stored = signed.signatures.counts, []
        with self._lock:
            for row in chosen:
                size = counts[row] * 36 + 200
                if size <= self._left:
                    self._left -= size
                    stored.append(row)
        self._store.put_small(files, signed, stored, began)


def survey(
    paths: Sequence[str | bytes | os.PathLike[str]],
    options: ScanOptions,
    *,
    catalog: SignatureStore | UserCatalog | None = None,
    reporter: Reporter = silent,
    stopped: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.monotonic,
    threads: int | None = None,
    listed: Callable[[Gatherer], Walked] | None = None,
    claims: Claims | None = None,
) -> Outcome:
    """Return an outcome, which can be saved and merged before it is reported.

    `stopped` is asked between pieces of work; True ends the scan with the files read so far. `clock` returns
    seconds and never goes back. `threads`: that read and hash; None for one a CPU. `listed`: takes
    the place of the walk, see Scanner. `claims`: the results of this run. Raises UsageError.
    Failures of single files are in the outcome.
    """
    if not paths:
        raise UsageError("a scan needs at least one path")
    if options.sample is not None and not 0 < options.sample <= 1:
        raise UsageError(f"a sample of {options.sample:g}: above 0 and at most 1 is expected")
    given = [os.fsencode(path) for path in paths]
    if any(map(is_url, given)):
        from rdc.survey.scan.objects import check_urls

        check_urls(given, options)
    with opened_catalog(catalog, reporter) as store:
        # One scan may store at most half of the catalog. The other half stays for syncs.
        capped = CappedStore(store, CATALOG_BYTES // 2, finds=not options.fixed)
        scanner = Scanner(options, capped, reporter, stopped, clock, threads, listed, claims)
        return scanner.run(given)
