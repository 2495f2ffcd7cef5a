"""Many files held open: read as what they were when they were opened, settled as Root.set_metadata does."""

from __future__ import annotations

import os
import random
from array import array
from collections.abc import Iterator
from pathlib import Path

import pytest

from rdc.files import _files
from rdc.files.bulk import open_many as opened
from rdc.files.bulk.open_many import CHANGED, FAILED, METADATA_SET, OpenedFiles
from rdc.files.root.root import Root
from rdc.model.entries import Kind, Listing, PackedListing
from tests.support.share import examples
from tests.support.trees.descriptors import open_descriptors
from tests.support.trees.unprivileged import as_nobody, place_of_nobody

OWNER = os.geteuid() == 0
MTIMES = (0, 1, -1, -999_999_999, -1_000_000_001, 10**18 + 7, 1_700_000_000_000_000_000)
MODES = (0o600, 0o644, 0o444, 0o4755, 0o2751, 0o1777, 0o000)


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Root]:
    (tmp_path / "d" / "e").mkdir(parents=True)
    found = Root.open(os.fsencode(tmp_path))
    yield found
    found.close()


def paths_of(*paths: str) -> bytes:
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def wanted(count: int, seed: int = 0) -> PackedListing:
    rng = random.Random(seed)
    return Listing(
        tuple(b"%03d" % number for number in range(count)),
        bytes(count),
        array("H", rng.choices(MODES, k=count)),
        array("Q", bytes(8 * count)),
        array("q", rng.choices(MTIMES, k=count)),
        array("I", [1234 if OWNER and i % 2 else os.geteuid() for i in range(count)]),
        array("I", [2345 if OWNER and i % 3 else os.getegid() for i in range(count)]),
        (),
    ).packed()


def test_this_system_has_the_c_part() -> None:
    assert opened._extension is _files


def test_files_are_read_as_they_are(tmp_path: Path, root: Root) -> None:
    rng = random.Random(1)
    contents = {f"d/e/{i:03}": rng.randbytes(rng.choice([0, 1, 100, 5000, 300_000])) for i in range(60)}
    for i, (name, content) in enumerate(contents.items()):
        (tmp_path / name).write_bytes(content)
        os.utime(tmp_path / name, ns=(5, MTIMES[i % len(MTIMES)]))
    before = open_descriptors()
    with OpenedFiles(root, paths_of(*contents)) as files:
        assert files.failed == []
        stats = [(tmp_path / name).stat() for name in contents]
        assert list(files.sizes) == [found.st_size for found in stats]
        assert list(files.inodes) == [found.st_ino for found in stats]
        assert list(files.devices) == [found.st_dev for found in stats]
        assert list(files.mtimes) == [found.st_mtime_ns for found in stats]
        assert list(files.ctimes) == [found.st_ctime_ns for found in stats]
        assert files.read(range(60)) == (b"".join(contents.values()), b"\1" * 60)
        assert files.read([3, 7]) == (contents["d/e/003"] + contents["d/e/007"], b"\1\1")
    files.close()
    assert open_descriptors() == before


def test_only_regular_files_below_the_root_are_opened(tmp_path: Path, root: Root) -> None:
    (tmp_path / "d" / "f").write_bytes(b"inside")
    (tmp_path / "d" / "link").symlink_to("f")
    (tmp_path / "aside").symlink_to("d")
    os.mkfifo(tmp_path / "d" / "fifo")
    names = ["d/f", "d/link", "aside/f", "d/fifo", "d/e", "d/gone", "d/../d/f", "/etc/passwd", "d//f", ""]
    before = open_descriptors()
    with OpenedFiles(root, paths_of(*names)) as files:
        # openat2 knows that the way through ".." stays inside, and that two slashes are one.
        assert {0} <= set(range(len(names))) - set(files.failed) <= {0, 6, 8}
        content, good = files.read([0])
        assert (content, good) == (b"inside", b"\1")
        assert all(files.sizes[row] == 0 for row in files.failed)
    assert open_descriptors() == before


