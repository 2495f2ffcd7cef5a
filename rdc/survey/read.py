"""Reads many files in threads: digests of their contents or ends, and bytes compared. Failures are
reported and left out.
"""

from __future__ import annotations

import os
from array import array
from collections import deque
from itertools import chain, islice

from blake3 import blake3

from rdc.chunking import SYNC_PARAMS
from rdc.errors import FileError, RdcError
from rdc.files.base.paths import changed
from rdc.files.bulk.open_many import Contents, content_bytes, content_error, read_contents
from rdc.files.facts.file_facts import ContentDigest, spans_with_data
from rdc.lean.records import Record
from rdc.lean.typed import TypeVar
from rdc.progress import Problem, Progressed, Reporter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
    from typing import TypeAlias

    from typing_extensions import Buffer

    from rdc.catalog.signer import FileSigner
    from rdc.catalog.store import SignatureStore
    from rdc.files.root.source_file import SourceFile
    from rdc.lean.threads import Task
    from rdc.signature.tree import SignatureTree
    from rdc.survey.walk.file_columns import Batch, FileColumns


# Reads contents in threads, in order and with bounded memory.
#
# rdc.survey.duplicates and rdc.survey.scan read files with it.


# in_order: runs tasks in a few threads, with results in order and a bounded number in progress.

T = TypeVar("T")
R = TypeVar("R")

WORKERS_MAX = 4
"""Most threads in use. Each holds the interpreter's lock for part of its work; more would wait for it."""

ALONE = 4
"""Tasks that the caller runs before threads are started. A small job is done by then, and starting the first
thread takes some milliseconds."""


def usable_workers() -> int:
    """Return the number of threads worth starting in this process."""
    try:
        cpus = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        cpus = os.cpu_count() or 1
    return min(WORKERS_MAX, cpus)


def in_order(
    work: Callable[[T], R], tasks: Iterable[T], workers: int, waits: Callable[[], bool] = lambda: False
) -> Generator[R, None, None]:
    """Yield `work(task)` for each task, in the order of tasks.

    `waits`: asked after each task of a single worker; once True, a second one takes the next task while the
    first waits for storage. Twice as many tasks as workers are in progress then. Leaving early, also by an
    exception, waits for the running tasks; to leave soon, `work` must end soon.
    """
    rest: Iterator[T] = iter(tasks)
    for task in rest if workers <= 1 else islice(rest, ALONE):
        yield work(task)
        if workers <= 1 and waits():
            workers = 2
            break
    first = next(rest, None)
    if first is None:
        return
    from rdc.lean.threads import Threads

    threads = Threads(workers, "rdc survey")
    in_flight: deque[Task[R]] = deque()
    try:
        for task in chain((first,), rest):
            in_flight.append(threads.submit(work, task))
            if len(in_flight) >= 2 * workers:
                yield in_flight.popleft().result()
        while in_flight:
            yield in_flight.popleft().result()
    finally:
        for left in in_flight:
            left.cancel()
        threads.close()


# Digests of many files' contents or ends. Threads read the files; failures are reported and left out.

DIGEST_BYTES = 32

UNKNOWN = bytes(DIGEST_BYTES)
"""Marks a file without a digest."""

END_BYTES = 8 << 10
"""Bytes of a file's first and last block. A file of up to two blocks is read whole at once: opening it again
would cost more than reading the rest. A disk reads more than this at a time anyway."""

BATCHED_BYTES = 128 << 10
"""Bytes of the largest file that is read whole in a batch. Above it, Python's cost per file (some 25
microseconds) is less than reading takes."""

BATCH_FILES = 1024
BATCH_BYTES = 2 << 20
"""Limits of one batch: large enough that its own cost is negligible. A few batches are in memory at a
time."""

MANY_INPUTS = 256
"""Pieces from which the bulk hash is used. Loading it takes a millisecond, which fewer pieces do not save."""

SPAN_BYTES = 256 << 10
"""Bytes of a large file that are read, then hashed, cut or compared, at a time. They fit in the second-level
cache."""


class Keyed(Record):
    """Files with a key of their content. Files of equal content have equal keys."""

    rows: array[int]
    """Typecode 'I', without the files that could not be read."""
    keys: bytearray
    """The keys one after another; DIGEST_BYTES each unless the maker says otherwise."""

    def digests(self) -> Iterator[bytes]:
        """Yield the key of each row."""
        for at in range(0, len(self.keys), DIGEST_BYTES):
            yield bytes(self.keys[at : at + DIGEST_BYTES])


KeysOf: TypeAlias = "Callable[[bytes, Sequence[int], int, int], list[bytes]]"
"""Takes the contents of several files one after another, their sizes, `head` and `tail`. Returns one key per
file."""


