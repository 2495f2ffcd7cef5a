"""The blocks of files: holes, shared ranges, and the space that they take."""

from __future__ import annotations

import errno
import os
import struct
import sys
from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress
from fcntl import ioctl

from rdc.lean.enums import Enum
from rdc.lean.records import Record
from rdc.lean.typed import NamedTuple

TYPE_CHECKING = False


class Sharing(Record):
    """The disk space of a range of a file in relation to a range of another."""

    same: int
    """Bytes that both already share."""
    own: int
    """Bytes that only this range uses: what sharing frees."""
    compressed: int = 0
    """Bytes that only this range uses, and that take less on disk."""
    held: int = 0
    """Bytes that become free once their other users release them."""
    partial: int = 0
    """Bytes in extents that are freed only as a whole, or in places that are not known."""

    @property
    def perhaps(self) -> int:
        """Bytes of which it is not certain that, or how much of the disk, sharing them frees."""
        return self.compressed + self.held + self.partial


_FIEMAP = 0xC020660B
_HEAD = struct.Struct("=QQIIII")
_EXTENT = struct.Struct("=QQQQQI12x")
_SYNC = 0x1

EXTENTS_PER_CALL = 256
"""Extents per call, 14 KiB of answer. Most files have fewer."""

_EVERYTHING = (1 << 64) - 1

_LAST = 0x1
_UNKNOWN = 0x2
_ENCODED = 0x8
_ENCRYPTED = 0x80
_INLINE = 0x200
_TAIL = 0x400
_SHARED = 0x2000


class Extent(Record):
    """A contiguous range of a file on disk, in bytes."""

    start: int
    """Offset in the file."""
    length: int
    physical: int
    """Offset on the volume. For a compressed extent, the start of the whole extent."""
    flags: int
    """FIEMAP_EXTENT_* of linux/fiemap.h."""

    @property
    def end(self) -> int:
        return self.start + self.length

    @property
    def in_metadata(self) -> bool:
        """Return whether its bytes lie among metadata, where nothing can share them."""
        return bool(self.flags & (_INLINE | _TAIL))

    @property
    def is_shared(self) -> bool:
        """Return whether something else refers to it: another file or snapshot, or another part of this file.
        How many there are is not known."""
        return bool(self.flags & _SHARED)

    @property
    def is_encoded(self) -> bool:
        """Return whether it is compressed, so that it takes less than its length on disk."""
        return self.flags & (_ENCODED | _ENCRYPTED) == _ENCODED

    @property
    def is_elsewhere(self) -> bool:
        """Return whether the file system does not say where it lies."""
        return bool(self.flags & _UNKNOWN)

    @property
    def alone(self) -> bool:
        """Return whether nothing else refers to it and it takes its length on disk."""
        return not (self.is_encoded or self.flags & (_SHARED | _UNKNOWN | _INLINE | _TAIL))

    def physical_offset(self, offset: int) -> int:
        """Return where on the volume the byte at `offset` of the file lies."""
        return self.physical + (0 if self.is_encoded else offset - self.start)


def extents(fd: int, start: int, end: int, *, written: bool = True) -> Iterator[Extent]:
    """Yield the extents of the file open at `fd` that overlap [start, end), in order, without holes.

    With `written`, dirty data is written to disk first (FIEMAP_FLAG_SYNC), because it has no location before.
    Raises OSError; EOPNOTSUPP if the file system cannot tell.
    """
    while start < end:
        request = bytearray(_HEAD.pack(start, end - start, _SYNC if written else 0, 0, EXTENTS_PER_CALL, 0))
        request += bytes(_EXTENT.size * EXTENTS_PER_CALL)
        ioctl(fd, _FIEMAP, request, True)
        count = _HEAD.unpack_from(request)[3]
        reached = start
        if count > EXTENTS_PER_CALL:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        for at in range(count):
            logical, physical, length, _, _, flags = _EXTENT.unpack_from(
                request, _HEAD.size + at * _EXTENT.size
            )
            if logical >= end:
                return
            if logical + length > start:
                yield Extent(logical, length, physical, flags)
                start = logical + length
            if flags & _LAST:
                return
        if count < EXTENTS_PER_CALL:
            return
        if start <= reached:  # a full answer without progress; no known kernel gives one
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))


