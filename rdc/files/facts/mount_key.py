"""Names the file system of a directory, so that what was learned of it is found again: mount_key."""

from __future__ import annotations

import os

from blake3 import blake3

from rdc.files.base.known_devices import VOLATILE_TYPES
from rdc.files.facts.filesystem_id import type_of

__all__ = ["KEY_BYTES", "mount_key"]

KEY_BYTES = 16

_LINE_BYTES = 1 << 20
"""Most bytes that are read of the kernel's list of mounts. A longer list has no more keys."""


def mount_key(fd: int) -> bytes:
    """Return 16 bytes for the file system of an open directory as it is mounted. Raises OSError.

    They cover the type, the device or server, the mount point and all mount options: what another option may
    change has another key. Where the kernel does not tell these, the type and the device number stand for
    them.

    Another file system may have the key later, such as another server that answers under the same name. What
    was learned is then wrong for it, until the next run that writes there learns it again.
    """
    found, type_ = os.fstat(fd), type_of(fd)
    text = b"%x\0" % type_
    mount = _mount_of(fd)
    if mount is None:
        text += b"%d\0%d\0" % (found.st_dev, os.fstatvfs(fd).f_flag)
    else:
        # FUSE and network file systems get another device number at each mount.
        text += (b"" if type_ in VOLATILE_TYPES else b"%d" % found.st_dev) + b"\0" + mount
    return blake3(os.fsencode(os.uname().nodename) + b"\0" + text).digest(KEY_BYTES)


def _mount_of(fd: int) -> bytes | None:
    """Return the root, mount point, options, type, source and options of the file system in the kernel's list
    of mounts; None if that cannot be read."""
    try:
        with open(f"/proc/self/fdinfo/{fd}", "rb") as file:
            numbers = [line.split()[1] for line in file.read(4096).splitlines() if line.startswith(b"mnt_id")]
        with open("/proc/self/mountinfo", "rb") as file:
            lines = file.read(_LINE_BYTES).splitlines()
    except (OSError, IndexError):
        return None
    for line in lines:
        fields = line.split(b" ")
        if numbers and fields[0] == numbers[0]:
            return b" ".join(fields[3:])
    return None