class ContentReader:
    """Reads rows of `files`. A file that differs from its listing, before or after reading, is reported."""

    def __init__(self, files: FileColumns, reporter: Reporter, workers: int) -> None:
        self._files = files
        self._report = reporter
        self._workers = workers
        self._stopped = False
        self._total: int | None = None
        self.bytes_read = 0

    @property
    def stopped(self) -> bool:
        """Return whether the search has ended. A thread that reads a large file stops when it is True."""
        return self._stopped

    def expect(self, more: int) -> None:
        """Announce that `more` bytes are still to be read, so that progress has a total."""
        self._total = self.bytes_read + more

    def ends(self, rows: Sequence[int]) -> Keyed:
        """Return keys of size and ends; of the whole content for files of at most two ends. `rows` must
        increase."""
        return self.batched(rows, END_BYTES, END_BYTES, _digests)

    def whole(self, rows: Sequence[int]) -> Keyed:
        """Return the keys of whole contents. `rows` must increase; no file may be larger than
        BATCHED_BYTES."""
        return self.batched(rows, BATCHED_BYTES, 0, _digests)

    def large(self, rows: Sequence[int]) -> Keyed:
        """Return the keys of whole contents, for files of any size."""
        return self.each(self.disk_order(rows), self._digest)

    def each(self, rows: Iterable[int], key: Callable[[SourceFile], bytes]) -> Keyed:
        """Return the keys that `key` computes from each open file. Each file is checked against its listing
        before, and for changes after."""

        def work(row: int) -> tuple[int, bytes | FileError]:
            try:
                return row, self._opened(row, key)
            except FileError as error:
                return row, error

        found = Keyed(array("I"), bytearray())
        try:
            for row, result in in_order(work, rows, self._workers):
                if isinstance(result, FileError):
                    self._report_problem(row, result)
                    continue
                found.rows.append(row)
                found.keys.extend(result)
                self._advance(0)
        except BaseException:
            self._stopped = True
            raise
        return found

    def _opened(self, row: int, key: Callable[[SourceFile], bytes]) -> bytes:
        files = self._files
        with files.open(row) as source:
            found, path, shown = source.identity, files.path(row), files.shown(row)
            if (found.device, found.inode) != (files.devices[row], files.inodes[row]):
                raise changed(path, shown, "the file that was listed", "another one in its place")
            if found.size != files.sizes[row]:
                raise changed(path, shown, f"{files.sizes[row]} bytes", f"{found.size}")
            result = key(source)
            source.check_unchanged()
        return result

    def known(self, rows: Sequence[int], store: SignatureStore) -> Keyed:
        """Signature roots from `store`, UNKNOWN for files that it does not know. No content is read."""

        def root(source: SourceFile) -> bytes:
            return store.root(source, SYNC_PARAMS) or UNKNOWN

        return self.each(self.disk_order(rows), root)

    def signed(self, rows: Sequence[int], signer: FileSigner) -> Keyed:
        """Signature roots of files of any size. The files are read, and the signer's catalog stores their
        signatures."""

        def root(source: SourceFile) -> bytes:
            tree = self.sign(source, signer)
            return UNKNOWN if tree is None else tree.root

        return self.each(self.disk_order(rows), root)

    def sign(self, source: SourceFile, signer: FileSigner) -> SignatureTree | None:
        """Return the file's signature, from the signer's catalog or by reading. None if the search has
        ended."""
        work = signer.signing(source)
        before = 0
        while not self._stopped:
            try:
                done = next(work)
            except StopIteration as stop:
                tree: SignatureTree = stop.value
                return tree
            self.bytes_read, before = self.bytes_read + done - before, done
        return None

    def _digest(self, source: SourceFile) -> bytes:
        digest = ContentDigest(source.size)
        source.rest()
        for offset, length in spans_with_data((source.fileno(),), source.size, SPAN_BYTES):
            if self._stopped:
                break
            digest.add(offset, source.pread(offset, length))
            # Threads may lose an update between reading and writing the count. It is only displayed.
            self.bytes_read += length
        return digest.digest()

    def disk_order(self, rows: Sequence[int]) -> list[int]:
        """Sort rows by inode, which on most file systems is near the order on disk."""
        files = self._files
        return sorted(rows, key=lambda row: (files.devices[row], files.inodes[row]))

    def batched(self, rows: Sequence[int], head: int, tail: int, keys: KeysOf) -> Keyed:
        """Return the keys that `keys` computes from the first `head` and last `tail` bytes; from the whole
        content of shorter files.

        Threads read; this thread hashes. Short pieces are hashed under the interpreter's lock, so more
        hashing threads would only wait for it.
        """

        def work(batch: Batch) -> tuple[Batch, Contents]:
            root, depth = batch.root, batch.root.depths.opening
            if root.reads.rate is not None:
                root.reads.rate.take(sum([content_bytes(size, head, tail) for size in batch.wanted[2::3]]))
            return batch, read_contents(root.fileno(), batch.paths, batch.wanted, head, tail, depth)

        found = Keyed(array("I"), bytearray())
        batches = self._files.batches(rows, BATCH_FILES, BATCH_BYTES, head + tail)
        for batch, contents in in_order(work, batches, self._workers):
            sizes, outcomes = batch.wanted[2::3], contents.outcomes
            digests = keys(contents.data, sizes, head, tail)
            if any(outcomes):
                for row, outcome in zip(batch.rows, outcomes, strict=True):
                    if outcome:
                        path, shown = self._files.path(row), self._files.shown(row)
                        self._report_problem(row, content_error(outcome, path, shown))
                read = [position for position, outcome in enumerate(outcomes) if not outcome]
                sizes = array("Q", [sizes[position] for position in read])
                digests = [digests[position] for position in read]
                found.rows.extend([batch.rows[position] for position in read])
            else:
                found.rows.extend(batch.rows)
            found.keys.extend(b"".join(digests))
            self._advance(sum([content_bytes(size, head, tail) for size in sizes]))
        return found

    def _advance(self, more: int) -> None:
        self.bytes_read += more
        total = None if self._total is None else max(self._total, self.bytes_read)
        self._report(Progressed("compare", self.bytes_read, total))

    def _report_problem(self, row: int, error: RdcError) -> None:
        self._report(Problem(error.code, self._files.shown(row), str(error)))


