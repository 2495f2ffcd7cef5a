"""Reading extended attributes where system calls are filtered or rights are missing."""

from __future__ import annotations

import ast
import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rdc.errors import ExitCode
from rdc.files import _files
from rdc.files.facts import xattrs
from rdc.files.facts.xattrs import read_directory_attributes
from rdc.files.root.root import Root
from rdc.limits import SMALL_MANIFEST
from rdc.model.preserved import AttributeKinds
from rdc.model.sync import SyncOptions
from rdc.session.trees import wanted_xattrs as tree_attributes
from tests.support.running.syncing import run_sync
from tests.support.trees.trees import Directory, Link, tree, write_tree
from tests.support.trees.xattr_ways import Read, read
from tests.support.trees.xattrs_and_acls import acl, allow, attributes_of, expect_equal, give

BOTH = SyncOptions(acls=True, xattrs=True, fsync=False)


def read_elsewhere(top: Path, *before: str, way: str = "", refused: str = "") -> tuple[bool, Read]:
    """What `tests.support.trees.xattr_ways` prints. `before`: what stands before its name in the command."""
    ended = subprocess.run(
        [*before, "tests.support.trees.xattr_ways", way, refused, top],
        check=True,
        capture_output=True,
        text=True,
    )
    by_name, found = ast.literal_eval(ended.stdout)
    return by_name, found


PYTHON = (sys.executable, "-m")


REFUSING = (*PYTHON, "tests.support.running.refused_calls")


def every(number: int) -> Read:
    return [(row, name, number) for row, name in enumerate((b"a", b"b", b"c"))]


HELD: Read = [(0, b"a", ((b"user.x", b"1"),)), (2, b"c", ((b"user.x", b"3"), (b"user.y", b"4")))]


@pytest.mark.parametrize("number", ["EPERM", "ENOSYS", "EACCES"])
@pytest.mark.parametrize("calls", ["BY_NAME", "GET_BY_NAME", "LIST_BY_NAME"])
def test_behind_a_filter_of_system_calls(calls: str, number: str, two: Path) -> None:
    """Whatever it answers, and though it lets one of the two calls pass."""
    assert read_elsewhere(two, *PYTHON) == (_files.go_by_name(), HELD)
    assert read_elsewhere(two, *REFUSING, f"{calls}:{number}") == (False, HELD)


@pytest.mark.parametrize(
    ("refused", "found"),
    [
        ("LIST:EOPNOTSUPP", []),
        ("LIST:ENOSYS", []),
        ("LIST:ENOENT", []),
        ("LIST:EPERM", every(errno.EPERM)),
        ("LIST:EIO", every(errno.EIO)),
        ("LIST:ENOMEM", every(errno.ENOMEM)),
        ("LIST:ERANGE", every(errno.ERANGE)),
        ("GET:ENODATA", []),
        ("GET:ENOENT", []),
        ("GET:EACCES", [(0, b"a", errno.EACCES), (2, b"c", errno.EACCES)]),
        ("GET:ERANGE", [(0, b"a", errno.ERANGE), (2, b"c", errno.ERANGE)]),
    ],
)
def test_what_a_file_system_may_answer(refused: str, found: Read, way: str, two: Path) -> None:
    """One that keeps none, one that fails, entries and attributes that are gone since."""
    assert read_elsewhere(two, *PYTHON, way=way, refused=refused)[1] == found


NOBODY = ("--reuid=65534", "--regid=65534", "--clear-groups")


def as_nobody(top: Path, way: str) -> Read:
    above = top
    while above != above.parent:
        if above.stat().st_uid == os.geteuid() and above.stat().st_mode & 0o5 != 0o5:
            above.chmod(above.stat().st_mode | 0o5)
        above = above.parent
    return read_elsewhere(top, "setpriv", *NOBODY, *PYTHON, way=way)[1]


@pytest.mark.needs("setpriv")
def test_without_rights(way: str, two: Path) -> None:
    (two / "d/a").chmod(0o600)
    (two / "d").chmod(0o755)
    assert as_nobody(two, way) == [(0, b"a", errno.EACCES), HELD[1]]
    (two / "d").chmod(0o744)
    assert as_nobody(two, way) == every(errno.EACCES)


