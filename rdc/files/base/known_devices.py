"""What this process knows of the file systems that it opened, by device number: a stat has that and no more.

The type of a file system decides until its facts have been learned (rdc.files.facts.learned_facts).
"""

from __future__ import annotations

import os

from rdc.files.base.syscalls import file_system_type
from rdc.model.entries import ALL_FIELDS, ComparedFields, Identity, is_same_entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.preserved import FileSystemFacts

__all__ = [
    "VOLATILE_TYPES",
    "change_time",
    "honours_no_replace",
    "is_unchanged",
    "meet",
    "note_facts",
    "same_entry",
    "stable_fields",
]

VOLATILE_TYPES = {
    0x4D44: "vfat",
    0x2011BAB0: "exfat",
    0x65735546: "fuse",
    0xFF534D42: "cifs",
    0xFE534D42: "smb2",
    0x517B: "smbfs",
}
"""By f_type of statfs(2). FAT has no change time, and the kernel makes up its inode numbers. FUSE and SMB
return what their servers choose: often the mtime, and another inode number after a while."""

_VOLATILE = ComparedFields(inode=False, ctime=False)

_types: dict[int, int] = {}
"""The type of file system that each device was met with: a device number may be given again."""
_stable: dict[int, ComparedFields] = {}
_replacing: set[int] = set()
"""Devices on which a rename replaces what it is told not to replace."""


def meet(fd: int) -> ComparedFields:
    """Return what the file system of `fd` keeps stable. It is noted by its type, unless it is known. Never
    raises."""
    try:
        device, type_ = os.fstat(fd).st_dev, file_system_type(fd)
    except OSError:
        return ALL_FIELDS
    if _types.get(device) != type_:
        _types[device] = type_
        _stable[device] = _VOLATILE if type_ in VOLATILE_TYPES else ALL_FIELDS
        _replacing.discard(device)
    return _stable[device]


def note_facts(device: int, facts: FileSystemFacts) -> None:
    """Note what was learned of the file system with this device number."""
    _stable[device] = facts.stable
    if facts.no_replace:
        _replacing.discard(device)
    else:
        _replacing.add(device)


def honours_no_replace(directory: int) -> bool:
    """Return whether renameat2 without replacing can be relied on in an open directory. Raises OSError."""
    return not (_replacing and os.fstat(directory).st_dev in _replacing)


def stable_fields(device: int) -> ComparedFields:
    """Return the stable fields of stats with this device number."""
    return _stable.get(device, ALL_FIELDS)


def is_unchanged(before: Identity, now: Identity) -> bool:
    """Return whether two identities are of one entry that nobody changed in between, as far as its file
    system tells."""
    return before == now or is_same_entry(before, now, stable_fields(before.device))


def change_time(identity: Identity) -> int:
    """Return the time that any change of a file moves: its ctime, or its mtime where a ctime says nothing."""
    return identity.ctime_ns if stable_fields(identity.device).ctime else identity.mtime_ns


def same_entry(a: os.stat_result, b: os.stat_result) -> bool:
    """Return whether two stats are of one entry, as far as its file system tells. Where inode numbers are not
    stable, any two entries of one kind on one file system may be."""
    if a.st_dev != b.st_dev:
        return False
    return a.st_ino == b.st_ino or not stable_fields(a.st_dev).inode
