"""Reading a directory in C gives what its definition in Python gives, whatever is in the directory."""

from __future__ import annotations

import errno
import os
import random
import socket
import stat
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.errors import ExitCode, FileError
from rdc.files import _walk, listing, packed
from rdc.files.confined import Root
from rdc.files.temporary import TEMPORARY_PATTERN, is_temporary, temporary_name
from rdc.limits import DIRECTORY_BYTES, NAME_BYTES, PATH_BYTES
from rdc.model.entries import Kind, PackedListing, strings
from tests.descriptors import open_descriptors
from tests.test_files_confined import as_nobody

NANOSECONDS_MIN, NANOSECONDS_MAX = -(1 << 63), (1 << 63) - 1


@contextmanager
def opened(path: bytes) -> Iterator[int]:
    fd = os.open(path, os.O_RDONLY)
    try:
        yield fd
    finally:
        os.close(fd)


def in_c(fd: int, on_temporary: Callable[[bytes], None] | None, limit: int) -> PackedListing:
    assert packed._extension is _walk
    return packed.read_packed(fd, on_temporary, limit)


def in_python(fd: int, on_temporary: Callable[[bytes], None] | None, limit: int) -> PackedListing:
    return listing.read_directory(fd, on_temporary, limit).packed()


def read(path: bytes, limit: int = DIRECTORY_BYTES) -> PackedListing:
    """What both say of a directory, temporaries being entries; with those apart they must agree too."""
    with opened(path) as fd:
        whole = in_c(fd, None, limit)
        assert whole == in_python(fd, None, limit)
        apart: tuple[list[bytes], list[bytes]] = ([], [])
        without = in_c(fd, apart[0].append, limit)
        assert without == in_python(fd, apart[1].append, limit)
        assert apart[0] == apart[1]
        entries, inodes = packed.read_packed_inodes(fd, None, limit)
        assert entries == whole
        assert listing.read_with_inodes(fd, None, limit) == (entries.unpacked(), inodes)
    assert sorted([*strings(without.names), *apart[0]]) == strings(whole.names)
    assert all(is_temporary(name) for name in apart[0])
    assert not any(is_temporary(name) for name in strings(without.names))
    return whole


def make(path: bytes, kind: Kind, turn: int) -> None:
    if kind == Kind.FILE:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
        os.truncate(path, (turn * 0x1234_5678) % (1 << 42))
    elif kind == Kind.DIRECTORY:
        os.mkdir(path)
    elif kind == Kind.SYMLINK:
        os.symlink(b"t" * (1 + turn * 997 % 4095), path)
    elif turn % 2:
        os.mkfifo(path)
    else:
        with socket.socket(socket.AF_UNIX) as bound, opened(os.path.dirname(path)) as where:
            # A socket's path has 108 bytes at most.
            bound.bind(b"/proc/self/fd/%d/s" % where)
        os.rename(os.path.dirname(path) + b"/s", path)
    if kind != Kind.SYMLINK:
        os.chmod(path, turn * 0o1234567 & 0o7777)
    if os.geteuid() == 0:
        os.lchown(path, turn * 0x0765_4321 & 0xFFFF_FFFE, turn * 0x1357_9BDF & 0xFFFF_FFFE)
        if kind != Kind.SYMLINK:
            os.chmod(path, turn * 0o1234567 & 0o7777)


# Names that differ early, late, or only by being longer: the sort looks at 8 bytes first.
prefixes = st.sampled_from([b"", b"a", b"seven_b", b"eight_by", b"nine_byte", b"x" * 200, b".rdc-"])
endings = st.binary(max_size=55) | st.sampled_from([b"\x01", b"\xff", b"\n", b" ", b"~", b"\x80"])
names = st.one_of(
    st.builds(lambda prefix, end: prefix + end, prefixes, endings),
    st.from_regex(TEMPORARY_PATTERN, fullmatch=True),
    st.from_regex(rb"\.rdc-[0-9a-fgA/ ]{15,17}\.tm[pq]?", fullmatch=True),
).map(lambda name: name.replace(b"\0", b"0").replace(b"/", b"|"))
names = names.filter(lambda name: name not in {b"", b".", b"..", b"s"})


@settings(deadline=None, max_examples=60)
@given(st.dictionaries(names, st.sampled_from(list(Kind)), max_size=40), st.integers(0, 1 << 30))
def test_any_directory(entries: dict[bytes, Kind], turn: int) -> None:
    with tempfile.TemporaryDirectory() as made:
        top = os.fsencode(made)
        for i, (name, kind) in enumerate(entries.items()):
            make(top + b"/" + name, kind, turn + i)
        found = read(top)
        assert found.names == b"".join(name + b"\0" for name in sorted(entries))
        assert found.kinds == bytes(entries[name] for name in sorted(entries))
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
    found = read(top).unpacked()
    with opened(top) as fd:
        _, inodes = packed.read_packed_inodes(fd, None)
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


