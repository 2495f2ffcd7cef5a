"""Small files in bulk: read as listed, written aside and renamed, of one directory or several."""

from __future__ import annotations

import os
from array import array
from contextlib import suppress
from itertools import accumulate
from operator import attrgetter

from rdc.errors import FileError
from rdc.files import _files
from rdc.files.base.paths import join
from rdc.files.depth import RowsSeen, calls_at_once
from rdc.lean.records import Record
from rdc.model.entries import Identity, IdentityColumns, PackedListing, little_endian_integers, strings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence, Set
    from types import ModuleType

    from typing_extensions import Buffer

    from rdc.files.base.directory_descriptors import Directory
    from rdc.files.root.root import Root


# Small files in bulk, written aside for a CommitGroup. In C, on Linux.
#
# A file that meets any difficulty is left to the caller, who repeats it with Replacement, which handles and
# names every case. So nothing here raises errors for single files, and without the C part no file is written.

FAILED, NOT_EXPECTED = -1, -2
"""Values in place of the descriptors of files that were not written."""

TEMPORARY_BYTES = 26
"""Bytes of a temporary's name and its NUL."""


_extension: ModuleType | None = _files if hasattr(_files, "stage_small") else None
"""The C part, which Linux alone has."""


def extension() -> ModuleType | None:
    """Return the C part, None if there is none."""
    return _extension


def stage_small(
    root: Root, directory: bytes, listing: PackedListing, content: Buffer, *, owner: bool
) -> StagedFiles | None:
    """Write the files of `listing` under temporary names in `directory`. `content` holds their bytes, joined.

    Returns None if the files must be written singly: without the C part, beyond the write quota of `root`, or
    where they would inherit ACLs that must be removed.
    """
    size = memoryview(content).nbytes
    if _extension is None or not root.writes_in_bulk or not root.may_spend(size, entries=listing.count):
        return None
    try:
        opened = root.directory(directory)
    except FileError:
        return None
    if inherits(root, (opened,)):
        return None
    if root.writes.undo is not None:
        root.writes.undo.entering(directory, opened.fd)
    root.spend(directory, size, entries=listing.count)
    depth = root.depths.writing
    fds, temporaries, seen = _extension.stage_small(
        array("i", [opened.fd]) * listing.count,
        listing.names,
        listing.sizes,
        listing.mtimes,
        listing.modes,
        listing.uids,
        listing.gids,
        owner,
        content,
        root.writes.least_hole,
        os.urandom(4 * listing.count),
        None,
        0,
        depth.now,
    )
    depth.saw(RowsSeen(*seen))
    return StagedFiles(root, directory, opened, listing.names, fds, temporaries)


def inherits(root: Root, directories: Iterable[Directory]) -> bool:
    """Return whether new files in one of the directories would inherit an ACL that `root` must remove."""
    if not root.writes.sheds_acls:
        return False
    from rdc.files.base.metadata import has_default_acl

    return any(map(has_default_acl, directories))


class NewVersions(Record):
    """Files to be replaced, in any directories, and their new metadata; columns as in a PackedListing."""

    paths: Sequence[bytes]
    expected: IdentityColumns
    """The entries to be replaced. One that changes before the commit is not replaced."""
    modes: bytes
    sizes: bytes
    mtimes: bytes
    uids: bytes
    gids: bytes

    def __len__(self) -> int:
        return len(self.paths)

    def slice(self, first: int, stop: int) -> NewVersions:
        """Return files [first, stop)."""
        return NewVersions(
            self.paths[first:stop],
            self.expected.chosen(range(first, stop)),
            self.modes[2 * first : 2 * stop],
            self.sizes[8 * first : 8 * stop],
            self.mtimes[8 * first : 8 * stop],
            self.uids[4 * first : 4 * stop],
            self.gids[4 * first : 4 * stop],
        )


def stage_versions(
    root: Root, versions: NewVersions, content: Buffer, *, owner: bool
) -> StagedVersions | None:
    """Write new versions of files in any directories under temporary names; otherwise like `stage_small`."""
    if root.append_only or not root.writes_in_bulk:
        return None  # the caller repeats each file singly, and its refusal names the file
    size = memoryview(content).nbytes
    if _extension is None or not root.may_spend(size, entries=len(versions)):
        return None
    parents = [path.rpartition(b"/")[0] for path in versions.paths]
    directories: dict[bytes, Directory] = {}
    try:
        for parent in parents:
            if parent not in directories:
                directories[parent] = root.directory(parent)
    except FileError:
        return None
    if inherits(root, directories.values()):
        return None
    root.spend(b"", size, entries=len(versions))
    where = [directories[parent] for parent in parents]
    names = b"".join([path.rpartition(b"/")[2] + b"\0" for path in versions.paths])
    expected = versions.expected.packed()
    depth = root.depths.writing
    fds, temporaries, seen = _extension.stage_small(
        array("i", [directory.fd for directory in where]),
        names,
        versions.sizes,
        versions.mtimes,
        versions.modes,
        versions.uids,
        versions.gids,
        owner,
        content,
        root.writes.least_hole,
        os.urandom(4 * len(versions)),
        expected,
        root.check.fields.bits,
        depth.now,
    )
    depth.saw(RowsSeen(*seen))
    return StagedVersions(root, versions, where, names, expected, fds, temporaries)


