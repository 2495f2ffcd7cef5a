"""SnapshotRoot: paths into stores, and a snapshot as a tree that is read."""

from __future__ import annotations

import os
import random
from array import array
from pathlib import Path

import pytest
from typing_extensions import Buffer

from rdc.errors import FileChangedError, FileError, UsageError
from rdc.files.root.root import Root
from rdc.kernel.blake3_many import name_parts
from rdc.lean.records import replace
from rdc.model.entries import NODES, Kind, strings
from rdc.store import reader as reading
from rdc.store.place import PackStore
from rdc.store.snapshot_root import (
    DEVICE,
    SnapshotPath,
    SnapshotRoot,
    choose_snapshot,
    open_snapshot,
    snapshot_paths,
)
from tests.support.store.stores import put_tree


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    top = tmp_path / "tree"
    (top / "docs" / "deep").mkdir(parents=True)
    (top / "docs" / "text").write_bytes(b"0123456789" * 30_000)
    os.link(top / "docs" / "text", top / "again")
    (top / "empty").write_bytes(b"")
    (top / "link").symlink_to("docs")
    os.mkfifo(top / "fifo")
    os.utime(top / "docs" / "text", ns=(5, 1_234_567_891))
    return top


@pytest.fixture
def store(tree: Path, tmp_path: Path) -> Path:
    put_tree(tree, tmp_path / "st")
    return tmp_path / "st"


def show(path: str) -> tuple[SnapshotRoot, bytes | None]:
    found = open_snapshot(os.fsencode(path), os.path.isdir, Root.open)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (b"st/@1/", [(b"st", (b"@1",))]),
        (b"/a/st/@data/latest/docs/./x", [(b"/a/st", (b"@data", b"latest", b"docs", b"x"))]),
        (b"@1/x", [(b".", (b"@1", b"x"))]),
        (b"/@1/", [(b"/", (b"@1",))]),
        (b"@x/st/@2/", [(b".", (b"@x", b"st", b"@2")), (b"@x/st", (b"@2",))]),
        (b"st/a@1/", []),
    ],
)
def test_paths_have_all_readings(path: bytes, expected: list[tuple[bytes, tuple[bytes, ...]]]) -> None:
    assert list(snapshot_paths(path)) == [SnapshotPath(*one) for one in expected]


def test_a_directory_named_like_a_snapshot_is_none(tmp_path: Path) -> None:
    (tmp_path / "@1").mkdir()
    assert open_snapshot(os.fsencode(tmp_path / "@1") + b"/", os.path.isdir, Root.open) is None


def test_a_path_means_a_directory_or_one_entry(store: Path) -> None:
    with PackStore.open(os.fsencode(store)) as place:
        listed = place.readable().snapshots
    for text, top, only in (
        (b"st/@1/", b"", None),
        (b"st/@latest/docs/", b"docs", None),
        (b"st/@latest/docs/text", b"docs", b"text"),
        (b"st/@tree/1/docs", b"", b"docs"),
    ):
        (found,) = snapshot_paths(text)
        one = choose_snapshot(listed, found, text)
        assert (one.number, one.top, one.only) == (1, top, only)
    for text, expected in (
        (b"st/@9/", "no such snapshot"),
        (b"st/@1", "this is a whole snapshot; end it with a slash"),
        (b"st/@1/../x", "found '..' in it"),
        (b"st/@tree/", "a series has many snapshots"),
    ):
        (found,) = snapshot_paths(text)
        with pytest.raises(UsageError, match=expected):
            choose_snapshot(listed, found, text)


def test_entries_are_those_that_were_put(tree: Path, store: Path) -> None:
    root, only = show(f"{store}/@1/")
    try:
        assert only is None
        listing = root.listed(b"").listing
        assert strings(listing.names) == [b"again", b"docs", b"empty", b"fifo", b"link"]
        assert root.kind(b"link") is Kind.SYMLINK
        assert root.kind(b"fifo") is Kind.SPECIAL
        assert root.having(replace(root.reads, nodes=NODES)).kind(b"fifo") is Kind.FIFO
        assert root.kind(b"nothing") is None
        assert root.kind(b"nothing/below") is None
        one, other = root.identity(b"again"), root.identity(b"docs/text")
        assert one.inode == other.inode != root.identity(b"empty").inode
        assert (other.device, other.size, other.mtime_ns) == (DEVICE, 300_000, 1_234_567_891)
        assert root.link_count(b"again") > 1
        assert root.link_count(b"empty") == 1
        assert root.metadata(b"docs").mode == (tree / "docs").stat().st_mode & 0o7777
    finally:
        root.release()