def test_paths_of_any_directories_in_any_order(tmp_path: Path, root: Root) -> None:
    """Names of one directory in a row are looked up in it; those of others, or of none, are not."""
    long = "/".join(["n" * 250] * 8)
    names = [
        "a",
        "d/a",
        "d/b",
        "d/e/a",
        "d/e/b",
        "d/c",
        "d2/a",
        "d2/b",
        "b",
        f"{long}/a",
        f"{long}/b",
        "d/e/c",
    ]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    (tmp_path / "aside").symlink_to("d")
    (tmp_path / "gone").mkdir()
    more = ["aside/a", "aside/b", "gone/a", "gone/b", "d", "d/e", "a/b", "a/c"]
    rng = random.Random(5)
    before = open_descriptors()
    for _ in range(examples(50)):
        asked = rng.choices(names + more, k=rng.randrange(1, 40))
        asked = sorted(asked) if rng.random() < 0.5 else asked
        with OpenedFiles(root, paths_of(*asked)) as files:
            assert files.failed == [row for row, name in enumerate(asked) if name in more]
            there = [row for row, name in enumerate(asked) if name in names]
            content = "".join(asked[row] for row in there).encode()
            assert files.read(there) == (content, bytes([1]) * len(there))
            assert [files.inodes[row] for row in there] == [
                (tmp_path / asked[row]).stat().st_ino for row in there
            ]
        assert open_descriptors() == before


def test_a_directory_that_is_replaced_by_a_link_is_not_left(tmp_path: Path, root: Root) -> None:
    """Its names are those of the directory that had the path when the first of them was opened, or none."""
    (tmp_path.parent / "outside").mkdir(exist_ok=True)
    (tmp_path.parent / "outside" / "a").write_bytes(b"secret")
    (tmp_path / "d" / "e").rmdir()
    (tmp_path / "d" / "e").symlink_to(tmp_path.parent / "outside")
    with OpenedFiles(root, paths_of("d/e/a", "d/e/a", "d/e/a")) as files:
        assert files.failed == [0, 1, 2]


def test_what_changes_meanwhile_is_left_out(tmp_path: Path, root: Root) -> None:
    names = ["d/grown", "d/kept", "d/shorter", "d/touched", "d/written"]
    for name in names:
        (tmp_path / name).write_bytes(name.encode())
    with OpenedFiles(root, paths_of(*names)) as files:
        (tmp_path / "d" / "grown").write_bytes(b"grown by this")
        (tmp_path / "d" / "shorter").write_bytes(b"s")
        os.utime(tmp_path / "d" / "touched", ns=(1, 1))
        status = (tmp_path / "d" / "written").stat()
        (tmp_path / "d" / "written").write_bytes(b"D/WRITTEN")
        os.utime(tmp_path / "d" / "written", ns=(status.st_atime_ns, status.st_mtime_ns))
        assert files.read(range(5)) == (b"d/kept", bytes(name == "d/kept" for name in names))


def test_metadata_are_set_as_singly(tmp_path: Path, root: Root) -> None:
    count = 40
    for where in ("d", "d/e"):
        for number in range(count):
            (tmp_path / where / f"{number:03}").write_bytes(b"x")
            os.utime(tmp_path / where / f"{number:03}", ns=(77, 5))
    # Rows in another order than the files.
    listing, rows = wanted(count), list(range(count))[::-1]
    unpacked = listing.unpacked()
    for number, row in enumerate(rows):
        root.set_metadata(b"d/%03d" % number, Kind.FILE, unpacked.metadata(row), owner=OWNER)
    with OpenedFiles(root, paths_of(*(f"d/e/{number:03}" for number in range(count)))) as files:
        assert files.set_metadata(range(count), rows, listing, owner=OWNER) == bytes([METADATA_SET]) * count
    for number in range(count):
        singly, together = (tmp_path / where / f"{number:03}" for where in ("d", "d/e"))
        assert together.stat().st_atime_ns == singly.stat().st_atime_ns == 77
        for field in ("st_mode", "st_mtime_ns", "st_uid", "st_gid"):
            assert getattr(together.stat(), field) == getattr(singly.stat(), field), (number, field)


def test_what_is_right_is_not_set(tmp_path: Path, root: Root) -> None:
    (tmp_path / "d" / "f").write_bytes(b"x")
    listing = root.list(b"d").rows([1]).packed()
    with OpenedFiles(root, paths_of("d/f")) as files:
        assert files.set_metadata([0], [0], listing, owner=True) == bytes([METADATA_SET])
        assert (tmp_path / "d" / "f").stat().st_ctime_ns == files.ctimes[0]