class RenameColumns(Record):
    """The arguments of the C function that renames files."""

    directories: array[int]
    """A descriptor per row."""
    temporaries: bytes
    names: bytes
    fds: array[int]
    """FAILED for a row that is passed over."""
    expected: bytes | None
    """The packed identities that are to be replaced; None if all names are free."""


class StagedFiles:
    """Files of one directory under temporary names, open and locked. The bulk form of Replacement."""

    __slots__ = (
        "_fds",
        "_names",
        "_temporaries",
        "_unrenamed",
        "check",
        "depth",
        "directory",
        "names",
        "path",
    )

    def __init__(
        self, root: Root, path: bytes, directory: Directory, names: bytes, fds: bytes, temporaries: bytes
    ) -> None:
        self.depth = root.depths.renaming
        """The number of files that are renamed together."""
        self.check = root.check
        self.path = path
        """Path of the directory."""
        self.directory = directory
        self.names = strings(names)
        """Names of all files, including those that failed."""
        self._names = names
        self._fds = array("i", fds)
        self._temporaries = temporaries
        self._unrenamed = set(self.live)
        """Rows whose files still have their temporary names."""

    def __len__(self) -> int:
        """Return the number of files, including those that failed."""
        return len(self._fds)

    @property
    def failed(self) -> list[int]:
        """Rows that were not written."""
        return [row for row, fd in enumerate(self._fds) if fd == FAILED] if FAILED in self._fds else []

    @property
    def live(self) -> list[int]:
        """Rows that were written and not dropped."""
        return [row for row, fd in enumerate(self._fds) if fd >= 0]

    def path_of(self, row: int) -> bytes:
        return self.path + b"/" + self.names[row] if self.path else self.names[row]

    def directory_of(self, row: int) -> Directory:
        """Return the directory that holds the file of a row."""
        return self.directory

    def expected(self, row: int) -> Identity | None:
        """Return the identity that the file is to replace; None if nothing was there."""
        return None

    def rows_by_directory(self) -> list[list[int]]:
        """Return the live rows, grouped by directory."""
        live = self.live
        return [live] if live else []

    def fileno(self, row: int) -> int:
        """Return the open descriptor of a row."""
        return self._fds[row]

    def temporary(self, row: int) -> bytes:
        """Return the temporary name of a row."""
        return self._temporaries[row * TEMPORARY_BYTES : (row + 1) * TEMPORARY_BYTES - 1]

    def rename(self, passed_over: Set[int] = frozenset()) -> list[int]:
        """Rename each file but `passed_over` to its name; return the rows that still have their temporary
        name.

        A file is renamed only if its name is free, or holds the entry it is to replace.
        """
        if _extension is None:
            raise RuntimeError("nothing can have been staged")
        columns = self.rename_columns(passed_over)
        packed, seen = _extension.rename_small(
            columns.directories,
            columns.temporaries,
            columns.names,
            columns.fds,
            columns.expected,
            self.check.fields.bits,
            self.depth.now,
        )
        self.depth.saw(RowsSeen(*seen))
        return self.note_renamed(array("i", packed), passed_over)

    def rename_columns(self, passed_over: Set[int]) -> RenameColumns:
        """Return the columns that the C function takes, to rename each file but `passed_over`."""
        fds = self._fds
        if passed_over:
            fds = array("i", [FAILED if row in passed_over else fd for row, fd in enumerate(fds)])
        directories, expected = self._where()
        return RenameColumns(directories, self._temporaries, self._names, fds, expected)

    def note_renamed(self, errors: array[int], passed_over: Set[int]) -> list[int]:
        """Take in the error of each row, 0 for none, and return the rows that have one."""
        failed = [row for row, error in enumerate(errors) if error] if any(errors) else []
        self._unrenamed = {*failed, *passed_over}
        return failed

    def _where(self) -> tuple[array[int], bytes | None]:
        """Return a directory descriptor per row, and the packed identities that are to be replaced."""
        return array("i", [self.directory.fd]) * len(self), None

    def mark_renamed(self, row: int) -> None:
        """Record that the file of a row was renamed by other means."""
        self._unrenamed.discard(row)

    def close(self, row: int) -> None:
        """Close the file of a row, which keeps its temporary name."""
        fd, self._fds[row] = self._fds[row], FAILED
        if fd >= 0:
            with suppress(OSError):
                os.close(fd)

    def drop(self, row: int) -> None:
        """Remove and close the file of a row."""
        fd, self._fds[row] = self._fds[row], FAILED
        self._unrenamed.discard(row)
        # It is gone already, or a later sweep removes it: the lock ends with the descriptor.
        with suppress(OSError):
            os.unlink(self.temporary(row), dir_fd=self.directory_of(row).fd)
        if fd >= 0:
            with suppress(OSError):
                os.close(fd)

    def discard(self) -> None:
        """Close all files, and remove those that were not placed. Never raises; may be called again."""
        for row in list(self._unrenamed):
            self.drop(row)
        if _extension is not None:
            fds, self._fds = self._fds, array("i", [FAILED]) * len(self._fds)
            _extension.close_files(fds)


