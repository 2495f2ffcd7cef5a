"""FileSigner: the one way from a file to its signature tree. It looks the file up, or reads, cuts and hashes
it.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from itertools import chain

from blake3 import blake3

from rdc.catalog.store import NoCatalog, SignatureStore
from rdc.chunking import SYNC_PARAMS, ChunkColumns, Chunker, ChunkParams, name_chunks
from rdc.errors import FileError
from rdc.lean.records import Record
from rdc.lean.typed import Generic, Protocol, TypeVar
from rdc.limits import CATALOG_ENTRY_BYTES, NODE_RECORDS_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from collections.abc import Generator, Iterable, Iterator

    from rdc.files.root.source_file import SourceFile
    from rdc.lean.threads import Task, Threads
    from rdc.model.entries import Identity
    from rdc.signature.tree import SignatureTree


K = TypeVar("K")

WORKERS_MAX = 4
"""Most threads in use. One thread that cuts keeps about two busy with hashing; the interpreter's lock admits
no more."""

SHARED_BYTES = 4 << 20
"""Smallest file whose work is shared between threads. Below it, handing work over costs what it saves."""

WHOLE_BYTES = 512 << 10
"""Files up to this size are read at once; a span of a larger file is as long."""

THREADS_WORTH = 128 << 20
"""Total bytes of shareable files before threads are started. Measured: threads save 8 of the 40 ms that 65 MB
take and cost 9 ms more CPU, because spans cut by one thread must move to another's cache."""

HOLE_WORTH = 1 << 20
"""Bytes without allocation before a file is searched for holes. Reading this many zeros costs as much as a
few system calls."""


def has_holes(source: SourceFile) -> bool:
    """Return whether it is worth while to pass over holes of an open file."""
    from rdc.files.facts.extents import holes

    # Fewer allocated bytes than the size may mean compression instead of holes, so holes are looked for.
    return source.allocated + HOLE_WORTH <= source.size and any(holes(source.fileno(), source.size))


def spans_between_holes(source: SourceFile, most: int) -> Iterator[bytes | int]:
    """Yield the content of an open file from the start, at most `most` bytes at a time, and the length of
    each hole in place of its zeros.

    Raises FileChangedError if the file has become shorter. Only check_unchanged detects other changes.
    """
    from rdc.files.facts.extents import holes

    done = 0
    for start, end in chain(holes(source.fileno(), source.size), [(source.size, source.size)]):
        while done < start:
            span = source.pread(done, min(most, start - done))
            done += len(span)
            yield span
        if start < end:
            yield end - start
        done = end


def zero_spans(length: int, size: int) -> Iterator[tuple[bytes, int]]:
    """Yield the spans to feed a chunker for a run of zeros, each with the number of chunks of `size` zeros
    that follow it in the stream. These chunks need not be fed. `size`: the chunker's `max_size`.

    Where the last 64 bytes are zero, all ranks are equal, the rightmost position wins, and each chunk is
    `max_size` zeros. Once enough zeros were fed for the first such cut, any further multiple of `max_size`
    zeros only shifts all later cuts and adds equal chunks. Traits do not change: a window of zeros is no
    feature, and more than FEW_FEATURES_BELOW bytes are fed before any are left out.
    """
    from rdc.files.root.source_file import SPAN_BYTES
    from rdc.kernel.constants import FEW_FEATURES_BELOW, LOW_WINDOW

    lead_in = max(FEW_FEATURES_BELOW, LOW_WINDOW + 3 * size)
    if length > lead_in + size:
        repeated, length = divmod(length - lead_in, size)
        yield bytes(lead_in), repeated
    zeros = bytes(min(length, SPAN_BYTES))
    while length:
        yield zeros[:length], 0
        length -= min(length, len(zeros))


