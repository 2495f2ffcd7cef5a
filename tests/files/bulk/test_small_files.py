"""Small files in bulk: the C part does what Python does file by file, and fails and dies as harmlessly."""

from __future__ import annotations

import errno
import json
import os
import random
import resource
import subprocess
import sys
from array import array
from collections.abc import Iterator
from pathlib import Path

import pytest

from rdc.errors import FileError
from rdc.files import _files
from rdc.files.base.paths import is_temporary, is_temporary_of
from rdc.files.bulk import small_files as small
from rdc.files.bulk.small_files import StagedFiles, read_small, stage_small
from rdc.files.replace.commit_group import CommitGroup, sweep_temporaries
from rdc.files.replace.replacement import Replacement
from rdc.files.root.root import Root
from rdc.model.entries import Kind, Listing, PackedListing
from tests.support.project_paths import NATIVE, TOP
from tests.support.share import examples
from tests.support.trees.descriptors import open_descriptors
from tests.support.trees.trees import read_tree
from tests.support.trees.unprivileged import as_nobody, place_of_nobody

OWNER = os.geteuid() == 0
MTIMES = (0, 1, -1, -999_999_999, -1_000_000_001, 10**18 + 7, 1_700_000_000_000_000_000)
MODES = (0o600, 0o644, 0o444, 0o4755, 0o2751, 0o1777, 0o000)


def listing(names: list[bytes], sizes: list[int], seed: int = 0) -> PackedListing:
    rng = random.Random(seed)
    n = len(names)
    return Listing(
        tuple(names),
        bytes(n),
        array("H", rng.choices(MODES, k=n)),
        array("Q", sizes),
        array("q", rng.choices(MTIMES, k=n)),
        array("I", [1234 if OWNER and i % 2 else os.geteuid() for i in range(n)]),
        array("I", [2345 if OWNER and i % 3 else os.getegid() for i in range(n)]),
        (),
    ).packed()


def listed(place: Path) -> PackedListing:
    """What a walk says of the files in a directory, links and all else left out."""
    found = Root.open(os.fsencode(place)).list(b"")
    return found.rows(found.rows_of(Kind.FILE)).packed()


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Root]:
    (tmp_path / "d").mkdir()
    opened = Root.open(os.fsencode(tmp_path))
    yield opened
    opened.close()


def test_this_system_has_the_c_part() -> None:
    assert small._extension is _files


# Reading


def test_files_as_listed_are_read(tmp_path: Path, root: Root) -> None:
    rng = random.Random(1)
    contents = {f"f{i:03}": rng.randbytes(rng.choice([0, 1, 100, 5000, 300_000])) for i in range(60)}
    for i, (name, content) in enumerate(contents.items()):
        (tmp_path / "d" / name).write_bytes(content)
        os.utime(tmp_path / "d" / name, ns=(5, MTIMES[i % len(MTIMES)]))
    content, good = read_small(root, b"d", listed(tmp_path / "d"))
    assert good == b"\1" * 60
    assert content == b"".join(contents.values())


def test_what_is_not_as_listed_is_left_out(tmp_path: Path, root: Root) -> None:
    top = tmp_path / "d"
    names = ["as-listed", "fifo", "gone", "link", "longer", "now-a-directory", "shorter", "touched", "yes"]
    for name in names:
        (top / name).write_bytes(name.encode())
    listing = listed(top)
    for name in ("fifo", "gone", "link", "now-a-directory"):
        (top / name).unlink()
    os.mkfifo(top / "fifo")
    (top / "link").symlink_to("yes")
    (top / "now-a-directory").mkdir()
    for name, content in (("longer", b"longer than it was"), ("shorter", b"short")):
        before = os.stat(top / name)
        (top / name).write_bytes(content)
        os.utime(top / name, ns=(before.st_atime_ns, before.st_mtime_ns))
    os.utime(top / "touched", ns=(1, 1))
    content, good = read_small(root, b"d", listing)
    assert good == bytes(name in {"as-listed", "yes"} for name in names)
    assert content == b"as-listedyes"


