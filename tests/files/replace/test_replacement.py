"""A Replacement is written, copied into, and bounded in size and space."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rdc.errors import FileError, OutOfSpaceError, RdcError
from rdc.files.replace import replacement as reservation
from rdc.files.replace.commit_group import CommitGroup
from rdc.files.replace.replacement import Replacement
from rdc.files.root.root import Root, WritePolicy
from rdc.limits import RESERVED_AHEAD_BYTES
from tests.files.replace.written_files import PLAIN, commit, read, temporaries


@pytest.mark.parametrize("by_hand", [False, True])
def test_copying_and_reading_back(root: Root, by_hand: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    base = os.urandom((3 << 20) + 17)
    commit(root, b"base", base, None)
    if by_hand:

        def refuse(*arguments: object, **options: object) -> int:
            raise OSError(errno.EXDEV, "")

        monkeypatch.setattr(os, "copy_file_range", refuse)
    with root.open_read(b"base") as source, CommitGroup(root, on_commit=lambda _: None) as group:
        replacement = Replacement(root, b"f", expected_size=4 << 20)
        replacement.write(memoryview(b"head")[1:])
        assert replacement.copy_from(source.fileno(), 5, 1 << 20) == 1 << 20
        replacement.write(bytearray(b"middle"))
        assert replacement.copy_from(source.fileno(), len(base) - 10, 100) == 10
        assert replacement.copy_from(source.fileno(), 0, 0) == 0
        replacement.write(b"")
        expected = b"ead" + base[5 : 5 + (1 << 20)] + b"middle" + base[-10:]
        assert replacement.size == len(expected)
        assert replacement.pread(0, 2 << 20) == expected
        assert replacement.pread(len(expected) - 4, 9) == expected[-4:]
        assert replacement.pread(len(expected), 9) == b""
        taken = os.fstat(replacement.fileno()).st_blocks * 512
        assert 2 << 20 <= taken < 4 << 20, "as much as came is reserved beside it, and not all that may come"
        group.add(replacement, b"f", PLAIN, False, None)
    assert read(root, b"f") == expected
    assert os.stat(os.path.join(root.label, b"f")).st_blocks * 512 < 2 << 20, "and given back"


def test_short_writes_and_copies_go_on(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    pwrite, copy = os.pwrite, os.copy_file_range
    monkeypatch.setattr(os, "pwrite", lambda fd, data, offset: pwrite(fd, bytes(data)[:3], offset))
    monkeypatch.setattr(os, "copy_file_range", lambda a, b, n, **o: copy(a, b, min(n, 5), **o))
    commit(root, b"base", b"0123456789abcdef", None)
    with root.open_read(b"base") as source, Replacement(root, b"f") as replacement:
        assert replacement.copy_from(source.fileno(), 1, 14) == 14
        assert replacement.pread(0, 99) == b"123456789abcde"


def test_space_is_reserved_first(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, raised in {
        errno.ENOSPC: OutOfSpaceError,
        errno.EFBIG: FileError,
        errno.EOPNOTSUPP: None,
    }.items():

        def fail(fd: int, length: int, start: int, number: int = number) -> None:
            raise OSError(number, "")

        monkeypatch.setattr(reservation, "fallocate_keep_size", fail)
        Replacement(root, b"small", expected_size=1000).abandon()
        if raised is None:
            Replacement(root, b"big", expected_size=1 << 30).abandon()
        else:
            with pytest.raises(raised):
                Replacement(root, b"big", expected_size=1 << 30)
        assert temporaries(root) == []


def test_a_size_alone_reserves_no_space(root: Root) -> None:
    """Whatever is announced: what is reserved is bounded by a step, and by what came."""
    found = os.statvfs(root.label)
    for announced in (8 << 20, found.f_bfree * found.f_frsize // 2):
        with Replacement(root, b"big", expected_size=announced) as replacement:
            assert os.fstat(replacement.fileno()).st_blocks * 512 <= 1 << 20
            came = 0
            for length in (1, 1 << 20, 3 << 20):
                replacement.write(bytes(length))
                came += length
                assert os.fstat(replacement.fileno()).st_blocks * 512 <= max(1 << 20, 2 * came) + 4096
    assert temporaries(root) == []


@pytest.mark.parametrize("announced", [1 << 50, (1 << 63) - 1])
def test_a_size_that_does_not_fit_is_refused_before_anything_comes(root: Root, announced: int) -> None:
    with pytest.raises(RdcError, match="big: cannot make a temporary file beside it"):
        Replacement(root, b"big", expected_size=announced)
    assert temporaries(root) == []


@pytest.mark.parametrize("reserves", [True, False])
def test_what_is_reserved_ahead_is_bounded(
    root: Root, monkeypatch: pytest.MonkeyPatch, reserves: bool
) -> None:
    """Up to 1 GiB that comes: in few calls, never more than RESERVED_AHEAD_BYTES beyond it."""
    calls: list[int] = []

    def reserve(fd: int, length: int, start: int) -> None:
        calls.append(start + length)
        if not reserves:
            raise OSError(errno.EOPNOTSUPP, "")

    monkeypatch.setattr(reservation, "fallocate_keep_size", reserve)
    monkeypatch.setattr(os, "pwrite", lambda fd, data, offset: len(data))
    came, part = 0, bytes(1 << 19)
    with Replacement(root, b"big", expected_size=1 << 30) as replacement:
        while came < 1 << 30:
            replacement.write(part)
            came += len(part)
            assert calls[-1] <= came + min(max(came, 1 << 20), RESERVED_AHEAD_BYTES)
    assert calls == [1 << 20] if not reserves else len(calls) <= 24 and calls[-1] == 1 << 30


@pytest.mark.parametrize("sparse", [False, True])
def test_nothing_is_written_beyond_what_was_expected(root: Root, sparse: bool) -> None:
    commit(root, b"base", bytes(100), None)
    root = root.having(writes=WritePolicy(sparse=sparse))
    with root.open_read(b"base") as source:
        beyond: list[Callable[[Replacement], object]] = [
            lambda one: one.write(b"1234"),
            lambda one: one.write(bytes(1 << 20)),
            lambda one: one.copy_from(source.fileno(), 0, 4),
        ]
        for append in beyond:
            with Replacement(root, b"f", expected_size=10) as replacement:
                replacement.write(b"1234567")
                replacement.write(b"")
                with pytest.raises(FileError, match="f: cannot write it: expected 10 bytes, found"):
                    append(replacement)
            assert temporaries(root) == []


def test_what_is_kept_of_a_file_reserves_nothing(root: Root, tmp_path: Path) -> None:
    replacement = Replacement(root, b"f", expected_size=8 << 20)
    replacement.write(bytes(1 << 20) + b"more")
    replacement.keep()
    (left,) = (tmp_path / name for name in os.listdir(tmp_path) if name.startswith(".rdc-"))
    assert left.stat().st_blocks * 512 <= (1 << 20) + 8192


def test_a_replacement_belongs_to_its_path(root: Root) -> None:
    group = CommitGroup(root, on_commit=lambda _: None)
    with Replacement(root, b"a") as replacement, pytest.raises(ValueError, match="was made for"):
        group.add(replacement, b"b", PLAIN, False, None)