class FileSigner:
    """Reads, cuts and hashes files in bounded memory. Long chunk lists go to a mapped temporary file.

    Threads may share one.
    """

    def __init__(
        self,
        params: ChunkParams = SYNC_PARAMS,
        catalog: SignatureStore | None = None,
        workers: int | None = None,
    ) -> None:
        """`catalog`: asked before a file is read; gets new signatures. `workers`: threads that read and hash;
        1 means the caller's only. None: as many as usable CPUs, at most WORKERS_MAX."""
        self.params = params
        self.catalog: SignatureStore = NoCatalog() if catalog is None else catalog
        self.workers = max(1, min(WORKERS_MAX, _usable_cpus()) if workers is None else workers)
        self._pool: Threads | None = None
        self._shareable_bytes = 0

    def sign(self, source: SourceFile, *, passing: bool = False) -> SignatureTree:
        """Return the signature of `source` as it was opened. `passing`: the file is about to be removed, so a
        small one's signature is not stored in the catalog.

        Raises FileChangedError if the file changed while it was read, FileError if it cannot be read.
        """
        known = self.catalog.get(source, self.params)
        if known is None and passing and source.size <= WHOLE_BYTES:
            return self._read_whole(source, passing=True)
        return self.read(source) if known is None else known

    def root(self, source: SourceFile) -> bytes:
        """Return the root of the file's signature. For a file that the catalog knows, the chunk list is not
        read."""
        return self.catalog.root(source, self.params) or self.read(source).root

    def signing(self, source: SourceFile) -> Generator[int, None, SignatureTree]:
        """Like `sign`, in steps: yields the number of bytes read so far. A large file takes many steps."""
        known = self.catalog.get(source, self.params)
        return (yield from self.reading(source)) if known is None else known

    def read(self, source: SourceFile, *, shared: bool = True) -> SignatureTree:
        """Like `sign`, but does not look the file up. The catalog gets the signature. `shared`: worker
        threads may help. It must be False if the caller is such a thread, since workers would wait for each
        other."""
        if source.size <= WHOLE_BYTES:
            return self._read_whole(source)
        work = self.reading(source, shared=shared)
        try:
            while True:
                next(work)
        except StopIteration as stop:
            tree: SignatureTree = stop.value
            return tree

    def reading(self, source: SourceFile, *, shared: bool = True) -> Generator[int, None, SignatureTree]:
        """Like `read`, in steps. Closing the generator early stops the threads."""
        if source.size <= WHOLE_BYTES:
            tree = self._read_whole(source)
            yield source.size
            return tree
        from rdc.files.base.spool import Spool
        from rdc.signature.tree import TreeBuilder

        began = self.catalog.now()
        builder = TreeBuilder(self.params, Spool)
        traits = yield from self._chunking(source, builder, shared=shared)
        tree = builder.finish(traits)
        source.check_unchanged()
        self.catalog.put(source, tree, began)
        return tree

    def _read_whole(self, source: SourceFile, *, passing: bool = False) -> SignatureTree:
        # Imported when the first file is read: in most runs none is.
        from rdc.signature.tree import sign

        began = self.catalog.now()
        tree = sign(source.whole(), self.params)
        source.check_unchanged()
        if not passing:
            self.catalog.put(source, tree, began)
        return tree

    def streaming(
        self, source: SourceFile, taker: ChunkTaker, *, always_read: bool = False
    ) -> Generator[int, None, StreamedFile]:
        """Pass the chunks of `source` to `taker` in order. Yields the number of bytes passed so far.

        Works for files of any size: a signature is built in memory only if the catalog will store it. A file
        that the catalog knows is not read, unless `always_read`. Raises as `sign` does; `taker` may have
        received any part of the chunks by then.
        """
        from rdc.files.base.spool import Spool
        from rdc.signature.tree import TreeBuilder

        known = None if always_read else self.catalog.get(source, self.params)
        if known is not None:
            yield from replayed(known, taker)
            return StreamedFile(known.root, known.traits, known=True)
        began = self.catalog.now()
        keeps = not isinstance(self.catalog, NoCatalog) and source.size // self.params.min_size * 36 <= (
            CATALOG_ENTRY_BYTES
        )
        builder = TreeBuilder(self.params, Spool if keeps else TopColumn)
        traits = yield from self._chunking(source, Both(builder, taker), shared=True)
        tree = builder.finish(traits)
        source.check_unchanged()
        if keeps:
            self.catalog.put(source, tree, began)
        return StreamedFile(tree.root, tree.traits, known=False)

    def _chunking(
        self, source: SourceFile, taker: ChunkTaker, *, shared: bool
    ) -> Generator[int, None, bytes]:
        """Read, cut and hash. `taker` gets the chunks in order. Returns the traits."""
        source.rest()
        if has_holes(source):
            return (yield from self._chunking_sparse(source, taker))
        if shared and self.workers > 1 and source.size >= SHARED_BYTES:
            self._shareable_bytes += source.size
            if self._pool is not None or self._shareable_bytes >= THREADS_WORTH:
                return (yield from self._chunking_shared(source, taker))
        chunker, done = Chunker(self.params), 0
        for span in source.spans():
            columns = chunker.feed_columns(span)
            taker.add(columns.digests, columns.lengths)
            done += len(span)
            yield done
        columns = chunker.finish_columns()
        taker.add(columns.digests, columns.lengths)
        return chunker.traits()

    def _chunking_sparse(self, source: SourceFile, taker: ChunkTaker) -> Generator[int, None, bytes]:
        """Chunks a file with holes, which are not read."""
        from rdc.files.root.source_file import SPAN_BYTES

        chunker, size, done = Chunker(self.params), self.params.max_size, 0
        name = blake3(bytes(size)).digest()

        def feed(data: bytes) -> None:
            columns = chunker.feed_columns(data)
            taker.add(columns.digests, columns.lengths)

        for span in spans_between_holes(source, SPAN_BYTES):
            if isinstance(span, int):
                for zeros, repeated in zero_spans(span, size):
                    feed(zeros)
                    if repeated:
                        taker.repeat(name, size, repeated)
                done += span
            else:
                feed(span)
                done += len(span)
            yield done
        columns = chunker.finish_columns()
        taker.add(columns.digests, columns.lengths)
        return chunker.traits()

    def pool(self) -> Threads:
        """Return the worker threads. They end with `close` or with this object."""
        if self._pool is None:
            from rdc.lean.threads import Threads

            self._pool = Threads(self.workers, "rdc signer")
        return self._pool

    def close(self) -> None:
        """End the threads, which are idle by then. Threads that still run at exit make the interpreter free
        every object, which costs 3 % of a large sync."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def _chunking_shared(self, source: SourceFile, taker: ChunkTaker) -> Generator[int, None, bytes]:
        """Chunks a file with all threads: this one reads and cuts, all of them hash.

        Cutting is sequential and takes a third of the time. A second thread that only hashes would be idle or
        hold up the first. So this thread hashes a span itself when enough spans are handed out. At most
        `ahead` spans are in memory.
        """
        from rdc.files.root.source_file import SPAN_BYTES
        from rdc.lean.threads import Task

        pool, ahead = self.pool(), 2 * self.workers
        chunker = Chunker(self.params)
        in_flight: deque[Task[ChunkColumns] | ChunkColumns] = deque()
        done = 0

        def drain(most: int) -> None:
            while len(in_flight) > most:
                first = in_flight.popleft()
                columns = first.result() if isinstance(first, Task) else first
                taker.add(columns.digests, columns.lengths)

        try:
            for span in source.spans(SPAN_BYTES):
                chunk_views = chunker.chunk_views(span)
                waiting = sum(1 for one in in_flight if isinstance(one, Task) and not one.done())
                in_flight.append(
                    pool.submit(name_chunks, chunk_views) if waiting < ahead - 1 else name_chunks(chunk_views)
                )
                drain(ahead)
                done += len(span)
                yield done
            drain(0)
        finally:
            for one in in_flight:
                if isinstance(one, Task):
                    one.cancel()
        columns = chunker.finish_columns()
        taker.add(columns.digests, columns.lengths)
        return chunker.traits()


def _usable_cpus() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        return os.cpu_count() or 1


# ChunkTaker: receives the chunks of one file as they are cut, so that they need not be stored.

REPLAY_RECORDS = 4096
"""Records of a known signature passed at a time: about as many as a span of 16 MiB gives."""


class ChunkTaker(Protocol):
    """Receives the chunks of one stream in order. A TreeBuilder is one."""

    def add(self, digests: list[bytes], lengths: list[int], /) -> None:
        """Receive the next chunks: 32-byte digests and lengths in bytes, one each."""

    def repeat(self, digest: bytes, length: int, count: int, /) -> None:
        """Receive a run of `count` equal chunks. A long hole comes this way."""


class StreamedFile(Record):
    """The result of streaming a file."""

    root: bytes
    """32 bytes."""
    traits: bytes
    known: bool
    """True if the signature came from the catalog and the file was not read."""


class Both(Record):
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

    __slots__ = ("_data", "_most", "_over")

    def __init__(self) -> None:
        from rdc.signature.tree import DIGEST_BYTES

        self._most = NODE_RECORDS_MAX * DIGEST_BYTES
        self._data = bytearray()
        self._over = False

    def append(self, data: bytes) -> None:
        if not self._over:
            self._data += data
            if len(self._data) > self._most:
                self._over, self._data = True, bytearray()

    def view(self) -> memoryview:
        return memoryview(self._data)


def replayed(tree: SignatureTree, taker: ChunkTaker) -> Iterator[int]:
    """Pass the chunk list of `tree` to `taker`. Yields the bytes passed so far."""
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


BATCH_FILES = 64
"""Small files per batch for a worker: one hand-over costs about as much as signing one small file."""

BATCH_BYTES = 4 << 20
"""Bytes that fill a batch. A file that fills one alone is shared between the threads instead."""


class SignTask(Generic[K], Record):
    key: K
    """The caller's name for the file."""
    size: int
    """Bytes, as listed: a hint for distributing the work."""
    opener: Callable[[], SourceFile]
    """Opens the file for reading; called in the thread that signs it. Raises FileError."""