class StagedVersions(StagedFiles):
    """Files of any directories under temporary names, each to replace another file."""

    __slots__ = ("_directories", "_expected", "_versions")

    def __init__(
        self,
        root: Root,
        versions: NewVersions,
        directories: Sequence[Directory],
        names: bytes,
        expected: bytes,
        fds: bytes,
        temporaries: bytes,
    ) -> None:
        """`directories` has one item per file. `expected` holds the packed identities to be replaced."""
        super().__init__(root, b"", directories[0], names, fds, temporaries)
        self._versions = versions
        self._directories = directories
        self._expected = expected

    @property
    def changed(self) -> list[int]:
        """Rows where another entry than expected is. Nothing was written for them."""
        return [row for row, fd in enumerate(self._fds) if fd == NOT_EXPECTED]

    def path_of(self, row: int) -> bytes:
        return self._versions.paths[row]

    def directory_of(self, row: int) -> Directory:
        return self._directories[row]

    def expected(self, row: int) -> Identity | None:
        return self._versions.expected[row]

    def rows_by_directory(self) -> list[list[int]]:
        found: dict[int, list[int]] = {}
        for row in self.live:
            found.setdefault(self._directories[row].fd, []).append(row)
        return list(found.values())

    def _where(self) -> tuple[array[int], bytes | None]:
        return array("i", [directory.fd for directory in self._directories]), self._expected


# Small files read whole, in bulk: those of one directory, or of several together.
#
# A file that meets any difficulty is left to the caller, who repeats it with SourceFile, which handles and
# names every case. So nothing here raises errors for single files, and without the C part no file is read.


class ListedFiles(Record):
    """Files of one directory."""

    directory: bytes
    listing: PackedListing


def read_together(root: Root, files: Sequence[ListedFiles]) -> tuple[bytes, bytes]:
    """Do what `read_small` does for the files of several directories. The results are joined.

    Where an open waits, files of all these directories wait together. Otherwise a call for each directory
    costs less.
    """
    contents, good = [], []
    for number, one in enumerate(files):
        if root.depths.opening.now > 1 and root.given is None:
            content, fine = _read_opened(root, files[number:])
            contents.append(content)
            good.append(fine)
            break
        content, fine = read_small(root, one.directory, one.listing)
        contents.append(content)
        good.append(fine)
    return b"".join(contents), b"".join(good)


def read_small(root: Root, directory: bytes, listing: PackedListing) -> tuple[bytes, bytes]:
    """Read the files of `listing` whole. Return the contents of those that are as listed, joined, and a byte
    per entry: 1 if its file is among them.

    Such a file did not change while it was read.
    """
    if root.given is not None:
        return root.given.contents(directory, listing)
    nothing = b"", bytes(listing.count)
    built = extension()
    if built is None:
        return nothing
    depth = root.depths.opening
    if root.reads.keeps_atimes or depth.now > 1:
        return _read_opened(root, [ListedFiles(directory, listing)])
    try:
        fd = root.directory(directory)
    except FileError:
        return nothing
    some = listing if listing.count <= depth.rows else listing.slice(0, depth.rows)
    content, good, seen = built.read_small(fd.fd, some.names, some.sizes, some.mtimes, some.total_size)
    depth.saw(RowsSeen(*seen))
    if some.count == listing.count:
        return content, good
    more_content, more_good = read_small(root, directory, listing.slice(some.count, listing.count))
    return content + more_content, good + more_good