def test_a_file_that_changed_since_is_not_settled(tmp_path: Path, root: Root) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / "d" / name).write_bytes(b"x")
    with OpenedFiles(root, paths_of("d/a", "d/b", "d/c")) as files:
        (tmp_path / "d" / "b").write_bytes(b"y")
        os.rename(tmp_path / "d" / "b", tmp_path / "d" / "c")
        found = files.set_metadata(range(3), [0, 1, 2], wanted(3), owner=False)
    # Of "c", whose name "b" has now, the ctime is that of its last name's end.
    assert found == bytes([METADATA_SET, CHANGED, CHANGED])
    assert (tmp_path / "d" / "c").stat().st_mtime_ns not in MTIMES


def test_a_file_with_other_names_gets_no_other_mtime(tmp_path: Path, root: Root) -> None:
    """It is not known here whether those are to have it as well."""
    for name in ("a", "b"):
        (tmp_path / "d" / name).write_bytes(b"x")
        os.chmod(tmp_path / "d" / name, 0o600)
        os.link(tmp_path / "d" / name, tmp_path / "d" / f"{name}.more")
    listing = wanted(2)
    mode, mtime = listing.unpacked().modes[1], listing.unpacked().mtimes[1]
    os.utime(tmp_path / "d" / "b", ns=(mtime, mtime))
    before = (tmp_path / "d" / "a").stat()
    with OpenedFiles(root, paths_of("d/a", "d/b")) as files:
        assert files.set_metadata(range(2), [0, 1], listing, owner=False) == bytes([FAILED, METADATA_SET])
    assert (tmp_path / "d" / "a").stat() == before
    assert (tmp_path / "d" / "b.more").stat().st_mode & 0o7777 == mode


def test_what_may_not_be_opened_or_set_fails_alone() -> None:
    with place_of_nobody() as place:

        def settled() -> tuple[list[int], bytes]:
            for name in ("closed", "mine"):
                (place / name).write_bytes(b"x")
            os.chmod(place / "closed", 0)
            with OpenedFiles(Root.open(os.fsencode(place)), paths_of("closed", "mine", "theirs")) as files:
                return files.failed, files.set_metadata([1, 2], [0, 1], wanted(2), owner=False)

        (place / "theirs").write_bytes(b"x")
        os.chmod(place / "theirs", 0o644)
        failed, outcomes = as_nobody(settled)
    assert failed == [0]
    assert outcomes[0] == METADATA_SET
    assert outcomes[1] == (FAILED if OWNER else METADATA_SET)


def test_columns_that_do_not_fit_are_refused(root: Root) -> None:
    listing = wanted(2)
    columns = listing.modes, listing.mtimes, listing.uids, listing.gids
    with pytest.raises(ValueError, match="paths"):
        _files.open_files(root.fileno(), b"a\0b", 1)
    with pytest.raises(ValueError, match="fit"):
        _files.read_files(bytes(8), bytes(8), bytes(16), bytes(16), 1)
    with pytest.raises(ValueError, match="1 GiB"):
        _files.read_files(bytes(4), b"\xff" * 8, bytes(8), bytes(8), 1)
    for fds, ctimes, rows in ((4, 8, 16), (4, 16, 8), (8, 8, 8)):
        with pytest.raises(ValueError, match="fit"):
            _files.set_metadata_of_files(bytes(fds), bytes(ctimes), bytes(rows), *columns, False, 1)
    with pytest.raises(ValueError, match="fit"):
        _files.set_metadata_of_files(b"\xff" * 4, bytes(8), array("Q", [2]), *columns, False, 1)
    with pytest.raises(ValueError, match="fit"):
        _files.set_metadata_of_files(b"\xff" * 4, bytes(8), array("Q", [0]), *columns[:3], bytes(4), False, 1)
    closed = array("i", [-1])
    read = _files.read_files(closed, array("Q", [1 << 60]), bytes(8), bytes(8), 1)
    assert read[:2] == (b"", b"\0")
    outcomes = _files.set_metadata_of_files(closed, bytes(8), array("Q", [1]), *columns, True, 1)[0]
    assert outcomes == bytes([FAILED])
