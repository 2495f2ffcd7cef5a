"""LeasedFile: an open file under a read lease, with the metadata and attributes that a hard link would
change."""

from __future__ import annotations

import errno
import os
import stat
from types import TracebackType

from rdc.errors import printable
from rdc.files.base.entry_check import identity_of
from rdc.files.base.lease import is_intact, take_lease
from rdc.files.base.os_errors import changed
from rdc.files.facts.content_digest import ContentDigest, spans_with_data
from rdc.files.facts.open_file_xattrs import read_attributes
from rdc.files.root.source_file import SPAN_BYTES, SourceFile
from rdc.model.entries import Identity, Metadata
from rdc.model.times import packed_time
from rdc.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.root.root import Root
    from rdc.model.attributes import Attributes

__all__ = ["LeaseFacts", "LeasedFile", "difference", "equal_digest", "same_bytes"]

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
    """What fstat says of a file while its lease is held. The times are packed (rdc.model.times), but
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


def _facts(found: os.stat_result) -> LeaseFacts:
    return LeaseFacts(
        *(found.st_dev, found.st_ino, found.st_size),
        *(packed_time(found.st_mtime_ns), packed_time(found.st_ctime_ns), found.st_atime_ns),
        *(found.st_mode, found.st_uid, found.st_gid, found.st_nlink, found.st_blocks * SECTOR_BYTES),
    )


class LeasedFile:
    """A regular file that nobody can write to unnoticed. A context manager.

    The lease (rdc.files.base.lease) guarantees that no writer exists when it is taken; afterwards `check`
    reports a waiting one. Until then, content and size cannot change, but mode, owner, times and names can.
    All facts are read after the lease, since a process may write between the opening and the lease.
    """

    def __init__(self, root: Root, path: bytes) -> None:
        """Raises FileChangedError if no regular file is at `path`, and FileError if it cannot be leased."""
        source = root.open_read(path)
        try:
            take_lease(source.fileno())
            # Read after the lease, because a writer may have changed size and times since the opening.
            # From here on nobody can change them unnoticed.
            facts, attributes = _facts(os.fstat(source.fileno())), read_attributes(source.fileno())
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
        now, then = _facts(os.fstat(self._source.fileno())), self.facts
        compared = (now.size, now.mtime_ns, now.mode, now.uid, now.gid)
        if compared != (then.size, then.mtime_ns, then.mode, then.uid, then.gid):
            return "another size, time, mode or owner"
        if read_attributes(self._source.fileno()) != self.attributes:
            return "other extended attributes"
        return None

    def close(self) -> None:
        """Release the lease, so that waiting writers continue."""
        self._source.close()

    def __enter__(self) -> LeasedFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


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
