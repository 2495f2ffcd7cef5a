"""Root lists, reads, opens and sets metadata, and names each failure."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from rdc.errors import ExitCode, FileChangedError, FileError, OutOfSpaceError, RdcError
from rdc.files.base import metadata as metadata_module
from rdc.files.replace.commit_group import CommitGroup
from rdc.files.replace.replacement import Replacement
from rdc.files.root import lister
from rdc.files.root.root import Root
from rdc.model.entries import Kind, Metadata
from tests.files.root.root_entries import OPERATIONS, as_nobody, get, put


def test_listing_agrees_with_stat(top: bytes, root: Root) -> None:
    os.mkfifo(top + b"/inside/fifo")
    os.utime(top + b"/inside/f", ns=(1, -5_000_000_001))
    os.utime(top + b"/inside/a/l", ns=(1, 2**33 * 10**9 + 1), follow_symlinks=False)
    os.chmod(top + b"/inside/f", 0o6751)  # noqa: S103 - this is the question
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
    monkeypatch.setattr(lister, "_extension", None)
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
        assert root.list(b"a").names == (b"b", b"f", b"l")
        assert root.listed(b"a").reserved == (replacement.temporary,)
        near = [b".rdc", b".rdc+", b".rdc-", b".rdc-x", b".rdc-zz.tmp", b".rdc.", b".rdd"]
        for name in near:
            put(root, b"a/" + name, b"")
        assert root.list(b"a").names == (*near, b"b", b"f", b"l")


def test_a_link_replaced_meanwhile_is_what_replaced_it(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    readlink = os.readlink

    def racing(name: bytes, *, dir_fd: int) -> bytes:
        put(root, b"a/l", b"a file now")
        return readlink(name, dir_fd=dir_fd)

    monkeypatch.setattr(lister, "_extension", None)
    monkeypatch.setattr(os, "readlink", racing)
    found = root.listed(b"a")
    assert found.listing.names.split(b"\0")[:-1] == [b"b", b"f", b"l"]
    assert (found.listing.kinds[2], found.bad) == (Kind.FILE, ())


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
        assert caught.value.path_bytes == path
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
    for directory in (True, False):
        with pytest.raises(FileError):
            hidden.remove(b"", directory=directory)


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


def test_what_a_run_sets_of_an_entry_is_a_step_of_its_own(root: Root) -> None:
    """A file that a rename closed gets its mode back like this before it is deleted."""
    listed = root.identity(b"a/f")
    for mode in (0o600, 0o640):
        root.set_metadata(b"a/f", Kind.FILE, replace(root.metadata(b"a/f"), mode=mode), owner=False)
    assert root.identity(b"a/f") != listed
    assert root.check.is_still(listed, root.identity(b"a/f"))
    root.remove(b"a/f", listed)
