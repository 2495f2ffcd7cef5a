"""CommitGroup: makes many rebuilt files durable together, then visible one by one."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from rdc.errors import FileError, RdcError
from rdc.files.base.directory_descriptors import Directory, same_entry
from rdc.files.base.metadata import EntryCheck, Expected, identity_of, stat_entry
from rdc.files.base.paths import PARTS_NAME, is_reserved, is_temporary
from rdc.files.base.syscalls import share_of_descriptors
from rdc.files.base.taking_names import flush, is_refused, sync_directory, sync_file_systems
from rdc.files.bulk.small_files import (
    ListedFiles,
    NewVersions,
    StagedFiles,
    rename_together,
    stage_small,
    stage_together,
    stage_versions,
)
from rdc.files.depth import calls_at_once
from rdc.files.replace.replacement import CheckedRename, Replacement
from rdc.files.root.root import BackupKeeper, Placed, Root, UndoKeeper
from rdc.lean.records import replace
from rdc.lean.typed import NamedTuple
from rdc.model.entries import Identity, Metadata, PackedListing, little_endian_integers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Buffer


# Tells an UndoKeeper of all files of a commit group at once: one wait for the disk serves them all.


def note_group(
    replacements: Sequence[Replacement],
    runs: Sequence[StagedFiles],
    undo: UndoKeeper,
) -> dict[bytes, FileError]:
    """Tell `undo` of all staged files; drop those that it refuses, and return their errors by path.

    Raises RdcError, and OSError if a file cannot be looked at.
    """
    arrivals = [Placed(each.path, each.directory.fd, os.fstat(each.fileno()), 0) for each in replacements]
    for run in runs:
        arrivals += [
            Placed(run.path_of(row), run.directory_of(row).fd, os.fstat(run.fileno(row)), 0)
            for row in run.live
        ]
    refused: dict[bytes, FileError] = {}
    for path, error in undo.placing(arrivals).items():
        if not isinstance(error, FileError):
            raise error
        refused[path] = error
    if refused:
        _drop(set(refused), replacements, runs)
    return refused


def _drop(paths: set[bytes], replacements: Sequence[Replacement], runs: Sequence[StagedFiles]) -> None:
    for item in replacements:
        if item.path in paths:
            item.abandon()
    for run in runs:
        for row in run.live:
            if run.path_of(row) in paths:
                run.drop(row)


COMMIT_FILES = 256
"""Files per group. With this many, the cost of a sync per file is small. Each file has a descriptor open, and
its directory perhaps another."""

COMMIT_BYTES = 64 << 20
"""Bytes per group. A disk writes them in about a second, and a kill loses at most these."""

SYNCFS_FILES = 64
"""From this many files on, one syncfs replaces the fsyncs. On ext4 syncfs takes 0.1 ms per file of a group,
fsync 0.2 ms each. syncfs wins from about ten files on, but also waits for unrelated writes, so the bound is
higher."""


class Staged(NamedTuple):
    """A finished file that waits for the next flush."""

    replacement: Replacement
    path: bytes
    expected: Expected
    metadata: Metadata | None
    """The metadata that it was given; None if that was not done yet."""
    owner: bool


class _Renamed(NamedTuple):
    """A file in place whose name may not be durable yet."""

    path: bytes
    directory: Directory
    fd: int
    """-1 if it had to be closed."""
    staged: Staged | None
    """None for a file of a run."""


def _stat(item: _Renamed) -> os.stat_result:
    """Return the stat of a file in place. Raises OSError."""
    if item.fd >= 0:
        # Some file systems lose an open file once its first name is gone.
        with suppress(OSError):
            return os.fstat(item.fd)
    return stat_entry(item.path.rpartition(b"/")[2], item.directory.fd)


class CommitGroup:
    """Collects Replacements and commits them; each path is at any moment wholly old or wholly new.

    A flush takes all files through each step before the next: contents synced, destinations checked, files
    renamed, directories synced, `on_commit(path)` called. Metadata was set by `add`.

    A failure concerns one file, which keeps its old content. `on_error` receives the error; without
    `on_error` the first error is raised at the end of the flush. OutOfSpaceError is always raised, after the
    remaining files were committed.

    As a context manager it flushes at the end of the block. After an exception it removes what is staged.
    """

    def __init__(
        self,
        root: Root,
        *,
        fsync: bool = True,
        on_commit: Callable[[bytes], None],
        on_error: Callable[[FileError], None] | None = None,
        on_identity: Callable[[bytes, Identity], None] | None = None,
        files: int = COMMIT_FILES,
        size: int = COMMIT_BYTES,
    ) -> None:
        """`fsync=False` leaves out all syncs; a power cut may then leave empty files. `on_identity` receives
        the identity of each file after its rename, when rdc changes it no more. `files` and `size` (bytes)
        bound what is staged before a flush. Fewer files are staged if the descriptor limit is low."""
        self._root = root
        self._renamer = CheckedRename(root)
        self._fsync = fsync
        self._on_commit = on_commit
        self._on_error = on_error
        self._on_identity = on_identity
        self._files = min(files, share_of_descriptors(COMMIT_FILES))
        self._size = size
        self._staged: list[Staged] = []
        self._runs: list[StagedFiles] = []
        self._ahead: dict[bytes, StagedFiles] = {}
        """Runs that were staged ahead, by directory: `add_small` takes each."""
        self._staged_files = 0
        self._staged_bytes = 0
        self._first: FileError | None = None
        self._fatal: RdcError | None = None

    def add(
        self,
        replacement: Replacement,
        path: bytes,
        metadata: Metadata,
        owner: bool,
        expected: Expected,
    ) -> None:
        """Take over a finished Replacement of `path`, the path it was made for. Flushes when the group is
        full.

        `expected` is the Identity of the entry to be replaced (of a directory: an empty one), None if nothing
        was there, or ANYTHING. If another entry is there at the commit, it stays and a FileError is reported.
        """
        if path != replacement.path:
            raise ValueError(f"the replacement was made for {replacement.path!r}, not for {path!r}")
        try:
            replacement.seal(metadata, owner=owner)
        except FileError as error:
            self._report(path, error)
            self._raise_collected()
            return
        self._staged.append(Staged(replacement, path, expected, metadata, owner))
        self._count(2 if replacement.keeps_inode else 1, replacement.size)

    def set_metadata(self, path: bytes, metadata: Metadata, owner: bool, expected: Identity) -> None:
        """Set the metadata of a file already in place, at once, if it is the expected one. Raises FileError
        otherwise.
        """
        from rdc.files.replace.set_metadata_if_unchanged import set_metadata_if_unchanged

        set_metadata_if_unchanged(self._root, path, metadata, owner=owner, expected=expected)

    def part(self, path: bytes, metadata: Metadata, owner: bool, expected: Identity) -> None:
        """Give one name of a file a copy with its own metadata; the other names keep theirs.

        The copy is staged. Raises OutOfSpaceError if it does not fit.
        """
        from rdc.files.replace.set_metadata_if_unchanged import copy_file

        self.add(copy_file(self._root, path, expected), path, metadata, owner, expected)

    def add_small(self, directory: bytes, listing: PackedListing, content: Buffer, owner: bool) -> list[int]:
        """Write and stage small files of one directory, at paths where nothing was. Flushes whenever the
        group is full.

        `content` holds their bytes one after another, with the sizes in `listing`. Returns the rows that
        could not be staged. The caller repeats each of those as a Replacement, which reports the error if
        there is one.
        """
        ahead = self._ahead.pop(directory, None)
        if ahead is not None:
            failed = ahead.failed  # a flush closes the run
            self._runs.append(ahead)
            self._count(len(ahead), memoryview(content).nbytes)
            return failed
        failed = []
        view = memoryview(content)
        first = at = 0
        while first < listing.count:
            batch = listing.slice(first, min(first + self._room(), listing.count))
            size = batch.total_size
            run = stage_small(self._root, directory, batch, view[at : at + size], owner=owner)
            if run is None:
                return failed + list(range(first, listing.count))
            failed += [first + row for row in run.failed]
            self._runs.append(run)
            first, at = first + batch.count, at + size
            self._count(batch.count, size)
        return failed

    def stage_ahead(self, files: Sequence[ListedFiles], content: memoryview, owner: bool) -> int:
        """Write and stage new files of the first of these directories together, as many as the group has
        room for. Return how many directories these are; `add_small` is called for each of them next.

        Nothing is done where no write waits. So what `add_small` does, and when the group is flushed, is the
        same with or without this.
        """
        taken: list[ListedFiles] = []
        room, size = self._room(), 0
        if self._root.depths.writing.now == 1:
            return 0
        for one in files:
            room -= one.listing.count
            if room < 0:
                break
            taken.append(one)
            size += one.listing.total_size
        if len(taken) < 2:
            return len(taken)
        runs = stage_together(self._root, taken, content[:size], owner=owner)
        for one, run in zip(taken, runs, strict=True):
            if run is not None:
                self._ahead[one.directory] = run
        return len(taken)

    def add_versions(
        self, versions: NewVersions, content: Buffer, owner: bool
    ) -> tuple[list[int], list[int]]:
        """Write and stage small files of any directories that replace others; otherwise like `add_small`.

        Returns two lists of rows: those where another entry than expected is found, and those to be repeated
        one by one.
        """
        everything = list(range(len(versions)))
        if (
            not (self._root.writes.backups is None and self._root.writes.undo is None)
            or self._root.writes.overwrites
        ):
            return [], everything
        changed: list[int] = []
        failed: list[int] = []
        view = memoryview(content)
        first = at = 0
        while first < len(versions):
            batch = versions.slice(first, min(first + self._room(), len(versions)))
            size = sum(little_endian_integers("Q", batch.sizes))
            run = stage_versions(self._root, batch, view[at : at + size], owner=owner)
            if run is None:
                return changed, failed + everything[first:]
            changed += [first + row for row in run.changed]
            failed += [first + row for row in run.failed]
            self._runs.append(run)
            first, at = first + len(batch), at + size
            self._count(len(batch), size)
        return changed, failed

    def _room(self) -> int:
        """Return how many small files may be staged at once."""
        return min(self._files - self._staged_files, self._root.depths.writing.rows)

    def _count(self, files: int, size: int) -> None:
        self._staged_files += files
        self._staged_bytes += size
        if self._staged_files >= self._files or self._staged_bytes >= self._size:
            self.flush()

    def flush(self) -> None:
        """Make everything staged durable and visible. Raises RdcError."""
        staged, runs = self._taken()
        try:
            if self._root.writes.completes is not None:
                staged = self._complete(staged, runs, self._root.writes.completes)
            if self._fsync:
                staged = self._sync_contents(staged, runs)
            if self._root.writes.backups is not None:
                staged = self._keep_backups(staged, self._root.writes.backups)
            if self._root.writes.undo is not None:
                staged = self._keep_undo(staged, runs, self._root.writes.undo)
            written = {} if self._on_identity is None else self._written(staged, runs)
            renamed = self._rename(staged) + self._rename_runs(runs)
            if self._root.append_only:
                for item in renamed:
                    try:
                        self._root.note_made(_stat(item))
                    except OSError as error:
                        self._fail(item.path, error, "look at the new file, which is in place")
            if self._fsync:
                renamed = self._sync_directories(renamed)
            renamed = self._settle(renamed)
            for item in renamed:
                if self._on_identity is not None:
                    self._note_identity(item, written.get(item.path), self._on_identity)
                self._on_commit(item.path)
        finally:
            # Closes renamed files and removes the others, also after an exception.
            self._discard(staged, runs)
        self._raise_collected()

    def abandon(self) -> None:
        """Remove everything staged. The destination keeps its old files."""
        staged, runs = self._taken()
        ahead, self._ahead = self._ahead, {}
        self._discard(staged, [*runs, *ahead.values()])

    def _taken(self) -> tuple[list[Staged], list[StagedFiles]]:
        staged, runs = self._staged, self._runs
        self._staged, self._runs = [], []
        self._staged_files = self._staged_bytes = 0
        return staged, runs

    @staticmethod
    def _discard(staged: list[Staged], runs: list[StagedFiles]) -> None:
        for item in staged:
            item.replacement.abandon()
        for run in runs:
            run.discard()

    def __enter__(self) -> CommitGroup:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.flush()
        else:
            self.abandon()

    def _complete(
        self, staged: list[Staged], runs: list[StagedFiles], completes: Callable[[bytes, int], None]
    ) -> list[Staged]:
        """Have the last done to files that have no name yet; drop those of which it fails."""
        ready = []
        for item in staged:
            try:
                completes(item.path, item.replacement.fileno())
            except OSError as error:
                item.replacement.abandon()
                self._fail(item.path, error, "complete it before it gets its name")
            else:
                ready.append(item)
        for run in runs:
            for row in run.live:
                try:
                    completes(run.path_of(row), run.fileno(row))
                except OSError as error:
                    run.drop(row)
                    self._fail(run.path_of(row), error, "complete it before it gets its name")
        return ready

    # Step 1: contents and metadata reach the disk while the old files are still in place.

    def _sync_contents(self, staged: list[Staged], runs: list[StagedFiles]) -> list[Staged]:
        live = [(run, run.live) for run in runs]
        count = len(staged) + sum(len(rows) for _, rows in live)
        # Small files lie on the file system of their directory, so one descriptor per directory is enough.
        some = [item.replacement.fileno() for item in staged]
        some += [run.fileno(rows[0]) for run in runs for rows in run.rows_by_directory()]
        if count >= SYNCFS_FILES and sync_file_systems(some):
            return staged
        # After a failed syncfs, the fsync of each file reports whether its own content was lost.
        ready = []
        errors = self._flush_all([item.replacement.fileno() for item in staged])
        for item, error in zip(staged, errors, strict=True):
            if error is None:
                ready.append(item)
            else:
                item.replacement.abandon()
                self._fail(item.path, error, "write its new content to disk")
        for run, rows in live:
            for row, error in zip(rows, self._flush_all([run.fileno(row) for row in rows]), strict=True):
                if error is not None:
                    run.drop(row)
                    self._fail(run.path_of(row), error, "write its new content to disk")
        return ready

    def _flush_all(self, fds: list[int]) -> list[OSError | None]:
        """Make files durable. Return what went wrong with each."""

        def try_to_flush(fd: int) -> OSError | None:
            try:
                # fsync, not fdatasync: the inode is written anyway for its new size, and fsync also promises
                # mode and mtime.
                unsynced = flush(fd)
            except OSError as error:
                return error
            if unsynced:
                self._root.storage.unsynced = unsynced
            return None

        return calls_at_once(try_to_flush, fds, self._root.depths)

    # Step 1b: with backups, each old file gets its second name.

    def _keep_backups(self, staged: list[Staged], backups: BackupKeeper) -> list[Staged]:
        ready = []
        for item in staged:
            try:
                if item.expected is not None:
                    self._renamer.keep_backup(
                        item.path,
                        item.replacement.directory.fd,
                        item.expected,
                        backups,
                        copy=item.replacement.keeps_inode,
                    )
            except FileError as error:
                item.replacement.abandon()
                self._report(item.path, error)
            except OSError as error:
                item.replacement.abandon()
                self._fail(item.path, error, "keep a backup of it")
            else:
                ready.append(item)
        return ready

    def _keep_undo(self, staged: list[Staged], runs: list[StagedFiles], undo: UndoKeeper) -> list[Staged]:
        replacements = [item.replacement for item in staged]
        try:
            refused = note_group(replacements, runs, undo)
        except OSError as unseen:
            for path in (
                *(item.path for item in staged),
                *(run.path_of(row) for run in runs for row in run.live),
            ):
                self._fail(path, unseen, "keep an undo of what it replaces")
            self._discard(staged, runs)
            runs.clear()
            return []
        for path, error in refused.items():
            self._report(path, error)
        return [item for item in staged if item.path not in refused]

    # Step 2: one atomic rename per path makes the new file visible. An Overwrite writes into the old one.

    def _rename(self, ready: Iterable[Staged]) -> list[_Renamed]:
        renamed = []
        checked: dict[bytes, Directory | None] = {}
        for item in ready:
            replacement, path = item.replacement, item.path
            parent = path.rpartition(b"/")[0]
            try:
                if checked.get(parent) is not replacement.directory:
                    self._renamer.check_directory(path, parent, replacement.directory)
                    checked[parent] = replacement.directory
                landed = replacement.land(self._renamer, item.expected, fsync=self._fsync)
            except FileError as error:
                replacement.abandon()
                self._report(path, error)
            except OSError as error:
                replacement.abandon()
                self._fail(path, error, "put its new content in place")
            else:
                renamed.append(_Renamed(path, replacement.directory, landed, item))
        return renamed

    def _written(self, staged: list[Staged], runs: list[StagedFiles]) -> dict[bytes, Identity]:
        """Return the identities of files that have no name yet that another program knows. Files that get
        their metadata under their new names are left out."""
        found: dict[bytes, Identity] = {}
        if self._root.storage.settles:
            return found
        with suppress(OSError):
            for item in staged:
                if not (item.replacement.unsettled or item.replacement.keeps_inode):
                    found[item.path] = item.replacement.identity()
            for run in runs:
                for row in run.live:
                    if run.fileno(row) >= 0:
                        found[run.path_of(row)] = identity_of(os.fstat(run.fileno(row)))
        return found

    @staticmethod
    def _note_identity(
        item: _Renamed, written: Identity | None, note: Callable[[bytes, Identity], None]
    ) -> None:
        """Tell the identity of a file in place, unless it is gone again. `written`: what it was before its
        rename. If another program changed it since, that is told, without a change time, so that the change
        shows as one."""
        with suppress(FileNotFoundError):
            now = identity_of(_stat(item))
            if written is not None and (now.size, now.mtime_ns) != (written.size, written.mtime_ns):
                now = replace(written, ctime_ns=0)
            note(item.path, now)

    def _rename_runs(self, runs: list[StagedFiles]) -> list[_Renamed]:
        renamed = []
        unmoved = self._unmoved(runs)
        runs = [run for run in runs if run.live]
        # Rows whose directory moved. They are repeated singly, so that each gets an error of its own.
        moved: list[set[int]] = [
            {
                row
                for rows in run.rows_by_directory()
                for row in rows
                if run.directory_of(row).fd not in unmoved
            }
            for run in runs
        ]
        for run, passed_over, failed in zip(runs, moved, self._try_to_rename(runs, moved), strict=True):
            live = run.live
            unrenamed = passed_over.union(failed)
            if unrenamed:
                live = [row for row in live if row not in unrenamed or self._renamed_singly(run, row)]
            renamed += [
                _Renamed(run.path_of(row), run.directory_of(row), run.fileno(row), None) for row in live
            ]
        return renamed

    def _try_to_rename(self, runs: list[StagedFiles], passed_over: list[set[int]]) -> list[list[int]]:
        """Rename the files of each run, but some. Return, for each run, the rows that were not renamed."""
        if len(runs) < 2 or self._root.depths.renaming.now == 1:
            return [run.rename(rows) for run, rows in zip(runs, passed_over, strict=True)]
        return rename_together(runs, passed_over)

    def _unmoved(self, runs: list[StagedFiles]) -> set[int]:
        """Return the descriptors of those directories of `runs` that are still where they were."""
        parents: dict[Directory, bytes] = {}
        for run in runs:
            for rows in run.rows_by_directory():
                parents[run.directory_of(rows[0])] = run.path_of(rows[0]).rpartition(b"/")[0]

        def is_unmoved(directory: Directory) -> bool:
            parent = parents[directory]
            try:
                self._renamer.check_directory(parent, parent, directory)
            except (FileError, OSError):
                return False
            return True

        directories = list(parents)
        unmoved = calls_at_once(is_unmoved, directories, self._root.depths)
        return {directory.fd for directory, stays in zip(directories, unmoved, strict=True) if stays}

    def _renamed_singly(self, run: StagedFiles, row: int) -> bool:
        """Repeat one row that failed in bulk, for file systems that cannot rename in bulk or to get the
        reason."""
        path = run.path_of(row)
        try:
            directory = run.directory_of(row)
            self._renamer.check_directory(path, path.rpartition(b"/")[0], directory)
            name, expected = run.temporary(row), run.expected(row)
            try:
                self._renamer.rename(path, directory.fd, name, expected, displaces=False)
            except OSError as error:
                if not (is_refused(error) or error.errno == errno.EEXIST):
                    raise
                run.close(row)  # as in Replacement.land
                self._renamer.rename(path, directory.fd, name, expected)
        except FileError as error:
            run.drop(row)
            self._report(path, error)
        except OSError as error:
            run.drop(row)
            self._fail(path, error, "put its new content in place")
        else:
            run.mark_renamed(row)
            return True
        return False

    # Step 3: directories are synced, so the renames are durable.

    def _sync_directories(self, renamed: list[_Renamed]) -> list[_Renamed]:
        by_directory: dict[bytes, list[_Renamed]] = {}
        for item in renamed:
            by_directory.setdefault(item.path.rpartition(b"/")[0], []).append(item)
        if len(by_directory) >= SYNCFS_FILES and sync_file_systems(
            [items[0].fd for items in by_directory.values()]
        ):
            return renamed
        durable = []

        def sync(items: list[_Renamed]) -> OSError | None:
            try:
                sync_directory(items[0].directory.fd, items[0].fd)
            except OSError as error:
                return error
            return None

        groups = list(by_directory.values())
        for items, error in zip(groups, calls_at_once(sync, groups, self._root.depths), strict=True):
            if error is not None:
                doing = "make its replacement durable (the new file is in place)"
                for item in items:
                    self._fail(item.path, error, doing)
            else:
                durable += items
        return durable

    # Step 4: where a file system is known to keep less than it is told, each file is looked at once more.

    def _settle(self, renamed: list[_Renamed]) -> list[_Renamed]:
        settled = []
        for item in renamed:
            staged = item.staged
            settles = self._root.storage.settles
            if staged is None or staged.metadata is None or not (settles or staged.replacement.unsettled):
                settled.append(item)
                continue
            try:
                staged.replacement.settle(staged.metadata, owner=staged.owner)
            except OSError as error:
                self._fail(item.path, error, "set its metadata (the new content is in place)")
            else:
                settled.append(item._replace(fd=-1))
        return settled

    # Failures

    def _fail(self, path: bytes, error: OSError, doing: str) -> None:
        problem = self._root.failure(error, path, doing)
        if isinstance(problem, FileError):
            self._report(path, problem)
        else:
            self._fatal = self._fatal or problem

    def _report(self, path: bytes, error: FileError) -> None:
        """Report an error of the file at `path`. It may be one of a directory above it."""
        if error.path_bytes != path:
            error = FileError(path, str(error), code=error.code)
        if self._on_error is not None:
            self._on_error(error)
        else:
            self._first = self._first or error

    def _raise_collected(self) -> None:
        problem = self._fatal or self._first
        self._fatal = self._first = None
        if problem is not None:
            try:
                raise problem
            finally:
                # A frame that holds its own exception is a reference cycle, which would keep descriptors
                # open.
                del problem


# Decides which entries with a reserved name rdc itself made. Only those may be removed or built upon.
#
# An entry is our own temporary if all of these hold:
#
# 1. `temporary_name` gives its name: the check digits are right. The form of the name alone does not count.
# 2. It is a regular file, a symbolic link or a directory.
# 3. It belongs to the effective user of this process. A process of root may already have given it to its
#    final owner. Then another owner is accepted if only root and the owner of the directory can make entries
#    in that directory.
#
# An own regular file with one name is a partial copy: it may serve as a base, and it may be removed. One with
# several names is an unfinished hard link: only this name may be removed, and the content stays under the
# others. A directory is removed only when it is empty, or has nothing but what a trial of the file system
# leaves after a kill (rdc.files.facts.file_systems). No other entry with a reserved name is opened for
# writing, changed, renamed or removed.

_KINDS = {stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR}


def is_own_temporary(name: bytes, found: os.stat_result, directory: os.stat_result) -> bool:
    """Return whether the entry `name` is our own temporary, by the rules of this module.

    `found` is its lstat, `directory` the stat of its directory.
    """
    if not is_temporary(name) or stat.S_IFMT(found.st_mode) not in _KINDS:
        return False
    user = os.geteuid()
    if found.st_uid == user:
        return True
    # If the directory has an ACL, its group bits are the mask, so they also cover users the ACL names.
    return user == 0 and not directory.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def is_own_partial(name: bytes, found: os.stat_result, directory: os.stat_result) -> bool:
    """Return whether the entry is our own partial copy: a regular own temporary with no other name."""
    own = is_own_temporary(name, found, directory)
    return own and stat.S_ISREG(found.st_mode) and found.st_nlink == 1


_OPEN = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def sweep_temporaries(root: Root, path: bytes, names: Iterable[bytes]) -> int:
    """Remove the stale temporaries among `names` in the directory `path`; return how many were removed.

    `names` are the reserved ones of a Listed; other names are ignored. Only rdc's own temporaries
    are removed (rdc.files.replace.commit_group). A file is stale if nobody holds its lock. Symlinks and
    empty directories have no lock and are always removed: a writer that loses one makes another. What a
    trial of the file system left goes if nobody holds the lock of its directory.

    An entry that cannot be opened, locked or removed stays without an error, for a later run. Below an
    append-only root all stay.
    """
    if root.append_only:
        return 0
    removed = 0
    for name in names:
        if is_reserved(name):
            directory = root.directory(path)
            if root.writes.undo is not None and is_temporary(name):
                root.writes.undo.entering(path, directory.fd)
            try:
                removed += _sweep_one(name, directory.fd, root.check)
            except OSError:
                continue
    return removed


def foreign_names(root: Root, path: bytes, names: Iterable[bytes]) -> list[bytes]:
    """Return those of the reserved `names` in the directory `path` that exist and are neither rdc's own
    temporaries nor its own record of parts.

    Raises FileError if the directory cannot be opened.
    """
    directory = root.directory(path)
    found = []
    for name in names:
        try:
            entry = os.stat(name, dir_fd=directory.fd, follow_symlinks=False)
            own = is_own_temporary(name, entry, os.fstat(directory.fd))
            own = own or (name == PARTS_NAME and _is_own_record(entry))
        except OSError:
            continue  # gone
        if not own:
            found.append(name)
    return found


def _is_own_record(found: os.stat_result) -> bool:
    from rdc.files.replace.partial_directory import is_own_record  # few runs find one

    return is_own_record(found)


def _remove_directory(name: bytes, directory: int) -> None:
    """Remove a temporary directory that is empty, or that a trial of the file system left. Raises OSError."""
    try:
        os.rmdir(name, dir_fd=directory)
    except OSError as error:
        if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
            raise
        from rdc.files.facts.file_systems import empty_leftover  # few runs find one

        empty_leftover(name, directory)
        os.rmdir(name, dir_fd=directory)


def _sweep_one(name: bytes, directory: int, check: EntryCheck) -> bool:
    """Remove one stale temporary; return whether it was removed. `check` hears of a file that keeps other
    names. Raises OSError if it stays."""
    found = os.stat(name, dir_fd=directory, follow_symlinks=False)
    if not is_own_temporary(name, found, os.fstat(directory)):
        return False
    if stat.S_ISLNK(found.st_mode):
        os.unlink(name, dir_fd=directory)
        return True
    if stat.S_ISDIR(found.st_mode):
        _remove_directory(name, directory)
        return True
    try:
        fd = os.open(name, os.O_RDWR | _OPEN, dir_fd=directory)
    except PermissionError:
        # It may have its final mode already. Opening for writing comes first because locks over a network
        # need it.
        fd = os.open(name, os.O_RDONLY | _OPEN, dir_fd=directory)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Checked under the lock: the writer may have finished in between, and the name may be another file's.
        now = os.stat(name, dir_fd=directory, follow_symlinks=False)
        opened = os.fstat(fd)
        if not (same_entry(now, opened) and is_own_temporary(name, opened, os.fstat(directory))):
            return False
        os.unlink(name, dir_fd=directory)
        if opened.st_nlink > 1:
            check.note_named(identity_of(opened), os.fstat(fd))
        return True
    finally:
        os.close(fd)
