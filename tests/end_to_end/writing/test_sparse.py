"""--sparse: blocks of zeros become holes, whatever way a content comes, and nothing else changes."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rdc.files.replace.replacement import Replacement, data_and_holes, data_spans, may_have_holes
from rdc.files.root.root import HOLE_BYTES, Root, WritePolicy
from rdc.model.entries import Metadata
from rdc.model.sync import SyncOptions
from tests.support.running.syncing import Way, command, run_sync
from tests.support.share import examples
from tests.support.trees.trees import File, describe, read_tree, tree, write_tree

SPARSE = SyncOptions(sparse=True, fsync=False)

_rng = random.Random(3)
LARGE = _rng.randbytes(300_000)


def blocks_of_zeros(content: bytes) -> set[int]:
    """Numbers of the blocks of a file that hold nothing else."""
    return {
        at // HOLE_BYTES
        for at in range(0, len(content), HOLE_BYTES)
        if not any(content[at : at + HOLE_BYTES])
    }


def holes(path: Path) -> set[int]:
    """Numbers of the blocks of a file that lie in its holes, the last one too if it is not whole."""
    size, found, at = path.stat().st_size, set(range(-(-path.stat().st_size // HOLE_BYTES))), 0
    with path.open("rb") as file:
        while at < size:
            try:
                start = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError:
                break
            at = os.lseek(file.fileno(), start, os.SEEK_HOLE)
            found -= set(range(start // HOLE_BYTES, -(-at // HOLE_BYTES)))
    return found


pieces = st.one_of(
    st.binary(max_size=40),
    st.integers(0, 3 * HOLE_BYTES).map(bytes),
    st.sampled_from((HOLE_BYTES - 1, HOLE_BYTES, HOLE_BYTES + 1, 5 * HOLE_BYTES)).map(bytes),
    st.integers(1, 9000).map(lambda size: b"x" * size),
)


@given(st.lists(pieces, max_size=8), st.lists(st.integers(1, 20_000), max_size=8))
@example([bytes(3 * HOLE_BYTES)], [HOLE_BYTES + 1])
def test_what_is_not_written_is_zeros_and_every_block_of_them(parts: list[bytes], cuts: list[int]) -> None:
    """However the content is cut into buffers."""
    content = b"".join(parts)
    written, at = bytearray(len(content)), 0
    touched: set[int] = set()
    for size in [*cuts, len(content)]:
        buffer = content[at : at + size]
        before = 0
        for start, stop in data_spans(memoryview(buffer), at):
            assert before <= start < stop <= len(buffer)
            before = stop
            written[at + start : at + stop] = buffer[start:stop]
            touched |= set(range((at + start) // HOLE_BYTES, (at + stop - 1) // HOLE_BYTES + 1))
        at += len(buffer)
    assert bytes(written) == content
    assert touched.isdisjoint(blocks_of_zeros(content))
    assert may_have_holes(memoryview(content), HOLE_BYTES) or not blocks_of_zeros(content)


@settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(pieces, max_size=6))
def test_a_replacement_reads_back_what_was_written(ext4: Path, parts: list[bytes]) -> None:
    """At once too, up to its end, and where something else is put in the place of a hole."""
    root = Root.open(os.fsencode(ext4))
    root = root.having(writes=WritePolicy(sparse=True))
    content = b""
    try:
        with Replacement(root, b"f", expected_size=2 << 20) as replacement:
            for part in parts:
                replacement.write(part)
                content += part
                assert replacement.size == len(content)
                assert replacement.pread(0, len(content) + 1) == content
            again = os.open(ext4, os.O_TMPFILE | os.O_RDWR)
            try:
                os.write(again, bytes(content))
                assert replacement.copy_from(again, 0, len(content) + 1) == len(content)
            finally:
                os.close(again)
            content *= 2
            if len(content) > 10:
                replacement.rewrite(5, b"\0\1\0")
                content = content[:5] + b"\0\1\0" + content[8:]
            assert replacement.pread(0, len(content) + 1) == content
            replacement.seal(Metadata(0o600, 0, os.geteuid(), os.getegid()), owner=False)
            assert os.fstat(replacement.fileno()).st_size == len(content)
    finally:
        root.release()


def test_what_is_written_again_has_holes_too(ext4: Path) -> None:
    """Repairs of chunks in which a match was wrong. The last block is not a whole one."""
    root = Root.open(os.fsencode(ext4))
    root = root.having(writes=WritePolicy(sparse=True))
    content = bytearray(b"x" * (20 * HOLE_BYTES + 7))
    try:
        with Replacement(root, b"f", expected_size=len(content)) as replacement:
            replacement.write(content)
            for offset, part in (
                (3 * HOLE_BYTES + 5, bytes(4 * HOLE_BYTES)),
                (10 * HOLE_BYTES, b"y" + bytes(HOLE_BYTES - 1) + bytes(HOLE_BYTES)),
                (18 * HOLE_BYTES, bytes(2 * HOLE_BYTES + 7)),
            ):
                replacement.rewrite(offset, part)
                content[offset : offset + len(part)] = part
            assert replacement.pread(0, len(content) + 1) == content
            replacement.seal(Metadata(0o600, 0, os.geteuid(), os.getegid()), owner=False)
            found = holes(Path(f"/proc/self/fd/{replacement.fileno()}"))
    finally:
        root.release()
    assert found == blocks_of_zeros(bytes(content)) == {4, 5, 6, 11, 18, 19, 20}


ZEROS = bytes(100_000)


def contents() -> dict[str, bytes]:
    return {
        "empty": b"",
        "only zeros": bytes(2_000_000),
        "small": b"a" + ZEROS + b"b",
        "small, dense": LARGE[:50_000],
        "ends in zeros": LARGE + ZEROS,
        "begins with zeros": ZEROS + LARGE,
        "large": LARGE + bytes(3_000_000) + LARGE + b"\0" * 4095 + b"x" + bytes(5_000_000) + b"end",
        "in the background": bytes(5_000_000) + LARGE,
    }


@pytest.mark.parametrize("way", Way)
def test_first_copies_and_updates(way: Way, ext4: Path, tmp_path: Path) -> None:
    wanted = tree(contents())
    source = write_tree(tmp_path / "s", wanted)
    destination = ext4 / "d"
    run_sync(source, destination, SPARSE, way=way)
    assert describe(wanted, read_tree(destination)) == []
    for name, content in contents().items():
        assert holes(destination / name) == blocks_of_zeros(content), name
    assert (destination / "large").stat().st_blocks * 512 < 1_000_000
    # Now each in another version: rebuilt from the old one, here and there with other zeros.
    edited = {
        name: File(content[:40] + b"edit" + content[40:] + ZEROS) for name, content in contents().items()
    }
    source = write_tree(tmp_path / "t", tree(edited))
    run = run_sync(source, destination, SPARSE, way=way)
    assert describe(tree(edited), read_tree(destination)) == []
    assert run.done.reused_bytes > 1_000_000
    for name, file in edited.items():
        assert holes(destination / name) == blocks_of_zeros(file.content), name


@pytest.mark.parametrize("way", Way)
def test_copies_at_the_destination(way: Way, ext4: Path, tmp_path: Path) -> None:
    """A content for two paths, and one that is there already, written out."""
    content = LARGE + bytes(1_000_000) + LARGE
    wanted = tree({"a": content, "b": content, "new": bytes(500_000) + LARGE})
    source = write_tree(tmp_path / "s", wanted)
    destination = write_tree(ext4 / "d", tree({"old": bytes(500_000) + LARGE}))
    assert not holes(destination / "old")
    run = run_sync(source, destination, SPARSE, way=way)
    assert run.done.literal_bytes == len(content)
    assert describe(wanted | {b"old": File(bytes(500_000) + LARGE)}, read_tree(destination)) == []
    for name in ("a", "b", "new"):
        file = wanted[name.encode()]
        assert isinstance(file, File)
        assert holes(destination / name) == blocks_of_zeros(file.content), name


def test_without_holes_zeros_are_written(ext4: Path, tmp_path: Path) -> None:
    source = write_tree(tmp_path / "s", tree({"large": contents()["large"], "small": contents()["small"]}))
    run_sync(source, ext4 / "d", SyncOptions(fsync=False, allocate=True))
    for name in ("large", "small"):
        assert not holes(ext4 / "d" / name)
    # Nothing is different, so that nothing is written, and no hole made.
    assert run_sync(source, ext4 / "d", SPARSE).items == []
    assert not holes(ext4 / "d" / "large")


def test_durable_ones_by_command_line(ext4: Path, tmp_path: Path) -> None:
    wanted = tree({"large": contents()["large"], "dense": LARGE})
    source = write_tree(tmp_path / "s", wanted)
    assert command("sync", "-aS", f"{source}/", f"{ext4}/d/").code == 0
    assert describe(wanted, read_tree(ext4 / "d")) == []
    assert holes(ext4 / "d" / "large") == blocks_of_zeros(contents()["large"])


# Without --sparse


@given(st.lists(st.one_of(st.integers(0, 5000).map(bytes), st.binary(max_size=40)), max_size=8))
def test_what_is_left_out_is_long_and_zeros(parts: list[bytes]) -> None:
    content = b"".join(parts)
    data, left_out = data_and_holes(content, 0, 1000)
    spans = sorted([*data, *left_out])
    assert b"".join(content[start:stop] for start, stop in spans) == content
    assert not any(any(content[start:stop]) for start, stop in left_out)
    assert all(stop - start >= 1000 for start, stop in left_out)
    lost = max((len(part) for part in parts if not any(part)), default=0)
    assert lost < 2000 or left_out


HOLES = LARGE[:100_001] + bytes(3 << 20) + LARGE[:100_001] + bytes(1 << 20)
"""Its data take some 52 blocks of 4 KiB. Larger ones of some file systems are why a test asks for less."""


@pytest.mark.parametrize("way", Way)
@pytest.mark.parametrize("held", ["nothing", "data", "another end", "a part"])
def test_long_runs_of_zeros_are_holes_by_themselves(held: str, way: Way, tmp_path: Path) -> None:
    old = {"nothing": None, "data": LARGE, "another end": HOLES[:-1] + b"x", "a part": HOLES[: 2 << 20]}[held]
    source = write_tree(tmp_path / "s", tree({"f": HOLES}))
    for name, options, most in (
        ("holes", SyncOptions(fsync=False), 400_000),
        ("none", SyncOptions(fsync=False, allocate=True), 1 << 30),
    ):
        top = write_tree(tmp_path / name, tree({} if old is None else {"f": File(old, 0o644, 1)}))
        assert run_sync(source, top, options, way=way).problems == []
        assert (top / "f").read_bytes() == HOLES
        taken = (top / "f").stat().st_blocks * 512
        assert taken <= most
        assert taken >= len(HOLES) or not options.allocate


def test_equal_files_keep_them(tmp_path: Path) -> None:
    """The second is copied from the first."""
    source = write_tree(tmp_path / "s", tree({"f": HOLES, "g": HOLES}))
    run_sync(source, tmp_path / "d", SyncOptions(fsync=False))
    assert [(tmp_path / "d" / name).stat().st_blocks * 512 <= 400_000 for name in "fg"] == [True, True]


@pytest.mark.parametrize(
    ("words", "holes"),
    [
        ((), True),
        (("--no-sparse",), False),
        (("-S",), True),
        (("--preallocate",), False),
        (("-S", "--no-S"), False),
        (("--preallocate", "--sparse"), True),
    ],
)
def test_the_last_word_counts(words: tuple[str, ...], holes: bool, tmp_path: Path) -> None:
    source = write_tree(tmp_path / "s", tree({"f": HOLES}))
    assert command("sync", *words, f"{source}/", f"{tmp_path}/d/").code == 0
    assert ((tmp_path / "d" / "f").stat().st_blocks * 512 < len(HOLES)) is holes
