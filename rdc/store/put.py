"""`rdc store put`: walk a directory beside the newest snapshot of its series, and store what is new.

The first snapshot of a series is walked beside one of another series, for its content alone: releases are
often put under names of their own.

A directory is not looked at further if its entries have the inodes, times and sizes that the last put saw
(rdc.store.notes). In the others, a file is not read if its size and mtime are those of the last snapshot and
the catalog still knows its root. Everything else is read, cut and looked up (rdc.store.changed_files).

The order of writes is the order of dependence: packs, then the snapshot. A put that is killed leaves packs
whose chunks the next one finds.
"""

from __future__ import annotations

import os
import stat
import time
from array import array

from rdc.catalog.store import SignatureStore
from rdc.chunking import SYNC_PARAMS
from rdc.errors import ExitCode, FileError, RdcError, UsageError, printable, worse
from rdc.files.base.paths import join
from rdc.files.base.spool import Spool
from rdc.files.base.store_guard import store_above
from rdc.files.facts.xattrs import attribute_kinds_of, read_directory_attributes, read_entry_attributes
from rdc.files.root.root import Root
from rdc.lean.records import Record, replace
from rdc.model.entries import NODES, Kind, little_endian, little_endian_integers
from rdc.model.preserved import AttributeKinds, pack_attributes
from rdc.progress import Problem
from rdc.store.changed_files import (
    BATCH_FILES,
    ChangedFiles,
    IdentityColumns,
    WaitingDirectory,
)
from rdc.store.directory import split_keys
from rdc.store.notes import SeenDirectories, linked_rows
from rdc.store.place import PackStore, make_store
from rdc.store.publish import is_published, own_keys, publish
from rdc.store.reader import StoreReader
from rdc.store.records import StoreOptions, StoreReport, shown_series
from rdc.store.snapshot_tree import SnapshotTree, top_names
from rdc.store.snapshots import Snapshot, check_series
from rdc.store.tree_rows import (
    LIST_PARAMS,
    DirectoryRows,
    FileRef,
    StoredFiles,
    StreamRef,
    check_record,
    encode_rows,
    link_groups,
)
from rdc.store.writer import StoreWriter, cut_streams
from rdc.tree import filter_list
from rdc.tree.filters import FilteredTree
from rdc.tree.walk import Walk, WalkedDirectory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.progress import Event, Reporter, StopSignal

EMPTY = StreamRef(0, 0, b"")

OTHER_SERIES = 16
"""Series whose newest snapshots are looked at before the first snapshot of another one."""


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
        raise _no_directory(source)
    if (above := store_above(source)) is not None:
        found = "is a store" if above == path else f"lies in the store {printable(above)}"
        raise UsageError(f"{printable(source)} {found}: put a directory of your own")
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


def _no_directory(source: bytes) -> FileError:
    """Return the error of a source that is no directory. It is a file if someone wants a store of that
    alone."""
    try:
        is_file = stat.S_ISREG(os.stat(source).st_mode)
    except OSError as error:
        none = isinstance(error, (FileNotFoundError, NotADirectoryError))
        found = "nothing; mount or make it" if none else f"{error.strerror}; make it readable"
    else:
        found = "something else; name a directory"
        if is_file:
            name = printable(os.path.basename(source))
            found = f"a file; put its directory with --include=/{name} --exclude='*'"
    return FileError(
        source, f"{printable(source)}: expected a directory to put into a store, found {found}, and run again"
    )


