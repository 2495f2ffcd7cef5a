"""`rdc store put`: walk a directory beside the newest snapshot of its series, and store what is new.

A file is not read if its size and mtime are those of the last snapshot and the catalog still knows its root.
Everything else is read, cut and looked up. A file that changes while it is read is read once more; then it is
reported, and the snapshot has the row of the last one, or leaves it out.

The order of writes is the order of dependence: packs, then the snapshot. A put that is killed leaves packs
whose chunks the next one finds.
"""

from __future__ import annotations

import os
import socket
import time
from array import array

from rdc.catalog.small_files import BULK_BYTES, sign_contents
from rdc.catalog.store import SignatureStore, SmallFiles
from rdc.chunking import SYNC_PARAMS, ChunkParams
from rdc.errors import ExitCode, FileChangedError, FileError, RdcError, UsageError, printable, worse
from rdc.files.base.paths import changed, join
from rdc.files.base.spool import Spool
from rdc.files.base.store_guard import store_above
from rdc.files.bulk.open_many import read_contents
from rdc.files.facts.xattrs import attribute_kinds_of, read_directory_attributes, read_entry_attributes
from rdc.files.root.root import Root
from rdc.lean.records import dataclass, replace
from rdc.model.entries import (
    LINKED,
    NODES,
    Kind,
    Listing,
    little_endian,
    little_endian_integers,
    strings,
)
from rdc.model.preserved import AttributeKinds, pack_attributes
from rdc.progress import Problem, Progressed
from rdc.signature.tree import TRAITS_BYTES
from rdc.store.directory import KEY_BYTES
from rdc.store.place import PackStore, make_store
from rdc.store.reader import StoreReader
from rdc.store.records import StoreOptions, StoreReport
from rdc.store.snapshot_tree import SnapshotTree
from rdc.store.snapshots import Snapshot, check_series
from rdc.store.tree_rows import DirectoryRows, FileRef, StreamRef, encode_rows, link_groups
from rdc.store.writer import LIST_MEAN, OtherContentError, StoreWriter, cut_streams
from rdc.tree import filter_list
from rdc.tree.filters import FilteredTree
from rdc.tree.walk import Walk, WalkedDirectory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.files.root.source_file import SourceFile
    from rdc.progress import Reporter, StopSignal
    from rdc.similarity.index import SimilarityIndex

BATCH_BYTES = 8 << 20
"""Bytes of small files that are read, cut and hashed together."""

BATCH_FILES = 4096

SIMILAR_BYTES = 2 << 10
"""Bytes of a new file for which a similar one of the last snapshot is looked for."""

SIMILAR_MATCHES = 4
"""Equal traits of 12 that make a file similar enough to be worth a try."""

READ_BYTES = 1 << 20
EMPTY = StreamRef(0, 0, b"")


def put(
    source: bytes,
    store: bytes,
    options: StoreOptions,
    reporter: Reporter,
    catalog: SignatureStore,
    stop: StopSignal | None = None,
) -> StoreReport:
    """Add a snapshot of the directory at `source` to the store at `store`, which is made if it is missing.

    Raises UsageError if one lies in the other in a way that makes no sense, and RdcError if nothing could be
    added. Problems of single entries go to `reporter`.
    """
    if not 1 <= options.level <= 19:
        raise UsageError(f"StoreOptions.level: expected 1 to 19, found {options.level}")
    path = os.path.realpath(source)
    name = options.name if options.name is not None else os.path.basename(path)
    series = os.fsencode(name)
    check_series(series)
    if not os.path.isdir(source):
        raise FileError(source, f"{printable(source)}: expected a directory to put into a store, found none")
    if (above := store_above(source)) is not None:
        raise UsageError(
            f"{printable(source)} lies in the store {printable(above)}: put a directory of your own into it"
        )
    make_store(store)
    with PackStore.open(store) as opened:
        opened.check_owner()
        with opened.locked():
            opened.sweep()
            root = Root.open(source)
            try:
                root = root.having(replace(root.reads, nodes=NODES))
                work = _Put(root, opened, options, reporter, catalog, stop)
                return work.run(series, path)
            finally:
                root.release()