class Signed(Generic[K], Record):
    """One file's signature, or the error that prevented it."""

    key: K
    root: bytes
    """b"" if there is none."""
    tree: SignatureTree | None
    """It is also None if `roots_only` was set and the catalog knew the root."""
    identity: Identity | None
    """The state of the file that was signed."""
    error: FileError | None
    known: bool
    """True if the signature came from the catalog and the file was not read."""


def sign_in_order(
    signer: FileSigner, tasks: Iterable[SignTask[K]], *, roots_only: bool = False
) -> Generator[Signed[K], None, None]:
    """Sign many files in parallel. Results come in the order of `tasks`, which is consumed along with them.

    A file's own failure is part of its result. At most a few batches of small files and one large file are in
    work at a time. Ending the iteration early stops the threads. `roots_only`: for a file that the catalog
    knows, only the root is looked up.
    """
    if signer.workers == 1:
        for task in tasks:
            yield _sign(signer, task, roots_only)
        return
    import threading

    stopped = threading.Event()
    in_flight: deque[Task[list[Signed[K]]] | list[Signed[K]]] = deque()
    try:
        for batch in _batches(tasks):
            # A large file is shared by all threads, so it is signed between batches and not in one of them.
            alone = len(batch) == 1 and batch[0].size >= BATCH_BYTES
            in_flight.append(
                [_sign(signer, batch[0], roots_only)]
                if alone
                else signer.pool().submit(_run, signer, batch, roots_only, stopped)
            )
            while len(in_flight) > 2 * signer.workers:
                yield from _results(in_flight.popleft())
        while in_flight:
            yield from _results(in_flight.popleft())
    finally:
        # This also runs if the caller stops iterating or a signal arrives: no thread continues with unneeded
        # files.
        stopped.set()
        for one in in_flight:
            if not isinstance(one, list):
                one.cancel()