def shared_bytes(fd: int) -> int:
    """Return the bytes in extents that other files or snapshots also refer to, 0 if the file system cannot
    tell."""
    total = 0
    with suppress(OSError):
        for extent in extents(fd, 0, _EVERYTHING, written=False):
            total += extent.length if extent.flags & _SHARED else 0
    return total


def holes(fd: int, size: int, start: int = 0) -> Iterator[tuple[int, int]]:
    """Yield (start, end) in bytes for the holes in the first `size` bytes, in order; none before `start`.

    A file system without support for holes reports none. The file's position is moved. A file that changes
    meanwhile gives some answer, and the iteration always ends, because each step is behind the one before.
    """
    at = start
    while at < size:
        try:
            start = os.lseek(fd, at, os.SEEK_HOLE)
            if start >= size:
                return
            end = min(os.lseek(fd, start, os.SEEK_DATA), size)
        except OSError as error:
            if error.errno != errno.ENXIO:
                return  # not supported: everything counts as data
            # There is no data after `start`, or the file has become shorter than `at`.
            try:
                start = os.lseek(fd, at, os.SEEK_HOLE)
            except OSError:
                return
            end = size
        if end <= at or start < at:
            return
        if end > start:
            yield start, end
        at = end


HOLES_SUMMED = 65_536
"""Holes of a file that are summed up. Each costs two system calls."""


def data_bytes(fd: int, size: int, allocated: int) -> int:
    """Return the bytes outside of holes in the first `size` bytes. For a file with very many holes, subtract
    only the first ones, and return `allocated`, the bytes that it takes on disk, if that is less."""
    hollow = 0
    for number, (start, end) in enumerate(holes(fd, size)):
        hollow += end - start
        if number == HOLES_SUMMED:
            return min(size - hollow, allocated)
    return size - hollow


def data_ranges(fds: Sequence[int], size: int) -> Iterator[tuple[int, int]]:
    """Yield (start, end) in bytes for the parts of the first `size` bytes that are data in any of these open
    files, in order.

    Holes are found as by `holes`, and only in files that have fewer bytes on disk than `size`.
    """
    pending = []
    for fd in fds:
        found = os.fstat(fd)
        if found.st_blocks * 512 >= size:
            if size:
                yield 0, size
            return
        pending.append(holes(fd, size))
    at = 0
    for start, end in _common(pending):
        if at < start:
            yield at, start
        at = end
    if at < size:
        yield at, size


def _common(ranges: Sequence[Iterator[tuple[int, int]]]) -> Iterator[tuple[int, int]]:
    """Yield the parts that are in a range of each of these sequences, which are in order."""
    now = [next(one, None) for one in ranges]
    while True:
        start, end = 0, None
        for one in now:
            if one is None:
                return
            start = max(start, one[0])
            end = one[1] if end is None else min(end, one[1])
        if end is None:
            return
        if start < end:
            yield start, end
        now = [
            next(rest, None) if one is not None and one[1] <= max(start, end) else one
            for one, rest in zip(now, ranges, strict=True)
        ]


class Use(Enum):
    """The use of the disk by the bytes of a file's range, in relation to another file's."""

    SAME = "same"
    """They are the other file's bytes."""
    OWN = "own"
    """Nothing else refers to them, and they take their length on disk."""
    COMPRESSED = "compressed"
    """Nothing else refers to them, and they take less than their length."""
    HELD = "held"
    """Something else refers to them as well."""
    PARTIAL = "partial"
    """Parts of an extent that is freed only as a whole; or it is not known where they are."""


class Part(NamedTuple):
    """A part of a range, relative to the range's start, in bytes."""

    start: int
    end: int
    use: Use
    physical: int
    """Its start on the volume; inside a compressed extent, the start of that extent."""
    beside_hole: bool
    """True if the other file has a hole there."""


