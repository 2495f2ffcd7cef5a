"""Changes that leave size and mtime as they were: seen by inode number and ctime, compared by content."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support.running.watching import Watching, eventually

ALIKE = 20_000


@pytest.fixture
def source(tmp_path: Path) -> Path:
    source = tmp_path / "src"
    for name in ("d", "e", "quiet"):
        (source / name).mkdir(parents=True)
        for number in range(3):
            path = source / name / f"f{number}"
            path.write_bytes(f"{name}{number}".encode() * ALIKE)
            os.utime(path, ns=(10**18, 10**18))
    return source


def swap(one: Path, other: Path) -> None:
    aside = one.with_name("t")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


def watching_of(source: Path, tmp_path: Path, *options: str) -> Watching:
    return Watching(source, tmp_path / "dst", *options, place=tmp_path)


@pytest.mark.parametrize("options", [(), ("--delete",)])
def test_swapped_files_of_one_size_and_mtime(source: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    watching = watching_of(source, tmp_path, *options)
    with watching.running():
        swap(source / "d" / "f0", source / "d" / "f1")
        watching.wait_equal()
        swap(source / "d", source / "e")
        watching.wait_equal()
        assert watching.named("error") == []
        assert [event["whole"] for event in watching.named("in_step")].count(True) == 1


def test_a_file_put_in_place_or_written_with_its_old_times(source: Path, tmp_path: Path) -> None:
    watching = watching_of(source, tmp_path, "--delete")
    with watching.running():
        replaced = source / "d" / "f0"
        other = tmp_path / "other"
        other.write_bytes(b"xx" * ALIKE)
        os.utime(other, ns=(10**18, 10**18))
        other.replace(replaced)
        watching.wait_equal()
        with (source / "e" / "f1").open("r+b") as file:
            file.write(b"written in place")
        os.utime(source / "e" / "f1", ns=(10**18, 10**18))
        watching.wait_equal()


def test_a_swap_while_the_far_side_is_away(source: Path, tmp_path: Path) -> None:
    watching = watching_of(source, tmp_path, "--delete")
    with watching.running():
        watching.kill_far()
        swap(source / "d" / "f0", source / "d" / "f1")
        watching.wait("disconnected")
        watching.wait_equal()


def test_only_what_is_in_doubt_is_compared(source: Path, tmp_path: Path) -> None:
    """Neither a chmod, nor a rename, nor files in directories where nothing happened."""
    watching = watching_of(source, tmp_path, "--delete")
    with watching.running():
        turns = len(watching.named("in_step"))
        (source / "d" / "f0").chmod(0o600)
        watching.wait_equal()
        (source / "d" / "f1").rename(source / "d" / "moved")
        watching.wait_equal()
        (source / "d" / "new").mkdir()
        (source / "quiet").rename(source / "still")
        watching.wait_equal()
        plain = watching.named("in_step")[turns:]
        # An inode of its own, with all else as it was: one digest is compared, nothing is sent.
        shutil.copy2(source / "e" / "f0", source / "e" / "copy")
        watching.wait_equal()
        watching.wait_turn("e/copy")
        turns = len(watching.named("in_step"))
        (source / "e" / "copy").replace(source / "e" / "f0")
        watching.wait_equal()
        eventually(lambda: len(watching.named("in_step")) > turns, lambda: watching.story)
        compared = watching.named("in_step")[turns:]
    assert sum(turn["bytes_sent"] + turn["bytes_received"] for turn in plain) < 300 * len(plain)
    assert sum(turn["bytes_sent"] + turn["bytes_received"] for turn in compared) < 500
