"""The C listing of a directory equals the reference in Python."""

from __future__ import annotations

import errno
import os
import random
import stat
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.files import _files
from rdc.files.base.paths import is_reserved
from rdc.files.root.lister import look_at
from rdc.limits import DIRECTORY_BYTES
from rdc.model.entries import BadCall, Kind, Listed, strings
from rdc.model.preserved import END_NS, FIRST_NS, packed_time, real_time
from tests.files.root.listings import in_c, in_python, make, names, opened
from tests.files.root.root_entries import as_nobody
from tests.support.share import examples


def read(path: bytes, limit: int = DIRECTORY_BYTES) -> Listed:
    """What both say of a directory."""
    with opened(path) as fd:
        found = in_c(fd, limit)
        assert found == in_python(fd, limit)
    assert all(is_reserved(name) for name in found.reserved)
    assert not any(is_reserved(name) for name in strings(found.listing.names))
    return found


@settings(deadline=None, max_examples=examples(60))
@given(st.dictionaries(names, st.sampled_from(list(Kind)[:4]), max_size=40), st.integers(0, 1 << 30))
def test_any_directory(entries: dict[bytes, Kind], turn: int) -> None:
    with tempfile.TemporaryDirectory() as made:
        top = os.fsencode(made)
        for i, (name, kind) in enumerate(entries.items()):
            make(top + b"/" + name, kind, turn + i)
        found = read(top)
        plain = sorted(name for name in entries if not is_reserved(name))
        assert strings(found.listing.names) == plain
        assert found.listing.kinds == bytes(entries[name] for name in plain)
        assert list(found.reserved) == sorted(entries.keys() - plain)
        assert found.bad == ()
        with opened(top) as fd:
            for row, name in enumerate(plain):
                alone = look_at(name, fd)
                assert (alone.listing, alone.inodes) == (found.listing.rows([row]), found.inodes.rows([row]))
            assert look_at(b"nothing there", fd).listing.count == 0
        for name, kind in entries.items():
            if kind == Kind.DIRECTORY:
                os.chmod(top + b"/" + name, 0o700)


