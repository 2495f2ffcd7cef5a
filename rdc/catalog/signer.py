"""The one way from a file to its signature tree: looked up where it is known, else read, cut and hashed."""

from __future__ import annotations

import os
from collections import deque
from itertools import chain

from rdc.catalog.store import NoCatalog
from rdc.chunking.params import SYNC_PARAMS
from rdc.typed import TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from rdc.catalog.signing import Signed, SignTask
    from rdc.catalog.store import SignatureStore
    from rdc.catalog.streaming import ChunkTaker, StreamedFile
    from rdc.chunking.chunker import ChunkColumns
    from rdc.chunking.params import ChunkParams
    from rdc.files.source import SourceFile
    from rdc.signature.tree import SignatureTree
    from rdc.threads import Threads

__all__ = ["FileSigner", "sign_file"]

K = TypeVar("K")

WORKERS_MAX = 4
"""Threads at most: one that cuts keeps about two busy with hashing, and the interpreter's lock no more."""

SHARED_BYTES = 4 << 20
"""Bytes from which on one file's work is shared between threads: below, handing over costs what it saves."""

WHOLE_BYTES = 512 << 10
"""Files up to this size are read at once: a span of a longer one has as many."""

THREADS_WORTH = 128 << 20
"""Bytes of such files in all before threads are made. Of the 40 ms that 65 MB take they save 8, for 9 ms more
of CPU: what one thread cuts the other has to fetch from its cache (measured)."""

HOLE_WORTH = 1 << 20
"""Bytes that must be missing from a file before it is asked for its holes: reading so many zeros costs as
much as a few system calls."""