class _Piece(NamedTuple):
    """The part of an extent within a range, relative to the range's start."""

    start: int
    end: int
    extent: Extent
    offset: int
    """Offset of the range's start in the file."""

    def physical_offset(self, at: int) -> int | None:
        return None if self.extent.in_metadata else self.extent.physical_offset(self.offset + at)


def compare_places(
    source: int, source_offset: int, destination: int, offset: int, length: int, *, whole_extents: bool
) -> Iterator[Part]:
    """Yield the parts of the destination's range that use the disk, in order: not its holes, and not what
    lies inside metadata, where nothing can share it.

    `length` is rounded up to blocks if the range ends with the file. `whole_extents` says that the file
    system frees an extent only as a whole (btrfs). Raises OSError as `extents` does.
    """
    others = _pieces(source, source_offset, length)
    other = next(others, None)
    for piece in _pieces(destination, offset, length):
        extent = piece.extent
        whole = extent.start >= offset and extent.end <= offset + length
        use = _use(extent, freed=whole or not whole_extents)
        at = piece.start
        while at < piece.end:
            while other is not None and other.end <= at:
                other = next(others, None)
            if other is None or other.start >= piece.end:
                stop, hole, equal = piece.end, True, False
            elif other.start > at:
                stop, hole, equal = other.start, True, False
            else:
                stop, hole = min(piece.end, other.end), False
                found = other.physical_offset(at)
                equal = found is not None and found == piece.physical_offset(at)
            if not extent.in_metadata:
                yield Part(at, stop, Use.SAME if equal else use, extent.physical_offset(offset + at), hole)
            at = stop


def _use(extent: Extent, *, freed: bool) -> Use:
    if not freed or extent.is_elsewhere:
        return Use.PARTIAL
    if extent.is_shared:
        return Use.HELD
    return Use.COMPRESSED if extent.is_encoded else Use.OWN


def measure_sharing(
    source: int, source_offset: int, destination: int, offset: int, length: int, *, whole_extents: bool
) -> Sharing:
    """Return the sums of what `compare_places` finds."""
    sums = dict.fromkeys(Use, 0)
    for part in compare_places(
        source, source_offset, destination, offset, length, whole_extents=whole_extents
    ):
        sums[part.use] += part.end - part.start
    return Sharing(*(sums[use] for use in (Use.SAME, Use.OWN, Use.COMPRESSED, Use.HELD, Use.PARTIAL)))


def _pieces(fd: int, offset: int, length: int) -> Iterator[_Piece]:
    for extent in extents(fd, offset, offset + length):
        start, end = max(extent.start, offset), min(extent.end, offset + length)
        yield _Piece(start - offset, end - offset, extent, offset)


_BTRFS_IOC_FS_INFO = 0x8400941F
_FS_INFO_BYTES = 1024
_FSID = slice(16, 32)

_FS_IOC_GETFLAGS = 0x80086601
_FS_IOC_SETFLAGS = 0x40086602
_NOT_COPIED_ON_WRITE = 0x800000  # FS_NOCOW_FL of linux/fs.h

_BLOCK_MIN, _BLOCK_MAX = 512, 1 << 20
"""Bytes. The smallest unit a device writes, and more than the block size of any file system."""


