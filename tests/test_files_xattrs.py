"""What attributes entries have: as the system says, by name, through /proc and in Python alone."""

from __future__ import annotations

import ast
import ctypes
import errno
import os
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rdc.errors import ExitCode, FileChangedError, FileError
from rdc.files import _xattrs, xattrs
from rdc.files.confined import Root
from rdc.files.xattrs import read_directory_attributes, read_entry_attributes
from rdc.limits import SMALL_MANIFEST
from rdc.model.attributes import ACCESS_ACL, DEFAULT_ACL, AttributeKinds
from rdc.model.entries import strings
from rdc.model.sync import SyncOptions
from rdc.session import tree_attributes
from tests.syncing import run_sync
from tests.test_sync_attributes import acl, allow, attributes_of, expect_equal, give
from tests.trees import Directory, Link, tree, write_tree
from tests.xattr_ways import ALL, WAYS, Read, read

BOTH = SyncOptions(acls=True, xattrs=True, fsync=False)


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    take(request.param, monkeypatch)
    return str(request.param)


def take(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    extension, by_name = WAYS[way]
    monkeypatch.setattr(xattrs, "_extension", extension)
    monkeypatch.setattr(xattrs, "_by_name", by_name)


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
    assert _xattrs.go_by_name() is works
    assert (xattrs._extension, xattrs._by_name) == (_xattrs, works)


# Trees

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
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    entries=ENTRIES,
    below=st.sampled_from([b"", b"d", b"d/e"]),
    kinds=st.sampled_from([ALL, *AttributeKinds]),
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
        row, offset, rows = _xattrs.list_xattrs(fd, b"", names, 7, 10, False)
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


# What is not there, or may not be read


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
        found = _xattrs.list_xattrs(fd, b"", name + b"\0d\0", 0, 0, by_name and _xattrs.go_by_name())
        assert found == (2, len(name) + 3, [(0, errno.EINVAL)])
        for names, offset in ((b"d", 0), (b"d\0", 3), (b"d\0", -1)):
            with pytest.raises(ValueError, match="NUL"):
                _xattrs.list_xattrs(fd, b"", names, 0, offset, by_name)
        assert _xattrs.list_xattrs(fd, b"", b"", 3, 0, by_name) == (3, 0, [])
    finally:
        os.close(fd)
    with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
        _xattrs.list_xattrs(fd, b"d", b"a\0", 0, 0, by_name)


def read_elsewhere(top: Path, *before: str, way: str = "", refused: str = "") -> tuple[bool, Read]:
    """What `tests.xattr_ways` prints. `before`: what stands before its name in the command."""
    ended = subprocess.run(
        [*before, "tests.xattr_ways", way, refused, top], check=True, capture_output=True, text=True
    )
    by_name, found = ast.literal_eval(ended.stdout)
    return by_name, found


PYTHON = (sys.executable, "-m")
REFUSING = (*PYTHON, "tests.refused_calls")


@pytest.fixture
def two(tmp_path: Path) -> Path:
    (tmp_path / "d").mkdir()
    for name in "abc":
        (tmp_path / "d" / name).write_bytes(b"")
    give(tmp_path / "d/a", x="1")
    give(tmp_path / "d/c", x="3", y="4")
    return tmp_path


def every(number: int) -> Read:
    return [(row, name, number) for row, name in enumerate((b"a", b"b", b"c"))]


HELD: Read = [(0, b"a", ((b"user.x", b"1"),)), (2, b"c", ((b"user.x", b"3"), (b"user.y", b"4")))]


@pytest.mark.parametrize("number", ["EPERM", "ENOSYS", "EACCES"])
@pytest.mark.parametrize("calls", ["BY_NAME", "GET_BY_NAME", "LIST_BY_NAME"])
def test_behind_a_filter_of_system_calls(calls: str, number: str, two: Path) -> None:
    """Whatever it answers, and though it lets one of the two calls pass."""
    assert read_elsewhere(two, *PYTHON) == (_xattrs.go_by_name(), HELD)
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


def test_without_rights(way: str, two: Path) -> None:
    (two / "d/a").chmod(0o600)
    (two / "d").chmod(0o755)
    assert as_nobody(two, way) == [(0, b"a", errno.EACCES), HELD[1]]
    (two / "d").chmod(0o744)
    assert as_nobody(two, way) == every(errno.EACCES)


# Whole trees


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


def test_a_sync_each_way(way: str, source: Path) -> None:
    destination = source.parent / "d"
    for number in range(2):
        give(source / "plain", number=str(number))
        run = run_sync(source, destination, BOTH)
        assert (run.done.exit, run.problems) == (ExitCode.OK, [])
        expect_equal(source, destination)
    assert run_sync(source, destination, BOTH).items == []


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
        get_xattr = staticmethod(_xattrs.get_xattr)

        @staticmethod
        def list_xattrs(*arguments: object) -> object:
            calls.append(arguments)
            return _xattrs.list_xattrs(*arguments)  # type: ignore[arg-type]

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
    assert problem.path == b"d"
    assert "cannot open the directory" in problem.message
    assert attributes_of(destination) == before
    assert (destination / "plain").read_bytes() == b"a new version"
    assert run_sync(source, destination, BOTH).done.exit is ExitCode.OK
    expect_equal(source, destination)
