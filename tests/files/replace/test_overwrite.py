"""Overwrite: new content of a file that keeps its inode, beside a plain rebuild of the same content."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rdc.errors import FileError
from rdc.files.replace.commit_group import CommitGroup
from rdc.files.replace.overwrite import BLOCK_BYTES, Overwrite
from rdc.files.root.root import Root, WritePolicy
from rdc.model.entries import Metadata
from tests.support.share import examples
from tests.support.trees.trees import litter, read_tree

METADATA = Metadata(0o640, 7, os.getuid(), os.getgid())


def block(number: int) -> bytes:
    return bytes([number]) * BLOCK_BYTES


blocks = st.lists(st.integers(0, 3), max_size=6).map(lambda numbers: b"".join(map(block, numbers)))
contents = st.one_of(blocks, st.tuples(blocks, st.binary(max_size=9), blocks).map(b"".join))


@st.composite
def moves(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    """An old content, and the pieces of a new one: most of them ranges of the old one, anywhere."""
    old = draw(contents)
    pieces = []
    for _ in range(draw(st.integers(0, 5))):
        start = draw(st.integers(0, len(old)))
        pieces.append(draw(st.one_of(st.just(old[start : start + draw(st.integers(0, 20_000))]), contents)))
    return old, [piece for piece in pieces if piece]


def overwrite(top: Path, *, sparse: bool = False) -> tuple[Root, Overwrite]:
    root = Root.open(os.fsencode(top))
    root = root.having(writes=WritePolicy(sparse=sparse))
    return root, Overwrite(root, b"file", root.identity(b"file"), size=1 << 20)


@settings(max_examples=examples(120), deadline=None)
@example((b"old", [bytes(BLOCK_BYTES)]), [(0, b"\0")], True, False)
@given(
    moves(), st.lists(st.tuples(st.integers(0, 1 << 17), st.binary(min_size=1, max_size=5000)), max_size=3),
    st.booleans(), st.booleans(),
)  # fmt: skip
def test_any_content_is_what_a_plain_rebuild_makes(
    versions: tuple[bytes, list[bytes]], rewrites: list[tuple[int, bytes]], sparse: bool, fsync: bool
) -> None:
    old, pieces = versions
    with tempfile.TemporaryDirectory() as place:
        file = Path(place, "file")
        file.write_bytes(old)
        inode = file.stat().st_ino
        root, version = overwrite(Path(place), sparse=sparse)
        plain = bytearray()
        for piece in pieces:
            version.write(piece)
            plain += piece
        for at, content in rewrites:
            right = content[: max(0, len(plain) - at)]
            if right:
                version.rewrite(at, right)
                plain[at : at + len(right)] = right
        assert b"".join(version.pread(at, 3000) for at in range(0, len(plain), 3000)) == plain
        assert file.read_bytes() == old, "nothing is written before everything is verified"
        with CommitGroup(root, fsync=fsync, on_commit=lambda path: None) as group:
            group.add(version, b"file", METADATA, False, root.identity(b"file"))
        assert file.read_bytes() == plain
        found = file.stat()
        assert (found.st_ino, found.st_mtime_ns, found.st_mode & 0o777) == (inode, 7, 0o640)
        assert litter(read_tree(Path(place))) == []


def test_only_blocks_that_differ_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = os.urandom(64 * BLOCK_BYTES)
    new = bytearray(old)
    for at in (5 * BLOCK_BYTES + 9, 6 * BLOCK_BYTES, 40 * BLOCK_BYTES - 1):
        new[at] ^= 1
    (tmp_path / "file").write_bytes(old)
    root, version = overwrite(tmp_path)
    for start in range(0, len(new), 10_000):
        version.write(new[start : start + 10_000])
    written: list[tuple[int, int]] = []

    def copy(source: int, destination: int, length: int, *, offset_src: int, offset_dst: int) -> int:
        written.append((offset_dst, length))
        return os.pwrite(destination, os.pread(source, length, offset_src), offset_dst)

    monkeypatch.setattr(os, "copy_file_range", copy)
    with CommitGroup(root, fsync=False, on_commit=lambda path: None) as group:
        group.add(version, b"file", METADATA, False, root.identity(b"file"))
    assert written == [(5 * BLOCK_BYTES, 2 * BLOCK_BYTES), (39 * BLOCK_BYTES, BLOCK_BYTES)]
    assert (tmp_path / "file").read_bytes() == new


@pytest.mark.parametrize("when", ["before it is opened", "before it lands"])
@pytest.mark.parametrize("how", ["written to", "replaced", "removed"])
def test_a_file_that_changes_meanwhile_stays_as_it_is(tmp_path: Path, how: str, when: str) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old")
    root = Root.open(os.fsencode(tmp_path))
    expected = root.identity(b"file")

    def change() -> None:
        if how != "written to":
            file.unlink()
        if how != "removed":
            file.write_bytes(b"of another program")

    if when == "before it is opened":
        change()
        with pytest.raises(FileError):
            Overwrite(root, b"file", expected, size=100)
    else:
        version = Overwrite(root, b"file", expected, size=100)
        version.write(b"new")
        change()
        group = CommitGroup(root, fsync=False, on_commit=lambda path: None)
        group.add(version, b"file", METADATA, False, expected)
        with pytest.raises(FileError):
            group.flush()
    left = [b"of another program"] if how != "removed" else []
    assert [path.read_bytes() for path in tmp_path.iterdir()] == left
