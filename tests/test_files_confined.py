"""Nothing that names, links or other processes do leads an operation out of the root."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.errors import ExitCode, FileChangedError, FileError, OutOfSpaceError, RdcError
from rdc.files import directory as directory_module
from rdc.files import metadata as metadata_module
from rdc.files import packed
from rdc.files.confined import Root
from rdc.files.replace import ANYTHING, CommitGroup, Replacement, is_temporary
from rdc.limits import NAME_BYTES, PATH_BYTES
from rdc.model.entries import Kind, Metadata
from tests.descriptors import open_descriptors

PLAIN = Metadata(0o644, 1_600_000_000_123_456_789, 0, 0)


def put(root: Root, path: bytes, data: bytes, metadata: Metadata = PLAIN) -> None:
    with CommitGroup(root, fsync=False, on_commit=lambda _: None) as group:
        replacement = Replacement(root, path)
        replacement.write(data)
        group.add(replacement, path, metadata, False, ANYTHING)


def get(root: Root, path: bytes) -> bytes:
    with root.open_read(path) as source:
        data = b"".join(source.spans())
        source.check_unchanged()
        return data


def snapshot(top: bytes) -> dict[bytes, tuple[Any, ...]]:
    """Everything below `top` that an operation could have changed."""
    found: dict[bytes, tuple[Any, ...]] = {}
    for current, directories, files in os.walk(top):
        for name in [*directories, *files, b"."]:
            path = os.path.join(current, name)
            status = os.lstat(path)
            content = Path(os.fsdecode(path)).read_bytes() if stat.S_ISREG(status.st_mode) else b""
            found[path] = (status.st_ino, status.st_mode, status.st_uid, status.st_mtime_ns, content)
    return found


@contextmanager
def as_nobody() -> Iterator[None]:
    """Without root's powers; run as another user this changes nothing."""
    if os.geteuid() != 0:
        yield
        return
    groups = os.getgroups()
    os.setgroups([])
    os.setegid(65534)
    os.seteuid(65534)
    # Dropping ids closes /proc/self to ourselves unless this is set again: PR_SET_DUMPABLE is 4.
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)


def no_openat2(directory: int, path: bytes) -> int:
    raise OSError(errno.ENOSYS, "")


