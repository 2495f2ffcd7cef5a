"""Reads what was found, once, and counts it; stops when told to and keeps what was done."""

from __future__ import annotations

import os
import time
from array import array
from bisect import bisect_right
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from blake3 import blake3

from rdc.catalog.location import USER_CATALOG, opened_catalog
from rdc.catalog.signer import FileSigner
from rdc.catalog.signing import BATCH_BYTES as SIGNED_BYTES
from rdc.catalog.signing import SignTask
from rdc.catalog.small_files import SMALL_BYTES
from rdc.catalog.streaming import replayed
from rdc.errors import ExitCode, FileError, UsageError
from rdc.files.contents import TOUCHED, content_error
from rdc.files.extents import holes, shared_bytes
from rdc.files.source import SPAN_BYTES
from rdc.limits import CATALOG_BYTES, SCAN_HOLES
from rdc.model.scan import ScanOptions
from rdc.progress import Problem, Progressed, silent
from rdc.survey.census import SmallFile
from rdc.survey.explorer import Explorer
from rdc.survey.found import Found
from rdc.survey.levels import FINE_PARAMS, keys_of, mean_of, root_key
from rdc.survey.likeness import Candidate
from rdc.survey.outcome import Outcome
from rdc.survey.places import suffix_of
from rdc.survey.small_batch import BATCH_BYTES, BATCH_FILES, SmallBatch, counted, likened, reader, sign_batch
from rdc.survey.stream import FileStream
from rdc.survey.thrift import ThriftyStore
from rdc.survey.workers import in_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rdc.catalog.location import UserCatalog
    from rdc.catalog.signing import Signed
    from rdc.catalog.small_files import SignedFiles
    from rdc.catalog.store import SignatureStore
    from rdc.errors import RdcError
    from rdc.files.source import SourceFile
    from rdc.model.entries import Identity
    from rdc.model.scan import ScanReport
    from rdc.progress import Event, Reporter
    from rdc.survey.fixed import FixedBlocks
    from rdc.survey.found import FoundDirectory, FoundFile, Run
    from rdc.survey.small_batch import SignedBatch

__all__ = ["scan", "survey"]

STREAMED_BYTES = SIGNED_BYTES
"""Files from this size on come one at a time, worked on by all threads."""

ALONE_FILES = 256
ALONE_BYTES = 16 << 20
"""Files that wait to be read one by one: enough for all threads."""

_AT_ONCE = ("interrupted", "time")
"""Reasons to stop and to leave what waits."""

FILES_PER_EVENT = 32
"""Such files after which progress is told: a few milliseconds of work."""

_SHARING = {0x9123683E, 0x58465342, 0xCA451A4E, 0x7461636F}
"""f_type of btrfs, xfs, bcachefs, ocfs2: where extents can be shared. Elsewhere the question costs a system
call a file for nothing."""


def scan(
    paths: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]],
    options: ScanOptions = ScanOptions(),  # noqa: B008 - frozen
    *,
    catalog: SignatureStore | UserCatalog | None = USER_CATALOG,
    reporter: Reporter = silent,
    stopped: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.monotonic,
) -> ScanReport:
    """Measure what deduplication and compression would save below `paths`, or below the one path given.

    `catalog` is asked before a file is read and told afterwards. `stopped` is asked between pieces of work
    whether to end with what is done; `clock` gives seconds that never go back. Raises UsageError; what goes
    wrong with single files is in the report.
    """
    from rdc.survey.summary import report_of

    if isinstance(paths, (str, bytes, os.PathLike)):
        paths = [paths]  # a string is a sequence too, of which '/' would be one
    return report_of(survey(paths, options, catalog=catalog, reporter=reporter, stopped=stopped, clock=clock))


