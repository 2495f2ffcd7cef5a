"""Files under read leases: LeasedFile for one, LeasedFiles for many, compared and taken from their names
together, in C on Linux.

A file that meets any difficulty is left to LeasedFile and to the classes that change one name
(rdc.files.names.name_change). They handle and name every case, and define what the C part does. Without the C
part they do everything.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
from array import array
from fcntl import ioctl

from rdc.errors import FileError, RdcError, printable
from rdc.files import _files
from rdc.files.base.directory_descriptors import Closing
from rdc.files.base.metadata import identity_of
from rdc.files.base.paths import changed, has_proc
from rdc.files.base.syscalls import is_intact, take_lease
from rdc.files.facts.file_facts import PIECE_BYTES, ContentDigest, spans_with_data
from rdc.files.facts.xattrs import read_attributes
from rdc.files.root.source_file import SPAN_BYTES, SourceFile
from rdc.lean.enums import IntEnum
from rdc.lean.records import Record
from rdc.lean.typed import NamedTuple
from rdc.model.entries import Identity, Metadata
from rdc.model.preserved import Attributes, packed_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

    from rdc.files.base.directory_descriptors import Directory
    from rdc.files.root.root import Root


SECTOR_BYTES = 512
"""The unit of st_blocks, whatever the file system's block size is."""

_NO_LEASE = (
    "that the kernel cannot say whether it is open for writing",
    "its names are not safe to change here; rdc dedupe without --hardlink shares blocks where it can",
)
_CANNOT_HOLD = {
    errno.EAGAIN: ("that it is open for writing", "run again once nothing writes to it"),
    errno.EACCES: ("a file of somebody else", "run as its owner or as root"),
    errno.EINVAL: _NO_LEASE,
    errno.ENOLCK: _NO_LEASE,
    errno.EOPNOTSUPP: _NO_LEASE,
    errno.ENOSYS: _NO_LEASE,
}


