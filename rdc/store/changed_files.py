"""Reads the files of a put that are not known to be unchanged, and stores what is new in them.

Small files are read, cut and hashed together. A file that changes while it is read is read once more; then it
is reported, and the snapshot has the row of the last one, or leaves it out.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right

from blake3 import blake3

from rdc.catalog.signer import has_holes, spans_between_holes, zero_spans
from rdc.catalog.small_files import BULK_BYTES, sign_contents
from rdc.catalog.store import SignatureStore, SmallFiles
from rdc.chunking import SYNC_PARAMS
from rdc.errors import FileChangedError, FileError, RdcError
from rdc.files.base.paths import changed, join
from rdc.files.base.spool import Spool
from rdc.files.bulk.open_many import read_contents
from rdc.kernel.blake3_many import equal_parts
from rdc.lean.records import Record
from rdc.model.entries import Kind, Listing, little_endian_integers, strings
from rdc.progress import Problem, Progressed
from rdc.signature.tree import DIGEST_BYTES, NO_TRAITS, TRAITS_BYTES
from rdc.store.directory import split_keys
from rdc.store.snapshot_tree import SnapshotTree
from rdc.store.tree_rows import DirectoryRows, FileRef
from rdc.store.writer import OtherContentError, StoreWriter, cut_streams
from rdc.tree.walk import WalkedDirectory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from typing_extensions import Buffer

    from rdc.files.root.root import Root
    from rdc.files.root.source_file import SourceFile
    from rdc.progress import Reporter
    from rdc.signature.codec import ShortSignatures
    from rdc.similarity.index import SimilarityIndex

BATCH_BYTES = 8 << 20
"""Bytes of small files that are read, cut and hashed together."""

BATCH_FILES = 4096

SIMILAR_BYTES = 2 << 10
"""Bytes of a new file for which a similar one of the old tree is looked for."""

SIMILAR_MATCHES = 4
"""Equal traits of 12 that make a file similar enough to be worth a try."""

READ_BYTES = 1 << 20


class IdentityColumns(Record):
    """The keys of files in the catalog, row by row of a directory."""

    devices: array[int]
    inodes: array[int]
    sizes: array[int]
    mtimes: array[int]
    ctimes: array[int]

    @classmethod
    def of(cls, rows: Sequence[tuple[WaitingDirectory, int]]) -> IdentityColumns:
        """Return some rows of waiting directories."""
        found = [(waiting.columns, row) for waiting, row in rows]
        return cls(
            array("Q", [columns.devices[row] for columns, row in found]),
            array("Q", [columns.inodes[row] for columns, row in found]),
            array("Q", [columns.sizes[row] for columns, row in found]),
            array("q", [columns.mtimes[row] for columns, row in found]),
            array("q", [columns.ctimes[row] for columns, row in found]),
        )

    def files(self, root: Root, paths: Sequence[bytes]) -> SmallFiles:
        """Return the rows as files at `paths`."""
        named = b"\0".join(paths) + b"\0"
        return SmallFiles(root, named, self.devices, self.inodes, self.sizes, self.mtimes, self.ctimes)


def identity_columns(walked: WalkedDirectory) -> IdentityColumns:
    """Return the identities of the entries of a walked directory."""
    listing, inodes = walked.listing, walked.inodes
    return IdentityColumns(
        little_endian_integers("Q", inodes.devices),
        little_endian_integers("Q", inodes.inodes),
        little_endian_integers("Q", listing.sizes),
        little_endian_integers("q", listing.mtimes),
        little_endian_integers("q", inodes.ctimes),
    )


class OldFile(Record):
    """A file with content of the tree that a put walks beside."""

    row: int
    ref: FileRef


class WaitingDirectory:
    """A walked directory whose files are being read."""

    __slots__ = (
        "_old_numbers",
        "_old_rows",
        "attributes",
        "columns",
        "groups",
        "is_as_walked",
        "left_out",
        "names",
        "old",
        "refs",
        "restated",
        "walked",
    )

    def __init__(self, walked: WalkedDirectory, groups: dict[int, int], old: DirectoryRows | None) -> None:
        """Take `groups`: the number of the group of hard links of each row that is in one. `old`: the
        directory at this path in the tree that the put walks beside."""
        self.walked = walked
        self.names = strings(walked.listing.names)
        self.columns = identity_columns(walked)
        self.groups = groups
        self.old = old
        self._old_numbers: dict[bytes, int] | None = None
        self._old_rows: list[int] = []
        self.attributes: dict[int, bytes] = {}
        """The packed extended attributes of each row that has any."""
        self.refs: dict[int, FileRef] = {}
        """By row."""
        self.left_out: set[int] = set()
        self.restated: Listing | None = None
        """All rows, if one has no longer what the walk found."""
        self.is_as_walked = True
        """True if all rows have what the walk found."""

    @property
    def path(self) -> bytes:
        return self.walked.path

    def old_file(self, row: int) -> OldFile | None:
        """Return the file with content that the old tree has in this row's place; None if it has none.

        All names are looked up at once: each file of a directory of many may ask.
        """
        if self.old is None:
            return None
        if self._old_numbers is None:
            names = strings(self.old.listing.names)
            self._old_rows = [*self.old.file_numbers()]
            self._old_numbers = {names[at]: number for number, at in enumerate(self._old_rows)}
        number = self._old_numbers.get(self.names[row])
        return None if number is None else OldFile(self._old_rows[number], self.old.files[number])

    def restate(self) -> Listing:
        """Return the columns of the rows, to be changed."""
        self.is_as_walked = False
        if self.restated is None:
            self.restated = self.walked.listing.unpacked()
        return self.restated


class ChangedFiles:
    """Reads files of directories, in the order in which they are queued."""

    def __init__(
        self,
        root: Root,
        writer: StoreWriter,
        catalog: SignatureStore,
        reporter: Reporter,
        check_stop: Callable[[], None],
        *,
        deltas: bool,
    ) -> None:
        self._root = root
        self._writer = writer
        self._reader = writer.reader
        self._params = writer.reader.store.head.params
        self._catalog = catalog
        self._reporter = reporter
        self._check_stop = check_stop
        self._deltas = deltas
        self._similar: _SimilarFiles | None = None
        self._stands_in = False
        self._batch: list[tuple[WaitingDirectory, int]] = []
        self._batch_bytes = 0
        self._linked: dict[int, FileRef] = {}
        """Contents of files with several names, by their group."""
        self.files_read = self.bytes_read = 0

    def take_old(self, tree: SnapshotTree, *, stands_in: bool) -> None:
        """Look for similar files in this tree.

        `stands_in`: it is the last state of the same directory, so the snapshot may have its row of a file
        that cannot be read.
        """
        self._similar = _SimilarFiles(tree)
        self._stands_in = stands_in

    def queue(self, waiting: WaitingDirectory) -> None:
        """Queue the files with content of a directory that have no ref yet."""
        sizes = waiting.columns.sizes
        files = [row for row in waiting.walked.listing.rows_of(Kind.FILE) if sizes[row]]
        if len(waiting.refs) == len(files):
            return
        for row in files:
            if row in waiting.refs:
                continue
            size = sizes[row]
            if size > BULK_BYTES or (waiting.groups and waiting.groups.get(row) in self._linked):
                self.flush()
                self._read_alone(waiting, row)
                continue
            self._batch.append((waiting, row))
            self._batch_bytes += size
            if self._batch_bytes >= BATCH_BYTES or len(self._batch) >= BATCH_FILES:
                self.flush()

    @property
    def waits(self) -> bool:
        """Return whether files wait to be read."""
        return bool(self._batch)

    def flush(self) -> None:
        """Read all files that wait."""
        batch, self._batch, self._batch_bytes = self._batch, [], 0
        if not batch:
            return
        files = IdentityColumns.of(batch).files(
            self._root, [join(waiting.walked.path, waiting.names[row]) for waiting, row in batch]
        )
        wanted = array("Q", bytes(24 * len(batch)))
        wanted[0::3], wanted[1::3], wanted[2::3] = files.devices, files.inodes, files.sizes
        began = self._catalog.now()
        found = read_contents(
            self._root.fileno(), files.paths, wanted, BULK_BYTES, 0, self._root.depths.opening
        )
        signed, failed = sign_contents(found, array("I", range(len(batch))), files.sizes, SYNC_PARAMS)
        self._catalog.put_small(files, signed, range(len(signed.rows)), began)
        self._store([batch[row] for row in signed.rows], signed.data or b"", signed.signatures)
        for row, _ in failed:
            self._read_alone(*batch[row])

    def _store(
        self, batch: Sequence[tuple[WaitingDirectory, int]], data: bytes, signatures: ShortSignatures
    ) -> None:
        """Store files that were read and signed together, one after the other in `data`."""
        # long because it runs once for each file, where calls cost more than the work
        cut = cut_streams(data, signatures.sizes, self._params, self._reader.store.head.key)
        all_traits = equal_parts(signatures.traits, TRAITS_BYTES)
        roots = equal_parts(signatures.roots, DIGEST_BYTES)
        view, offset, chunk = memoryview(data), 0, 0
        looks = self._deltas and self._similar is not None
        for (waiting, row), size, count, root, traits in zip(
            batch, signatures.sizes, cut.counts, roots, all_traits, strict=True
        ):
            ref = self._writer.put_content(
                cut.keys[chunk : chunk + count],
                cut.lengths[chunk : chunk + count],
                view[offset : offset + size],
                self._similar_keys(waiting, row, traits, size) if looks else (),
            )
            self._keep(waiting, row, FileRef(root, traits if size >= SIMILAR_BYTES else NO_TRAITS, ref))
            offset += size
            chunk += count
        self._note_read(len(batch), offset)

    def finish(self) -> None:
        """Read all files that wait, and report the end: the progress has a total from then on."""
        self.flush()
        if self.files_read:
            self._reporter(Progressed("compare", self.bytes_read, self.bytes_read))

    def _note_read(self, files: int, size: int) -> None:
        self.files_read += files
        self.bytes_read += size
        self._reporter(Progressed("compare", self.bytes_read, None))

    def _keep(self, waiting: WaitingDirectory, row: int, ref: FileRef) -> None:
        waiting.refs[row] = ref
        if waiting.groups and (group := waiting.groups.get(row)) is not None:
            self._linked[group] = ref

    def _read_alone(self, waiting: WaitingDirectory, row: int) -> None:
        """Read one file, again if it changes meanwhile. A failure is reported."""
        known = self._linked.get(waiting.groups.get(row, 0))
        if known is not None and known.content.size == waiting.columns.sizes[row]:
            waiting.refs[row] = known
            return
        path = join(waiting.path, waiting.names[row])
        for attempt in (1, 2):
            try:
                with self._root.open_read(path) as source:
                    ref = self._read_open(waiting, row, source) if source.size else None
                    _restate(waiting, row, source)
            except FileChangedError as error:
                if attempt == 2:
                    self._fail(waiting, row, error)
            except FileError as error:
                self._fail(waiting, row, error)
                return
            else:
                if ref is not None:
                    self._keep(waiting, row, ref)
                return

    def _read_open(self, waiting: WaitingDirectory, row: int, source: SourceFile) -> FileRef:
        """Store the content of an open file: once to cut it, and again for chunks that are new.

        Raises FileChangedError if the file changed meanwhile.
        """
        from rdc.chunking import Chunker
        from rdc.signature.tree import TreeBuilder

        began = self._catalog.now()
        source.rest()
        builder, signing = TreeBuilder(SYNC_PARAMS, Spool), Chunker(SYNC_PARAMS)
        cutting, keys, lengths = Chunker(self._params), list[bytes](), array("Q")
        reader = self._reader

        def take(views: Sequence[Buffer]) -> None:
            for view in views:
                chunk = memoryview(view)
                keys.append(reader.key_of(chunk))
                lengths.append(chunk.nbytes)

        def sign(span: bytes) -> None:
            columns = signing.feed_columns(span)
            builder.add(columns.digests, columns.lengths)

        def pass_over(hole: int) -> None:
            size = SYNC_PARAMS.max_size
            for zeros, repeated in zero_spans(hole, size):
                sign(zeros)
                if repeated:
                    builder.repeat(blake3(bytes(size)).digest(), size, repeated)
            size = self._params.max_size
            for zeros, repeated in zero_spans(hole, size):
                take(cutting.chunk_views(zeros))
                keys.extend([reader.key_of(memoryview(bytes(size)))] * repeated)
                lengths.extend(array("Q", [size]) * repeated)

        read = self.bytes_read
        spans = spans_between_holes(source, READ_BYTES) if has_holes(source) else source.spans(READ_BYTES)
        for span in spans:
            if isinstance(span, int):
                pass_over(span)
                read += span
            else:
                sign(span)
                take(cutting.chunk_views(span))
                read += len(span)
            self._reporter(Progressed("compare", read, None))
            self._check_stop()
        columns = signing.finish_columns()
        builder.add(columns.digests, columns.lengths)
        take(cutting.last_chunk_views())
        tree = builder.finish(signing.traits())
        source.check_unchanged()
        self._catalog.put(source, tree, began)
        old = self._similar_keys(waiting, row, tree.traits, source.size)
        try:
            ref = self._writer.put_stream(keys, lengths, source.pread, old)
        except OtherContentError as error:
            shown = self._root.shown(source.path)
            raise changed(source.path, shown, "the content that was cut", "another") from error
        source.check_unchanged()
        self._note_read(1, source.size)
        return FileRef(tree.root, _kept_traits(tree.traits, source.size), ref)

    def _similar_keys(self, waiting: WaitingDirectory, row: int, traits: bytes, size: int) -> Sequence[bytes]:
        """Return the keys of the file that was at this path, or of the most similar one."""
        if self._similar is None or not self._deltas:
            return ()
        old = waiting.old_file(row)
        ref = None if old is None else old.ref
        if ref is None and size >= SIMILAR_BYTES and traits not in (b"", NO_TRAITS):
            ref = self._similar.find(traits, size)
        if ref is None:
            return ()
        keys = self._reader.expand(ref.content)
        return split_keys(keys)

    def _fail(self, waiting: WaitingDirectory, row: int, error: RdcError) -> None:
        """Report a file that cannot be read, and take its row of the last snapshot or leave it out."""
        path = join(waiting.path, waiting.names[row])
        old = waiting.old_file(row) if self._stands_in else None
        waiting.is_as_walked = False
        if old is None or waiting.old is None or self._root.kind(path) is not Kind.FILE:
            waiting.left_out.add(row)
            said = "it is not in the snapshot"
        else:
            listing, last = waiting.restate(), waiting.old.listing.metadata(old.row)
            listing.sizes[row] = old.ref.content.size
            listing.mtimes[row], listing.modes[row] = last.mtime_ns, last.mode
            listing.uids[row], listing.gids[row] = last.uid, last.gid
            waiting.groups.pop(row, None)
            waiting.refs[row] = old.ref
            said = "the snapshot has it as the last one does"
        self._reporter(Problem(error.code, path, f"{error}; {said}"))


def _restate(waiting: WaitingDirectory, row: int, source: SourceFile) -> None:
    """Give a row the state in which its file was read."""
    now = source.metadata
    found = source.size, now.mtime_ns, now.mode, now.uid, now.gid
    if found != _state(waiting, row):
        listing = waiting.restate()
        columns = listing.sizes, listing.mtimes, listing.modes, listing.uids, listing.gids
        for column, value in zip(columns, found, strict=True):
            column[row] = value


def _state(waiting: WaitingDirectory, row: int) -> tuple[int, int, int, int, int]:
    """Return size, mtime, mode, uid and gid of a row."""
    if (known := waiting.restated) is not None:
        return known.sizes[row], known.mtimes[row], known.modes[row], known.uids[row], known.gids[row]
    listing, columns = waiting.walked.listing, waiting.columns
    return (
        columns.sizes[row],
        columns.mtimes[row],
        int.from_bytes(listing.modes[2 * row : 2 * row + 2], "little"),
        int.from_bytes(listing.uids[4 * row : 4 * row + 4], "little"),
        int.from_bytes(listing.gids[4 * row : 4 * row + 4], "little"),
    )


def _kept_traits(traits: bytes, size: int) -> bytes:
    """Return the traits that a snapshot keeps of a file: none of one that is too small to be looked for."""
    return traits if traits and size >= SIMILAR_BYTES else NO_TRAITS


class _SimilarFiles:
    """The files of the old tree by their traits. It is read when the first is asked for."""

    def __init__(self, tree: SnapshotTree) -> None:
        self._tree = tree
        self._index: SimilarityIndex | None = None
        self._firsts: array[int] = array("Q")
        """The number of files with content before each directory in walk order."""
        self._paths: list[bytes] = []

    def find(self, traits: bytes, size: int) -> FileRef | None:
        """Return the most similar file; None if none is similar."""
        from rdc.similarity.traits import Traits

        if self._index is None:
            self._index = self._filled()
        found = self._index.query(Traits(traits), limit=1, min_matches=SIMILAR_MATCHES, size=size)
        if not found:
            return None
        directory = bisect_right(self._firsts, found[0].key) - 1
        rows = self._tree.rows(self._paths[directory])
        return None if rows is None else rows.files[found[0].key - self._firsts[directory]]

    def _filled(self) -> SimilarityIndex:
        from rdc.similarity.index import SimilarityIndex

        index, first = SimilarityIndex(), 0
        sizes, traits = list[int](), list[bytes]()
        for path, files in self._tree.all_traits():
            if not files.sizes:
                continue
            self._firsts.append(first + len(sizes))
            self._paths.append(path)
            sizes += files.sizes
            traits += files.traits
            if len(sizes) >= BATCH_FILES:
                index.add_many(range(first, first + len(sizes)), traits, sizes)
                first += len(sizes)
                sizes, traits = [], []
        index.add_many(range(first, first + len(sizes)), traits, sizes)
        return index