def test_times_past_64_bits_of_nanoseconds_are_clamped() -> None:
    """In memory (tmpfs), where the file system itself takes all 64 bits of seconds."""
    times = [
        *(
            edge + off
            for edge in (NANOSECONDS_MIN, 0, NANOSECONDS_MAX)
            for off in (-(10**9), -1, 0, 1, 10**9)
        ),
        *(sign * second * 10**9 + off for sign in (-1, 1) for second in (2**34, 2**62) for off in (0, 7)),
    ]
    with tempfile.TemporaryDirectory(dir="/dev/shm") as made:
        top = os.fsencode(made)
        for i, time in enumerate(times):
            make(top + b"/%02d" % i, Kind.FILE, 0)
            os.utime(top + b"/%02d" % i, ns=(0, time))
        found = read(top).unpacked()
    assert list(found.mtimes) == [min(max(time, NANOSECONDS_MIN), NANOSECONDS_MAX) for time in times]


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
    found = read(top)
    assert strings(found.names) == sorted(made)
    assert found.kinds.count(Kind.SYMLINK) == 500 == found.targets.count(b"'s target\0")


def test_an_empty_directory_and_one_that_is_gone(tmp_path: Path) -> None:
    assert read(os.fsencode(tmp_path)) == PackedListing(0, *[b""] * 8)
    gone = os.fsencode(tmp_path / "gone")
    os.mkdir(gone)
    with opened(gone) as fd:
        os.rmdir(gone)
        for reader in (in_c, in_python):
            with pytest.raises(FileNotFoundError):
                reader(fd, None, DIRECTORY_BYTES)


def test_what_may_be_held_is_bounded(tmp_path: Path) -> None:
    top = os.fsencode(tmp_path)
    for i in range(20):
        make(top + b"/%07d" % i, Kind.FILE, i)
    os.symlink(b"t" * 99, top + b"/link")
    needed = 20 * (160 + 8) + (160 + 5) + 100
    assert read(top, needed).count == 21
    for limit in (needed - 1, needed - 100, needed - 101, 160, 0):
        with opened(top) as fd:
            for reader in (in_c, in_python):
                with pytest.raises(OSError, match="too large") as caught:
                    reader(fd, None, limit)
                assert caught.value.errno == errno.EOVERFLOW
    with opened(top) as fd, pytest.raises(ValueError, match="bytes"):
        _walk.read_directory(fd, True, -1, False)


def test_what_is_no_readable_directory(tmp_path: Path) -> None:
    top = os.fsencode(tmp_path)
    make(top + b"/file", Kind.FILE, 0)
    os.chmod(tmp_path, 0o444)
    with opened(top) as directory, opened(top + b"/file") as file:
        for reader in (in_c, in_python):
            with pytest.raises(NotADirectoryError):
                reader(file, None, DIRECTORY_BYTES)
            # It may be read, but not searched: the names without their metadata are no listing.
            with as_nobody(), pytest.raises(PermissionError):
                reader(directory, None, DIRECTORY_BYTES)
    os.chmod(tmp_path, 0o700)
    for reader in (in_c, in_python):
        with pytest.raises(OSError, match="Bad file descriptor"):
            reader(directory, None, DIRECTORY_BYTES)


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
                found = reader(fd, None, DIRECTORY_BYTES)
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


def test_a_link_replaced_by_a_file_meanwhile_is_an_error_not_a_gap(tmp_path: Path) -> None:
    """A thread keeps renaming files over links; whoever is not there must have failed the whole listing."""
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
    failed = 0
    try:
        with opened(top) as fd:
            for _ in range(20_000):
                try:
                    in_c(fd, None, DIRECTORY_BYTES)
                except OSError as error:
                    assert error.errno == errno.EINVAL
                    failed += 1
                    break
    finally:
        stop.set()
        replacer.join()
    assert failed, "the race must have been lost once, or nothing was tested"


def test_reading_begins_at_the_beginning(tmp_path: Path) -> None:
    top = os.fsencode(tmp_path)
    for i in range(10):
        make(top + b"/%d" % i, Kind.FILE, i)
    with opened(top) as fd:
        for reader in (in_c, in_c, in_python, in_c, in_python):
            assert reader(fd, None, DIRECTORY_BYTES).count == 10