def test_kinds_and_metadata_are_what_a_stat_says(tmp_path: Path) -> None:
    top = os.fsencode(tmp_path)
    for i, kind in enumerate((Kind.FILE, Kind.DIRECTORY, Kind.SYMLINK, Kind.SPECIAL, Kind.SPECIAL)):
        make(top + b"/%d" % i, kind, 1000 + i)
    if os.geteuid() == 0:
        os.mknod(top + b"/5", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
        os.mknod(top + b"/6", 0o600 | stat.S_IFBLK, os.makedev(7, 200))
    os.link(top + b"/0", top + b"/9")
    listed = read(top)
    found, inodes = listed.listing.unpacked(), listed.inodes
    assert found.kinds[:-1] == bytes([Kind.FILE, Kind.DIRECTORY, Kind.SYMLINK, *[3] * (len(found) - 4)])
    for row, name in enumerate(found.names):
        status = os.lstat(top + b"/" + name)
        metadata = found.metadata(row)
        assert metadata.mode == stat.S_IMODE(status.st_mode)
        assert (metadata.mtime_ns, metadata.uid, metadata.gid) == (
            status.st_mtime_ns,
            status.st_uid,
            status.st_gid,
        )
        assert found.sizes[row] == (status.st_size if stat.S_ISREG(status.st_mode) else 0)
        assert inodes.identity(row) == (status.st_dev, status.st_ino)
        assert inodes.links[4 * row : 4 * row + 4] == status.st_nlink.to_bytes(4, "little")
        assert inodes.allocated[8 * row : 8 * row + 8] == (status.st_blocks * 512).to_bytes(8, "little")
        assert inodes.rows([row]).identity(0) == inodes.identity(row)
    assert found.targets == (os.readlink(top + b"/2"),)
    os.chmod(top + b"/1", 0o700)


def test_distant_times_are_stamps() -> None:
    """In memory (tmpfs), where the file system itself takes all 64 bits of seconds."""
    edges = (-(1 << 63), FIRST_NS, 0, END_NS, 1 << 63)
    times = [
        *(edge + off for edge in edges for off in (-(10**9), -1, 0, 1, 10**9)),
        *(sign * second * 10**9 + off for sign in (-1, 1) for second in (2**34, 2**62) for off in (0, 7)),
    ]
    with tempfile.TemporaryDirectory(dir="/dev/shm") as made:
        top = os.fsencode(made)
        for i, time in enumerate(times):
            make(top + b"/%02d" % i, Kind.FILE, 0)
            os.utime(top + b"/%02d" % i, ns=(0, time))
        listing = read(top).listing
    found = listing.unpacked()
    assert list(found.mtimes) == [packed_time(time) for time in times]
    assert [real_time(packed) for packed in found.mtimes] == times
    assert found.packed() == listing


def test_a_directory_of_50_000_entries(tmp_path: Path) -> None:
    top = os.fsencode(tmp_path)
    rng = random.Random(50_000)
    made: set[bytes] = set()
    while len(made) < 50_000:
        made.add(rng.choice([b"", b"icon_", b"a_long_common_prefix_"]) + b"%x" % rng.getrandbits(24))
    with opened(top) as where:
        for i, name in enumerate(made):
            if i % 100:
                os.mknod(name, 0o600, dir_fd=where)
            else:
                os.symlink(name + b"'s target", name, dir_fd=where)
    found = read(top).listing
    assert strings(found.names) == sorted(made)
    assert found.kinds.count(Kind.SYMLINK) == 500 == found.targets.count(b"'s target\0")


def test_an_empty_directory_and_one_that_is_gone(tmp_path: Path) -> None:
    found = read(os.fsencode(tmp_path))
    assert found.is_empty
    assert found.listing.count == 0
    gone = os.fsencode(tmp_path / "gone")
    os.mkdir(gone)
    with opened(gone) as fd:
        os.rmdir(gone)
        for reader in (in_c, in_python):
            with pytest.raises(FileNotFoundError):
                reader(fd)


def test_what_may_be_held_is_bounded(tmp_path: Path) -> None:
    top = os.fsencode(tmp_path)
    for i in range(20):
        make(top + b"/%07d" % i, Kind.FILE, i)
    os.symlink(b"t" * 99, top + b"/link")
    needed = 20 * (160 + 8) + (160 + 5) + 100
    assert read(top, needed).listing.count == 21
    for limit in (needed - 1, needed - 100, needed - 101, 160, 0):
        with opened(top) as fd:
            for reader in (in_c, in_python):
                with pytest.raises(OSError, match="too large") as caught:
                    reader(fd, limit)
                assert caught.value.errno == errno.EOVERFLOW
    with opened(top) as fd, pytest.raises(ValueError, match="bytes"):
        _files.list_directory(fd, b"", -1, 1, 1)


def test_what_is_no_readable_directory(tmp_path: Path) -> None:
    top = os.fsencode(tmp_path)
    make(top + b"/file", Kind.FILE, 0)
    os.chmod(tmp_path, 0o444)
    with opened(top) as directory, opened(top + b"/file") as file:
        for reader in (in_c, in_python):
            with pytest.raises(NotADirectoryError):
                reader(file)
            # It may be read, but not searched: the names without their metadata are no listing.
            with as_nobody(), pytest.raises(PermissionError):
                reader(directory)
    os.chmod(tmp_path, 0o700)
    for reader in (in_c, in_python):
        with pytest.raises(OSError, match="Bad file descriptor"):
            reader(directory)


def test_entries_that_come_and_go_while_they_are_read(tmp_path: Path) -> None:
    """What is there all the time is in every listing once, what comes and goes at most once."""
    top = os.fsencode(tmp_path)
    lasting = [b"lasting%03d" % i for i in range(300)]
    passing = {b"passing%03d" % i for i in range(300)}
    for i, name in enumerate(lasting):
        make(top + b"/" + name, Kind.SYMLINK if i % 3 else Kind.FILE, i)
    stop = threading.Event()

    def disturb() -> None:
        rng = random.Random(8)
        many = sorted(passing)
        while not stop.is_set():
            path = top + b"/" + rng.choice(many)
            with suppress(FileNotFoundError, FileExistsError):
                os.unlink(path) if rng.random() < 0.5 else os.symlink(b"to", path)

    disturber = threading.Thread(target=disturb)
    disturber.start()
    seen = set()
    try:
        with opened(top) as fd:
            for turn in range(400):
                reader = in_python if turn % 8 == 0 else in_c
                found = reader(fd).listing
                rows = strings(found.names)
                assert rows == sorted(set(rows))
                assert len(found.unpacked()) == found.count == len(rows)
                assert [name for name in rows if name not in passing] == lasting
                assert found.targets.count(b"\0") == found.kinds.count(Kind.SYMLINK)
                seen.add(found.count)
    finally:
        stop.set()
        disturber.join()
    assert len(seen) > 10, "the directory must change, or nothing was tested"


def test_a_link_replaced_by_a_file_meanwhile_is_no_gap(tmp_path: Path) -> None:
    """A thread keeps renaming files over links: each name is in each listing, or bad."""
    top = os.fsencode(tmp_path)
    rows = [b"%03d" % i for i in range(200)]
    for name in rows:
        os.symlink(b"to", top + b"/" + name)
    stop = threading.Event()

    def replace() -> None:
        while not stop.is_set():
            for name in rows:
                make(top + b"/new", Kind.FILE, 0)
                os.rename(top + b"/new", top + b"/" + name)
                os.symlink(b"to", top + b"/new")
                os.rename(top + b"/new", top + b"/" + name)

    replacer = threading.Thread(target=replace)
    replacer.start()
    replaced = 0
    try:
        with opened(top) as fd:
            for turn in range(2_000):
                found = (in_python if turn % 8 == 0 else in_c)(fd)
                bad = [one.name for one in found.bad]
                names = strings(found.listing.names)
                assert sorted({*names, *bad} - {b"new"}) == rows
                assert all(one.call is BadCall.READ_LINK for one in found.bad)
                replaced += found.listing.kinds.count(Kind.FILE)
    finally:
        stop.set()
        replacer.join()
    assert replaced, "the race must have been lost once, or nothing was tested"
