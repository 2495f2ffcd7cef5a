"""A name of a file made a file of its own again, with everything it had."""

from __future__ import annotations

import os
import stat
import struct
from pathlib import Path

import pytest

from rdc.errors import FileChangedError, FileError
from rdc.files.base.syscalls import rename_exchange
from rdc.files.root.root import Root
from tests.support.trees.saved_files import CONTENT, TIME, replace, unlink_copy


def acl_entry(tag: int, permissions: int, number: int = 0xFFFFFFFF) -> bytes:
    return struct.pack("<HHI", tag, permissions, number)


ACL = struct.pack("<I", 2) + b"".join(
    (
        acl_entry(0x01, 6),
        acl_entry(0x02, 4, 1234),
        acl_entry(0x04, 4),
        acl_entry(0x10, 4),
        acl_entry(0x20, 0),
    )
)
"""user::rw-, user:1234:r--, group::r--, mask::r--, other::---, as in linux/posix_acl_xattr.h."""


def test_separate_gives_back_a_file_with_everything(linking: Path) -> None:
    path, kept = linking / "old", linking / "kept"
    kept.write_bytes(CONTENT)
    os.setxattr(kept, "user.colour", b"red")
    os.chown(kept, 12, 34)
    kept.chmod(0o4640)
    os.setxattr(kept, "system.posix_acl_access", ACL)
    os.utime(kept, ns=(TIME, TIME))
    os.link(kept, path)
    root = Root.open(os.fsencode(linking))
    assert unlink_copy(root, b"old", os.stat(kept).st_ino) == len(CONTENT)
    now, then = os.stat(path), os.stat(kept)
    assert (now.st_nlink, then.st_nlink) == (1, 1)
    assert now.st_ino != then.st_ino
    for what in ("st_mode", "st_uid", "st_gid", "st_mtime_ns", "st_size"):
        assert getattr(now, what) == getattr(then, what), what
    assert stat.S_IMODE(now.st_mode) == 0o4640
    assert os.getxattr(path, "user.colour") == b"red"
    assert os.getxattr(path, "system.posix_acl_access") == ACL
    assert path.read_bytes() == CONTENT
    assert sorted(os.listdir(linking)) == ["kept", "old"]


def test_separate_looks_first(tmp_path: Path) -> None:
    path, other = tmp_path / "old", tmp_path / "other"
    path.write_bytes(CONTENT)
    root = Root.open(os.fsencode(tmp_path))
    inode = os.stat(path).st_ino
    with pytest.raises(FileChangedError):
        unlink_copy(root, b"old", inode)  # has no other name
    os.link(path, other)
    with pytest.raises(FileChangedError):
        unlink_copy(root, b"old", inode + 1)
    with path.open("r+b"), pytest.raises(FileError, match="open for writing"):
        unlink_copy(root, b"old", inode)
    assert os.stat(path).st_ino == os.stat(other).st_ino == inode


def test_separate_gives_way_to_a_file_saved_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, other = tmp_path / "old", tmp_path / "other"
    path.write_bytes(CONTENT)
    os.link(path, other)
    exchange = rename_exchange

    def saving(one: bytes, name: bytes, directory: int) -> None:
        replace(path, b"saved")
        exchange(one, name, directory)

    monkeypatch.setattr("rdc.files.names.return_name.rename_exchange", saving)
    with pytest.raises(FileChangedError):
        unlink_copy(Root.open(os.fsencode(tmp_path)), b"old", os.stat(path).st_ino)
    assert path.read_bytes() == b"saved"
    assert other.read_bytes() == CONTENT
    assert sorted(os.listdir(tmp_path)) == ["old", "other"]