@dataclass(slots=True)
class _Waiting:
    """A walked directory whose files are being read."""

    path: bytes
    listing: Listing
    groups: list[int]
    attributes: list[bytes]
    old: DirectoryRows | None
    refs: dict[int, FileRef]
    """By row."""
    left_out: set[int]


@dataclass(frozen=True, slots=True)
class _Small:
    """A small file that waits to be read with others."""

    directory: _Waiting
    row: int
    facts: tuple[int, int, int, int, int]
    """Device, inode, size, mtime and ctime."""


class _Put:
    """One put."""

    def __init__(
        self,
        root: Root,
        store: PackStore,
        options: StoreOptions,
        reporter: Reporter,
        catalog: SignatureStore,
        stop: StopSignal | None,
    ) -> None:
        self._root = root
        self._store = store
        self._options = options
        self._reporter = reporter
        self._catalog = catalog
        self._stop = stop
        self._reader = StoreReader(store)
        self._writer = StoreWriter(self._reader, level=options.level, deltas=options.deltas)
        self._old: SnapshotTree | None = None
        self._similar: _SimilarFiles | None = None
        self._kinds = attribute_kinds_of(root) & ~AttributeKinds.ACCESS_TIME
        self._own = os.fstat(store.fileno())
        self._waiting: list[_Waiting] = []
        self._batch: list[_Small] = []
        self._batch_bytes = 0
        self._groups: dict[tuple[int, int], int] = {}
        self._linked: dict[int, FileRef] = {}
        """Contents of files with several names, by their group."""
        self._tree = Spool()
        self._entries = self._files = self._bytes = 0
        self._files_read = self._bytes_read = 0
        self._errors = 0
        self._code = ExitCode.OK

    def run(self, series: bytes, path: bytes) -> StoreReport:
        """Walk, store and commit. Raises RdcError."""
        try:
            began = int(time.time())
            snapshots = [self._store.snapshot(number) for number in self._store.numbers()]
            own = [one for one in snapshots if one.series == series]
            self._reader.forget_lost()
            for error in self._reader.damaged:
                self._problem(Problem(error.code, error.path, str(error)))
            if own:
                self._take_old(own[-1])
            self._walk()
            tree = self._put_tree()
            self._writer.finish()
            top = read_entry_attributes(self._root.fileno(), b".", self._kinds)
            snapshot = Snapshot(
                0,
                began,
                series,
                os.fsencode(socket.gethostname()),
                path,
                self._entries,
                self._files,
                self._bytes,
                self._writer.stored,
                self._root.metadata(b""),
                pack_attributes(top),
                tree,
            )
            self._check_stop()
            number = self._store.commit(snapshot).number
            self._catalog.flush()
            return self._report(number, series)
        finally:
            self._writer.close()
            self._reader.close()
            self._tree.close()

    def _take_old(self, snapshot: Snapshot) -> None:
        """Walk beside the tree of this snapshot, unless it is damaged: then everything is read again."""
        try:
            self._old = SnapshotTree(self._reader, snapshot)
            self._similar = _SimilarFiles(self._old)
        except FileError as error:
            self._problem(Problem(error.code, error.path, f"{error}; every file is read again"))

    def _report(self, number: int, series: bytes) -> StoreReport:
        return StoreReport(
            number=number,
            series=series,
            entries=self._entries,
            files=self._files,
            bytes=self._bytes,
            files_read=self._files_read,
            bytes_read=self._bytes_read,
            new_bytes=self._writer.new_bytes,
            stored=self._writer.stored,
            deltas=self._writer.deltas_made,
            errors=self._errors,
            exit=self._code,
        )

    def _check_stop(self) -> None:
        if self._stop is not None and self._stop.is_set():
            from rdc.errors import StoppedError

            raise StoppedError("stopped by the caller; no snapshot was added, what was read is kept")

    def _problem(self, event: object) -> None:
        """Report a problem and count it. Notices do not count."""
        if isinstance(event, Problem) and event.code is not ExitCode.OK:
            self._errors += 1
            self._code = worse(self._code, event.code)
        self._reporter(event)  # type: ignore[arg-type] # the walk reports events alone

    # The walk.

    def _walk(self) -> None:
        device = self._root.identity(b"").device
        filters = filter_list(self._options.rules).at_source(FilteredTree(self._root))
        walk = Walk(
            self._root,
            filters,
            self._problem,
            on_temporaries=lambda _directory, _names: None,
            descend=lambda found, inode: self._descends(device, found, inode),
        )
        group: list[WalkedDirectory] = []
        files = 0
        for directory in walk:
            group.append(self._without_store(directory))
            files += group[-1].listing.count
            if files >= BATCH_FILES or len(group) >= BATCH_FILES:
                self._take_group(group)
                group, files = [], 0
        self._take_group(group)
        self._flush()

    def _descends(self, top: int, device: int, inode: int) -> bool:
        return not self._is_own(device, inode) and not (self._options.one_file_system and device != top)

    def _is_own(self, device: int, inode: int) -> bool:
        return (device, inode) == (self._own.st_dev, self._own.st_ino)

    def _take(self, walked: WalkedDirectory, old: DirectoryRows | None, refs: dict[int, FileRef]) -> None:
        """Queue a directory, and its files for reading. `refs`: those that are known to be unchanged."""
        path, packed = walked.path, walked.listing
        waiting = _Waiting(
            path, packed.unpacked(), self._groups_of(walked), self._attributes_of(walked), old, refs, set()
        )
        self._waiting.append(waiting)
        self._entries += packed.count
        sizes = waiting.listing.sizes
        files = [row for row in packed.rows_of(Kind.FILE) if sizes[row]]
        if len(refs) == len(files):
            files = []
        columns = _identity_columns(walked)
        for row in files:
            if row in waiting.refs:
                continue
            size = sizes[row]
            if size > BULK_BYTES or ((group := waiting.groups[row]) and group in self._linked):
                self._flush(complete=False)
                self._read_alone(waiting, row)
                continue
            self._batch.append(_Small(waiting, row, tuple(column[row] for column in columns)))  # type: ignore[arg-type]
            self._batch_bytes += size
            if self._batch_bytes >= BATCH_BYTES or len(self._batch) >= BATCH_FILES:
                self._read_batch()
        if len(self._waiting) >= BATCH_FILES:
            self._flush()

    def _without_store(self, walked: WalkedDirectory) -> WalkedDirectory:
        """Return a directory without the store itself, which lies in it or not."""
        inodes = little_endian_integers("Q", walked.inodes.inodes)
        if self._own.st_ino not in inodes:
            return walked
        kept = [row for row in range(walked.listing.count) if not self._is_own(*walked.inodes.identity(row))]
        if len(kept) == walked.listing.count:
            return walked
        shown = printable(self._store.label)
        self._problem(
            Problem(ExitCode.OK, self._store.label, f"{shown}: left out, as it is the store itself")
        )
        return WalkedDirectory(walked.path, walked.listing.rows(kept), walked.inodes.rows(kept))

    def _groups_of(self, walked: WalkedDirectory) -> list[int]:
        """Return the number of each row's group of hard links; 0 for a file with one name."""
        found = [0] * walked.listing.count
        for row, names in enumerate(little_endian_integers("I", walked.inodes.links)):
            if names > 1 and walked.listing.kinds[row] in LINKED:
                found[row] = self._groups.setdefault(walked.inodes.identity(row), len(self._groups) + 1)
        return found

    def _attributes_of(self, walked: WalkedDirectory) -> list[bytes]:
        """Return the packed extended attributes of each row. Those that cannot be read are reported."""
        found = [b""] * walked.listing.count
        if not self._kinds or not walked.listing.count:
            return found
        path, names = walked.path, walked.listing.names
        for row, name, attributes in read_directory_attributes(self._root, path, names, self._kinds):
            if isinstance(attributes, OSError):
                error = self._root.failure(attributes, join(path, name), "read its extended attributes")
                self._problem(Problem(error.code, join(path, name), str(error)))
            else:
                found[row] = pack_attributes(attributes)
        return found

    def _candidates(self, walked: WalkedDirectory, old: DirectoryRows | None) -> dict[int, FileRef]:
        """Return the files of a directory that have the size and mtime of the last snapshot, by row."""
        found: dict[int, FileRef] = {}
        if old is None or not old.files:
            return found
        rows = {name: row for row, name in enumerate(strings(old.listing.names))}
        numbers = old.file_numbers()
        names, columns = strings(walked.listing.names), _identity_columns(walked)
        old_sizes, old_times = (
            little_endian_integers("Q", old.listing.sizes),
            little_endian_integers("q", old.listing.mtimes),
        )
        for row in walked.listing.rows_of(Kind.FILE):
            known = rows.get(names[row])
            if known is None or (number := numbers.get(known)) is None:
                continue
            if (columns[2][row], columns[3][row]) == (old_sizes[known], old_times[known]):
                found[row] = old.files[number]
        return found

    def _take_group(self, group: Sequence[WalkedDirectory]) -> None:
        """Queue directories. What is known of their files is asked for all of them at once."""
        olds = [None if self._old is None else self._old.rows(walked.path) for walked in group]
        found = [self._candidates(walked, old) for walked, old in zip(group, olds, strict=True)]
        paths: list[bytes] = []
        columns = [array(code) for code in "QQQqq"]
        places: list[tuple[int, int]] = []
        for number, (walked, rows) in enumerate(zip(group, found, strict=True)):
            if not rows:
                continue
            names, own = strings(walked.listing.names), _identity_columns(walked)
            for row in rows:
                paths.append(join(walked.path, names[row]))
                places.append((number, row))
            for column, values in zip(columns, own, strict=True):
                column.extend([values[row] for row in rows])
        known = dict[int, bytes]()
        if paths:
            known = dict(
                self._catalog.find_roots(self._listed(paths, columns, range(len(paths))), SYNC_PARAMS)
            )
        for at, (number, row) in enumerate(places):
            if known.get(at) != found[number][row].root:
                del found[number][row]
        for walked, old, refs in zip(group, olds, found, strict=True):
            self._check_stop()
            self._take(walked, old, refs)

    def _listed(
        self, paths: Sequence[bytes], columns: Sequence[array[int]], rows: Sequence[int]
    ) -> SmallFiles:
        picked = [array(column.typecode, [column[row] for row in rows]) for column in columns]
        return SmallFiles(self._root, b"\0".join(paths) + b"\0", *picked)

    # Reading.

    def _flush(self, *, complete: bool = True) -> None:
        """Read the waiting small files. `complete`: add the waiting directories to the tree, too."""
        self._read_batch()
        if not complete:
            return
        for waiting in self._waiting:
            self._tree.append(encode_rows(self._rows_of(waiting)))
        self._waiting.clear()

    def _read_batch(self) -> None:
        batch, self._batch, self._batch_bytes = self._batch, [], 0
        if not batch:
            return
        columns = [array(code, [one.facts[at] for one in batch]) for at, code in enumerate("QQQqq")]
        paths = [join(one.directory.path, one.directory.listing.names[one.row]) for one in batch]
        files = self._listed(paths, columns, range(len(batch)))
        wanted = array("Q", bytes(24 * len(batch)))
        wanted[0::3], wanted[1::3], wanted[2::3] = files.devices, files.inodes, files.sizes
        began = self._catalog.now()
        found = read_contents(
            self._root.fileno(), files.paths, wanted, BULK_BYTES, 0, self._root.depths.opening
        )
        signed, failed = sign_contents(found, array("I", range(len(batch))), files.sizes, SYNC_PARAMS)
        self._catalog.put_small(files, signed, range(len(signed.rows)), began)
        data, signatures = signed.data or b"", signed.signatures
        cut = cut_streams(data, signatures.sizes, self._params, self._store.head.key)
        view, offset, chunk = memoryview(data), 0, 0
        for number, row in enumerate(signed.rows):
            one, size, count = batch[row], signatures.sizes[number], cut.counts[number]
            content = view[offset : offset + size]
            ref = self._writer.put_stream(
                cut.keys[chunk : chunk + count],
                cut.lengths[chunk : chunk + count],
                lambda at, length, content=content: bytes(content[at : at + length]),  # type: ignore[misc]
                self._similar_keys(one.directory, one.row, signatures.traits_of(number), size),
            )
            traits = _kept_traits(signatures.traits_of(number), size)
            self._keep(one.directory, one.row, FileRef(signatures.root_of(number), traits, ref))
            offset += size
            chunk += count
            self._note_read(size)
        for row, _ in failed:
            self._read_alone(batch[row].directory, batch[row].row)

    @property
    def _params(self) -> ChunkParams:
        return self._store.head.params

    def _note_read(self, size: int) -> None:
        self._files_read += 1
        self._bytes_read += size
        self._reporter(Progressed("compare", self._bytes_read, None))

    def _keep(self, waiting: _Waiting, row: int, ref: FileRef) -> None:
        waiting.refs[row] = ref
        if group := waiting.groups[row]:
            self._linked[group] = ref

    def _read_alone(self, waiting: _Waiting, row: int) -> None:
        """Read one file, again if it changes meanwhile. A failure is reported."""
        known = self._linked.get(waiting.groups[row]) if waiting.groups[row] else None
        if known is not None and known.content.size == waiting.listing.sizes[row]:
            waiting.refs[row] = known
            return
        path = join(waiting.path, waiting.listing.names[row])
        for attempt in (1, 2):
            try:
                with self._root.open_read(path) as source:
                    ref = self._read_open(waiting, row, source) if source.size else None
                    self._restate(waiting, row, source)
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

    def _read_open(self, waiting: _Waiting, row: int, source: SourceFile) -> FileRef:
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

        def take(views: Sequence[object]) -> None:
            for view in views:
                keys.append(reader.key_of(view))  # type: ignore[arg-type] # views are buffers
                lengths.append(len(view))  # type: ignore[arg-type]

        for span in source.spans(READ_BYTES):
            columns = signing.feed_columns(span)
            builder.add(columns.digests, columns.lengths)
            take(cutting.chunk_views(span))
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
        self._note_read(source.size)
        return FileRef(tree.root, _kept_traits(tree.traits, source.size), ref)

    def _similar_keys(self, waiting: _Waiting, row: int, traits: bytes, size: int) -> Sequence[bytes]:
        """Return the keys of the file that was at this path, or of the most similar one."""
        if self._old is None or self._similar is None or not self._options.deltas:
            return ()
        ref = _old_ref(waiting, row)
        if ref is None and size >= SIMILAR_BYTES and traits:
            ref = self._similar.find(traits, size)
        if ref is None:
            return ()
        keys = self._reader.expand(ref.content)
        return [keys[at : at + KEY_BYTES] for at in range(0, len(keys), KEY_BYTES)]

    def _restate(self, waiting: _Waiting, row: int, source: SourceFile) -> None:
        """Give a row the state in which its file was read."""
        listing, now = waiting.listing, source.metadata
        listing.sizes[row], listing.mtimes[row] = source.size, now.mtime_ns
        listing.modes[row], listing.uids[row], listing.gids[row] = now.mode, now.uid, now.gid

    def _fail(self, waiting: _Waiting, row: int, error: RdcError) -> None:
        """Report a file that cannot be read, and take its row of the last snapshot or leave it out."""
        path = join(waiting.path, waiting.listing.names[row])
        ref = _old_ref(waiting, row)
        if ref is None or waiting.old is None or self._root.kind(path) is not Kind.FILE:
            waiting.left_out.add(row)
            said = "it is not in the snapshot"
        else:
            listing, old = waiting.listing, waiting.old.listing.unpacked()
            known = old.names.index(listing.names[row])
            for column, other in (
                (listing.sizes, old.sizes),
                (listing.mtimes, old.mtimes),
                (listing.modes, old.modes),
                (listing.uids, old.uids),
                (listing.gids, old.gids),
            ):
                column[row] = other[known]
            waiting.groups[row] = 0
            waiting.refs[row] = ref
            said = "the snapshot has it as the last one does"
        self._problem(Problem(error.code, path, f"{error}; {said}"))

    # The tree.

    def _rows_of(self, waiting: _Waiting) -> DirectoryRows:
        """Return a directory whose files are read."""
        kept = [row for row in range(len(waiting.listing.names)) if row not in waiting.left_out]
        listing = waiting.listing.rows(kept) if waiting.left_out else waiting.listing
        self._entries -= len(waiting.left_out)
        files = []
        for number, row in enumerate(kept):
            if listing.kinds[number] == Kind.FILE:
                self._files += 1
                self._bytes += listing.sizes[number]
                if listing.sizes[number]:
                    files.append(waiting.refs[row])
        sets = tuple(sorted({waiting.attributes[row] for row in kept} - {b""}))
        numbers = {one: number for number, one in enumerate(sets, 1)}
        column = [numbers.get(waiting.attributes[row], 0) for row in kept]
        return DirectoryRows(
            waiting.path,
            listing.packed(),
            link_groups([waiting.groups[row] for row in kept]),
            sets,
            little_endian(array("I", column)) if sets else b"",
            tuple(files),
        )

    def _put_tree(self) -> StreamRef:
        """Store the tree, against that of the last snapshot."""
        view = self._tree.view()
        if not view:
            return EMPTY
        cut = cut_streams(
            view, array("Q", [len(view)]), ChunkParams.for_mean(LIST_MEAN), self._store.head.key
        )
        keys = b"" if self._old is None else self._old.keys
        old = [keys[at : at + KEY_BYTES] for at in range(0, len(keys), KEY_BYTES)]
        return self._writer.put_stream(
            cut.keys, cut.lengths, lambda at, length: bytes(view[at : at + length]), old
        )