class _Unchanged(Record, frozen=False):
    """Neighbouring directories of the last snapshot whose records are taken over."""

    first: int
    stop: int


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
        self._readable = store.readable()
        """The snapshots before this one. The packs are listed after them, so those of a put that ends
        meanwhile are not missed."""
        self._reader = StoreReader(store)
        self._writer = StoreWriter(
            self._reader,
            level=options.level,
            deltas=options.deltas,
            heal=options.heal,
            skips=not (options.publish or is_published(store)),
        )
        self._changed = ChangedFiles(
            root, self._writer, catalog, self._problem, self._check_stop, deltas=options.deltas
        )
        self._old: SnapshotTree | None = None
        self._kinds = attribute_kinds_of(root) & ~AttributeKinds.ACCESS_TIME
        self._own = os.fstat(store.fileno())
        self._own_inode = self._own.st_ino.to_bytes(8, "little")
        self._waiting: list[WaitingDirectory | _Unchanged] = []
        """Directories whose records are not in the tree yet, in walk order."""
        self._groups: dict[tuple[int, int], int] = {}
        self._tree = Spool()
        self._entries = self._files = self._bytes = 0
        self._errors = 0
        self._code = ExitCode.OK

    def run(self, series: bytes, path: bytes) -> StoreReport:
        """Walk, store and commit. Raises RdcError."""
        try:
            began, self._began = int(time.time()), self._catalog.now()
            readable = self._readable
            own = [one for one in readable.snapshots if one.series == series]
            for error in (*readable.errors.values(), *self._reader.damaged):
                self._problem(Problem(error.code, error.path_bytes, str(error)))
            self._seen = SeenDirectories(
                self._catalog.directory, self._store.head.id, series, int(self._kinds), self._root.fileno()
            )
            if own:
                self._note_other(own[-1], path)
                self._check_emptied(own[-1])
                self._take_old(own[-1])
            else:
                self._take_alike(readable.snapshots)
            before = self._errors
            self._walk()
            tree = self._put_tree()
            problems = self._errors - before
            self._writer.finish()
            top = read_entry_attributes(self._root.fileno(), b".", self._kinds)
            snapshot = Snapshot(
                0,
                began,
                series,
                os.fsencode(os.uname().nodename),
                path,
                self._entries,
                self._files,
                self._bytes,
                self._writer.stored,
                self._root.metadata(b""),
                pack_attributes(top),
                tree,
                problems,
            )
            self._check_stop()
            number = self._store.commit(snapshot).number
            self._seen.write(snapshot)
            self._catalog.flush()
            try:
                publish(self._store, first=self._options.publish)
            except RdcError as error:
                # The snapshot is there. What was published before still is.
                self._problem(Problem(error.code, self._store.label, f"not published: {error}"))
            else:
                self._note_unsigned()
            return self._report(number, series)
        finally:
            self._writer.close()
            self._reader.close()
            self._tree.close()

    def _note_unsigned(self) -> None:
        """Tell who publishes without a key, before readers do."""
        if self._options.publish and own_keys() is None:
            text = (
                f"{printable(self._store.label)}: published without a signature, so readers need --unsigned"
            )
            advice = "rdc keys new makes a key, and the next put signs"
            self._problem(Problem(ExitCode.OK, self._store.label, f"{text}; {advice}"))

    def _note_other(self, last: Snapshot, path: bytes) -> None:
        """Say so if the series is of another directory that is still there, and nobody named it.

        Two directories whose paths have the same last part would take turns in one series, and forgetting
        would keep the later one of each period alone.
        """
        here = os.fsencode(os.uname().nodename)
        if self._options.name is not None or last.path == path or last.host != here:
            return
        try:
            there = os.stat(last.path)
        except OSError:
            return  # it was moved here, or is not mounted
        if not stat.S_ISDIR(there.st_mode) or os.path.samestat(there, os.fstat(self._root.fileno())):
            return
        series = shown_series(last.series)
        text = f"another directory than {printable(last.path)}, of which the last snapshot of {series} is"
        advice = f"--name=NAME keeps them apart, --name={series} goes on without this note"
        shown = printable(self._root.label)
        self._problem(Problem(ExitCode.OK, self._root.label, f"{shown}: {text} (@{last.number}); {advice}"))

    def _check_emptied(self, last: Snapshot) -> None:
        """Raise FileError if the directory has lost all of its entries since its last snapshot.

        Most often its file system is not mounted. Put after put of nothing would leave snapshots that, one
        period after the other, take the place of whole ones when others are forgotten.
        """
        if self._options.force_empty or not last.entries:
            return
        if self._top_names():
            return
        had = "1 entry" if last.entries == 1 else f"{last.entries:,} entries"
        raise FileError(
            self._root.label,
            f"{printable(self._root.label)}: expected {had}, as in snapshot {last.number}, found an empty"
            " directory; no snapshot was added: mount it, or use --force-empty to store it as it is",
            code=ExitCode.FILE_IO,
        )

    def _top_names(self) -> set[bytes]:
        """Return the names in the directory. Raises FileError."""
        try:
            fd = os.open(b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._root.fileno())
            try:
                return {*map(os.fsencode, os.listdir(fd))}
            finally:
                os.close(fd)
        except OSError as error:
            raise self._root.failure(error, b"", "list") from error

    def _take_old(self, snapshot: Snapshot) -> None:
        """Walk beside the tree of this snapshot, unless it is damaged: then everything is read again."""
        try:
            self._old = SnapshotTree(self._reader, snapshot)
        except FileError as error:
            self._problem(Problem(error.code, error.path_bytes, f"{error}; every file is read again"))
        else:
            self._changed.take_old(self._old, stands_in=True)
            if not self._options.heal:
                self._seen.take(snapshot)

    def _take_alike(self, snapshots: Sequence[Snapshot]) -> None:
        """Walk beside a tree of another series, whose top directory has the most names of this one.

        What was not changed since is found by the catalog, so it is content of this directory as well. No
        other row of that tree gets into the snapshot. Of damaged ones, `verify` tells.
        """
        newest = {snapshot.series: snapshot for snapshot in snapshots}
        names = self._top_names()
        found: list[tuple[int, int, SnapshotTree]] = []
        for snapshot in sorted(newest.values(), key=lambda one: -one.number)[:OTHER_SERIES]:
            try:
                shared = len(names.intersection(top_names(self._reader, snapshot)))
                if not found or shared > found[0][0]:
                    found = [(shared, snapshot.number, SnapshotTree(self._reader, snapshot))]
            except FileError:
                continue
        if found:
            self._old = found[0][2]
            self._changed.take_old(self._old, stands_in=False)

    def _report(self, number: int, series: bytes) -> StoreReport:
        return StoreReport(
            number=number,
            series=series,
            entries=self._entries,
            files=self._files,
            bytes=self._bytes,
            files_read=self._changed.files_read,
            bytes_read=self._changed.bytes_read,
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

    def _problem(self, event: Event, /) -> None:
        """Report an event, and count it if it is a problem. Notices do not count."""
        if isinstance(event, Problem) and event.code is not ExitCode.OK:
            self._errors += 1
            self._code = worse(self._code, event.code)
        self._reporter(event)

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
            walked = self._without_store(directory)
            group.append(walked)
            files += walked.listing.count
            if files >= BATCH_FILES or len(group) >= BATCH_FILES:
                self._take_group(group)
                group, files = [], 0
        self._take_group(group)
        self._changed.finish()
        self._write_waiting()

    def _descends(self, top: int, device: int, inode: int) -> bool:
        return not self._is_own(device, inode) and not (self._options.one_file_system and device != top)

    def _is_own(self, device: int, inode: int) -> bool:
        return (device, inode) == (self._own.st_dev, self._own.st_ino)

    def _without_store(self, walked: WalkedDirectory) -> WalkedDirectory:
        """Return a directory without the store itself, which lies in it or not."""
        # The number may also be found across two others; then each row is compared.
        if Kind.DIRECTORY not in walked.listing.kinds or self._own_inode not in walked.inodes.inodes:
            return walked
        kept = [row for row in range(walked.listing.count) if not self._is_own(*walked.inodes.identity(row))]
        if len(kept) == walked.listing.count:
            return walked
        shown = printable(self._store.label)
        self._problem(
            Problem(ExitCode.OK, self._store.label, f"{shown}: left out, as it is the store itself")
        )
        return WalkedDirectory(walked.path, walked.listing.rows(kept), walked.inodes.rows(kept))

    def _take_group(self, group: Sequence[WalkedDirectory]) -> None:
        """Take directories over, or queue them. What is known of their files is asked for all at once."""
        self._check_stop()
        others: list[WaitingDirectory] = []
        for walked in group:
            number = None if self._old is None else self._old.number(walked.path)
            if number is not None and self._seen.is_as_seen(number, walked):
                self._take_over(number, walked)
            else:
                others.append(self._looked_at(walked))
                self._waiting.append(others[-1])
        if not self._options.heal:
            self._find_unchanged(others)
        for waiting in others:
            self._changed.queue(waiting)
        if len(self._waiting) >= BATCH_FILES:
            self._changed.flush()
        if not self._changed.waits:
            self._write_waiting()

    def _take_over(self, number: int, walked: WalkedDirectory) -> None:
        """Take over the record of a directory of the last snapshot."""
        self._entries += walked.listing.count
        self._files += walked.listing.kinds.count(Kind.FILE)
        self._bytes += walked.listing.total_size
        last = self._waiting[-1] if self._waiting else None
        if isinstance(last, _Unchanged) and last.stop == number:
            last.stop += 1
        else:
            self._waiting.append(_Unchanged(number, number + 1))

    def _looked_at(self, walked: WalkedDirectory) -> WaitingDirectory:
        old = None if self._old is None else self._old.rows(walked.path)
        waiting = WaitingDirectory(walked, self._groups_of(walked), old)
        self._read_attributes(waiting)
        return waiting

    def _groups_of(self, walked: WalkedDirectory) -> dict[int, int]:
        """Return the number of the group of hard links of each row that is in one."""
        return {
            row: self._groups.setdefault(walked.inodes.identity(row), len(self._groups) + 1)
            for row in linked_rows(walked)
        }

    def _read_attributes(self, waiting: WaitingDirectory) -> None:
        """Read the extended attributes of a directory's entries. Those that cannot be read are reported."""
        walked = waiting.walked
        if not self._kinds or not walked.listing.count:
            return
        path, names = walked.path, walked.listing.names
        for row, name, attributes in read_directory_attributes(self._root, path, names, self._kinds):
            if isinstance(attributes, OSError):
                error = self._root.failure(attributes, join(path, name), "read its extended attributes")
                self._problem(Problem(error.code, join(path, name), str(error)))
                waiting.is_as_walked = False
            else:
                waiting.attributes[row] = pack_attributes(attributes)

    def _find_unchanged(self, group: Sequence[WaitingDirectory]) -> None:
        """Give files their refs of the last snapshot if their sizes, mtimes and roots in the catalog are
        equal."""
        found = [_candidates(waiting) for waiting in group]
        rows = [(waiting, row) for waiting, refs in zip(group, found, strict=True) for row in refs]
        if not rows:
            return
        paths = [join(waiting.path, waiting.names[row]) for waiting, row in rows]
        files = IdentityColumns.of(rows).files(self._root, paths)
        known = dict(self._catalog.find_roots(files, SYNC_PARAMS))
        at = 0
        for waiting, refs in zip(group, found, strict=True):
            for row, ref in refs.items():
                if known.get(at) == ref.root:
                    waiting.refs[row] = ref
                at += 1

    # The tree.

    def _write_waiting(self) -> None:
        """Add the waiting directories to the tree. Neighbours of the last one may be taken over, too."""
        kept: list[WaitingDirectory | _Unchanged] = []
        for waiting in self._waiting:
            if isinstance(waiting, WaitingDirectory):
                record = encode_rows(self._rows_of(waiting))
                check_record(waiting.path, record)
                self._tree.append(record)
                self._seen.note(waiting.walked if waiting.is_as_walked else None, self._began)
            elif waiting is self._waiting[-1]:
                kept.append(waiting)
            else:
                self._copy_records(waiting)
        self._waiting = kept

    def _copy_records(self, unchanged: _Unchanged) -> None:
        if self._old is not None:
            for part in self._old.records(unchanged.first, unchanged.stop):
                self._tree.append(part)
            self._seen.keep(unchanged.first, unchanged.stop)

    def _rows_of(self, waiting: WaitingDirectory) -> DirectoryRows:
        """Return a directory whose files are read."""
        listing, refs = waiting.walked.listing, waiting.refs
        if waiting.restated is not None:
            listing = waiting.restated.packed()
        kept: Sequence[int] = range(listing.count)
        if waiting.left_out:
            kept = [row for row in kept if row not in waiting.left_out]
            listing = listing.rows(kept)
        self._entries += listing.count
        self._files += listing.kinds.count(Kind.FILE)
        self._bytes += listing.total_size
        groups = waiting.groups
        sets, attributes = _attribute_column(waiting.attributes, kept)
        return DirectoryRows(
            waiting.path,
            listing,
            link_groups([groups.get(row, 0) for row in kept]) if groups else b"",
            sets,
            attributes,
            StoredFiles.of([refs[row] for row in kept if row in refs]),
        )

    def _put_tree(self) -> StreamRef:
        """Store the tree, against the old one."""
        old = self._old
        if old is not None and not self._tree and self._waiting == [_Unchanged(0, len(old))]:
            self._seen.keep(0, len(old))
            return old.snapshot.tree
        for waiting in self._waiting:
            if isinstance(waiting, _Unchanged):
                self._copy_records(waiting)
        view = self._tree.view()
        if not view:
            return EMPTY
        cut = cut_streams(view, array("Q", [len(view)]), LIST_PARAMS, self._store.head.key)
        before = split_keys(b"" if old is None else old.keys)
        return self._writer.put_content(cut.keys, cut.lengths, view, before, lists=True)


def _attribute_column(attributes: dict[int, bytes], kept: Sequence[int]) -> tuple[tuple[bytes, ...], bytes]:
    """Return the sets of attributes that these rows have, and the number of the set of each row."""
    if not attributes:
        return (), b""
    found = [attributes.get(row, b"") for row in kept]
    sets = tuple(sorted({*found} - {b""}))
    numbers = {one: number for number, one in enumerate(sets, 1)}
    return sets, little_endian(array("I", [numbers.get(one, 0) for one in found])) if sets else b""


def _candidates(waiting: WaitingDirectory) -> dict[int, FileRef]:
    """Return the files of a directory that have the size and mtime of the last snapshot, by row."""
    found: dict[int, FileRef] = {}
    old = waiting.old
    if old is None or not old.files:
        return found
    sizes, mtimes = waiting.columns.sizes, waiting.columns.mtimes
    old_sizes = little_endian_integers("Q", old.listing.sizes)
    old_times = little_endian_integers("q", old.listing.mtimes)
    for row in waiting.walked.listing.rows_of(Kind.FILE):
        known = waiting.old_file(row)
        if known is not None and (sizes[row], mtimes[row]) == (old_sizes[known.row], old_times[known.row]):
            found[row] = known.ref
    return found