@pytest.fixture
def source(linking: Path) -> Path:
    files = {"plain": b"1", "marked": b"2", "d/shared": b"3", "d/e/both": b"4"}
    top = write_tree(linking / "s", tree(files) | tree({"l": Link(b"marked"), "q": Directory()}))
    give(top / "marked", a="one", b="")
    give(top / "d/e/both", a="one", long="x" * 300)
    give(top / "d", trusted_t="of root")
    give(top / "l", trusted_t="of a link")
    allow(top / "d/shared", acl(6))
    allow(top / "d", acl(7, owner=7), acl(5, owner=7))
    return top


@pytest.mark.needs("rsync")
def test_a_sync_each_way(way: str, source: Path) -> None:
    destination = source.parent / "d"
    for number in range(2):
        give(source / "plain", number=str(number))
        run = run_sync(source, destination, BOTH)
        assert (run.done.exit, run.problems) == (ExitCode.OK, [])
        expect_equal(source, destination)
    assert run_sync(source, destination, BOTH).items == []


@pytest.mark.needs("rsync")
def test_a_sync_behind_a_filter(source: Path) -> None:
    destination = source.parent / "d"
    for _ in range(2):
        ended = subprocess.run(
            [*REFUSING, "BY_NAME:EPERM", "rdc", "sync", "-aAX", f"{source}/", f"{destination}/"],
            check=False,
            capture_output=True,
            text=True,
        )
        assert (ended.returncode, ended.stdout) == (0, "")
        assert "attributes" not in ended.stderr
        expect_equal(source, destination)


def test_a_directory_is_asked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By both sides, and by whoever sets attributes."""
    source, destination = tmp_path / "s", tmp_path / "t"
    write_tree(source, tree({f"many/{number:03}": b"%d" % number for number in range(SMALL_MANIFEST)}))
    calls = []

    class Counted:
        get_xattr = staticmethod(_files.get_xattr)

        @staticmethod
        def list_xattrs(*arguments: Any) -> object:
            calls.append(arguments)
            return _files.list_xattrs(*arguments)

    monkeypatch.setattr(xattrs, "_extension", Counted)
    for least, most in ((4, 12), (4, 12)):
        calls.clear()
        run_sync(source, destination, BOTH)
        assert least <= len(calls) <= most
    give(source / "many/007", a="1")
    calls.clear()
    assert run_sync(source, destination, BOTH).items == [".f........x many/007"]
    assert len(calls) <= 14


def test_a_directory_is_opened_once_for_all_values(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    real = Root.directory

    def counted(self: Root, path: bytes, *, fresh: bool = False, reading: bool = False) -> object:
        opened.append(path)
        return real(self, path, fresh=fresh, reading=reading)

    monkeypatch.setattr(Root, "directory", counted)
    assert read(two, b"d", b"b\0") == []
    assert opened == []
    assert read(two, b"d", b"a\0b\0c\0") == HELD
    assert opened == [b"d"]


@pytest.mark.needs("rsync")
@pytest.mark.parametrize("number", [errno.EMFILE, errno.EACCES])
def test_a_directory_that_cannot_be_opened_loses_nothing(
    number: int, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    destination = source.parent / "d"
    run_sync(source, destination, BOTH)
    give(destination / "d/e", a="kept")
    real = read_directory_attributes

    def refused(root: Root, path: bytes, names: bytes, kinds: AttributeKinds) -> Iterator[object]:
        if path == b"d" and root.label.rstrip(b"/") == os.fsencode(source):
            raise root.failure(OSError(number, os.strerror(number)), path, "open the directory", reading=True)
        yield from real(root, path, names, kinds)

    (source / "plain").write_bytes(b"a new version")
    before = attributes_of(destination)
    with monkeypatch.context() as patch:
        patch.setattr(tree_attributes, "read_directory_attributes", refused)
        run = run_sync(source, destination, BOTH)
    assert run.done.exit is ExitCode.PARTIAL
    (problem,) = run.problems
    assert problem.path_bytes == b"d"
    assert "cannot open the directory" in problem.message
    assert attributes_of(destination) == before
    assert (destination / "plain").read_bytes() == b"a new version"
    assert run_sync(source, destination, BOTH).done.exit is ExitCode.OK
    expect_equal(source, destination)