def _old_ref(waiting: _Waiting, row: int) -> FileRef | None:
    """Return the content of the file that the last snapshot has in this row's place."""
    old = waiting.old
    if old is None:
        return None
    try:
        known = strings(old.listing.names).index(waiting.listing.names[row])
    except ValueError:
        return None
    number = old.file_numbers().get(known)
    return None if number is None else old.files[number]


def _kept_traits(traits: bytes, size: int) -> bytes:
    """Return the traits that a snapshot keeps of a file: none of one that is too small to be looked for."""
    return traits if traits and size >= SIMILAR_BYTES else bytes(TRAITS_BYTES)


def _identity_columns(walked: WalkedDirectory) -> tuple[array[int], ...]:
    """Return devices, inodes, sizes, mtimes and ctimes of a walked directory."""
    listing, inodes = walked.listing, walked.inodes
    return (
        little_endian_integers("Q", inodes.devices),
        little_endian_integers("Q", inodes.inodes),
        little_endian_integers("Q", listing.sizes),
        little_endian_integers("q", listing.mtimes),
        little_endian_integers("q", inodes.ctimes),
    )


class _SimilarFiles:
    """The files of the last snapshot by their traits. Its tree is read when the first is asked for."""

    def __init__(self, tree: SnapshotTree) -> None:
        self._tree = tree
        self._index: SimilarityIndex | None = None
        self._refs: list[FileRef] = []

    def find(self, traits: bytes, size: int) -> FileRef | None:
        """Return the most similar file; None if none is similar."""
        from rdc.similarity.index import SimilarityIndex
        from rdc.similarity.traits import Traits

        if self._index is None:
            self._index = SimilarityIndex()
            for path in self._tree:
                rows = self._tree.rows(path)
                for ref in () if rows is None else rows.files:
                    if any(ref.traits):
                        self._index.add(len(self._refs), Traits(ref.traits), ref.content.size)
                        self._refs.append(ref)
        found = self._index.query(Traits(traits), limit=1, min_matches=SIMILAR_MATCHES, size=size)
        return self._refs[found[0].key] if found else None
