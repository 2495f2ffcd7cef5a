"""Hard links that a file system or its limits refuse."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

import pytest

import rdc.files.names.name_change
from rdc.errors import ExitCode, FileError
from rdc.files.names.leased_files import LeasedFile
from rdc.files.names.name_change import Link
from rdc.files.root.root import Root
from tests.files.names.link_pairs import Pair
from tests.support.trees.saved_files import CONTENT, TIME


def expect_refused(pair: Pair, text: str) -> None:
    with pytest.raises(FileError) as caught:
        pair.swap.prepare()
        pair.swap.leave(first=True)
    assert f"{pair.name}: cannot link it" in str(caught.value)
    assert text in str(caught.value)
    assert caught.value.code is ExitCode.PARTIAL


@pytest.mark.parametrize("name", ["kept", "old"])
def test_immutable_files(pair: Pair, name: str) -> None:
    subprocess.run(["chattr", "+i", pair.place / name], check=True)
    expect_refused(pair, "(EPERM); run as its owner or as root; lsattr shows an 'i'")
    pair.expect_untouched()


def test_no_exchange(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(one: bytes, other: bytes, directory: int) -> None:
        raise OSError(errno.EINVAL, "")

    monkeypatch.setattr(rdc.files.names.name_change, "rename_exchange", refuse)
    expect_refused(pair, "cannot let two names change places")
    pair.expect_untouched()


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (errno.EROFS, "a read-only file system (EROFS)"),
        (errno.EXDEV, "another file system, subvolume or mount (EXDEV)"),
        (errno.EMLINK, "as many links to one file as this file system allows (EMLINK)"),
        (errno.EOPNOTSUPP, "a file system without hard links (ENOTSUP)"),
    ],
)
def test_refusals_are_named(pair: Pair, number: int, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*words: object, **named: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refuse)
    expect_refused(pair, text)
    pair.expect_untouched()


def test_more_links_than_the_file_system_allows(ext4: Path) -> None:
    """ext4 allows 65,000."""
    for name in ("kept", "old"):
        (ext4 / name).write_bytes(CONTENT)
        os.utime(ext4 / name, ns=(TIME, TIME))
    (ext4 / "links").mkdir()
    fd = os.open(ext4 / "links", os.O_RDONLY)
    with pytest.raises(OSError) as full:
        for number in range(70_000):
            os.link(ext4 / "kept", str(number), dst_dir_fd=fd)
    os.close(fd)
    assert full.value.errno == errno.EMLINK
    root = Root.open(os.fsencode(ext4))
    with (
        LeasedFile(root, b"kept") as kept,
        LeasedFile(root, b"old") as old,
        pytest.raises(FileError, match="EMLINK"),
    ):
        Link(root, b"old", old, kept).prepare()
    assert sorted(os.listdir(ext4)) == ["kept", "links", "old"]