@settings(deadline=None, max_examples=30)
@given(st.dictionaries(st.sampled_from((b"a", b"b", b"c", b"\xff")), st.sampled_from(list(Kind))))
def test_a_directory_below_another_in_one_call(entries: dict[bytes, Kind]) -> None:
    with tempfile.TemporaryDirectory() as place:
        os.makedirs(os.path.join(place, "d", "e"))
        below = os.fsencode(os.path.join(place, "d", "e"))
        for name, kind in entries.items():
            path = os.path.join(below, name)
            if kind == Kind.DIRECTORY:
                os.mkdir(path)
            elif kind == Kind.SYMLINK:
                os.symlink(b"to", path)
            elif kind == Kind.SPECIAL:
                os.mkfifo(path)
            else:
                os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
        stale = temporary_name(b"x")
        os.close(os.open(os.path.join(below, stale), os.O_CREAT | os.O_WRONLY))
        with opened(os.fsencode(place)) as top, opened(below) as fd:
            for extension in (_walk, None):
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(packed, "_extension", extension)
                    found: list[bytes] = []
                    assert packed.list_beneath(top, b"d/e", found.append) == in_python(fd, _nobody, 1 << 20)
                    assert found == [stale]
                    assert packed.list_beneath(top, b"d/e", None) == in_python(fd, None, 1 << 20)


def _nobody(name: bytes) -> None:
    """Is told of temporaries."""


@pytest.mark.parametrize(
    "path",
    [b"../d", b"d/../d", b"/d", b"d//e", b"d/", b".", b"..", b"d\0/e", b"n" * (NAME_BYTES + 1), b"l", b"l/e"],
)
def test_a_path_that_leads_elsewhere_is_not_listed(path: bytes, tmp_path: Path) -> None:
    (tmp_path / "d" / "e").mkdir(parents=True)
    (tmp_path / "l").symlink_to("d")
    before = open_descriptors()
    root = Root.open(os.fsencode(tmp_path))
    with pytest.raises(FileError):
        root.list_packed(path)
    root.release()
    with opened(os.fsencode(tmp_path)) as top:
        for extension in (_walk, None):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(packed, "_extension", extension)
                with pytest.raises((OSError, ValueError)):
                    packed.list_beneath(top, path, None)
    assert open_descriptors() == before


def test_a_path_too_long_is_refused_by_name(tmp_path: Path) -> None:
    root = Root.open(os.fsencode(tmp_path))
    with pytest.raises(FileError, match="bytes \\(the limit is"):
        root.list_packed(b"a/" * PATH_BYTES + b"a")
    root.close()


def test_descriptors_and_memory_are_given_back(tmp_path: Path) -> None:
    top = os.fsencode(tmp_path)
    for i in range(500):
        make(top + b"/%030d" % i, Kind.SYMLINK, 8)
    make(top + b"/" + temporary_name(b"f"), Kind.FILE, 0)

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")

    before_descriptors = open_descriptors()
    with opened(top) as fd:
        for turn in range(600):
            if turn == 100:
                before = resident()
            assert in_c(fd, lambda _: None, DIRECTORY_BYTES).count == 500
            with suppress(OSError):
                in_c(fd, None, 100_000)
    # 500 readings of 4 MB of targets, and as many that failed half way.
    assert resident() - before < 50 << 20
    assert open_descriptors() == before_descriptors


def test_what_file_systems_seldom_do(tmp_path: Path) -> None:
    """Repeated and overlong names, interruptions, failures and lack of memory, under sanitizers."""
    tests = Path(__file__).parent
    program = tmp_path / "directory_faults"
    command = [os.environ.get("CC", "cc"), "-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror"]
    command += [
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all",
        f"-I{tests.parent / 'rdc' / 'files'}",
    ]
    command += [str(tests / "native" / "directory_faults.c"), "-o", str(program)]
    subprocess.run(command, check=True)
    result = subprocess.run([program], capture_output=True, text=True)
    assert (result.returncode, result.stdout, result.stderr) == (0, "passed\n", "")


@pytest.mark.parametrize(
    ("number", "expected"),
    [(errno.ENAMETOOLONG, f"names of at most {NAME_BYTES} bytes"), (errno.EOVERFLOW, "1024 MiB")],
)
def test_a_root_names_the_directory_it_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, expected: str
) -> None:
    (tmp_path / "d").mkdir()

    def refuse(*arguments: object) -> PackedListing:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("rdc.files.confined.list_beneath", refuse)
    with pytest.raises(FileError, match=f"d: cannot list the directory: expected .*{expected}") as caught:
        Root.open(os.fsencode(tmp_path)).list_packed(b"d")
    assert caught.value.code == ExitCode.PARTIAL
    assert caught.value.path == b"d"


def test_a_name_too_long_fails_the_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only file systems in user space have such names, so the definition is shown one."""

    class Entry:
        name = "n" * (NAME_BYTES + 1)

    @contextmanager
    def scandir(fd: int) -> Iterator[list[Entry]]:
        yield [Entry()]

    monkeypatch.setattr(os, "scandir", scandir)
    with opened(os.fsencode(tmp_path)) as fd, pytest.raises(OSError, match="name too long"):
        in_python(fd, None, DIRECTORY_BYTES)
