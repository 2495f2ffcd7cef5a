"""Opens, looks at and reads many files at once; and files whose content was read completely."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from array import array
from contextlib import suppress
from itertools import accumulate

from rdc.errors import FileError, RdcError
from rdc.files import _files
from rdc.files.base.directory_descriptors import Closing, is_unchanged
from rdc.files.base.paths import changed, failure
from rdc.files.base.syscalls import share_of_descriptors
from rdc.files.depth import Depth, RowsSeen
from rdc.files.root.confined_root import NO_ATIME
from rdc.files.root.source_file import ContentFile
from rdc.lean.records import Record
from rdc.lean.typed import Protocol
from rdc.limits import BUNDLED_FILE_BYTES, OPENED_FILES
from rdc.model.entries import Identity, strings
from rdc.model.preserved import packed_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import ModuleType

    from typing_extensions import Buffer

    from rdc.files.root.root import Root


# OpenedFiles: many small files of one tree, opened, read and given metadata together, in C on Linux.
#
# A file that meets any difficulty is left to the caller, who repeats it with SourceFile and Root, which
# handle and name every case. So nothing here raises errors for single files. Without the C part this way does
# not exist; see `can_open`.

FAILED, METADATA_SET, CHANGED = range(3)
"""Outcomes of `set_metadata`: nothing is known to be done; metadata set; the file is not the one that was
read."""


_extension: ModuleType | None = _files if hasattr(_files, "open_files") else None
"""The C part, which Linux alone has."""


def can_open(root: Root) -> bool:
    """Return whether the C part exists and files of `root` have descriptors."""
    return _extension is not None and root.given is None


def most_opened(root: Root | None = None) -> int:
    """Return how many files may be open at a time: OPENED_FILES, or fewer if the descriptor limit is low.

    With `root`, also fewer while it has to be found out how many of its files to open at once.
    """
    most = share_of_descriptors(OPENED_FILES)
    return most if root is None else min(most, root.depths.opening.rows)


class MetadataColumns(Protocol):
    """The wanted metadata of entries, as columns of a PackedListing or a manifest."""

    @property
    def modes(self) -> Buffer: ...
    @property
    def mtimes(self) -> Buffer: ...
    @property
    def uids(self) -> Buffer: ...
    @property
    def gids(self) -> Buffer: ...


class OpenedFiles(Closing):
    """Regular files below `root`, each open for reading unless opening it failed.

    `paths` are relative, each followed by NUL. They are checked here, and no link is followed. At most
    `most_opened()` files; more could exhaust the descriptors.
    """

    __slots__ = ("_fds", "ctimes", "devices", "inodes", "mtimes", "paths", "root", "sizes")

    def __init__(self, root: Root, paths: bytes) -> None:
        if _extension is None:
            raise RuntimeError("there is no such way here")
        self.root = root
        self.paths = paths = root.beneath(paths)
        depth = root.depths.opening
        fds, devices, inodes, sizes, mtimes, ctimes, seen = _extension.open_files(
            root.fileno(), paths, depth.now
        )
        self._fds = array("i", fds)
        depth.saw(RowsSeen(*seen))
        if root.reads.keeps_atimes:
            _keep_atimes(self._fds)
        self.devices = array("Q", devices)
        self.inodes = array("Q", inodes)
        self.sizes = array("Q", sizes)
        """Bytes when the file was opened. All columns hold 0 for a file that is not open."""
        self.mtimes = array("q", mtimes)
        self.ctimes = array("q", ctimes)

    def __len__(self) -> int:
        return len(self._fds)

    @property
    def failed(self) -> list[int]:
        """Rows that are not open."""
        return [row for row, fd in enumerate(self._fds) if fd < 0] if -1 in self._fds else []

    def identity(self, row: int) -> Identity:
        """Return the identity of an open row when it was opened."""
        return Identity(
            self.devices[row],
            self.inodes[row],
            self.sizes[row],
            self.mtimes[row],
            self.ctimes[row],
        )

    def read(self, rows: Sequence[int]) -> tuple[bytes, bytes]:
        """Read open rows whole. Return the contents of the unchanged files, joined, and a byte per row: 1 if
        its file is among them.

        A file counts as unchanged if its stat equals the one at opening, before and after the read.
        """
        if _extension is None:
            raise RuntimeError("nothing can have been opened")
        columns = (self._fds, self.sizes, self.mtimes, self.ctimes)
        depth = self.root.depths.reading
        content, good, seen = _extension.read_files(*(_chosen(column, rows) for column in columns), depth.now)
        depth.saw(RowsSeen(*seen))
        return content, good

    def set_metadata(
        self, rows: Sequence[int], entries: Sequence[int], wanted: MetadataColumns, *, owner: bool
    ) -> bytes:
        """Set the metadata of open rows to that of `entries` (one per row) in `wanted`; return an outcome per
        row.

        It does what Root.set_metadata does, but on the open files. FAILED is also the outcome for a file with
        several names whose mtime would change.
        """
        if _extension is None:
            raise RuntimeError("nothing can have been opened")
        if self.root.append_only or self.root.writes.undo is not None or not self.root.writes_in_bulk:
            # The caller repeats each file singly: a refusal names it, and an undo notes it.
            return bytes([FAILED]) * len(rows)
        fds, ctimes = _chosen(self._fds, rows), _chosen(self.ctimes, rows)
        depth = self.root.depths.setting
        columns = (wanted.modes, wanted.mtimes, wanted.uids, wanted.gids)
        outcomes: bytes
        outcomes, seen = _extension.set_metadata_of_files(
            fds, ctimes, array("Q", entries), *columns, owner, depth.now
        )
        depth.saw(RowsSeen(*seen))
        return outcomes

    def close(self) -> None:
        """Close all files. Never raises; may be called again."""
        if _extension is not None:
            fds, self._fds = self._fds, array("i", [-1]) * len(self._fds)
            _extension.close_files(fds)


def _keep_atimes(fds: array[int]) -> None:
    """Have reads of these open files leave their access times, where this process may ask for that."""
    for fd in fds:
        if fd >= 0:
            with suppress(OSError):
                fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | NO_ATIME)


def _chosen(column: array[int], rows: Sequence[int]) -> array[int]:
    """Return increasing rows of a column. Consecutive rows are sliced, without work per row."""
    if rows and rows[-1] - rows[0] == len(rows) - 1:
        return column[rows[0] : rows[-1] + 1]
    return array(column.typecode, [column[row] for row in rows])


REPLACED = -1
"""Outcome: another entry than the regular file that was listed."""
RESIZED = -2
"""Outcome: the file had another size when it was opened."""
TOUCHED = -3
"""Outcome: the file changed while it was read."""

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

_PASS = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_FOUND = {
    REPLACED: ("the file that was listed", "another one in its place"),
    RESIZED: ("the size that was listed", "another one"),
    TOUCHED: ("the times it had when it was opened", "others"),
}


class Contents(Record):
    data: bytes
    """content_bytes of each file, joined. Undefined for a file whose outcome is not 0."""
    outcomes: array[int]
    """Typecode 'i', one per file: 0 if it was read, an errno, or REPLACED, RESIZED, TOUCHED."""
    ctimes: array[int]
    """Typecode 'q', nanoseconds, of the files that were read. An equal earlier ctime proves equal content."""


def content_bytes(size: int, head: int, tail: int) -> int:
    """Return the bytes read of a file of `size`: all, or `head` from its start and `tail` from its end."""
    return min(size, head + tail)


def read_contents(
    fd: int, paths: bytes, wanted: array[int], head: int, tail: int, depth: Depth | None = None
) -> Contents:
    """Read files below the directory open at `fd`, which may be an O_PATH descriptor.

    `paths` are relative, each followed by NUL. `wanted` has typecode 'Q' and holds device, inode and size of
    each file as listed. `depth`: files in work at a time, one without it. No link is followed and no fifo
    waited for. Raises ValueError if the arguments do not fit each other.
    """
    if _reader is None:
        return _read_contents(fd, paths, wanted, head, tail)
    if _SWAPPED:
        wanted = wanted[:]
        wanted.byteswap()
    now, most = (1, 1) if depth is None else (depth.now, depth.most)
    data, outcomes, ctimes, seen = _reader.read_contents(fd, paths, wanted, head, tail, now, most)
    if depth is not None:
        depth.saw(RowsSeen(*seen))
    return Contents(data, array("i", outcomes), array("q", ctimes))


def content_error(outcome: int, path: bytes, shown: bytes) -> RdcError:
    """Return the error for an outcome other than 0. `shown` is the path in the message."""
    if outcome > 0:
        # No link is read here, so EINVAL tells of no entry that took the place of one.
        error, gone = OSError(outcome, os.strerror(outcome)), outcome != errno.EINVAL
        return failure(error, path, shown, "read it", reading=gone)
    return changed(path, shown, *_FOUND[outcome])


def _read_contents(fd: int, paths: bytes, wanted: array[int], head: int, tail: int) -> Contents:
    """Return the reference that defines the C function."""
    rows = strings(paths)
    if len(wanted) != 3 * len(rows) or (paths and not paths.endswith(b"\0")):
        raise ValueError("read_contents: as many paths, each followed by NUL, as rows of three numbers")
    parts, outcomes, ctimes = [], array("i"), array("q")
    for row, path in enumerate(rows):
        device, inode, size = wanted[3 * row : 3 * row + 3]
        try:
            opened = _open(fd, path)
        except OSError as error:
            part, outcome, ctime = b"", error.errno or 0, 0
        else:
            try:
                part, outcome, ctime = _read_open(opened, device, inode, size, head, tail)
            except OSError as error:
                part, outcome, ctime = b"", error.errno or 0, 0
            finally:
                os.close(opened)
        parts.append(part.ljust(content_bytes(size, head, tail), b"\0"))
        outcomes.append(outcome)
        ctimes.append(ctime)
    return Contents(b"".join(parts), outcomes, ctimes)


def _open(fd: int, path: bytes) -> int:
    *directories, name = path.split(b"/")
    here = os.dup(fd)
    try:
        for directory in directories:
            above, here = here, os.open(directory, _PASS, dir_fd=here)
            os.close(above)
        return os.open(name, _READ, dir_fd=here)
    finally:
        os.close(here)


def _read_open(fd: int, device: int, inode: int, size: int, head: int, tail: int) -> tuple[bytes, int, int]:
    """Return data, outcome and ctime of an open file. Raises OSError."""
    before = os.fstat(fd)
    if not stat.S_ISREG(before.st_mode) or (before.st_dev, before.st_ino) != (device, inode):
        return b"", REPLACED, 0
    if before.st_size != size:
        return b"", RESIZED, 0
    whole = size <= head + tail
    data = os.pread(fd, size if whole else head, 0)
    if not whole:
        data += os.pread(fd, tail, size - tail)
    after = os.fstat(fd)
    same = (before.st_mtime_ns, before.st_ctime_ns, size) == (
        after.st_mtime_ns,
        after.st_ctime_ns,
        after.st_size,
    )
    read = len(data) == content_bytes(size, head, tail)
    return data, 0 if same and read else TOUCHED, packed_time(after.st_ctime_ns)


_reader: ModuleType | None = _files if hasattr(_files, "read_contents") else None
"""The C part, which Linux alone has."""
_SWAPPED = array("H", b"\1\0")[0] != 1


# MemoryFile: a SourceFile whose content was read completely and is kept in memory.


class MemoryFile(ContentFile):
    """The content of a file at one moment, without a descriptor. `check_unchanged` looks at the file at its
    path."""

    __slots__ = ("_content", "_root")

    def __init__(self, root: Root, path: bytes, identity: Identity, content: bytes) -> None:
        self._root = root
        self.path = path
        self._content = content
        self._fd = -1
        self._outlasted = True
        self.on_span = None
        self.identity = identity
        self.size = len(content)
        self.taken = None  # all of it is in memory

    def pread(self, offset: int, length: int) -> bytes:
        data = self._content[offset : offset + length]
        if len(data) != length:
            raise self._too_short(offset + length)
        return data

    def peek(self, offset: int, length: int) -> memoryview:
        data = memoryview(self._content)[offset : offset + length]
        if len(data) != length:
            raise self._too_short(offset + length)
        return data

    def _too_short(self, expected: int) -> FileError:
        """Return the error for a file of fewer bytes than `expected`."""
        return changed(self.path, self._root.shown(self.path), f"{expected} bytes", f"{self.size}")

    def read_ranges(self, rows: array[int]) -> bytes:
        return b"".join(map(self.peek, rows[0::2], rows[1::2]))

    def check_unchanged(self) -> None:
        """Raise FileChangedError unless the file at its path is still the one that was read."""
        if not is_unchanged(self.identity, self._root.identity(self.path)):
            raise changed(
                self.path, self._root.shown(self.path), "the file that was read", "another or a changed one"
            )


# Snapshots of many small files: their identities at one moment, and their contents while needed.


class Snapshot:
    """Regular files below `root`, each read whole at one moment."""

    __slots__ = ("_content", "identities", "paths", "root")

    def __init__(
        self, root: Root, paths: Sequence[bytes], identities: Sequence[Identity], content: bytes | None
    ) -> None:
        """`content` holds all files, joined. None means that it is read when it is first needed."""
        self.root = root
        self.paths = paths
        self.identities = identities
        """Identity of each file when it was read."""
        self._content = content

    @property
    def cached_bytes(self) -> int:
        """Bytes of content in memory."""
        return len(self._content or b"")

    def drop(self) -> None:
        """Free the content. It is read again when it is next needed."""
        self._content = None

    def chosen(self, rows: Sequence[int]) -> Snapshot:
        """Return a snapshot of the files in `rows`."""
        paths, identities = [self.paths[row] for row in rows], [self.identities[row] for row in rows]
        content = None
        if self._content is not None:
            content = Look(self.identities, self._content).chosen(rows).content
        return Snapshot(self.root, paths, identities, content)

    def content(self) -> bytes | None:
        """Return all contents, joined. Return None if they had to be read again and a file has changed."""
        if self._content is not None:
            return self._content
        again = look(self.root, self.paths)
        return again.content if list(again.identities) == list(self.identities) else None


class Look(Record):
    """The result of reading files once."""

    identities: Sequence[Identity | None]
    """One per file; None for a file that could not be read whole."""
    content: bytes
    """Contents of the files that were read, joined."""

    def chosen(self, rows: Sequence[int]) -> Look:
        """Return the part for `rows`, all of which were read."""
        sizes = [0 if found is None else found.size for found in self.identities]
        ends = list(accumulate(sizes))
        contents = [self.content[ends[row] - sizes[row] : ends[row]] for row in rows]
        return Look([self.identities[row] for row in rows], b"".join(contents))


def look(root: Root, paths: Sequence[bytes], most: int = BUNDLED_FILE_BYTES) -> Look:
    """Read the files at `paths` that are regular and have at most `most` bytes each."""
    if not can_open(root):
        return _look_singly(root, paths, most)
    identities: list[Identity | None] = []
    contents = []
    for opened in _opened(root, paths):
        failed = set(opened.failed)
        rows = [row for row in range(len(opened)) if row not in failed and opened.sizes[row] <= most]
        content, good = opened.read(rows) if rows else (b"", b"")
        some: list[Identity | None] = [None] * len(opened)
        for row, is_good in zip(rows, good, strict=True):
            if is_good:
                some[row] = opened.identity(row)
        identities += some
        contents.append(content)
    return Look(identities, b"".join(contents))


def identities_of(root: Root, paths: Sequence[bytes]) -> list[Identity | None]:
    """Return the present identity at each path, or None if no file there can be opened."""
    found: list[Identity | None] = []
    if can_open(root):
        for opened in _opened(root, paths):
            failed = set(opened.failed)
            found += [None if row in failed else opened.identity(row) for row in range(len(opened))]
        return found
    for path in paths:
        try:
            found.append(root.identity(path))
        except FileError:
            found.append(None)
    return found


def _opened(root: Root, paths: Sequence[bytes]) -> Iterator[OpenedFiles]:
    """Yield the files at `paths` in groups that may be open together. A group is closed when the next is
    opened."""
    at = 0
    while at < len(paths):
        some = paths[at : at + most_opened(root)]
        at += len(some)
        with OpenedFiles(root, b"".join([path + b"\0" for path in some])) as opened:
            yield opened


def _look_singly(root: Root, paths: Sequence[bytes], most: int) -> Look:
    identities: list[Identity | None] = []
    contents = []
    for path in paths:
        try:
            with root.open_read(path) as source:
                if source.size > most:
                    identities.append(None)
                    continue
                content = source.pread(0, source.size)
                source.check_unchanged()
        except FileError:
            identities.append(None)
        else:
            identities.append(source.identity)
            contents.append(content)
    return Look(identities, b"".join(contents))


class SnapshotContent(MemoryFile):
    """The contents of many files as one file, for reading."""

    __slots__ = ()

    def __init__(self, root: Root, content: bytes) -> None:
        super().__init__(root, b"", Identity(0, 0, len(content), 0, 0), content)

    def check_unchanged(self) -> None:
        """Do nothing, and never raise: later changes to the files do not affect what was read."""