def survey(
    paths: Sequence[str | bytes | os.PathLike[str]],
    options: ScanOptions,
    *,
    catalog: SignatureStore | UserCatalog | None = None,
    reporter: Reporter = silent,
    stopped: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.monotonic,
) -> Outcome:
    """As `scan`, but what it returns can be saved and merged before it is reported."""
    if not paths:
        raise UsageError("a scan needs at least one path")
    if options.sample is not None and not 0 < options.sample <= 1:
        raise UsageError(f"a sample of {options.sample:g}: above 0 and at most 1 is expected")
    with opened_catalog(catalog, reporter) as store:
        # Half of the catalog at most is for one scan: the other half is what syncs go by.
        thrifty = ThriftyStore(store, CATALOG_BYTES // 2, finds=not options.fixed)
        scanner = _Scanner(options, thrifty, reporter, stopped, clock)
        return scanner.run([os.fsencode(path) for path in paths])


class _File:
    """One file on its way, with what was seen of it when it was opened."""

    __slots__ = ("allocated", "blocks", "found", "holes", "identity", "scanner", "shared")

    identity: Identity
    """Of the file that was opened."""

    def __init__(self, scanner: _Scanner, found: FoundFile) -> None:
        self.scanner = scanner
        self.found = found
        self.allocated = 0
        self.shared = 0
        self.holes: list[tuple[int, int]] = []
        self.blocks = scanner.blocks()

    def open(self) -> SourceFile:
        """Raises FileError. Called in any thread."""
        source = self.found.root.open_read(self.found.path)
        try:
            self.identity = source.identity
            self.allocated = source.allocated
            if source.allocated < source.size:
                self.holes = list(islice(holes(source.fileno(), source.size), SCAN_HOLES))
            if self.blocks is not None and not self.holes:
                source.on_span = self.blocks.span
            if self.scanner.may_share(source):
                self.shared = shared_bytes(source.fileno())
        except BaseException:
            source.close()
            raise
        return source

    def read(self, offset: int, length: int) -> bytes | None:
        """Content once more, while the file is what it was."""
        try:
            with self.found.root.open_read(self.found.path) as source:
                if source.identity != self.identity:
                    return None
                return source.pread(offset, length)
        except FileError:
            return None


class _Scanner:
    """One scan's state."""

    def __init__(
        self,
        options: ScanOptions,
        store: SignatureStore,
        reporter: Reporter,
        stopped: Callable[[], bool],
        clock: Callable[[], float],
    ) -> None:
        self._options = options
        self._store = store
        self._reporter = reporter
        self._asked_to_stop = stopped
        self._clock = clock
        self._deadline = None if options.seconds is None else clock() + options.seconds
        self._signer = FileSigner(FINE_PARAMS, store)
        self._linked: set[tuple[int, int]] = set()
        self._every_inode = False
        self._alone: list[FoundFile] = []
        self._sharing: dict[int, bool] = {}
        self._reason = ""
        self._done = 0
        self._unsaid = 0
        self._total = 0
        self._enough: float = float("inf")
        self.outcome = Outcome(options)

    # Called from _File, in any thread

    def blocks(self) -> FixedBlocks | None:
        if not self._options.fixed:
            return None
        from rdc.survey.fixed import FixedBlocks

        return FixedBlocks(tuple(mean_of(level) for level in self._options.fixed))

    def may_share(self, source: SourceFile) -> bool:
        device = source.identity.device
        known = self._sharing.get(device)
        if known is None:
            from rdc.files.filesystem import type_of

            known = self._sharing[device] = type_of(source.fileno()) in _SHARING
        return known

    # The scan

    def run(self, paths: list[bytes]) -> Outcome:
        outcome, found = self.outcome, Found()
        outcome.paths = list(paths)
        explorer = Explorer(self._options, found, outcome.places, self._report, self._stopped)
        for path in paths:
            explorer.explore(path)
        self._every_inode = explorer.single_files
        outcome.found_files, outcome.found_bytes = found.files, found.bytes
        outcome.census.expect(found.bytes)
        self._total = found.bytes
        if self._options.sample is not None and self._options.sample < 1:
            self._enough = self._options.sample * found.bytes
        self._progress()
        in_random_order = self._options.seconds is not None or self._options.sample is not None
        runs = found.shuffled(self._options.seed) if in_random_order else found.in_order()
        # In random order a batch is many places on the disk, and in the end one waits for what is in flight.
        batches = self._batches(runs, BATCH_FILES // 8 if in_random_order else BATCH_FILES)
        for done in in_order(self._sign, batches, self._signer.workers):
            self._count_batch(done)
        self._sign_alone()
        outcome.census.flush()
        self._progress()
        outcome.reason = self._reason
        outcome.interrupted = self._reason == "interrupted"
        return outcome

    def _wanted(self, runs: Iterable[Run]) -> Iterator[Run]:
        """Until there is a reason to stop. The sample ends behind the file that completes it."""
        taken = 0
        for run in runs:
            if self._stopped():
                return
            if taken and taken >= self._enough:
                self._reason = self._reason or "sample"
                return
            if self._enough != float("inf"):
                taken += sum(run.directory.sizes[run.start : run.stop])
            yield run

    def _batches(self, runs: Iterable[Run], most: int) -> Iterator[SmallBatch]:
        """Small files, in the end `most` at a time. What is to be read by itself is read in between."""
        # The first batches are worked on before there are threads, and a small tree has no more.
        batch, enough = SmallBatch(), most // 16
        for run in self._wanted(runs):
            for part in self._split(run):
                if batch and (
                    part.directory.root is not batch.root
                    or len(batch) + part.stop - part.start > enough
                    or batch.bytes >= BATCH_BYTES
                ):
                    yield batch
                    batch, enough = SmallBatch(), min(most, 2 * enough)
                names = part.names[part.start : part.stop]
                batch.add(part, self.outcome.places.places_of(part.directory.number, names))
        if batch:
            yield batch

    def _split(self, run: Run) -> Iterator[Run]:
        """What of `run` goes into a batch; deals with the rest."""
        here, start, stop = run.directory, run.start, run.stop
        small = 0 if self._options.fixed else SMALL_BYTES
        if (
            not self._every_inode
            and max(here.sizes[start:stop]) <= small
            and max(here.links[start:stop]) <= 1
        ):
            yield run
            return
        for row in range(start, stop):
            size = here.sizes[row]
            if not self._is_first(here, row):
                self.outcome.hardlinks += 1
                self._advance(size)
            elif size <= small:
                yield run.part(row, row + 1)
            elif size >= STREAMED_BYTES:
                self._stream(_File(self, run.file(row)))
            else:
                self._take_alone(run.file(row))

    def _is_first(self, directory: FoundDirectory, row: int) -> bool:
        """Whether this file has not been met under another name. The first by the walk's order is counted."""
        if directory.links[row] <= 1 and not self._every_inode:
            return True
        before = len(self._linked)
        self._linked.add((directory.devices[row], directory.inodes[row]))
        return len(self._linked) > before

    def _sign(self, batch: SmallBatch) -> SignedBatch:
        """Called in any thread."""
        return sign_batch(batch, FINE_PARAMS, self._store, self.may_share)

    def _count_batch(self, done: SignedBatch) -> None:
        """Counts what was read. What was not as listed is read by itself, which names what is wrong."""
        for row, result in done.outcome.failed:
            found = done.batch.file(row)
            if result == TOUCHED:
                self._failed(found, content_error(result, found.path, found.root.shown(found.path)))
                self._advance(found.size)
            else:
                self._take_alone(found)
        for row in done.hollow:
            self._take_alone(done.batch.file(row))
        self.outcome.already_shared_bytes += done.shared
        for signed in (done.outcome.read, done.outcome.known):
            if len(signed.rows):
                self._count_signed(done.batch, signed)

    def _count_signed(self, batch: SmallBatch, signed: SignedFiles) -> None:
        outcome, census, columns = self.outcome, self.outcome.census, counted(batch, signed)
        census.add_columns(columns, reader(batch, signed))
        keys, traits = array("Q", keys_of(columns.roots)), signed.signatures.traits
        census.likeness.add_column(keys, columns.sizes, traits, *likened(batch, signed))
        size = sum(columns.sizes)
        outcome.files += len(columns.sizes)
        outcome.bytes += size
        outcome.allocated_bytes += sum(map(batch.allocated.__getitem__, signed.rows))
        outcome.known_bytes += size if signed.data is None else 0
        self._advance(size)

    def _take_alone(self, found: FoundFile) -> None:
        """Reads a file by itself, together with others like it."""
        self._alone.append(found)
        if len(self._alone) >= ALONE_FILES or sum([file.size for file in self._alone]) >= ALONE_BYTES:
            self._sign_alone()

    def _sign_alone(self) -> None:
        files, self._alone = self._alone, []
        if self._reason in _AT_ONCE:
            return
        for signed in self._signer.sign_many(self._tasks(files)):
            self._count(signed)

    def _stopped(self) -> bool:
        if not self._reason or self._reason == "sample":
            if self._asked_to_stop():
                self._reason = "interrupted"
            elif self._deadline is not None and self._clock() >= self._deadline:
                self._reason = "time"
        return self._reason in _AT_ONCE

    def _tasks(self, files: Iterable[FoundFile]) -> Iterator[SignTask[_File]]:
        for found in files:
            file = _File(self, found)
            yield SignTask(file, found.size, file.open)

    def _count(self, signed: Signed[_File]) -> None:
        file, tree = signed.key, signed.tree
        if tree is None:
            if signed.error is not None:
                self._failed(file.found, signed.error)
            self._advance(file.found.size)
            return
        self._seen(file, tree.size, known=signed.known)
        self._liken(file.found, root_key(tree.root), tree.size, tree.traits)
        place = self._place(file.found)
        if file.holes or any(count != 1 for count in tree.levels[0].counts):
            stream = FileStream(self.outcome.census, place, file.read, file.holes)
            for _ in replayed(tree, stream):
                pass
            stream.finish(root_key(tree.root), tree.size - _total(file.holes))
        else:
            self.outcome.census.add(SmallFile(tree, place, file.read))
        if file.blocks is not None:
            if file.holes:
                self._hollow_blocks(file, file.blocks, tree.size)
            self.outcome.census.add_blocks(file.blocks, file.read)
        self._advance(file.found.size)

    def _hollow_blocks(self, file: _File, blocks: FixedBlocks, size: int) -> None:
        """Fixed blocks of a file with holes, which is read again where it has data."""
        starts, ends = [start for start, _ in file.holes], [end for _, end in file.holes]
        for at in range(0, size, SPAN_BYTES):
            length = min(SPAN_BYTES, size - at)
            number = bisect_right(starts, at) - 1
            if number >= 0 and ends[number] >= at + length:
                continue
            content = file.read(at, length)
            if content is not None:
                blocks.cut(content, at, starts, ends)
                self.outcome.census.add_blocks(blocks, file.read)

    def _stream(self, file: _File) -> None:
        """A large file. When it fails or the scan stops in its middle, what had come of it is counted."""
        stream: FileStream | None = None
        key, done = None, 0
        try:
            with file.open() as source:
                read = partial(_pread, source)
                stream = FileStream(self.outcome.census, self._place(file.found), read, file.holes)
                work = self._signer.streaming(source, stream)
                while True:
                    try:
                        step = next(work)
                    except StopIteration as stop:
                        key = root_key(stop.value.root)
                        self._seen(file, source.size, known=stop.value.known)
                        self._liken(file.found, key, source.size, stop.value.traits)
                        stream.finish(key, source.size - _total(file.holes))
                        if file.blocks is not None and file.holes:
                            self._hollow_blocks(file, file.blocks, source.size)
                        break
                    if file.blocks is not None:
                        self.outcome.census.add_blocks(file.blocks, read)
                    self._advance(step - done)
                    done = step
                    if self._stopped():
                        work.close()
                        break
        except FileError as error:
            self._failed(file.found, error)
        if stream is not None and key is None and stream.size:
            self._seen(file, stream.size, known=False)
            # Nothing names a part of a file, so it is taken to be unlike all others.
            shown = file.found.root.shown(file.found.path)
            key = root_key(blake3(b"rdc survey part" + shown).digest())
            stream.finish(key, stream.size - _total(file.holes, stream.size))
        self._advance(file.found.size - done)

    def _seen(self, file: _File, size: int, *, known: bool) -> None:
        outcome = self.outcome
        hollow = _total(file.holes, size)
        outcome.files += 1
        outcome.bytes += size - hollow
        outcome.holes_bytes += hollow
        outcome.allocated_bytes += file.allocated
        outcome.already_shared_bytes += file.shared
        outcome.known_bytes += size if known else 0

    def _liken(self, found: FoundFile, key: int, size: int, traits: bytes) -> None:
        name = found.path.rpartition(b"/")[2]
        self.outcome.census.likeness.add(key, Candidate(size, traits, found.directory, name))

    def _failed(self, found: FoundFile, error: RdcError) -> None:
        # Another name may lead to it still.
        self._linked.discard(found.inode)
        self._report(Problem(error.code, found.root.shown(found.path), str(error)))

    def _place(self, found: FoundFile) -> int:
        return self.outcome.places.place(found.directory, suffix_of(found.path))

    def _report(self, event: Event, /) -> None:
        if isinstance(event, Problem) and event.code is not ExitCode.OK:
            self.outcome.problem(event)
        self._reporter(event)

    def _advance(self, count: int) -> None:
        self._done += count
        self._unsaid += 1
        if count >= STREAMED_BYTES // 4 or self._unsaid >= FILES_PER_EVENT:
            self._progress()

    def _progress(self) -> None:
        self._unsaid = 0
        total = self._total if self._enough == float("inf") else min(self._total, int(self._enough))
        self._reporter(Progressed("read", self._done, total))


def _total(parts: list[tuple[int, int]], size: int | None = None) -> int:
    """Bytes in these ranges, of the first `size`."""
    if size is None:
        return sum(end - start for start, end in parts)
    return sum(min(end, size) - min(start, size) for start, end in parts)


def _pread(source: SourceFile, offset: int, length: int) -> bytes | None:
    try:
        return source.pread(offset, length)
    except FileError:
        return None