def _batches(tasks: Iterable[SignTask[K]]) -> Iterator[list[SignTask[K]]]:
    batch: list[SignTask[K]] = []
    size = 0
    for task in tasks:
        if batch and (len(batch) >= BATCH_FILES or size + task.size > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(task)
        size += task.size
    if batch:
        yield batch


def _results(one: Task[list[Signed[K]]] | list[Signed[K]]) -> list[Signed[K]]:
    return one if isinstance(one, list) else one.result()


def _run(
    signer: FileSigner, batch: list[SignTask[K]], roots_only: bool, stopped: threading.Event
) -> list[Signed[K]]:
    results = []
    for task in batch:
        if stopped.is_set():
            break
        results.append(_sign(signer, task, roots_only, shared=False))
    return results


def _sign(signer: FileSigner, task: SignTask[K], roots_only: bool, *, shared: bool = True) -> Signed[K]:
    """Sign one file. Errors that are not the file's own, such as OutOfSpaceError, end the iteration."""
    try:
        with task.opener() as source:
            if roots_only:
                root = signer.catalog.root(source, signer.params)
                if root is not None:
                    return Signed(task.key, root, None, source.identity, None, True)
            else:
                known = signer.catalog.get(source, signer.params)
                if known is not None:
                    return Signed(task.key, known.root, known, source.identity, None, True)
            tree = signer.read(source, shared=shared)
            return Signed(task.key, tree.root, tree, source.identity, None, False)
    except FileError as error:
        return Signed(task.key, b"", None, None, error, False)