class LeaseFacts(NamedTuple):
    """The result of fstat on a file while its lease is held. The times are packed (rdc.model.preserved), but
    for `atime_ns`, in nanoseconds."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    atime_ns: int
    mode: int
    """st_mode, with the kind of the file."""
    uid: int
    gid: int
    links: int
    allocated: int
    """Bytes on disk, including those shared with other files."""

    @property
    def identity(self) -> Identity:
        return Identity(self.device, self.inode, self.size, self.mtime_ns, self.ctime_ns)

    @property
    def metadata(self) -> Metadata:
        return Metadata(stat.S_IMODE(self.mode), self.mtime_ns, self.uid, self.gid)


def _facts_of(found: os.stat_result) -> LeaseFacts:
    return LeaseFacts(
        *(found.st_dev, found.st_ino, found.st_size),
        *(packed_time(found.st_mtime_ns), packed_time(found.st_ctime_ns), found.st_atime_ns),
        *(found.st_mode, found.st_uid, found.st_gid, found.st_nlink, found.st_blocks * SECTOR_BYTES),
    )


class LeasedFile(Closing):
    """A regular file that nobody can write to unnoticed. A context manager.

    The lease (rdc.files.base.syscalls) guarantees that no writer exists when it is taken; afterwards `check`
    reports a waiting one. Until then, content and size cannot change, but mode, owner, times and names can.
    All facts are read after the lease, since a process may write between the opening and the lease.
    """

    def __init__(self, root: Root, path: bytes) -> None:
        """Open and lease the file at `path`. Raises FileChangedError if no regular file is there, and
        FileError if it cannot be leased."""
        source = root.open_read(path)
        try:
            take_lease(source.fileno())
            # Read after the lease, because a writer may have changed size and times since the opening.
            # From here on nobody can change them unnoticed.
            facts, attributes = _facts_of(os.fstat(source.fileno())), read_attributes(source.fileno())
        except OSError as error:
            source.close()
            if error.errno not in _CANNOT_HOLD:
                raise root.failure(error, path, "hold it still", reading=True) from error
            found, advice = _CANNOT_HOLD[error.errno]
            raise root.refused(
                path, "hold it still", expected="a file at rest", found=found, advice=advice
            ) from error
        except BaseException:
            source.close()
            raise
        self._take(root, path, source, facts, attributes)

    @classmethod
    def adopted(
        cls, root: Root, path: bytes, fd: int, facts: LeaseFacts, attributes: Attributes
    ) -> LeasedFile:
        """Return the file open at `fd`, which was leased before these facts were read. Another object closes
        the descriptor. Raises OSError."""
        leased = cls.__new__(cls)
        source = SourceFile(fd, os.fstat(fd), path, root.shown(path))
        leased._take(root, path, source, facts, attributes)
        return leased

    def _take(
        self, root: Root, path: bytes, source: SourceFile, facts: LeaseFacts, attributes: Attributes
    ) -> None:
        self.root = root
        self.path = path
        self._source = source
        self.facts = facts
        self.identity = facts.identity
        """A hard link changes all its times but the mtime."""
        self.metadata = facts.metadata
        self.attributes = attributes

    @property
    def links(self) -> int:
        return self.facts.links

    @property
    def taken(self) -> int | None:
        """Bytes on disk, if they are fewer than its size: it has holes, or is compressed. Else None."""
        return self.allocated if self.allocated < self.identity.size else None

    @property
    def allocated(self) -> int:
        """Bytes on disk, including those shared with other files."""
        return self.facts.allocated

    @property
    def atime_ns(self) -> int:
        return self.facts.atime_ns

    def fileno(self) -> int:
        return self._source.fileno()

    def pread(self, offset: int, length: int) -> bytes:
        return self._source.pread(offset, length)

    def is_intact(self) -> bool:
        """Return whether nobody has asked to write since the lease was taken. Raises OSError."""
        return is_intact(self._source.fileno())

    def check(self) -> None:
        """Raise FileChangedError if a writer is waiting."""
        if not self.is_intact():
            raise changed(self.path, self.root.shown(self.path), "a file at rest", "that it is written to")

    def check_exactly(self) -> None:
        """Raise FileChangedError unless identity and ctime are as they were leased. Any change of a name
        counts as well."""
        if identity_of(os.fstat(self._source.fileno())) != self.identity:
            raise changed(
                self.path, self.root.shown(self.path), "the file that was compared", "another ctime"
            )

    def is_at(self, name: bytes, directory: int) -> bool:
        """Return whether a name in an open directory is one of this file's. Raises OSError."""
        try:
            found = os.stat(name, dir_fd=directory, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return (found.st_dev, found.st_ino) == (self.facts.device, self.facts.inode)

    def describe_change(self) -> str | None:
        """Return what has changed since the lease or is about to change, or None. Raises OSError."""
        return "that it is written to" if not self.is_intact() else self.describe_rewrite()

    def describe_rewrite(self) -> str | None:
        """Return what has already changed, or None. Names, and the ctime they change, do not count. Raises
        OSError."""
        now, then = _facts_of(os.fstat(self._source.fileno())), self.facts
        compared = (now.size, now.mtime_ns, now.mode, now.uid, now.gid)
        if compared != (then.size, then.mtime_ns, then.mode, then.uid, then.gid):
            return "another size, time, mode or owner"
        if read_attributes(self._source.fileno()) != self.attributes:
            return "other extended attributes"
        return None

    def close(self) -> None:
        """Release the lease, so that waiting writers continue."""
        self._source.close()


def difference(one: LeasedFile, other: LeasedFile) -> str | None:
    """Return what a link from one to the other would lose besides content, or None."""
    if one.metadata != other.metadata:
        for what in ("mode", "uid", "gid", "mtime_ns"):
            if getattr(one.metadata, what) != getattr(other.metadata, what):
                return {"uid": "owner", "gid": "group", "mtime_ns": "mtime"}.get(what, what)
    if one.attributes != other.attributes:
        names = sorted({name for name, _ in set(one.attributes) ^ set(other.attributes)})
        return f"extended attribute {printable(names[0])}"
    return None


def same_bytes(one: LeasedFile, other: LeasedFile) -> bool:
    """Return whether both contents are equal. Raises FileChangedError as soon as a writer waits for
    either."""
    return _same_spans(one, other, None)


def equal_digest(one: LeasedFile, other: LeasedFile) -> bytes | None:
    """Return the ContentDigest of both contents, None if they differ. Raises as `same_bytes`."""
    digest = ContentDigest(one.identity.size)
    return digest.digest() if _same_spans(one, other, digest) else None


def _same_spans(one: LeasedFile, other: LeasedFile, digest: ContentDigest | None) -> bool:
    size = one.identity.size
    if size != other.identity.size:
        return False
    for offset, length in spans_with_data((one.fileno(), other.fileno()), size, SPAN_BYTES):
        span = one.pread(offset, length)
        if span != other.pread(offset, length):
            return False
        if digest is not None:
            digest.add(offset, span)
        one.check()
        other.check()
    return True


# Many files

TOGETHER_BYTES = 16 * PIECE_BYTES
"""Size of the largest file that is compared from memory. For larger files, the time is that of reading
them."""

_ROW = struct.Struct("=QQ14q")
_SECOND = 1_000_000_000


class Outcome(IntEnum):
    """The effect of a step on one name."""

    DONE = 0
    """The step was taken, and both files are as they were compared."""
    UNTOUCHED = 1
    """Nothing was changed."""
    UNLIKE = 2
    """The name was taken from its file, but one of the two is not as it was compared."""


class Place(Record):
    """The place of an opened file: its path, and the directory that was opened for it."""

    root: Root
    path: bytes
    directory: Directory
    name: bytes


class Step(Record):
    """One name to be taken from its file."""

    directory: Directory
    name: bytes
    displaced: bytes
    """The name beside it that its file gets."""
    file: int
    """Number of the file among the LeasedFiles."""
    original: int
    """Number of the file that stays."""
    original_directory: Directory
    original_name: bytes
    first: bool
    """True if no other name of the file was changed, so that even its ctime must be as it was."""


_extension: ModuleType | None = _files if hasattr(_files, "lease_files") else None
"""The C part, which Linux alone has."""


class LeasedFiles(Closing):
    """The files at these places, each leased unless that failed. A context manager that closes them."""

    def __init__(self, places: Sequence[Place]) -> None:
        self._places = places
        self._fds = array("i", [-1]) * len(places)
        self._packed, self._attributes = b"", b""
        self._rows: list[tuple[int, ...]] = []
        self._facts: list[LeaseFacts] = []
        self._single: dict[int, LeasedFile | FileError] = {}
        """Files that were leased by themselves, and what went wrong with others."""
        if _extension is not None:
            fds, _, self._packed, self._attributes = _extension.lease_files(
                array("i", [place.directory.fd for place in places]),
                b"".join([place.name + b"\0" for place in places]),
            )
            self._fds = array("i", fds)
            self._rows = list(_ROW.iter_unpack(self._packed))
            self._facts = [_row_facts(*row) for row in self._rows]
        # Whatever failed is tried again alone, which names it.
        for number, fd in enumerate(self._fds):
            if fd < 0:
                try:
                    self._single[number] = LeasedFile(places[number].root, places[number].path)
                except FileError as error:
                    self._single[number] = error

    def facts(self, number: int) -> LeaseFacts:
        """Return the facts of a file, read after its lease. Raises FileError if it could not be leased."""
        if number in self._single:
            return self.file(number).facts
        return self._facts[number]

    def fileno(self, number: int) -> int:
        """Return the descriptor of a file. Raises FileError as `facts` does."""
        return self.file(number).fileno() if number in self._single else self._fds[number]

    def attributes(self, number: int) -> Attributes:
        """Return the extended attributes of a file. Raises FileError as `facts` does."""
        if number in self._single:
            return self.file(number).attributes
        at, end = self._rows[number - 1][15] if number else 0, self._rows[number][15]
        if at == end:
            return ()
        found = []
        while at < end:
            name = self._attributes[at : self._attributes.index(b"\0", at)]
            at += len(name) + 1
            (length,) = struct.unpack_from("=i", self._attributes, at)
            found.append((name, self._attributes[at + 4 : at + 4 + length]))
            at += 4 + length
        return tuple(sorted(found))

    def is_plain(self, number: int) -> bool:
        """Return whether it is known that all blocks of the file are its own, and take their length on
        disk."""
        return number not in self._single and bool(self._rows[number][14])

    def file(self, number: int) -> LeasedFile:
        """Return one file as an object, which this object closes. Raises FileError if it could not be
        leased."""
        found = self._single.get(number)
        if isinstance(found, FileError):
            raise found
        if found is not None:
            return found
        place = self._places[number]
        with place.root.failing(place.path, "look at it", reading=True):
            return LeasedFile.adopted(
                place.root, place.path, self._fds[number], self.facts(number), self.attributes(number)
            )

    def compare(
        self, original: int, others: Sequence[int], *, digest: bool
    ) -> tuple[bytes, list[bool | FileError]]:
        """Compare files with one of them. Return its ContentDigest, b"" unless `digest`, and for each other
        whether it is equal, or why it could not be compared. Raises FileError for the original."""
        name, equal = b"", bytes(len(others))
        size = self.facts(original).size
        if _extension is not None and original not in self._single and size <= TOGETHER_BYTES:
            content = self._content(original, size)
            if digest:
                hasher = ContentDigest(size)
                hasher.add(0, content)
                name = hasher.digest()
            same = [number not in self._single and self.facts(number).size == size for number in others]
            fds = [self._fds[number] if fits else -1 for number, fits in zip(others, same, strict=True)]
            equal = _extension.compare_files(array("i", fds), content)
            if not is_intact(self._fds[original]):
                self.file(original).check()
        found: list[bool | FileError] = [bool(one) for one in equal]
        for at, number in enumerate(others):
            if found[at]:
                continue
            try:
                # A file that differs is compared once more, alone: a change meanwhile is reported.
                name, found[at] = self._compare_alone(original, number, name, digest=digest)
            except FileError as error:
                found[at] = error
        return name, found

    def _content(self, number: int, size: int) -> bytes:
        """Return the content of a file that was leased with the others. Raises FileError."""
        try:
            content = os.pread(self._fds[number], size, 0)
        except OSError:
            content = b""
        # The object repeats what was cut short, and names what went wrong.
        return content if len(content) == size else self.file(number).pread(0, size)

    def _compare_alone(self, original: int, number: int, name: bytes, *, digest: bool) -> tuple[bytes, bool]:
        one, other = self.file(original), self.file(number)
        if name or not digest:
            return name, same_bytes(one, other)
        found = equal_digest(one, other)
        return found or b"", found is not None

    def displace(self, steps: Sequence[Step], *, exchange: bool) -> list[Outcome]:
        """Take each name from its file: rename that to `displaced`, or with `exchange` make the name a link
        to the original.

        The caller repeats what is UNTOUCHED alone. Below an append-only root and without /proc everything is.
        """
        if _extension is None or not has_proc():
            return [Outcome.UNTOUCHED] * len(steps)
        return self._take(_extension.displace_files, steps, exchange=exchange)

    def remove(self, steps: Sequence[Step], *, exchange: bool) -> list[Outcome]:
        """Check both files of each step once more, and remove what it displaced. The caller repeats what is
        UNTOUCHED alone."""
        if _extension is None:
            return [Outcome.UNTOUCHED] * len(steps)
        return self._take(_extension.remove_displaced, steps, exchange=exchange)

    def _take(self, call: Callable[..., bytes], steps: Sequence[Step], *, exchange: bool) -> list[Outcome]:
        outcomes = [Outcome.UNTOUCHED] * len(steps)
        together = [
            number
            for number, step in enumerate(steps)
            if step.file not in self._single
            and step.original not in self._single
            and not self._places[step.file].root.append_only
        ]
        if not together:
            return outcomes
        chosen = [steps[number] for number in together]
        found = call(
            exchange,
            array("i", [step.directory.fd for step in chosen]),
            b"".join([step.name + b"\0" for step in chosen]),
            b"".join([step.displaced + b"\0" for step in chosen]),
            array("I", [step.file for step in chosen]),
            array("I", [step.original for step in chosen]),
            array("i", [step.original_directory.fd for step in chosen]),
            b"".join([step.original_name + b"\0" for step in chosen]),
            self._fds,
            self._packed,
            self._attributes,
            bytes([step.first for step in chosen]),
        )
        for number, outcome in zip(together, found, strict=True):
            outcomes[number] = _OUTCOMES[outcome]
        return outcomes

    def close(self) -> None:
        """Release all leases, so that waiting writers continue."""
        if _extension is not None:
            fds, self._fds = self._fds, array("i", [-1]) * len(self._fds)
            _extension.close_files(fds)
        for one in self._single.values():
            if isinstance(one, LeasedFile):
                one.close()


_OUTCOMES = tuple(Outcome)


def _row_facts(
    device: int,
    inode: int,
    size: int,
    mtime: int,
    mtime_part: int,
    ctime: int,
    ctime_part: int,
    atime: int,
    atime_part: int,
    mode: int,
    uid: int,
    gid: int,
    links: int,
    allocated: int,
    _plain: int,
    _attributes: int,
) -> LeaseFacts:
    """Return the facts of a row of the C part: each time is a number of seconds, and nanoseconds."""
    return LeaseFacts(
        *(device, inode, size, mtime * _SECOND + mtime_part, ctime * _SECOND + ctime_part),
        *(atime * _SECOND + atime_part, mode, uid, gid, links, allocated),
    )


# FIDEDUPERANGE: makes two files share the blocks of a range after the kernel has found their bytes equal.
#
# The kernel compares and shares under the locks of both files, so no writer can interfere. Content, metadata
# and times stay. ioctl_fideduperange(2) is the source of the structures and rules.

SLICE_BYTES = 16 << 20
"""Bytes per call. btrfs handles this many at a time. Writers of both files and signals wait for one call,
about 10 ms, or 0.2 s from a disk. It is a multiple of every block size."""

_FIDEDUPERANGE = 0xC0189436
_RANGE = struct.Struct("=QQHHI")
_INFO = struct.Struct("=qQQiI")
_DIFFERS = 1


def dedupe_range(source: int, source_offset: int, length: int, destination: int, offset: int) -> int | None:
    """Share `length` bytes (at most SLICE_BYTES) of two open files. Return the bytes shared, or None if they
    differ.

    Offsets are multiples of the file system's block size. So is `length`, unless both ranges end with their
    files. The destination may be open for reading only if the caller owns it. Raises OSError, for example
    EOPNOTSUPP, EXDEV, EPERM, EROFS or EINVAL; then nothing was changed.
    """
    request = bytearray(
        _RANGE.pack(source_offset, length, 1, 0, 0) + _INFO.pack(destination, offset, 0, 0, 0)
    )
    ioctl(source, _FIDEDUPERANGE, request, True)
    _, _, done, status, _ = _INFO.unpack_from(request, _RANGE.size)
    if status < 0:
        raise OSError(-status, os.strerror(-status))
    if status == _DIFFERS:
        return None
    if done > length or (length and not done):
        # No known kernel answers so. A caller that accepted it would loop or count wrongly.
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    return int(done)


def can_share(source: int, destination: int) -> None:
    """Check rights and file systems without changing anything, by sharing a range of no bytes.

    Raises OSError as dedupe_range does. An immutable file passes, because the kernel checks that only with
    bytes.
    """
    dedupe_range(source, 0, 0, destination, 0)


NO_SHARING = frozenset((errno.EOPNOTSUPP, errno.ENOTTY, errno.ENOSYS))
"""Errors that concern a whole file system rather than one pair of files, if `can_share` raises them."""

PAIR_ERRORS = NO_SHARING | {errno.EINVAL, errno.EXDEV}
"""Errors of a pair that do not fit each other. Each may fit another file."""

TARGET_ERRORS = frozenset((errno.EPERM, errno.EACCES, errno.EROFS, errno.ETXTBSY))
"""Errors of a file that cannot change. Other files may share with it."""

_NO_SUPPORT = (
    "a file system that cannot share blocks",
    "btrfs and XFS (made with reflink=1) can; --hardlink works elsewhere",
)
_FOUND_AND_ADVICE = {
    **dict.fromkeys(NO_SHARING, _NO_SUPPORT),
    errno.EXDEV: ("files on different file systems", "blocks can be shared within one only"),
    errno.EPERM: (
        "a file of somebody else, or an immutable one",
        "run as its owner or as root; lsattr shows an 'i' where chattr -i helps",
    ),
    errno.EACCES: ("a file of somebody else", "run as its owner or as root"),
    errno.EROFS: ("a read-only file system", "mount it read-write and run again"),
    errno.ETXTBSY: ("a swap file or a program that is being run", "run again once it is not in use"),
    errno.EINVAL: (
        "that the kernel does not take this pair",
        "on btrfs both must have data checksums or neither (lsattr shows a 'C' where not)",
    ),
}


def sharing_failure(root: Root, path: bytes, error: OSError) -> RdcError:
    """Return the error for a failed dedupe_range. It concerns this file, unless the disk is full."""
    if error.errno not in _FOUND_AND_ADVICE:
        return root.failure(error, path, "share its blocks")
    found, advice = _FOUND_AND_ADVICE[error.errno]
    name = printable(root.shown(path))
    code = errno.errorcode.get(error.errno, error.errno)
    return FileError(path, f"{name}: cannot share its blocks: found {found} ({code}); {advice}")