def test_of_a_file_read_from_front_to_back_each_frame_is_checked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = random.Random(3).randbytes(600_000)
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "noise").write_bytes(content)
    put_tree(tmp_path / "tree", tmp_path / "st")
    checked: list[int] = []

    def noted(data: Buffer, sizes: array[int], key: bytes | None = None) -> bytes:
        checked.append(sum(sizes))
        return name_parts(data, sizes, key)

    root, _ = show(f"{tmp_path}/st/@1/")
    try:
        monkeypatch.setattr(reading, "name_parts", noted)
        with root.open_read(b"noise") as file:
            assert b"".join(file.spans(10_000)) == content
        assert checked == [600_000]
    finally:
        root.release()


@pytest.mark.parametrize("size", [1 << 20, 100_000, 70_000, 999, 1])
def test_pieces_are_the_content_and_none_but_the_last_is_small(tree: Path, store: Path, size: int) -> None:
    """They are so whether their chunks follow one another in a frame or lie in many packs."""
    noise = random.Random(8)
    parts = [noise.randbytes(noise.randrange(60_000, 300_000)) for _ in range(12)]
    content = b"".join(parts) if size > 999 else parts[0]
    for number, part in enumerate(parts[::3]):
        (tree / f"part {number}").write_bytes(part)
        put_tree(tree, store)
    (tree / "all").write_bytes(content[: 50 * size])
    put_tree(tree, store)
    root, _ = show(f"{store}/@latest/")
    try:
        with root.open_read(b"all") as file:
            pieces = list(file.pieces(size))
    finally:
        root.release()
    assert b"".join(pieces) == content[: 50 * size]
    assert max(map(len, pieces)) <= size
    assert all(2 * len(piece) >= size for piece in pieces[:-1])


def test_only_equal_contents_have_one_name(tree: Path, store: Path) -> None:
    zeros = bytes(1_000_000)
    contents = [b"0123456789" * 30_000, zeros, zeros[1:], zeros[:500_000], b"1" + zeros, b"x", b""]
    for number, content in enumerate(contents):
        (tree / f"{number} one").write_bytes(content)
        (tree / f"{number} two").write_bytes(content)
    put_tree(tree, store)
    root, _ = show(f"{store}/@latest/")
    names = dict[bytes, bytes | None]()
    try:
        for number in range(len(contents)):
            for which in (b"one", b"two"):
                with root.open_read(b"%d %s" % (number, which)) as file:
                    assert names.setdefault(contents[number], file.content_name) == file.content_name
    finally:
        root.release()
    found = [name for name in names.values() if name is not None]
    assert len(set(found)) == len(found) == len(contents) - 1
    files = Root.open(os.fsencode(tree))
    with files.open_read(b"0 one") as file:
        assert file.content_name is None
    files.release()


def test_contents_are_read_anywhere(tree: Path, store: Path) -> None:
    root, _ = show(f"{store}/@1/docs/")
    try:
        content = (tree / "docs" / "text").read_bytes()
        with root.open_read(b"text") as file:
            for offset, length in ((0, 1), (65_000, 2_000), (299_990, 10), (0, 300_000), (7, 0)):
                assert file.pread(offset, length) == content[offset : offset + length]
            rng = random.Random(3)
            for offset in (rng.randrange(len(content) - 2_000) for _ in range(100)):
                for start in (offset, offset + 1_000):  # the second one goes on from the first
                    part = content[start : start + 1_000]
                    assert file.pread(start, len(part)) == part
            with pytest.raises(FileChangedError):
                file.pread(299_990, 11)
        with pytest.raises(FileChangedError, match="no such entry"):
            root.open_read(b"missing")
        with pytest.raises(FileChangedError, match="expected a regular file"):
            root.open_read(b"deep")
    finally:
        root.release()


def test_what_needs_a_file_system_is_refused(store: Path) -> None:
    root, _ = show(f"{store}/@1/")
    try:
        with pytest.raises(UsageError, match="cannot be read with --fake-super"):
            root.having(replace(root.reads, fakes=True))
        with pytest.raises(FileError, match="expected a file on a file system"):
            root.perform(b"docs", "read a rule file", lambda _name, _directory: None)
    finally:
        root.release()
    with pytest.raises(FileError, match="the snapshot has no such directory"):
        show(f"{store}/@1/missing/")
