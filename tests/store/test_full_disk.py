"""A full disk, or another refusal of the file system, at each call of a put: no snapshot, no harm, and 11."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

import rdc
from rdc.errors import ExitCode, OutOfSpaceError, RdcError
from rdc.store.pack_file import storing_failure
from tests.support.store.stores import put_tree, read_alone, state_of

CALLS = ("write", "fdatasync", "fsync", "rename", "link", "mkdir")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    top = tmp_path / "tree"
    top.mkdir()
    (top / "file").write_bytes(b"content" * 1000)
    return top


def refusing(monkeypatch: pytest.MonkeyPatch, name: str, number: int, error: int) -> list[int]:
    """Let the call with this number fail. Return a list whose item says how many are left to come before."""
    call, left = getattr(os, name), [number]

    def refuse(*arguments: Any, **rest: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            raise OSError(error, os.strerror(error))
        return call(*arguments, **rest)

    monkeypatch.setattr(os, name, refuse)
    return left


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("first", [True, False], ids=["first put", "later put"])
def test_a_full_disk_adds_nothing_and_says_so(source: Path, tmp_path: Path, name: str, first: bool) -> None:
    for number in range(1, 20):
        store = tmp_path / f"st {number}"
        if not first:
            put_tree(source, store)
            (source / "file").write_bytes(b"%d" % number * 900)
        with pytest.MonkeyPatch.context() as patch:
            left = refusing(patch, name, number, errno.ENOSPC)
            try:
                put_tree(source, store)
            except RdcError as error:
                assert isinstance(error, OutOfSpaceError), error
                assert error.code is ExitCode.FILE_IO
                assert "No space left on device" in str(error)
            else:
                assert left[0] > 0, "the refusal was passed over"
                break
        listed = [one.number for one in rdc.snapshots(store)] if (store / "store").exists() else []
        assert listed in ([], [1], [1, 2])
        again = put_tree(source, store).number
        out = tmp_path / f"out {number}"
        read_alone(store, again, out)
        assert state_of(out) == state_of(source)
        assert rdc.verify_store(store, 1.0).damaged == 0
    else:
        pytest.fail("no end of calls")


@pytest.mark.parametrize(
    ("number", "advice"),
    [(errno.EDQUOT, "free some space"), (errno.EROFS, "writable"), (errno.EFBIG, "the size of files")],
)
def test_the_advice_is_that_for_the_failure(number: int, advice: str) -> None:
    error = storing_failure(OSError(number, os.strerror(number)), b"st/lock", "open it")
    assert isinstance(error, OutOfSpaceError)
    assert advice in str(error)
    assert ("free some space" in str(error)) == (number == errno.EDQUOT)


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.EACCES, "run as the owner of the store"),
        (errno.EMFILE, "ulimit -n"),
        (errno.ENOENT, "restore it from a copy"),
        (errno.EIO, "check the disk and the system log"),
        (errno.EINVAL, "check the disk and the system log"),
    ],
)
def test_every_failure_says_what_to_do(number: int, advice: str) -> None:
    found = str(storing_failure(OSError(number, os.strerror(number)), b"st/lock", "open it"))
    assert found.startswith(f"st/lock: cannot open it: {os.strerror(number)}; ")
    assert advice in found


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EIO], ids=["no locks", "another failure"])
def test_without_locks_a_put_goes_on_and_another_failure_is_named(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """tests/store/test_gc.py shows that gc asks for --exclusive there."""
    put_tree(source, tmp_path / "st")

    def refuse(_fd: int, _operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", refuse)
    if number == errno.ENOLCK:
        assert put_tree(source, tmp_path / "st").number == 2
    else:
        with pytest.raises(RdcError, match=r"st/lock: cannot lock it"):
            put_tree(source, tmp_path / "st")
