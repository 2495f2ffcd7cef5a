"""FileSigner: the one way from a file to its signature tree. It looks the file up, or reads, cuts and hashes
it."""

from __future__ import annotations

import os
from collections import deque
from itertools import chain

from rdc.catalog.store import NoCatalog
from rdc.chunking.params import SYNC_PARAMS, ChunkParams
from rdc.lean.checks import check_argument, check_method
from rdc.lean.typed import TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from rdc.catalog.store import SignatureStore
    from rdc.catalog.streaming import ChunkTaker, StreamedFile
    from rdc.chunking.chunker import ChunkColumns
    from rdc.files.root.source_file import SourceFile
    from rdc.lean.threads import Threads
    from rdc.signature.tree import SignatureTree

__all__ = ["FileSigner", "sign_file"]

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
"""Bytes without allocation before a file is searched for holes. Reading so many zeros costs as much as a few
system calls."""


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
        """The signature of `source` as it was opened. `passing`: the file is about to be removed, so a small
        one's signature is not stored in the catalog.

        Raises FileChangedError if the file changed while it was read, FileError if it cannot be read.
        """
        known = self.catalog.get(source, self.params)
        if known is None and passing and source.size <= WHOLE_BYTES:
            return self._read_whole(source, passing=True)
        return self.read(source) if known is None else known

    def root(self, source: SourceFile) -> bytes:
        """The root of the file's signature. For a file that the catalog knows, the chunk list is not read."""
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
        from rdc.files.own.spool import Spool
        from rdc.signature.build import TreeBuilder

        began = self.catalog.now()
        builder = TreeBuilder(self.params, Spool)
        traits = yield from self._chunking(source, builder, shared=shared)
        tree = builder.finish(traits)
        source.check_unchanged()
        self.catalog.put(source, tree, began)
        return tree

    def _read_whole(self, source: SourceFile, *, passing: bool = False) -> SignatureTree:
        # Imported when the first file is read: in most runs none is.
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
        """Passes the chunks of `source` to `taker` in order. Yields the number of bytes passed so far.

        Works for files of any size: a signature is built in memory only if the catalog will store it. A file
        that the catalog knows is not read, unless `always_read`. Raises as `sign` does; `taker` may have
        received any part of the chunks by then.
        """
        from rdc.catalog.streaming import Both, StreamedFile, TopColumn, replayed
        from rdc.files.own.spool import Spool
        from rdc.limits.catalog import CATALOG_ENTRY_BYTES
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
        """Reads, cuts and hashes. `taker` gets the chunks in order. Returns the traits."""
        from rdc.chunking.chunker import Chunker
        from rdc.files.facts.extents import holes

        source.rest()
        # Fewer allocated bytes than the size may mean compression instead of holes, so holes are looked for.
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
        """Chunks a file with holes. Long holes are not read, and beyond their start they are not even cut.

        Where the last 64 bytes are zero, all ranks are equal, the rightmost position wins, and each chunk is
        `max_size` zeros. Once enough zeros were fed for the first such cut, any further multiple of
        `max_size` zeros only shifts all later cuts and adds equal chunks. So these chunks are added without
        feeding zeros. Traits do not change: a window of zeros is no feature, and more than FEW_FEATURES_BELOW
        bytes are fed before any are left out.
        """
        from blake3 import blake3

        from rdc.chunking.chunker import Chunker
        from rdc.files.facts.extents import holes
        from rdc.files.root.source_file import SPAN_BYTES
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

    def _worth_threads(self, size: int) -> bool:
        if size < SHARED_BYTES:
            return False
        self._shareable_bytes += size
        return self._pool is not None or self._shareable_bytes >= THREADS_WORTH

    def pool(self) -> Threads:
        """The worker threads. They end with `close` or with this object."""
        if self._pool is None:
            from rdc.lean.threads import Threads

            self._pool = Threads(self.workers, "rdc signer")
        return self._pool

    def close(self) -> None:
        """Ends the threads, which are idle by then. Threads that still run at exit make the interpreter free
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
        from rdc.chunking.chunker import Chunker, name_chunks
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


def sign_file(
    path: str | bytes | os.PathLike[str],
    params: ChunkParams = SYNC_PARAMS,
    catalog: SignatureStore | None = None,
) -> SignatureTree:
    """The signature tree of the regular file at `path`. Symlinks are followed.

    Raises FileError if it cannot be read, FileChangedError if it changed while it was read.

        >>> import rdc
        >>> with open("file", "wb") as file:
        ...     _ = file.write(b"content")
        >>> rdc.sign_file("file").size
        7
    """
    check_argument("sign_file", "path", path, str, bytes, os.PathLike)
    check_argument("sign_file", "params", params, ChunkParams)
    if catalog is not None:
        check_method("sign_file", "catalog", catalog, "flush")
    from rdc.files.root.root import Root

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