@pytest.fixture(params=["openat2", "components"], autouse=True)
def walk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every test runs with both ways to walk a path."""
    if request.param == "components":
        monkeypatch.setattr(directory_module, "open_directory_beneath", no_openat2)
    return str(request.param)


@pytest.fixture
def top(tmp_path: Path) -> bytes:
    """Holds `inside`, the root, and `outside`, which nothing may touch."""
    path = os.fsencode(tmp_path)
    for side in (b"/inside", b"/outside"):
        os.makedirs(path + side + b"/a/b")
        for name in (b"/f", b"/a/f", b"/a/b/f"):
            Path(os.fsdecode(path + side + name)).write_bytes(side + name)
        os.symlink(b"f", path + side + b"/a/l")
    return path


@pytest.fixture
def root(top: bytes) -> Root:
    return Root.open(top + b"/inside")


names = st.binary(min_size=1, max_size=NAME_BYTES).filter(
    lambda n: n not in {b".", b".."} and b"/" not in n and b"\0" not in n and not is_temporary(n)
) | st.sampled_from([b"-rf", b"--", b"a\nb", b"\xff\xfe", b" ", b"...", b"*", b"n" * NAME_BYTES, b"\x1b[2J"])


@settings(max_examples=30, deadline=None)
@given(st.lists(names, min_size=1, max_size=6, unique=True))
def test_any_name_is_written_listed_read_and_removed(entries: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as where:
        root = Root.open(os.fsencode(where))
        folder = entries[0]
        root.make_directory(folder)
        for name in entries:
            put(root, folder + b"/" + name, name)
        listing = root.list(folder)
        assert listing.names == tuple(sorted(entries))
        for name in entries:
            assert get(root, folder + b"/" + name) == name
        for name in entries:
            root.remove_file(folder + b"/" + name)
        root.remove_directory(folder)
        assert os.listdir(where) == []


OPERATIONS: dict[str, Callable[[Root, bytes], object]] = {
    "list": lambda root, path: root.list(path),
    "identity": lambda root, path: root.identity(path),
    "kind": lambda root, path: root.kind(path),
    "metadata": lambda root, path: root.metadata(path),
    "open_read": get,
    "make_directory": lambda root, path: root.make_directory(path),
    "replace_symlink": lambda root, path: root.replace_symlink(path, b"target"),
    "remove_file": lambda root, path: root.remove_file(path),
    "remove_directory": lambda root, path: root.remove_directory(path),
    "set_metadata": lambda root, path: root.set_metadata(path, Kind.FILE, PLAIN, owner=True),
    "replace": lambda root, path: put(root, path, b"new"),
    "directory": lambda root, path: root.directory(path),
}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    "path",
    [
        b"..",
        b".",
        b"../outside/f",
        b"a/../../outside/f",
        b"a/..",
        b"a/./f",
        b"/etc/passwd",
        b"/",
        b"a//f",
        b"a/",
        b"a/f\0",
        b"n" * (NAME_BYTES + 1),
        b"n" * (NAME_BYTES + 1) + b"/f",
        b"a/" * (PATH_BYTES // 2) + b"f",
    ],
    ids=lambda p: repr(p[:20]),
)
def test_paths_that_are_no_plain_names_are_refused(
    top: bytes, root: Root, operation: str, path: bytes
) -> None:
    get(root, b"a/f")  # a known parent must not shorten the check
    before = snapshot(top)
    with pytest.raises(FileError) as caught:
        OPERATIONS[operation](root, path)
    assert caught.value.code == ExitCode.PARTIAL
    assert snapshot(top) == before


components = st.sampled_from(
    [b"a", b"b", b"f", b"l", b"..", b".", b"", b"inside", b"outside", b"\0", b"x" * 256]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(components, min_size=1, max_size=5), st.sampled_from(sorted(OPERATIONS)))
def test_no_path_leaves_the_root(parts: list[bytes], operation: str) -> None:
    with tempfile.TemporaryDirectory() as where:
        base = os.fsencode(where)
        for side in (b"/inside", b"/outside"):
            os.makedirs(base + side + b"/a/b")
            Path(os.fsdecode(base + side + b"/f")).write_bytes(side)
        os.symlink(b"../outside", base + b"/inside/l")
        before = snapshot(base + b"/outside")
        with suppress(FileError):
            OPERATIONS[operation](Root.open(base + b"/inside"), b"/".join(parts))
        assert snapshot(base + b"/outside") == before


@pytest.mark.parametrize("target", [b"../outside", b"../inside/real", b"/", b"loop"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_link_on_the_way_is_never_followed(top: bytes, root: Root, operation: str, target: bytes) -> None:
    os.rename(top + b"/inside/a", top + b"/inside/real")
    os.symlink(target, top + b"/inside/a")
    before = snapshot(top)
    for path in (b"a/f", b"a/b/f"):
        with pytest.raises(FileError):
            OPERATIONS[operation](root, path)
    assert snapshot(top) == before


@pytest.mark.parametrize("trusted", [0.0, 3600.0])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_directory_swapped_for_a_link_between_calls(
    top: bytes, root: Root, operation: str, trusted: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory_module, "TRUSTED_SECONDS", trusted)
    get(root, b"a/b/f")
    get(root, b"a/f")
    os.rename(top + b"/inside/a", top + b"/inside/moved")
    os.symlink(top + b"/outside/a", top + b"/inside/a")
    outside = snapshot(top + b"/outside")
    everything = snapshot(top)
    try:
        OPERATIONS[operation](root, b"a/b/f")
        assert trusted, "a fresh descriptor must notice the link"
    except FileError:
        pass
    assert snapshot(top + b"/outside") == outside
    if not trusted:
        assert snapshot(top) == everything


@pytest.mark.parametrize("trusted", [0.0, 3600.0])
def test_a_commit_notices_that_its_directory_was_moved(
    top: bytes, root: Root, trusted: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory_module, "TRUSTED_SECONDS", trusted)
    group = CommitGroup(root, on_commit=lambda _: None)
    replacement = Replacement(root, b"a/f")
    replacement.write(b"new")
    group.add(replacement, b"a/f", PLAIN, False, ANYTHING)
    os.rename(top + b"/inside/a", top + b"/outside/moved")
    os.mkdir(top + b"/inside/a")
    with pytest.raises(FileError, match="another one at that path"):
        group.flush()
    assert os.listdir(top + b"/inside/a") == []
    assert sorted(os.listdir(top + b"/outside/moved")) == [b"b", b"f", b"l"]
    assert Path(os.fsdecode(top + b"/outside/moved/f")).read_bytes() == b"/inside/a/f"


def test_a_directory_removed_and_made_again_is_used_at_once(
    top: bytes, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory_module, "TRUSTED_SECONDS", 3600.0)
    assert root.kind(b"a/b/f") == Kind.FILE
    os.unlink(top + b"/inside/a/b/f")
    os.rmdir(top + b"/inside/a/b")
    assert root.kind(b"a/b/f") is None
    os.mkdir(top + b"/inside/a/b")
    put(root, b"a/b/f", b"again")
    assert get(root, b"a/b/f") == b"again"
    assert root.list(b"a/b").names == (b"f",)


SWAP = """
import os, random, sys, time
os.chdir(sys.argv[1])
while True:
    for old, new in (("a", "kept"), ("trap", "a"), ("a", "trap"), ("kept", "a")):
        os.rename(old, new)
        if new == "a":  # an uneven beat, so that neither state is all that is ever seen
            time.sleep(random.random() / 5000)
