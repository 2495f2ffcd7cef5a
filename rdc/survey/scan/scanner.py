"""Scanner: reads every file that was found once, and counts it. If stopped, it keeps what was counted."""

from __future__ import annotations

from array import array
from functools import partial

from blake3 import blake3

from rdc.catalog.signer import BATCH_BYTES as SIGNED_BYTES
from rdc.catalog.signer import FileSigner, Signed, SignTask, sign_in_order
from rdc.catalog.small_files import SMALL_BYTES
from rdc.errors import ExitCode, FileError
from rdc.files.bulk.read_many import TOUCHED, content_error
from rdc.files.root.root import Root
from rdc.files.root.source_file import SPAN_BYTES
from rdc.progress import Problem, Progressed
from rdc.survey.count.chunk_locations import suffix_of
from rdc.survey.count.counters import CountedFile
from rdc.survey.count.granularities import FINE_PARAMS, keys_of, mean_of, root_key
from rdc.survey.count.resembling_files import Candidate
from rdc.survey.read.ordered_threads import in_order
from rdc.survey.scan.counted_batch import count_chunks
from rdc.survey.scan.found_files import Found
from rdc.survey.scan.gatherer import Gatherer
from rdc.survey.scan.large_file import LargeFile, count_tree
from rdc.survey.scan.outcome import Outcome, shared_options
from rdc.survey.scan.read_budget import ReadBudget
from rdc.survey.scan.scanned_file import ScannedFile, SharingDevices
from rdc.survey.scan.small_batch import (
    BATCH_FILES,
    BATCH_MOST,
    SmallBatch,
    named,
    sign_batch,
)
from rdc.survey.scan.walk import Explorer, is_single_file
from rdc.survey.slices import SliceDivision, SliceSet, WalkTotals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rdc.catalog.store import SignatureStore, SignedFiles
    from rdc.errors import RdcError
    from rdc.files.objects.object_tree import ObjectTree
    from rdc.files.own.claims import Claims
    from rdc.files.root.source_file import SourceFile
    from rdc.model.scan import ScanOptions
    from rdc.progress import Event, Reporter
    from rdc.survey.count.fixed_blocks import FixedBlocks
    from rdc.survey.scan.found_files import FoundFile, Run
    from rdc.survey.scan.gatherer import Walked
    from rdc.survey.scan.small_batch import SignedBatch

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
        """`listed`: fills what a walk would fill, and returns what the walk met. `claims`: the results of
        this run, which a walk must not meet."""
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
        """Finds, reads and counts. Failures of single files are in the outcome and raise nothing."""
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
        """Yields the parts of `run` that go into a batch. Handles the other files."""
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
        """Bytes of the largest file that goes into a batch. Fixed blocks are cut from files read singly."""
        if self._options.fixed:
            return 0
        return STREAMED_BYTES - 1 if isinstance(root, Root) else SMALL_BYTES

    def _is_first(self, found: Found, row: int) -> bool:
        """Whether this file was not seen under another name. Of several names, the first in the walk's order
        counts. An object has no other name."""
        if found.links[row] <= 1 and not (self._every_inode and found.links[row]):
            return True
        before = len(self._linked)
        self._linked.add((found.devices[row], found.inodes[row]))
        return len(self._linked) > before

    def _sign(self, batch: SmallBatch) -> SignedBatch:
        """Signs a batch. Runs in any thread."""
        if not isinstance(batch.root, Root):
            from rdc.survey.scan.object_batch import sign_objects

            return sign_objects(batch, batch.root, FINE_PARAMS)
        return sign_batch(batch, FINE_PARAMS, self._store, self._sharing, keep=self._options.compress)

    def _count_batch(self, done: SignedBatch) -> None:
        """Counts a batch. A file that differs from its listing is read again singly, which reports the
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
        outcome.counters.resembling.add_column(keys, columns.sizes, columns.traits, *named(batch, signed))
        size = sum(columns.sizes)
        outcome.files += len(columns)
        outcome.bytes += size
        outcome.allocated_bytes += sum(map(batch.allocated.__getitem__, signed.rows))
        outcome.known_bytes += size if known else 0
        self._advance(size)

    def _take_alone(self, found: FoundFile) -> None:
        """Queues a file to be read singly."""
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
            from rdc.survey.count.fixed_blocks import FixedBlocks

            blocks = FixedBlocks(tuple(mean_of(level) for level in self._options.fixed))
        return ScannedFile(found, self._sharing, blocks)

    def _tasks(self, files: Sequence[FoundFile]) -> Iterator[SignTask[ScannedFile]]:
        opening = [self._opening(found) for found in files]
        if not all(isinstance(found.root, Root) for found in files):
            from rdc.survey.scan.object_batch import fetch_objects

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
        self._note_traits(file.found, root_key(tree.root), tree.size, tree.traits)
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
        """Cuts fixed blocks of a file with holes, by reading its data again."""
        for start, end in file.holes.uncovered(size, SPAN_BYTES):
            for at in range(start, end, SPAN_BYTES):
                content = file.read(at, min(SPAN_BYTES, end - at))
                if content is not None:
                    blocks.cut(content, at, file.holes)
                    self.outcome.counters.add_blocks(blocks, file.read)

    def _stream(self, file: ScannedFile) -> None:
        """Reads and counts a large file. If it fails or the scan stops, the part read so far is counted."""
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
                        self._note_traits(file.found, key, source.size, stop.value.traits)
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
        outcome.already_shared_bytes += file.shared
        outcome.known_bytes += size if known else 0

    def _note_traits(self, found: FoundFile, key: int, size: int, traits: bytes) -> None:
        name = found.path.rpartition(b"/")[2]
        self.outcome.counters.resembling.add(key, Candidate(size, traits, found.directory, name))

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