class FileSigner:
    """Reads, cuts and hashes files in bounded memory; long chunk lists go to a mapped temporary file.

    Threads may share one.
    """

    def __init__(
        self,
        params: ChunkParams = SYNC_PARAMS,
        catalog: SignatureStore | None = None,
        workers: int | None = None,
    ) -> None:
        """`catalog`: asked before a file is read, told afterwards. `workers`: threads that read and hash,
        1 is the caller alone; None: the CPUs this process may use, but no more than are worth it."""
        self.params = params
        self.catalog: SignatureStore = NoCatalog() if catalog is None else catalog
        self.workers = max(1, min(WORKERS_MAX, _usable_cpus()) if workers is None else workers)
        self._pool: Threads | None = None
        self._shareable_bytes = 0

    def sign(self, source: SourceFile, *, passing: bool = False) -> SignatureTree:
        """The signature of `source` as it was opened. `passing`: the file is about to go, so
        the catalog is not told of a small one.

        Raises FileChangedError when it changed while it was read, FileError when it cannot be read.
        """
        known = self.catalog.get(source, self.params)
        if known is None and passing and source.size <= WHOLE_BYTES:
            return self._read_whole(source, passing=True)
        return self.read(source) if known is None else known

    def root(self, source: SourceFile) -> bytes:
        """Its signature's root alone, which spares the chunk list where the catalog knows the file."""
        return self.catalog.root(source, self.params) or self.read(source).root

    def signing(self, source: SourceFile) -> Generator[int, None, SignatureTree]:
        """As `sign`, step by step: yields the bytes read so far, of a large file many times."""
        known = self.catalog.get(source, self.params)
        return (yield from self.reading(source)) if known is None else known

    def read(self, source: SourceFile, *, shared: bool = True) -> SignatureTree:
        """As `sign`, without a look into the catalog, which is told. With `shared`, other threads may help:
        not when one of them is the caller, since they would wait for each other."""
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
        """As `read`, step by step. Closing it early stops the threads."""
        if source.size <= WHOLE_BYTES:
            tree = self._read_whole(source)
            yield source.size
            return tree
        from rdc.files.spool import Spool
        from rdc.signature.build import TreeBuilder

        began = self.catalog.now()
        builder = TreeBuilder(self.params, Spool)
        traits = yield from self._chunking(source, builder, shared=shared)
        tree = builder.finish(traits)
        source.check_unchanged()
        self.catalog.put(source, tree, began)
        return tree

    def _read_whole(self, source: SourceFile, *, passing: bool = False) -> SignatureTree:
        # Loaded with the first file that is read: in most runs none is.
        from rdc.signature.build import sign

        began = self.catalog.now()
        tree = sign(source.whole(), self.params)
        source.check_unchanged()
        if not passing:
            self.catalog.put(source, tree, began)
        return tree

    def streaming(
        self, source: SourceFile, taker: ChunkTaker, *, always_read: bool = False
    ) -> Generator[int, None, StreamedFile]:
        """Hands the chunks of `source` to `taker` in order and keeps none; yields the bytes handed over.

        For files of any size: what a signature of it would take is held only where the catalog wants it. A
        file that the catalog knows is not read, unless `always_read`. Raises as `sign` does; `taker` may by
        then have had any part of the chunks.
        """
        from rdc.catalog.streaming import Both, StreamedFile, TopColumn, replayed
        from rdc.files.spool import Spool
        from rdc.limits import CATALOG_ENTRY_BYTES
        from rdc.signature.build import TreeBuilder

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
        """Reads, cuts and hashes; `taker` gets the chunks in order. Returns the traits."""
        from rdc.chunking.chunker import Chunker
        from rdc.files.extents import holes

        source.rest()
        # A file system that compresses allocates less as well, without a hole.
        if source.allocated + HOLE_WORTH <= source.size and any(holes(source.fileno(), source.size)):
            return (yield from self._chunking_sparse(source, taker))
        if shared and self.workers > 1 and self._worth_threads(source.size):
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
        """Long holes are not read, and past their start not even cut.

        Where the last 64 bytes are zero all ranks are equal, the rightmost wins, and chunks are `max_size`
        zeros each. So when enough zeros were fed for the first such cut, any multiple of `max_size` further
        zeros only moves all later cuts by as much, and adds equal chunks right where they would be. Traits:
        a window of zeros is no feature, and more than FEW_FEATURES_BELOW bytes are fed before any are left
        out.
        """
        from blake3 import blake3

        from rdc.chunking.chunker import Chunker
        from rdc.files.extents import holes
        from rdc.files.source import SPAN_BYTES
        from rdc.kernel.constants import FEW_FEATURES_BELOW, LOW_WINDOW

        size = self.params.max_size
        lead_in = max(FEW_FEATURES_BELOW, LOW_WINDOW + 3 * size)
        chunker, zeros, done = Chunker(self.params), bytes(max(lead_in, SPAN_BYTES)), 0
        name = blake3(zeros[:size]).digest()

        def feed(data: bytes) -> None:
            columns = chunker.feed_columns(data)
            taker.add(columns.digests, columns.lengths)

        for start, end in chain(holes(source.fileno(), source.size), [(source.size, source.size)]):
            while done < start:
                span = source.pread(done, min(SPAN_BYTES, start - done))
                feed(span)
                done += len(span)
                yield done
            left = end - start
            if left > lead_in + size:
                feed(zeros[:lead_in])
                count, left = divmod(left - lead_in, size)
                taker.repeat(name, size, count)
            while left:
                feed(zeros[:left])
                left -= min(left, len(zeros))
            done = end
            yield done
        columns = chunker.finish_columns()
        taker.add(columns.digests, columns.lengths)
        return chunker.traits()

    def sign_many(
        self, tasks: Iterable[SignTask[K]], *, roots_only: bool = False
    ) -> Generator[Signed[K], None, None]:
        """Signs many files at a time; results come in the order of `tasks`, which is taken from as they do.

        A file's own failure is in its result. In flight are a few batches of small files and one large file,
        whatever there is to come. Leaving the iteration early, by an exception too, stops the threads.
        `roots_only`: of a file that the catalog knows the root is enough.
        """
        from rdc.catalog.signing import sign_in_order

        return sign_in_order(self, tasks, roots_only=roots_only)

    def _worth_threads(self, size: int) -> bool:
        if size < SHARED_BYTES:
            return False
        self._shareable_bytes += size
        return self._pool is not None or self._shareable_bytes >= THREADS_WORTH

    def pool(self) -> Threads:
        """The threads beside the caller's; they end with `close`, or with this object."""
        if self._pool is None:
            from rdc.threads import Threads

            self._pool = Threads(self.workers, "rdc signer")
        return self._pool

    def close(self) -> None:
        """Ends the threads, which are idle by then. A process that still has some takes itself apart object
        by object when it ends, which after a large sync costs 3 % of it."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def _chunking_shared(self, source: SourceFile, taker: ChunkTaker) -> Generator[int, None, bytes]:
        """This thread reads and cuts; all of them hash.

        Cutting is sequential and takes a third of the time, so a second thread that only hashes would idle or
        hold up the first. When enough is handed out, this one hashes a span itself. In flight: `ahead` spans.
        """
        from rdc.chunking.chunker import Chunker, name_pieces
        from rdc.files.source import SPAN_BYTES
        from rdc.threads import Task

        pool, ahead = self.pool(), 2 * self.workers
        chunker = Chunker(self.params)
        flying: deque[Task[ChunkColumns] | ChunkColumns] = deque()
        done = 0

        def land(most: int) -> None:
            while len(flying) > most:
                first = flying.popleft()
                columns = first.result() if isinstance(first, Task) else first
                taker.add(columns.digests, columns.lengths)

        try:
            for span in source.spans(SPAN_BYTES):
                pieces = chunker.pieces(span)
                waiting = sum(1 for one in flying if isinstance(one, Task) and not one.done())
                flying.append(
                    pool.submit(name_pieces, pieces) if waiting < ahead - 1 else name_pieces(pieces)
                )
                land(ahead)
                done += len(span)
                yield done
            land(0)
        finally:
            for one in flying:
                if isinstance(one, Task):
                    one.cancel()
        columns = chunker.finish_columns()
        taker.add(columns.digests, columns.lengths)
        return chunker.traits()


def sign_file(
    path: str | bytes | os.PathLike[str],
    params: ChunkParams = SYNC_PARAMS,
    catalog: SignatureStore | None = None,
) -> SignatureTree:
    """The signature tree of the regular file at `path`, symlinks followed.

    Raises FileError when it cannot be read, FileChangedError when it changed while it was read.
    """
    from rdc.files.confined import Root

    directory, name = os.path.split(os.path.realpath(os.fsencode(path)))
    root = Root.open(directory)
    try:
        with root.open_read(name) as source:
            return FileSigner(params, catalog).sign(source)
    finally:
        root.close()


def _usable_cpus() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        return os.cpu_count() or 1