def test_directories_that_cannot_be_reached_have_nothing(tmp_path: Path, root: Root) -> None:
    (tmp_path / "d" / "f").write_bytes(b"x")
    listing = listed(tmp_path / "d")
    (tmp_path / "aside").symlink_to("d")
    for path in (b"nowhere", b"aside"):
        assert read_small(root, path, listing) == (b"", b"\0")
        assert stage_small(root, path, listing, b"x", owner=False) is None


def test_files_that_must_not_be_read_are_left_out() -> None:
    with place_of_nobody() as place:
        (place / "d").mkdir()
        for name in ("closed", "open"):
            (place / "d" / name).write_bytes(b"x")
        os.chmod(place / "d" / "closed", 0)
        files = listed(place / "d")
        found = as_nobody(lambda: read_small(Root.open(os.fsencode(place)), b"d", files))
    assert found == (b"x", b"\0\1")


# Writing


def staged(root: Root, files: PackedListing, content: bytes, path: bytes = b"d") -> StagedFiles:
    run = stage_small(root, path, files, content, owner=OWNER)
    assert run is not None
    return run


def test_the_same_files_come_of_both_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In C, and file by file as where there is no C part."""
    rng = random.Random(2)
    contents = {b"f%03d" % i: rng.randbytes(rng.choice([0, 1, 100, 5000, 200_000])) for i in range(300)}
    files = listing(list(contents), [len(content) for content in contents.values()])
    trees = []
    for way in (_files, None):
        monkeypatch.setattr(small, "_extension", way)
        top = tmp_path / ("c" if way else "python")
        (top / "d").mkdir(parents=True)
        root, committed = Root.open(os.fsencode(top)), list[bytes]()
        unpacked = files.unpacked()
        with CommitGroup(root, fsync=False, on_commit=committed.append) as group:
            rows = group.add_small(b"d", files, b"".join(contents.values()), OWNER)
            assert rows == ([] if way else list(range(300)))
            for row in rows:
                replacement = Replacement(root, b"d/" + unpacked.names[row])
                replacement.write(contents[unpacked.names[row]])
                group.add(replacement, replacement.path, unpacked.metadata(row), OWNER, None)
        assert committed == [b"d/" + name for name in contents]
        trees.append(
            {
                entry.name: (stat_of(Path(entry.path)), (top / "d" / entry.name).read_bytes())
                for entry in os.scandir(top / "d")
            }
        )
    assert trees[0] == trees[1]
    assert len(trees[0]) == 300


def stat_of(path: Path) -> tuple[int, ...]:
    found = path.lstat()
    return found.st_mode, found.st_size, found.st_mtime_ns, found.st_uid, found.st_gid


def test_staged_files_are_temporaries_that_no_sweep_takes(tmp_path: Path, root: Root) -> None:
    names = [b"a", "n\u00e4me".encode(), b"x" * 255, b"\xff\xfe"]
    run = staged(root, listing(names, [1] * 4), b"1234")
    there = sorted(os.listdir(os.fsencode(tmp_path / "d")))
    assert there == sorted(run.temporary(row) for row in range(4))
    for row, name in enumerate(names):
        assert is_temporary(run.temporary(row))
        assert is_temporary_of(run.temporary(row), name)
    assert sweep_temporaries(root, b"d", there) == 0
    run.discard()
    run.discard()
    assert os.listdir(tmp_path / "d") == []


def test_no_descriptor_is_left(tmp_path: Path, root: Root) -> None:
    names = [b"f%d" % i for i in range(100)]
    before = open_descriptors()
    with CommitGroup(root, fsync=False, on_commit=lambda _: None, files=64) as group:
        assert group.add_small(b"d", listing(names, [1] * 100), b"x" * 100, OWNER) == []
    group.add_small(b"", listing(names, [1] * 100), b"x" * 100, OWNER)
    group.abandon()
    root.close()
    assert open_descriptors() <= before
    assert len(os.listdir(tmp_path / "d")) == 100
    assert not any(is_temporary(os.fsencode(name)) for name in os.listdir(tmp_path))


@pytest.mark.parametrize("fsync", [False, True])
def test_what_is_in_the_way_stays(tmp_path: Path, root: Root, fsync: bool) -> None:
    top = tmp_path / "d"
    (top / "b").write_bytes(b"somebody else's")
    (top / "c").mkdir()
    (top / "d").symlink_to("nowhere")
    committed: list[bytes] = []
    failed: list[FileError] = []
    names = [b"a", b"b", b"c", b"d", b"e"]
    with CommitGroup(root, fsync=fsync, on_commit=committed.append, on_error=failed.append) as group:
        assert group.add_small(b"d", listing(names, [1] * 5), b"12345", OWNER) == []
    assert committed == [b"d/a", b"d/e"]
    assert [error.path_bytes for error in failed] == [b"d/b", b"d/c", b"d/d"]
    assert [str(error).partition("expected ")[2].partition(";")[0] for error in failed] == [
        "nothing there, found a file",
        "no directory, found a directory",
        "nothing there, found a symlink",
    ]
    assert sorted(os.listdir(top)) == ["a", "b", "c", "d", "e"]
    assert (top / "b").read_bytes() == b"somebody else's"
    assert (top / "e").read_bytes() == b"5"


def test_a_directory_that_was_moved_away_gets_nothing(tmp_path: Path, root: Root) -> None:
    committed: list[bytes] = []
    failed: list[FileError] = []
    group = CommitGroup(root, fsync=False, on_commit=committed.append, on_error=failed.append)
    assert group.add_small(b"d", listing([b"a", b"b"], [1, 1]), b"12", OWNER) == []
    (tmp_path / "d").rename(tmp_path / "moved")
    (tmp_path / "d").mkdir()
    group.flush()
    assert committed == []
    assert [error.path_bytes for error in failed] == [b"d/a", b"d/b"]
    assert read_tree(tmp_path).keys() == {b"", b"d", b"moved"}


def test_a_group_is_flushed_as_often_as_it_is_full(tmp_path: Path, root: Root) -> None:
    """By files and by bytes; no more descriptors are open at a time."""
    names = [b"f%02d" % i for i in range(10)]
    committed: list[bytes] = []
    for most, size in ((4, 1 << 20), (100, 25)):
        committed.clear()
        group = CommitGroup(root, fsync=False, on_commit=committed.append, files=most, size=size)
        group.add_small(b"d", listing(names, [5] * 10), b"12345" * 10, OWNER)
        assert len(committed) == (8 if most == 4 else 10)
        group.flush()
        assert committed == [b"d/" + name for name in names]
        for name in names:
            (tmp_path / "d" / os.fsdecode(name)).unlink()


def test_what_fails_is_left_to_be_tried_by_itself(tmp_path: Path, root: Root) -> None:
    """A descriptor limit in the middle of a run: what was made stays, of the rest nothing does."""
    names = [b"f%02d" % i for i in range(50)]
    files = listing(names, [1] * 50)
    group = CommitGroup(root, fsync=False, on_commit=lambda _: None)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    # The twenty that are free next, wherever there are gaps among those that are open.
    free = [os.open(os.devnull, os.O_RDONLY) for _ in range(20)]
    for fd in free:
        os.close(fd)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(free) + 1, limits[1]))
    try:
        left = group.add_small(b"d", files, b"x" * 50, OWNER)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert 30 <= len(left) < 50
    assert left == list(range(left[0], 50))
    group.flush()
    assert sorted(os.listdir(os.fsencode(tmp_path / "d"))) == names[: left[0]]


@pytest.mark.parametrize(
    "change",
    [
        {"names": b"a\0b"},
        {"names": b"a\0"},
        {"names": b"a\0b\0c\0"},
        {"names": b"a\0../b\0"},
        {"names": b"a\0..\0"},
        {"names": b".\0a\0"},
        {"names": b"\0a\0"},
        {"sizes": b"\1"},
        {"sizes": array("Q", [1, 2]).tobytes()},
        {"sizes": array("Q", [1, (1 << 64) - 1]).tobytes()},
        {"sizes": array("Q", [(1 << 64) - 1, 3]).tobytes()},
        {"mtimes": bytes(15)},
        {"modes": bytes(5)},
        {"uids": b""},
        {"gids": bytes(12)},
        {"content": b"1"},
        {"content": b"123"},
        {"random": bytes(7)},
    ],
)
def test_columns_that_do_not_fit_are_refused(tmp_path: Path, change: dict[str, bytes]) -> None:
    fields = {
        "names": b"a\0b\0",
        "sizes": array("Q", [1, 1]).tobytes(),
        "mtimes": bytes(16),
        "modes": bytes(4),
        "uids": bytes(8),
        "gids": bytes(8),
        "content": b"12",
        "random": bytes(8),
    } | change
    names, sizes, mtimes, modes, uids, gids, content, rand = fields.values()
    fd = os.open(tmp_path, os.O_PATH)
    fds = array("i", [fd, fd])
    try:
        with pytest.raises(ValueError):
            _files.stage_small(
                fds, names, sizes, mtimes, modes, uids, gids, False, content, 0, rand, None, 0, 1
            )
        if change.keys() <= {"names", "mtimes"} or sizes == b"\1":
            with pytest.raises(ValueError):
                _files.read_small(fd, names, sizes, mtimes, 100)
        if "names" in change:
            with pytest.raises(ValueError):
                _files.rename_small(fds, b".rdc-0123456789abcdef.tmp\0" * 2, names, bytes(8), None, 0, 1)
    finally:
        os.close(fd)
    assert os.listdir(tmp_path) == []


# Every call


@pytest.fixture(scope="module")
def armed_calls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("native") / "armed_calls.so"
    source = NATIVE / "armed_calls.c"
    command = [os.environ.get("CC", "cc"), "-std=c11", "-O1", "-shared", "-fPIC", "-Wall", "-Wextra"]
    subprocess.run([*command, source, "-o", library, "-ldl"], check=True)
    return library


FAILURES = ("kill", str(errno.ENOSPC), str(errno.EIO))


@pytest.mark.parametrize(("fsync", "depth"), [("fsync", 1), ("no-fsync", 1), ("no-fsync", 4), ("fsync", 4)])
@pytest.mark.parametrize("what", FAILURES)
def test_each_call_fails_or_is_the_last(
    armed_calls: Path, tmp_path: Path, what: str, fsync: str, depth: int
) -> None:
    """Old or new at every path, whichever of all calls it was.

    Threads make calls in another order each time. There a run takes a third of them, another one for each
    failure.
    """
    step = 3 // examples(3) if depth > 1 else 1
    numbers = (FAILURES.index(what) % step, step)
    command = [
        sys.executable,
        "-m",
        "tests.files.bulk.small_files_child",
        str(tmp_path / "top"),
        what,
        fsync,
        str(depth),
        *map(str, numbers),
    ]
    ran = subprocess.run(
        command,
        # The library of a sanitizer, if there is one, has to come first.
        env={**os.environ, "LD_PRELOAD": f"{os.environ.get('LD_PRELOAD', '')} {armed_calls}".strip()},
        cwd=TOP,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    calls, found = json.loads(ran.stdout)
    # Eight files: create, lock, look, write, chown, chmod, touch, rename, and the group's own.
    assert calls > 60
    assert found["all"] > 0 or what == "kill"
    # Past a depth of 1, all names of both directories are renamed together.
    # Few kills are amid that.
    assert found["some"] > (10 if depth == 1 else 3) or (what == "kill" and step > 1)
    assert found.get("none", 0) > 10 or what != "kill"