def _digests(data: bytes, sizes: Sequence[int], head: int, tail: int) -> list[bytes]:
    """Return the key of each file from its part of `data`.

    A file read whole gets BLAKE3 of its content. If the middle is missing, the size is hashed with the ends,
    under another key, so that no whole file can have the digest of another file's ends.
    """
    view = memoryview(data)
    wholes: list[Buffer] = []
    ends: list[tuple[int, bytes]] = []
    at, most = 0, head + tail
    for number, size in enumerate(sizes):
        end = at + min(size, most)  # content_bytes(), inlined for speed
        if end - at == size:
            wholes.append(view[at:end])
        else:
            hasher = blake3(view[at:end], key=_ENDS_KEY)
            ends.append((number, hasher.update(size.to_bytes(8, "little")).digest()))
        at = end
    digests = _named(wholes)
    # Inserted in increasing order, so that each lands at its own position.
    for number, digest in ends:
        digests.insert(number, digest)
    return digests


def _named(inputs: list[Buffer]) -> list[bytes]:
    """Return the BLAKE3 digest of each piece."""
    if len(inputs) < MANY_INPUTS:
        return [blake3(content).digest() for content in inputs]
    from rdc.kernel.blake3_many import name_many

    names = name_many(inputs)
    return [names[at : at + DIGEST_BYTES] for at in range(0, len(names), DIGEST_BYTES)]


_ENDS_KEY = blake3(b"rdc survey: ends of a file").digest()


class Comparison:
    """Compares rows of `files`. A file that cannot be read or changes meanwhile is reported, and is in no
    class."""

    def __init__(self, files: FileColumns, reporter: Reporter) -> None:
        self._files = files
        self._report = reporter
        self.bytes_read = 0

    def classes(self, rows: Iterable[int]) -> list[list[int]]:
        """Divide `rows` into classes of files with equal bytes.

        Each file is compared with the first file of each class so far. There is one class, unless different
        files have equal digests or a file has changed since.
        """
        classes: list[list[int]] = []
        for row in rows:
            try:
                with self._files.open(row) as source:
                    for one in classes:
                        if self._belongs(source, one):
                            source.check_unchanged()
                            one.append(row)
                            break
                    else:
                        classes.append([row])
            except FileError as error:
                self._report_problem(row, error)
        return classes

    def _belongs(self, source: SourceFile, rows: list[int]) -> bool:
        """Return whether `source` equals the first of `rows`. Files that have become unreadable are removed
        from `rows`."""
        while rows:
            try:
                other = self._files.open(rows[0])
            except FileError as error:
                self._report_problem(rows.pop(0), error)
                continue
            with other:
                same = self._equal(source, other)
                try:
                    other.check_unchanged()
                except FileError as error:
                    # The other files of the class were compared with it before it changed.
                    self._report_problem(rows.pop(0), error)
                    continue
                return same
        return False

    def _equal(self, source: SourceFile, other: SourceFile) -> bool:
        """Return whether two files are equal. Raises FileError for `source`. A failure of `other` counts as a
        difference; the caller then checks `other`."""
        if source.size != other.size:
            return False
        source.rest()
        other.rest()
        for offset, length in spans_with_data((source.fileno(), other.fileno()), source.size, SPAN_BYTES):
            data = source.pread(offset, length)
            try:
                same = other.pread(offset, len(data)) == data
            except FileError:
                return False
            self.bytes_read += 2 * len(data)
            if not same:
                return False
        return True

    def _report_problem(self, row: int, error: FileError) -> None:
        self._report(Problem(error.code, self._files.shown(row), str(error)))