def _read_opened(root: Root, files: Sequence[ListedFiles]) -> tuple[bytes, bytes]:
    """Do what `read_small` does with several files open: at a depth past 1, or so that they keep their access
    times."""
    from rdc.files.bulk.open_many import OpenedFiles, can_open, most_opened

    good = bytearray(sum([one.listing.count for one in files]))
    if not can_open(root):
        return b"", bytes(good)
    paths = [join(one.directory, name) + b"\0" for one in files for name in strings(one.listing.names)]
    sizes = little_endian_integers("Q", b"".join([one.listing.sizes for one in files]))
    mtimes = little_endian_integers("q", b"".join([one.listing.mtimes for one in files]))
    parts = []
    first = 0
    while first < len(paths):
        with OpenedFiles(root, b"".join(paths[first : first + most_opened(root)])) as opened:
            failed = set(opened.failed)
            rows = [
                row
                for row in range(len(opened))
                if row not in failed
                and (opened.sizes[row], opened.mtimes[row]) == (sizes[first + row], mtimes[first + row])
            ]
            content, read = opened.read(rows)
            parts.append(content)
            for row, is_good in zip(rows, read, strict=True):
                good[first + row] = is_good
            first += len(opened)
    return b"".join(parts), bytes(good)


# New small files of several directories, written aside and renamed in one call of the C code.
#
# Where directories have few files, a call for each has no more in flight than those. Where nothing waits, a
# call for each costs less: the callers use this only at a depth past 1.

COLUMNS = ("names", "sizes", "mtimes", "modes", "uids", "gids")
"""The columns of a listing that the C function takes, in this order."""

FD_BYTES = 4
"""Bytes of a descriptor in a column."""


def stage_together(
    root: Root, files: Sequence[ListedFiles], content: memoryview, *, owner: bool
) -> list[StagedFiles | None]:
    """Do what `stage_small` does for the new files of several directories, in as many runs.

    `content` holds the bytes of all. A run is None if the files of its directory must be written by
    themselves. All are None if one call is not to be made for all, as beyond the write quota of `root`.
    """
    built = extension()
    sizes = [one.listing.total_size for one in files]
    entries = sum([one.listing.count for one in files])
    runs: list[StagedFiles | None] = [None] * len(files)
    if built is None or not root.writes_in_bulk or not root.may_spend(sum(sizes), entries=entries):
        return runs
    directories = _opened(root, files)
    starts = list(accumulate(sizes, initial=0))
    fds, parts = array("i"), []
    for number, directory in directories.items():
        one = files[number]
        if root.writes.undo is not None:
            root.writes.undo.entering(one.directory, directory.fd)
        root.spend(one.directory, sizes[number], entries=one.listing.count)
        fds.extend(array("i", [directory.fd]) * one.listing.count)
        parts.append(content[starts[number] : starts[number + 1]])
    listings = [files[number].listing for number in directories]
    depth = root.depths.writing
    made, temporaries, seen = built.stage_small(
        fds,
        *(b"".join(map(attrgetter(column), listings)) for column in COLUMNS),
        owner,
        content if len(parts) == len(files) else b"".join(parts),
        root.writes.least_hole,
        os.urandom(4 * len(fds)),
        None,
        0,
        depth.now,
    )
    depth.saw(RowsSeen(*seen))
    at = 0
    for number, directory in directories.items():
        one, stop = files[number], at + files[number].listing.count
        own = made[FD_BYTES * at : FD_BYTES * stop]
        names = temporaries[TEMPORARY_BYTES * at : TEMPORARY_BYTES * stop]
        runs[number] = StagedFiles(root, one.directory, directory, one.listing.names, own, names)
        at = stop
    return runs


def _opened(root: Root, files: Sequence[ListedFiles]) -> dict[int, Directory]:
    """Open the directories together. Return, by number, those that new files can be written in in bulk."""

    def opened(one: ListedFiles) -> Directory | None:
        try:
            return root.directory(one.directory)
        except FileError:
            return None

    found = enumerate(calls_at_once(opened, files, root.depths))
    return {
        number: directory
        for number, directory in found
        if directory is not None and not inherits(root, (directory,))
    }


def rename_together(runs: Sequence[StagedFiles], passed_over: Sequence[Set[int]]) -> list[list[int]]:
    """Rename the files of each run but those of `passed_over`, one set a run. Return, for each run, the rows
    that still have their temporary names."""
    built = extension()
    columns = [run.rename_columns(rows) for run, rows in zip(runs, passed_over, strict=True)]
    if built is None or any(each.expected for each in columns):
        return [run.rename(rows) for run, rows in zip(runs, passed_over, strict=True)]
    depth = runs[0].depth
    directories, fds = array("i"), array("i")
    for each in columns:
        directories += each.directories
        fds += each.fds
    packed, seen = built.rename_small(
        directories,
        b"".join([each.temporaries for each in columns]),
        b"".join([each.names for each in columns]),
        fds,
        None,
        0,
        depth.now,
    )
    depth.saw(RowsSeen(*seen))
    errors = array("i", packed)
    failed, at = [], 0
    for run, rows in zip(runs, passed_over, strict=True):
        failed.append(run.note_renamed(errors[at : at + len(run)], rows))
        at += len(run)
    return failed