class Volume(Record):
    id: bytes
    """Equal for files that can share blocks. All subvolumes of a btrfs have one id but different device
    numbers. Its files without data checksums (`chattr +C`) have an id of their own: they share only with each
    other."""
    block_size: int
    """Bytes. Offsets of shared ranges are multiples of it."""
    whole_extents: bool
    """True if space is freed only by whole extents, not by blocks."""

    def rounded(self, length: int) -> int:
        """Return `length` rounded up to whole blocks."""
        return -(-length // self.block_size) * self.block_size


def volume_of(fd: int) -> Volume:
    """Return the volume of an open file. Raises OSError."""
    block = os.fstatvfs(fd).f_bsize
    if block & (block - 1) or not _BLOCK_MIN <= block <= _BLOCK_MAX:
        block = _BLOCK_MAX
    fsid = _btrfs_id(fd)
    if fsid is not None:
        unchecked = b" +C" if inode_flags(fd) & _NOT_COPIED_ON_WRITE else b""
        return Volume(b"btrfs " + fsid + unchecked, block, True)
    return Volume(b"device %d" % os.fstat(fd).st_dev, block, False)


def _btrfs_id(fd: int) -> bytes | None:
    """Return the UUID of a btrfs file system, or None for any other. The ioctl needs no privileges."""
    answer = bytearray(_FS_INFO_BYTES)
    try:
        ioctl(fd, _BTRFS_IOC_FS_INFO, answer, True)
    except OSError:
        return None
    return bytes(answer[_FSID])


def inode_flags(fd: int) -> int:
    """Return the flags that lsattr(1) shows of an open file, 0 if the file system has none."""
    answer = bytearray(8)
    try:
        ioctl(fd, _FS_IOC_GETFLAGS, answer, True)
    except OSError:
        return 0
    # The kernel writes an int, whatever the size in the number of the call says.
    return int.from_bytes(answer[:4], sys.byteorder)


def leave_out_checksums(fd: int, like: int) -> None:
    """Have a new, empty file be without data checksums if the open file `like` is, so that the two can share
    blocks. Raises OSError."""
    if inode_flags(like) & _NOT_COPIED_ON_WRITE:
        wanted = inode_flags(fd) | _NOT_COPIED_ON_WRITE
        ioctl(fd, _FS_IOC_SETFLAGS, bytearray(wanted.to_bytes(4, sys.byteorder) + bytes(4)), True)


# disk_use: what a whole file takes on disk, and whether its blocks can change.

NO_EXTENTS = frozenset((errno.EOPNOTSUPP, errno.ENOTTY, errno.ENOSYS, errno.EINVAL))
"""Errors of a file system that does not report extents."""

_IMMUTABLE, _APPEND = 0x10, 0x20  # FS_IMMUTABLE_FL and FS_APPEND_FL of linux/fs.h


class DiskUse(Record):
    """Facts of one file; sizes in bytes."""

    volume: Volume
    own: int
    """In extents that nothing else refers to. Compressed extents count half: how much they take is not known,
    but it is less than their length."""
    shared: array[int]
    """Typecode 'Q': physical offset and length of each extent that something else refers to as well."""
    first: int | None
    """Physical offset of the first bytes; None for a hole, for inline data, or if unknown."""
    sparse: bool
    """True if it has holes."""
    inline: bool
    """True if some bytes lie inside metadata, where nothing can share them."""
    immutable: bool
    """True if it is immutable or append-only, so that its blocks cannot change even to equal ones."""
    fixed: bool
    """True if this process cannot change it: it is immutable, on a read-only file system, or of another user.
    Other files can still share with it."""


def disk_use(fd: int) -> DiskUse:
    """Return the facts of an open file. Raises OSError."""
    found = os.fstat(fd)
    own, allocated, shared, first, inline = 0, 0, array("Q"), None, False
    try:
        for extent in extents(fd, 0, found.st_size):
            inline = inline or extent.in_metadata
            allocated += extent.length
            if extent.start == 0 and not extent.in_metadata:
                first = extent.physical_offset(0)
            if extent.is_shared:
                shared.extend((extent.physical, extent.length))
            elif not extent.in_metadata:
                own += extent.length // 2 if extent.is_encoded else extent.length
    except OSError as error:
        if error.errno not in NO_EXTENTS:
            raise
        own = allocated = found.st_blocks * 512
    sparse = allocated < found.st_size
    immutable = bool(inode_flags(fd) & (_IMMUTABLE | _APPEND))
    fixed = immutable or bool(os.fstatvfs(fd).f_flag & os.ST_RDONLY) or not _may_change(fd, found)
    return DiskUse(volume_of(fd), own, shared, first, sparse, inline, immutable, fixed)


def _may_change(fd: int, found: os.stat_result) -> bool:
    """Return whether the kernel lets this process share the file's blocks: its owner, root, or who may write
    it."""
    if os.geteuid() in {0, found.st_uid}:
        return True
    try:
        return os.access(b"/proc/self/fd/%d" % fd, os.W_OK, effective_ids=True)
    except (OSError, NotImplementedError):  # no /proc; a libc that cannot ask for effective ids
        return False