"""


def test_links_swapped_in_while_everything_runs(top: bytes, root: Root) -> None:
    """Another process keeps exchanging a directory and a link to the outside."""
    outside = snapshot(top + b"/outside")
    os.symlink(top + b"/outside/a", top + b"/inside/trap")
    tried = ("open_read", "replace", "set_metadata", "remove_file", "replace_symlink", "list")
    done = failed = 0
    with subprocess.Popen([sys.executable, "-c", SWAP, top + b"/inside"]) as attacker:
        try:
            for turn in range(100_000):
                for operation in tried:
                    root.forget(b"")
                    try:
                        OPERATIONS[operation](root, b"a/b/%d" % turn if turn % 3 else b"a/f")
                        done += 1
                    except RdcError:
                        failed += 1
                if turn >= 500 and done > 100 and failed > 100:
                    break
            assert attacker.poll() is None
        finally:
            attacker.kill()
    assert snapshot(top + b"/outside") == outside
    assert done > 100, "the attack must leave some operations through, or nothing was tested"
    assert failed > 100, "and stop some"


def test_what_is_at_the_end_of_a_path_is_not_followed_either(top: bytes, root: Root) -> None:
    target = top + b"/outside/f"
    before = snapshot(top + b"/outside")
    acts: dict[bytes, Callable[[bytes], object]] = {
        b"1": lambda p: root.set_metadata(
            p, Kind.SYMLINK, Metadata(0o777, 5, 65534, 65534), owner=not os.geteuid()
        ),
        b"2": lambda p: put(root, p, b"new"),
        b"3": lambda p: root.replace_symlink(p, b"elsewhere"),
        b"4": root.remove_file,
    }
    for name, act in acts.items():
        os.symlink(target, top + b"/inside/" + name)
        act(name)
    assert snapshot(top + b"/outside") == before
    assert root.metadata(b"1").mtime_ns == 5
    assert root.kind(b"2") == Kind.FILE
    assert os.readlink(top + b"/inside/3") == b"elsewhere"
    assert root.kind(b"4") is None
    os.symlink(target, top + b"/inside/6")
    os.symlink(top + b"/outside/a", top + b"/inside/7")
    with pytest.raises(FileChangedError, match="symbolic link"):
        root.open_read(b"6")
    with pytest.raises(FileError):
        root.set_metadata(b"6", Kind.FILE, PLAIN, owner=False)
    with pytest.raises(FileError):
        root.make_directory(b"7")
    with pytest.raises(FileChangedError):
        root.list(b"7")
    assert snapshot(top + b"/outside") == before


def test_a_path_longer_than_one_system_call_takes(root: Root) -> None:
    before, path = root.list(b"").names, b""
    for level in range(60):
        path = (path + b"/" if path else b"") + b"%03d-" % level + b"d" * 196
        root.make_directory(path)
    assert len(path) > 12_000
    put(root, path + b"/file", b"deep")
    root.close()
    assert get(root, path + b"/file") == b"deep"
    assert root.list(path).names == (b"file",)
    root.remove_file(path + b"/file")
    while path:
        root.remove_directory(path)
        path = path.rpartition(b"/")[0]
    assert root.list(b"").names == before


def test_descriptors_stay_bounded_and_are_closed(root: Root) -> None:
    before = open_descriptors()
    for index in range(300):
        root.make_directory(b"d%d" % index)
        put(root, b"d%d/f" % index, b"x")
    assert len(open_descriptors() - before) <= directory_module.CACHED_DIRECTORIES
    root.close()
    assert open_descriptors() == before


def test_listing_agrees_with_stat(top: bytes, root: Root) -> None:
    os.mkfifo(top + b"/inside/fifo")
    os.utime(top + b"/inside/f", ns=(1, -5_000_000_001))
    os.utime(top + b"/inside/a/l", ns=(1, 2**33 * 10**9 + 1), follow_symlinks=False)
    os.chmod(top + b"/inside/f", 0o6751)  # noqa: S103
    for path in (b"", b"a"):
        listing = root.list(path)
        where = top + b"/inside/" + path
        assert list(listing.names) == sorted(os.listdir(where))
        targets = iter(listing.targets)
        for row, name in enumerate(listing.names):
            status = os.lstat(os.path.join(where, name))
            kind = Kind(listing.kinds[row])
            assert (
                stat.S_IFMT(status.st_mode)
                == {
                    Kind.FILE: stat.S_IFREG,
                    Kind.DIRECTORY: stat.S_IFDIR,
                    Kind.SYMLINK: stat.S_IFLNK,
                    Kind.SPECIAL: stat.S_IFIFO,
                }[kind]
            )
            assert listing.sizes[row] == (status.st_size if kind == Kind.FILE else 0)
            assert listing.metadata(row) == Metadata(
                stat.S_IMODE(status.st_mode), status.st_mtime_ns, status.st_uid, status.st_gid
            )
            assert kind != Kind.SYMLINK or next(targets) == os.readlink(os.path.join(where, name))
        assert not list(targets)


def test_listing_leaves_out_what_vanishes_meanwhile(
    top: bytes, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed, "_extension", None)
    scandir = os.scandir

    @contextmanager
    def racing(where: int) -> Iterator[Iterator[os.DirEntry[str]]]:
        with scandir(where) as entries:
            found = list(entries)
        os.unlink(top + b"/inside/a/f")
        os.unlink(top + b"/inside/a/l")
        yield iter(found)

    monkeypatch.setattr(os, "scandir", racing)
    assert root.list(b"a").names == (b"b",)


def test_listing_hands_temporaries_to_whoever_wants_them(root: Root) -> None:
    with Replacement(root, b"a/f") as replacement:
        found: list[bytes] = []
        assert root.list(b"a", on_temporary=found.append).names == (b"b", b"f", b"l")
        assert found == [replacement.temporary]
        assert root.list(b"a").names == (b"b", b"f", b"l")
        assert root.list(b"a", skip_temporaries=False).names == (replacement.temporary, b"b", b"f", b"l")
        near = [b".rdc", b".rdc+", b".rdc-", b".rdc-x", b".rdc-zz.tmp", b".rdc.", b".rdd"]
        for name in near:
            put(root, b"a/" + name, b"")
        assert root.list(b"a").names == (*near, b"b", b"f", b"l")


def test_a_link_replaced_meanwhile_is_an_error_not_a_gap(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    readlink = os.readlink

    def racing(name: bytes, *, dir_fd: int) -> bytes:
        put(root, b"a/l", b"a file now")
        return readlink(name, dir_fd=dir_fd)

    monkeypatch.setattr(packed, "_extension", None)
    monkeypatch.setattr(os, "readlink", racing)
    with pytest.raises(FileChangedError):
        root.list(b"a")


def test_reading_fails_by_name(top: bytes, root: Root) -> None:
    os.mkfifo(top + b"/inside/fifo")
    for path, found in (
        (b"fifo", "ENXIO"),
        (b"a", "a directory"),
        (b"a/l", "symbolic link"),
        (b"no", "vanished"),
    ):
        with pytest.raises(FileChangedError, match=found) as caught:
            root.open_read(path)
        assert caught.value.path == path
        assert caught.value.code == ExitCode.VANISHED
    with pytest.raises(FileChangedError, match="vanished"):
        root.identity(b"no/file")
    assert root.kind(b"no/file") is None
    with pytest.raises(FileError):
        root.kind(b"f/file")


def test_a_source_that_changes_is_noticed(top: bytes, root: Root) -> None:
    path = top + b"/inside/f"
    content = os.urandom(3 << 20)
    Path(os.fsdecode(path)).write_bytes(content)
    with root.open_read(b"f") as source:
        assert source.identity == root.identity(b"f")
        assert source.metadata == root.metadata(b"f")
        assert b"".join(source.spans(1000_003)) == content
        assert source.pread(17, 1000) == content[17:1017]
        source.check_unchanged()
        then = os.stat(path)
        with open(path, "r+b") as file:
            file.write(b"?")
        os.utime(path, ns=(then.st_atime_ns, then.st_mtime_ns))
        with pytest.raises(FileChangedError, match="another ctime"):
            source.check_unchanged()
        os.truncate(path, 2_000_000)
        with pytest.raises(FileChangedError, match="3145728 bytes, found 2000000"):
            b"".join(source.spans())
        with pytest.raises(FileChangedError, match="found 2000000"):
            source.check_unchanged()
        with pytest.raises(FileChangedError):
            source.pread(1_999_999, 2)
        with pytest.raises(FileChangedError):
            source.read_into(memoryview(bytearray(2)), 1_999_999)


def test_short_reads_are_no_end(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, length, offset: pread(fd, min(length, 3), offset))
    assert get(root, b"a/b/f") == b"/inside/a/b/f"
    preadv = os.preadv
    monkeypatch.setattr(os, "preadv", lambda fd, buffers, offset: preadv(fd, [buffers[0][:3]], offset))
    memory = memoryview(bytearray(b"?" * 12))
    with root.open_read(b"a/b/f") as source:
        source.read_into(memory[:11], 2)
        assert memory.tobytes() == b"nside/a/b/f?"
        with pytest.raises(FileChangedError, match="found 13"):
            source.read_into(memory, 2)


def test_a_root_whose_server_is_gone_is_told_by_name(top: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dead FUSE mount opens, and fails at the first question."""

    def gone(fd: int) -> None:
        raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))

    monkeypatch.setattr(os, "fstatvfs", gone)
    with pytest.raises(RdcError, match=r"ENOTCONN|not connected"):
        Root.open(top, writable=True)


