"""A file held still: open, under a read lease, with all that makes it more than its bytes."""

from __future__ import annotations

import errno
import os
import stat
from types import TracebackType

from rdc.files.attributes import read_attributes
from rdc.files.failure import changed
from rdc.files.lease import is_intact, take_lease
from rdc.files.source import SPAN_BYTES, identity_of
from rdc.model.entries import Metadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.confined import Root
    from rdc.files.source import SourceFile
    from rdc.model.attributes import Attributes
    from rdc.model.entries import Identity

__all__ = ["HeldFile", "difference", "same_bytes"]

SECTOR_BYTES = 512
"""Of st_blocks, whatever the file system's own blocks are."""

_NO_LEASE = (
    "that the kernel cannot say whether it is open for writing",
    "hard links to it are not safe to make here; without --hardlink, blocks are shared where possible",
)
_CANNOT_HOLD = {
    errno.EAGAIN: ("that it is open for writing", "run again once nothing writes to it"),
    errno.EACCES: ("a file of somebody else", "run as its owner or as root"),
    errno.EINVAL: _NO_LEASE,
    errno.ENOLCK: _NO_LEASE,
    errno.EOPNOTSUPP: _NO_LEASE,
    errno.ENOSYS: _NO_LEASE,
}


class HeldFile:
    """A regular file that nobody can write to unseen; a context manager.

    The lease (rdc.files.lease) says that there is no writer when it is taken; afterwards `check` says whether
    one is waiting. Until then its bytes and its size cannot change; mode, owner, times and names can. All
    that is said of the file was read after the lease: somebody may write to it between opening and holding.
    """

    def __init__(self, root: Root, path: bytes) -> None:
        """Raises FileChangedError where no regular file is, FileError where it cannot be held still."""
        self.root = root
        self.path = path
        self._source: SourceFile = root.open_read(path)
        try:
            take_lease(self._source.fileno())
            # After the lease, not what opening it found: a writer that closed in between has left his size
            # and times by now, and nobody changes them unseen from here on.
            self._found = now = os.fstat(self._source.fileno())
            self.identity: Identity = identity_of(now)
            """Of its times only the mtime stays when it is linked."""
            self.metadata = Metadata(stat.S_IMODE(now.st_mode), now.st_mtime_ns, now.st_uid, now.st_gid)
            self.attributes: Attributes = read_attributes(self._source.fileno())
        except OSError as error:
            self.close()
            if error.errno not in _CANNOT_HOLD:
                raise root.failure(error, path, "hold it still", reading=True) from error
            found, advice = _CANNOT_HOLD[error.errno]
            raise root.refused(
                path, "hold it still", expected="a file at rest", found=found, advice=advice
            ) from error
        except BaseException:
            self.close()
            raise

    @property
    def links(self) -> int:
        return self._found.st_nlink

    @property
    def allocated(self) -> int:
        """Bytes on disk, those it shares with other files included."""
        return self._found.st_blocks * SECTOR_BYTES

    def fileno(self) -> int:
        return self._source.fileno()

    def pread(self, offset: int, length: int) -> bytes:
        return self._source.pread(offset, length)

    def is_intact(self) -> bool:
        """Whether nobody has asked to write since."""
        return is_intact(self._source.fileno())

    def check(self) -> None:
        """Raise FileChangedError once somebody wants to write."""
        if not self.is_intact():
            raise changed(self.path, self.root.shown(self.path), "a file at rest", "that it is written to")

    def is_at(self, name: bytes, directory: int) -> bool:
        """Whether that name of an open directory is one of this file's."""
        try:
            found = os.stat(name, dir_fd=directory, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return os.path.samestat(found, self._found)

    def describe_change(self) -> str | None:
        """What of it has changed since it was opened, or is about to."""
        return "that it is written to" if not self.is_intact() else self.describe_rewrite()

    def describe_rewrite(self) -> str | None:
        """What of it has changed already, but for names and the ctime that goes with them. Raises OSError."""
        now = os.fstat(self._source.fileno())
        then = self._found
        kept = ("st_size", "st_mtime_ns", "st_mode", "st_uid", "st_gid")
        if any(getattr(now, name) != getattr(then, name) for name in kept):
            return "another size, time, mode or owner"
        if read_attributes(self._source.fileno()) != self.attributes:
            return "other extended attributes"
        return None

    def close(self) -> None:
        """Let go of it: whoever waits to write goes on."""
        self._source.close()

    def __enter__(self) -> HeldFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def difference(one: HeldFile, other: HeldFile) -> str | None:
    """What besides content a link from one to the other would lose, or None."""
    if one.metadata != other.metadata:
        for what in ("mode", "uid", "gid", "mtime_ns"):
            if getattr(one.metadata, what) != getattr(other.metadata, what):
                return {"uid": "owner", "gid": "group", "mtime_ns": "mtime"}.get(what, what)
    if one.attributes != other.attributes:
        names = sorted({name for name, _ in set(one.attributes) ^ set(other.attributes)})
        return f"extended attribute {os.fsdecode(names[0])}"
    return None


def same_bytes(one: HeldFile, other: HeldFile) -> bool:
    """Compare content byte by byte. Raises FileChangedError as soon as somebody wants to write to either."""
    size = one.identity.size
    if size != other.identity.size:
        return False
    for offset in range(0, size, SPAN_BYTES):
        length = min(SPAN_BYTES, size - offset)
        if one.pread(offset, length) != other.pread(offset, length):
            return False
        one.check()
        other.check()
    return True
