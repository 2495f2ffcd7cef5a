"""Reading extended attributes of a directory's entries, in each of the ways there are."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rdc.errors import FileChangedError, FileError
from rdc.files import _files
from rdc.files.facts import xattrs
from rdc.files.facts.xattrs import read_entry_attributes
from rdc.model.entries import strings
from rdc.model.preserved import ACCESS_ACL, DEFAULT_ACL, AttributeKinds
from tests.files.facts.xattr_reads import take
from tests.support.share import examples
from tests.support.trees.xattr_ways import ALL, WAYS, Read, read
from tests.support.trees.xattrs_and_acls import acl, give


def expected(directory: Path, names: bytes, kinds: AttributeKinds) -> Read:
    found: Read = []
    for row, name in enumerate(strings(names)):
        path = os.path.join(os.fsencode(directory), name)
        pairs = tuple(
            sorted(
                (os.fsencode(attribute), os.getxattr(path, attribute, follow_symlinks=False))
                for attribute in os.listxattr(path, follow_symlinks=False)
                if kinds.has(os.fsencode(attribute))
            )
        )
        if pairs:
            found.append((row, name, pairs))
    return found


def names_in(directory: Path) -> bytes:
    return b"".join(sorted(name + b"\0" for name in os.listdir(os.fsencode(directory))))


def test_the_calls_by_name_are_used_where_they_are() -> None:
    """As seen from outside: the system call itself, on something that is there."""
    libc = ctypes.CDLL(None, use_errno=True)
    works = libc.syscall(465, -100, b"/", 0x100, None, 0) >= 0  # AT_FDCWD, AT_SYMLINK_NOFOLLOW
    assert _files.go_by_name() is works
    assert (xattrs._extension, xattrs._by_name) == (_files, works)


ATTRIBUTES = st.dictionaries(
    st.sampled_from(
        ["user.a", "user.b.c", "user." + "n" * 250, "trusted.t", "trusted." + "m" * 240, "security.other"]
    ),
    st.binary(max_size=40) | st.sampled_from([bytes(255), bytes(256), bytes(257), bytes(1500)]),
    max_size=5,
)


ACLS = st.none() | st.builds(acl, st.integers(0, 7), group=st.integers(0, 7))


KINDS = st.sampled_from(["file", "directory", "link", "dangling", "fifo", "socket"])


ENTRIES = st.dictionaries(
    st.binary(min_size=1, max_size=12).filter(lambda n: not set(n) & set(b"\0/") and n not in {b".", b".."})
    | st.sampled_from([b"x" * 255, b"a", "\u00e9".encode(), b"\xff"]),
    st.tuples(KINDS, ATTRIBUTES, ACLS, ACLS),
    max_size=8,
)


def make(path: bytes, kind: str) -> None:
    if kind == "file":
        with open(path, "wb"):
            pass
    elif kind == "directory":
        os.mkdir(path)
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        os.mknod(path, 0o600 | stat.S_IFSOCK)
    else:
        os.symlink(b"nowhere" if kind == "dangling" else b".", path)


def mark(
    path: bytes, kind: str, attributes: dict[str, bytes], acls: tuple[bytes | None, bytes | None]
) -> None:
    for name, value in attributes.items():
        if kind in {"file", "directory"} or not name.startswith("user."):
            try:
                os.setxattr(path, name, value, follow_symlinks=False)
            except OSError as error:
                if error.errno != errno.ENOSPC:  # ext4 has room for a block of them
                    raise
    for acl_name, allowed in zip((ACCESS_ACL, DEFAULT_ACL), acls, strict=True):
        if allowed is not None and kind not in {"link", "dangling"}:
            try:
                os.setxattr(path, acl_name, allowed)
            except OSError as error:
                # Only directories have a default ACL.
                if error.errno not in {errno.ENOSPC, errno.EACCES}:
                    raise


@settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    entries=ENTRIES,
    below=st.sampled_from([b"", b"d", b"d/e"]),
    kinds=st.sampled_from([ALL, *(kind for kind in AttributeKinds if kind in ALL)]),
)
def test_every_way_finds_what_there_is(
    entries: dict[bytes, tuple[str, dict[str, bytes], bytes | None, bytes | None]],
    below: bytes,
    kinds: AttributeKinds,
    linking: Path,
) -> None:
    top = linking / "t"
    shutil.rmtree(top, ignore_errors=True)
    directory = top / os.fsdecode(below)
    directory.mkdir(parents=True)
    for name, (kind, attributes, *acls) in entries.items():
        path = os.path.join(os.fsencode(directory), name)
        make(path, kind)
        mark(path, kind, attributes, (acls[0], acls[1]))
    names = names_in(directory)
    wanted = expected(directory, names, kinds)
    held = {name: pairs for _, name, pairs in wanted}
    for way in WAYS:
        with pytest.MonkeyPatch.context() as patch:
            take(way, patch)
            assert read(top, below, names, kinds) == wanted, way
            fd = os.open(directory, os.O_PATH)
            try:
                for name in strings(names):
                    assert read_entry_attributes(fd, name, kinds) == held.get(name, ()), way
            finally:
                os.close(fd)


def test_more_than_a_call_holds(way: str, tmp_path: Path) -> None:
    """Rows go on where the last call stopped."""
    for name in ("a", "c"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "b").mkdir()
    give(tmp_path / "a", first="1")
    give(tmp_path / "b", **{f"n{number:03}" + "x" * 100: b"" for number in range(20)})
    names = b"a\0b\0c\0" * 5_000
    found = read(tmp_path, b"", names)
    assert [(row, name) for row, name, _ in found] == [
        (row, b"abc"[row % 3 : row % 3 + 1]) for row in range(15_000) if row % 3 < 2
    ]
    assert {held for _, _, held in found} == {
        held for _, _, held in expected(tmp_path, b"a\0b\0c\0", ALL) if isinstance(held, tuple)
    }


def test_a_call_stops_once_it_holds_enough(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    give(tmp_path / "a", first="1")
    names = b"a\0" * 100_000
    fd = os.open(tmp_path, os.O_PATH)
    try:
        row, offset, rows = _files.list_xattrs(fd, b"", names, 7, 10, False)
    finally:
        os.close(fd)
    assert offset == 10 + 2 * len(rows)
    assert [row for row, _ in rows] == list(range(7, row))
    assert 1_000 < len(rows) < 20_000


def test_the_longest_lists_and_values(way: str, xfs: Path) -> None:
    (xfs / "a").write_bytes(b"")
    os.setxattr(xfs / "a", "user.long", bytes(65_536))
    for number in range(250):
        os.setxattr(xfs / "a", f"user.{number:03}" + "x" * 240, b"%d" % number)
    names = names_in(xfs)
    assert len(b"".join(os.fsencode(n) + b"\0" for n in os.listxattr(xfs / "a"))) > 60_000
    assert read(xfs, b"", names) == expected(xfs, names, ALL)
    # Past XATTR_LIST_MAX nobody can list them, which is not the same as none.
    for number in range(250, 300):
        os.setxattr(xfs / "a", f"user.{number:03}" + "x" * 240, b"")
    assert read(xfs, b"", names) == [(strings(names).index(b"a"), b"a", errno.E2BIG)]


def test_attributes_that_come_and_go_meanwhile(way: str, tmp_path: Path) -> None:
    """A list that outgrows the first buffer between two calls, and a value; and one that is gone between."""
    (tmp_path / "a").write_bytes(b"")
    many = {f"user.{number}" + "x" * 200: b"%d" % number for number in range(8)}
    give(tmp_path / "a", stays="1", grows="short")
    over = threading.Event()

    def change() -> None:
        while not over.is_set():
            for name, value in many.items():
                os.setxattr(tmp_path / "a", name, value)
            os.setxattr(tmp_path / "a", "user.grows", b"l" * 900)
            for name in many:
                os.removexattr(tmp_path / "a", name)
            os.setxattr(tmp_path / "a", "user.grows", b"short")

    changing = threading.Thread(target=change)
    changing.start()
    try:
        for _ in range(1_500):
            ((row, name, held),) = read(tmp_path, b"", b"a\0")
            assert (row, name) == (0, b"a")
            assert isinstance(held, tuple)
            pairs = dict(held)
            assert pairs.pop(b"user.stays") == b"1"
            assert pairs.pop(b"user.grows") in {b"short", b"l" * 900}
            assert pairs.items() <= {os.fsencode(name): value for name, value in many.items()}.items()
    finally:
        over.set()
        changing.join()


def test_who_is_gone_has_none(way: str, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/a").write_bytes(b"")
    give(tmp_path / "d/a", x="1")
    pair = ((b"user.x", b"1"),)
    assert read(tmp_path, b"d", b"0\0a\0b\0") == [(1, b"a", pair)]
    fd = os.open(tmp_path / "d", os.O_PATH)
    try:
        assert read_entry_attributes(fd, b"a", ALL) == pair
        assert read_entry_attributes(fd, b".", ALL) == ()
        with pytest.raises(FileNotFoundError):
            read_entry_attributes(fd, b"b", ALL)
    finally:
        os.close(fd)


def test_no_link_leads_out(way: str, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/a").write_bytes(b"")
    (tmp_path / "r").mkdir()
    (tmp_path / "r/d").symlink_to("../out")
    (tmp_path / "r/f").write_bytes(b"")
    (tmp_path / "r/l").symlink_to("../out/a")
    give(tmp_path / "out/a", x="1")
    assert read(tmp_path / "r", b"", b"d\0f\0l\0") == []
    for path in (b"d", b"f", b"gone", b"gone/a"):
        with pytest.raises(FileChangedError):
            read(tmp_path / "r", path, b"a\0")
    for path in (b"..", b"/", b"d/../..", b"./d", b"x" * 256, b"d\0"):
        with pytest.raises(FileError):
            read(tmp_path / "r", path, b"a\0")


@pytest.mark.parametrize("name", [b"", b"..", b"../out/a", b"d/a", b"/", b"x" * 256, b"x" * 70_000])
@pytest.mark.parametrize("by_name", [False, True])
def test_only_names_are_asked_for(by_name: bool, name: bytes, tmp_path: Path) -> None:
    (tmp_path / "r/d").mkdir(parents=True)
    for place in ("out", "r/d"):
        (tmp_path / place).mkdir(exist_ok=True)
        (tmp_path / place / "a").write_bytes(b"")
        give(tmp_path / place / "a", x="1")
    fd = os.open(tmp_path / "r", os.O_PATH)
    try:
        found = _files.list_xattrs(fd, b"", name + b"\0d\0", 0, 0, by_name and _files.go_by_name())
        assert found == (2, len(name) + 3, [(0, errno.EINVAL)])
        for names, offset in ((b"d", 0), (b"d\0", 3), (b"d\0", -1)):
            with pytest.raises(ValueError, match="NUL"):
                _files.list_xattrs(fd, b"", names, 0, offset, by_name)
        assert _files.list_xattrs(fd, b"", b"", 3, 0, by_name) == (3, 0, [])
    finally:
        os.close(fd)
    with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
        _files.list_xattrs(fd, b"d", b"a\0", 0, 0, by_name)