def test_the_root_itself(top: bytes) -> None:
    with pytest.raises(FileError, match="expected a directory, found nothing"):
        Root.open(top + b"/none")
    with pytest.raises(FileError, match="expected a directory, found a file"):
        Root.open(top + b"/inside/f")
    with pytest.raises(FileError, match="NUL"):
        Root.open(top + b"/\0")
    with pytest.raises(FileError, match="not even the directory above"):
        Root.open(top + b"/none/below", create=True)
    os.symlink(b"none", top + b"/dangling")
    with pytest.raises(FileError, match="found a symbolic link to nothing; make what it leads to"):
        Root.open(top + b"/dangling", create=True)
    with pytest.raises(FileError):
        Root.open(b"", create=True)
    made = Root.open(top + b"/made", create=True, writable=True)
    assert os.path.isdir(top + b"/made")
    assert made.list(b"").names == ()
    os.symlink(b"inside", top + b"/link")
    assert get(Root.open(top + b"/link"), b"f") == b"/inside/f"
    assert Root.open(top + b"/inside").identity(b"") == Root.open(top + b"/link/").identity(b"")
    hidden = Root.open(top + b"/inside", label=b"module")
    with pytest.raises(FileError) as caught:
        hidden.open_read(b"none")
    assert str(caught.value).startswith("module/none: ")
    for act in (hidden.remove_directory, hidden.remove_file):
        with pytest.raises(FileError):
            act(b"")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
