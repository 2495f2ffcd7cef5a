"""Begins new content as a clone of an open file, and remembers where the file system refuses that."""

from __future__ import annotations

import os

from rdc.files.base.clone_range import LASTING_REFUSALS, clone_range

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.replace.replacement import Replacement
    from rdc.files.root.root import Root
    from rdc.files.root.source_file import SourceFile

__all__ = [
    "CLONED_FILE_BYTES",
    "accepts_clones",
    "begin_as",
    "block_bytes",
    "clone_into",
    "copy_whole",
    "may_clone",
]

CLONED_FILE_BYTES = 128 << 10
"""Files from this size on are cloned. A smaller one is written in less time than its extents are shared."""

SINGLE_REFUSALS = 8
"""Refusals that may concern one pair of files, such as EINVAL for a file without checksums on btrfs. After so
many in a row the file system counts as one that cannot."""

BLOCK_MOST = 1 << 20
"""Bytes. More than the block size of any file system: whatever it is, multiples of this are multiples of it.
"""


def may_clone(root: Root, source: int, destination: int | None = None) -> bool:
    """Whether a file on device `source` may be cloned to device `destination`, the same by default.

    True until the file system has refused: it is asked once in the life of `root`.
    """
    devices = (source, source if destination is None else destination)
    return root.clone_refusals.get(devices, 0) < SINGLE_REFUSALS


def accepts_clones(temporary: Replacement, source: SourceFile) -> bool:
    """Return whether the file system shares blocks of `source` with an empty temporary.

    Where it was not asked before, it is asked for one block, which costs less than to plan clones in vain.
    """
    devices = (source.identity.device, temporary.device)
    block = block_bytes(source)
    if devices not in temporary.root.clone_refusals and source.size >= block:
        clone_into(temporary, source, 0, 0, block)
    return may_clone(temporary.root, *devices)


def block_bytes(source: SourceFile) -> int:
    """Return the block size of the file system that an open file lies on, in bytes."""
    try:
        return os.fstatvfs(source.fileno()).f_bsize or BLOCK_MOST
    except OSError:
        return BLOCK_MOST


def clone_into(temporary: Replacement, source: SourceFile, offset: int, at: int, length: int) -> bool:
    """Make `length` bytes of the temporary at `at` a clone of those at `offset` of `source`.

    They lie at or behind what was written. What they hold has to be read from the temporary and verified:
    the source may change at any time. False: the file system refused, and the range has to be written.
    """
    devices = (source.identity.device, temporary.device)
    refusals = temporary.root.clone_refusals
    if source.fileno() < 0 or refusals.get(devices, 0) >= SINGLE_REFUSALS:
        return False
    try:
        clone_range(source.fileno(), offset, length, temporary.fileno(), at)
    except OSError as error:
        count = SINGLE_REFUSALS if error.errno in LASTING_REFUSALS else refusals.get(devices, 0) + 1
        refusals[devices] = count
        if count < SINGLE_REFUSALS:
            temporary.note_clone(at + length)  # a disk that is full may have cloned a part
        return False
    temporary.note_clone(at + length)
    refusals[devices] = 0
    return True


def begin_as(temporary: Replacement, clone: SourceFile, size: int) -> bool:
    """Make an empty temporary, made without `reserved`, a clone of `clone`.

    False if that has not `size` bytes, or if the file system refused; space is reserved then. Raises
    RdcError.
    """
    if clone.size == size and clone_into(temporary, clone, 0, 0, size):
        return True
    temporary.reserve()
    return False


def copy_whole(temporary: Replacement, source: SourceFile, size: int, *, cloned: bool) -> bool:
    """Append the first `size` bytes of `source` to an empty temporary, or as many as it has.

    `cloned`: as a clone where possible; the temporary was made without `reserved`. Returns whether it became
    one. Raises RdcError.
    """
    if cloned and source.size == size and clone_into(temporary, source, 0, 0, size):
        temporary.take_clone(size)
        return True
    if cloned:
        temporary.reserve()
    temporary.copy_from(source.fileno(), 0, size)
    return False