def test_no_room_stops_the_run(root: Root, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise OSError(number, "")

    for name, operation in {
        "mkdir": "make_directory",
        "symlink": "replace_symlink",
        "unlink": "remove_file",
    }.items():
        with monkeypatch.context() as patch:
            patch.setattr(os, name, fail)
            with pytest.raises(OutOfSpaceError) as caught:
                OPERATIONS[operation](root, b"a/f")
            assert caught.value.code == ExitCode.FILE_IO


@pytest.mark.parametrize("chmod", ["fchmodat2", "proc"])
def test_metadata_to_the_nanosecond_and_bit(root: Root, chmod: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if chmod == "proc":

        def missing(name: bytes, directory: int, mode: int) -> None:
            raise OSError(errno.ENOSYS, "")

        monkeypatch.setattr(metadata_module, "chmod_no_follow", missing)
    owner = os.geteuid() == 0
    uid, gid = (1234, 2345) if owner else (os.geteuid(), os.getegid())
    for path, kind, mode in (
        (b"f", Kind.FILE, 0o6755),
        (b"a/f", Kind.FILE, 0o000),
        (b"a/b", Kind.DIRECTORY, 0o1700),
    ):
        for mtime in (1_700_000_000_987_654_321, -1):
            wanted = Metadata(mode, mtime, uid, gid)
            root.set_metadata(path, kind, wanted, owner=owner)
            assert root.metadata(path) == wanted
    if owner:
        # The kernel clears these bits when the owner changes, though the mode itself should not.
        root.set_metadata(b"f", Kind.FILE, Metadata(0o6755, 1, 4321, 5432), owner=True)
        assert root.metadata(b"f") == Metadata(0o6755, 1, 4321, 5432)
    put(root, b"new", b"content", Metadata(0o4711, 1_700_000_000_987_654_321, uid, gid))
    assert root.metadata(b"new").mode == 0o4711
    assert root.metadata(b"new").mtime_ns == 1_700_000_000_987_654_321
    with CommitGroup(root, on_commit=lambda _: None) as group:
        group.add(Replacement(root, b"own"), b"own", Metadata(0o6711, 1, uid, gid), owner, None)
    assert root.metadata(b"own") == Metadata(0o6711, 1, uid, gid)


def test_metadata_of_what_may_not_be_read(top: bytes, root: Root) -> None:
    path = top + b"/inside/a/f"
    if os.geteuid() == 0:
        os.chown(path, 65534, 65534)
    os.chmod(path, 0)
    with as_nobody():
        wanted = Metadata(0o040, 77, os.geteuid(), os.getegid())
        root.set_metadata(b"a/f", Kind.FILE, wanted, owner=False)
        assert root.metadata(b"a/f").mode == 0o040
        assert root.metadata(b"a/f").mtime_ns == 77


def test_directories_that_may_not_be_written_or_read(top: bytes, root: Root) -> None:
    if os.geteuid() == 0:
        os.chown(top + b"/inside/a", 65534, 65534)
    os.chmod(top + b"/inside/a", 0o500)
    with as_nobody():
        for operation in ("replace", "replace_symlink", "remove_file", "make_directory"):
            with pytest.raises(FileError, match=r"EACCES.*check its permissions") as caught:
                OPERATIONS[operation](root, b"a/g" if operation == "make_directory" else b"a/f")
            assert caught.value.code == ExitCode.PARTIAL
        assert get(root, b"a/f") == b"/inside/a/f"
    os.chmod(top + b"/inside/a", 0o000)
    with as_nobody():
        for operation in ("list", "open_read"):
            with pytest.raises(FileError, match="EACCES"):
                OPERATIONS[operation](root, b"a/b" if operation == "open_read" else b"a")
    # A drop box: names may be made, and passed through, but not read.
    os.chmod(top + b"/inside/a", 0o300)
    with as_nobody():
        mine = Metadata(0o600, 9, os.geteuid(), os.getegid())
        with CommitGroup(root, on_commit=lambda _: None) as group:
            group.add(Replacement(root, b"a/dropped"), b"a/dropped", mine, False, None)
        assert root.metadata(b"a/dropped") == mine
        with pytest.raises(FileError):
            root.list(b"a")
