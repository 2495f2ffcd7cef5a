"""Which file of a group the others share with, what happens to those that cannot, and the figures of that."""

from __future__ import annotations

import fcntl
import os
import random
import subprocess
import traceback
from pathlib import Path

import pytest

from rdc.files.names import leased_files
from tests.support.running.deduping import Run, blob, dedupe, messages
from tests.support.trees.loop_images import free_bytes, image_directory, mounted, places_on_disk, settle

SIZE = 3_000_000
TEXT = b"compressible text\n" * (SIZE // 18)


def write(path: Path, content: bytes, *, copied_on_write: bool = True) -> Path:
    path.touch()
    if not copied_on_write:
        subprocess.run(["chattr", "+C", path], check=True)
    with path.open("r+b") as file:
        file.write(content)
        os.fsync(file.fileno())
    return path


def run_and_measure(top: Path, mount: Path) -> tuple[Run, int]:
    """What a dry run promises is won; a second run has nothing to do. Returns the run, and what df says."""
    settle(mount)
    promised, before = dedupe(top), free_bytes(mount)
    run = dedupe("--apply", top)
    freed = free_bytes(mount) - before
    assert run.code == promised.code == 0, (promised, run)
    assert run.won >= promised.won
    assert run.won <= promised.won + promised.summary["perhaps"]
    again = dedupe("--apply", top)
    assert (again.code, again.won, again.summary["files"]) == (0, 0, 0), again
    return run, freed


@pytest.mark.needs("filefrag")
def test_files_without_checksums_share_with_each_other(btrfs: Path) -> None:
    for number in range(4):
        write(btrfs / f"{number}", blob(1, SIZE), copied_on_write=number % 2 == 0)
    run, freed = run_and_measure(btrfs, btrfs)
    assert run.summary["files"] == 2
    assert freed == pytest.approx(run.won, rel=0.02) == pytest.approx(2 * SIZE, rel=0.02)
    assert places_on_disk(btrfs / "1") == places_on_disk(btrfs / "3") != places_on_disk(btrfs / "0")


def test_parts_of_files_without_checksums(btrfs: Path) -> None:
    for number in range(4):
        content = blob(1, SIZE) + blob(2 + number, 100_000)
        write(btrfs / f"{number}", content, copied_on_write=number % 2 == 0)
    promised = dedupe("--chunks", btrfs)
    run = dedupe("--chunks", "--apply", btrfs)
    assert (run.code, run.summary["files"], run.won) == (0, 2, promised.won)
    assert dedupe("--chunks", btrfs).won == 0


@pytest.mark.parametrize("first", ["a-new", "z-new"])
def test_extents_in_a_snapshot_stay_and_the_new_ones_go(btrfs: Path, first: str) -> None:
    sub = btrfs / "sub"
    subprocess.run(["btrfs", "-q", "subvolume", "create", sub], check=True)
    write(sub / "old", blob(1, SIZE))
    subprocess.run(["btrfs", "-q", "subvolume", "snapshot", "-r", sub, btrfs / "snap"], check=True)
    write(sub / first, blob(1, SIZE))
    run, freed = run_and_measure(sub, btrfs)
    assert (run.summary["files"], run.summary["perhaps"]) == (1, 0)
    assert freed == pytest.approx(SIZE, rel=0.05) == pytest.approx(run.won, rel=0.05)
    for name in ("snap", "sub"):
        subprocess.run(["btrfs", "-q", "subvolume", "delete", "-c", btrfs / name], check=True)
    subprocess.run(["btrfs", "subvolume", "sync", btrfs], check=True, capture_output=True)


def test_the_compressed_file_stays(btrfs: Path) -> None:
    (btrfs / "z").mkdir()
    subprocess.run(["btrfs", "property", "set", btrfs / "z", "compression", "zstd"], check=True)
    write(btrfs / "a", TEXT)
    write(btrfs / "z" / "c", TEXT)
    run, freed = run_and_measure(btrfs, btrfs)
    assert freed == pytest.approx(SIZE, rel=0.05) == pytest.approx(run.won, rel=0.05)


def test_compressed_content_is_freed_and_told_as_such(btrfs: Path) -> None:
    subprocess.run(["btrfs", "property", "set", btrfs, "compression", "zstd"], check=True)
    for name in ("a", "b"):
        write(btrfs / name, TEXT)
    settle(btrfs)
    run = dedupe("--apply", btrfs)
    found = {key: run.summary[key] for key in ("won", "held", "compressed", "perhaps")}
    assert found["won"] == found["held"] == 0
    assert found["compressed"] == found["perhaps"] == pytest.approx(SIZE, rel=0.02)
    again = dedupe("--text", "--apply", btrfs)
    assert "lets go" not in again.out + again.err


@pytest.mark.parametrize("names", [("hole", "zeros"), ("zeros", "hole")])
def test_holes_stay_and_zeros_go(sharing: Path, names: tuple[str, str]) -> None:
    for name in names:
        path = write(sharing / name, b"x" + bytes(8191 if name == "hole" else SIZE))
        os.truncate(path, SIZE + 1)
    run, freed = run_and_measure(sharing, sharing)
    assert [os.path.basename(item["path"]) for item in run.of("item")] == ["zeros"]
    assert freed == pytest.approx(SIZE, rel=0.05) == pytest.approx(run.won, rel=0.05)


@pytest.mark.needs("filefrag")
def test_sparse_files_share_their_data_and_their_holes_are_passed_over(
    sharing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        with (sharing / name).open("wb") as file:
            file.seek(1 << 33)
            file.write(blob(1, 100_000))
            file.truncate(1 << 34)
    settle(sharing)
    compared = 0

    def counting(fd: int, number: int, request: bytearray, mutate: bool) -> object:
        nonlocal compared
        compared += leased_files._RANGE.unpack_from(request)[1]
        return fcntl.ioctl(fd, number, request, mutate)

    monkeypatch.setattr(leased_files, "ioctl", counting)
    run = dedupe("--apply", sharing)
    assert run.code == 0
    assert run.won == pytest.approx(100_000, rel=0.1)
    assert compared <= 1 << 20
    assert places_on_disk(sharing / "a") == places_on_disk(sharing / "b")


def test_an_immutable_file_is_shared_with(sharing: Path) -> None:
    names = [write(sharing / f"{number}", blob(1, SIZE)) for number in range(3)]
    subprocess.run(["chattr", "+i", names[1]], check=True)
    run, _ = run_and_measure(sharing, sharing)
    assert {item["source"] for item in run.of("item")} == {str(names[1])}
    assert run.summary["files"] == 2


@pytest.mark.parametrize("words", [[], ["--apply"]])
def test_a_second_immutable_file_is_named_and_holds_up_nobody(sharing: Path, words: list[str]) -> None:
    names = [write(sharing / f"{number}", blob(1, SIZE)) for number in range(4)]
    subprocess.run(["chattr", "+i", names[1], names[3]], check=True)
    settle(sharing)
    run = dedupe(*words, sharing)
    assert (run.code, run.summary["files"], run.summary["errors"]) == (23, 2, 1)
    assert "immutable" in messages(run)


@pytest.mark.needs("mount")
def test_a_file_on_a_mount_that_is_read_only_is_shared_with(sharing: Path, tmp_path: Path) -> None:
    for directory in ("a", "z"):
        (sharing / directory).mkdir()
        write(sharing / directory / "file", blob(1, SIZE))
    settle(sharing)
    view = tmp_path / "view"
    view.mkdir()
    subprocess.run(["mount", "--bind", "-o", "ro", sharing / "z", view], check=True)
    try:
        run = dedupe("--apply", sharing / "a", view)
        again = dedupe("--apply", sharing / "a", view)
    finally:
        subprocess.run(["umount", view], check=True)
    assert (run.code, run.summary["files"]) == (0, 1)
    assert run.won == pytest.approx(SIZE, rel=0.02)
    assert [os.path.basename(item["source"]) for item in run.of("item")] == ["file"]
    assert (again.code, again.won) == (0, 0)


@pytest.mark.needs("filefrag")
def test_a_pair_that_the_kernel_refuses_is_tried_with_others(
    sharing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two kinds of files that share among themselves alone, for a reason that rdc does not know."""
    paths = [write(sharing / f"{number}", blob(1, SIZE)) for number in range(7)]
    kind = {os.stat(path).st_ino: 2 if number == 6 else number % 2 for number, path in enumerate(paths)}

    def refusing(fd: int, number: int, request: bytearray, mutate: bool) -> object:
        length = leased_files._RANGE.unpack_from(request)[1]
        other = leased_files._INFO.unpack_from(request, leased_files._RANGE.size)[0]
        if length and kind[os.fstat(fd).st_ino] != kind[os.fstat(other).st_ino]:
            raise OSError(22, "no")
        return fcntl.ioctl(fd, number, request, mutate)

    monkeypatch.setattr(leased_files, "ioctl", refusing)
    settle(sharing)
    run = dedupe("--apply", sharing)
    assert (run.code, run.summary["files"], run.summary["skipped"]) == (0, 4, 1)
    assert [os.path.basename(error["path"]) for error in run.of("error")] == ["6"]
    places = {kind[os.stat(path).st_ino]: places_on_disk(path) for path in paths}
    assert all(places_on_disk(path) == places[kind[os.stat(path).st_ino]] for path in paths)
    again = dedupe("--apply", sharing)
    assert (again.code, again.won, again.summary["files"]) == (0, 0, 0)


def test_groups_that_were_shared_before_become_one(sharing: Path) -> None:
    """Two clusters of clones: what both hold is won once, when the last file of a cluster leaves."""
    for cluster in range(2):
        path = write(sharing / f"{cluster}-0", blob(1, SIZE))
        for number in range(1, 3 + cluster):
            clone = sharing / f"{cluster}-{number}"
            subprocess.run(["cp", "--reflink=always", path, clone], check=True)
    run, freed = run_and_measure(sharing, sharing)
    # The larger cluster stays.
    assert {os.path.basename(item["path"])[0] for item in run.of("item")} == {"0"}
    assert freed == pytest.approx(SIZE, rel=0.05) == pytest.approx(run.won, rel=0.05)
    assert (run.summary["held"], run.summary["perhaps"]) == (0, 0)


def test_a_clone_outside_of_what_was_given_holds_its_extents(sharing: Path) -> None:
    inside, outside = sharing / "inside", sharing / "outside"
    inside.mkdir()
    for name in ("a", "b"):
        write(inside / name, blob(1, SIZE))
        subprocess.run(["cp", "--reflink=always", inside / name, f"{outside}-{name}"], check=True)
    run, freed = run_and_measure(inside, sharing)
    assert freed < SIZE // 10
    assert (run.won, run.summary["held"]) == (0, pytest.approx(SIZE, rel=0.02))
    text = dedupe("--text", "--apply", sharing)
    assert "lets go" not in text.err


@pytest.mark.parametrize("seed", range(6))
def test_any_group(btrfs: Path, seed: int) -> None:
    """Files of one content in any state: the figures are true, and a second run has nothing to do."""
    rng = random.Random(seed)
    sub = btrfs / "sub"
    subprocess.run(["btrfs", "-q", "subvolume", "create", sub], check=True)
    (sub / "zstd").mkdir()
    subprocess.run(["btrfs", "property", "set", sub / "zstd", "compression", "zstd"], check=True)
    content = b"".join(
        rng.choice((blob(number, 1 << 18), bytes(1 << 18), TEXT[: 1 << 18])) for number in range(8)
    )
    for number in range(rng.randrange(2, 7)):
        what = rng.choice(("plain", "unchecked", "zstd", "clone", "sparse"))
        path = (sub / "zstd" if what == "zstd" else sub) / f"{number}"
        others = [one for one in sub.iterdir() if one.is_file() and one.name.isdigit()]
        if what == "clone" and others:
            source = rng.choice(others)
            if b"C" not in subprocess.run(["lsattr", source], capture_output=True, check=True).stdout[:22]:
                subprocess.run(["cp", "--reflink=always", source, path], check=True)
                continue
        if what == "sparse":
            with path.open("wb") as file:
                for at in range(0, len(content), 1 << 18):
                    part = content[at : at + (1 << 18)]
                    file.write(part) if any(part) else file.seek(len(part), os.SEEK_CUR)
                file.truncate(len(content))
            continue
        write(path, content, copied_on_write=what != "unchecked")
    if rng.random() < 0.5:
        subprocess.run(["btrfs", "-q", "subvolume", "snapshot", "-r", sub, btrfs / "snap"], check=True)
        write(sub / "late", content)
    run, freed = run_and_measure(sub, btrfs)
    # Compressed content takes less than its length, and df on btrfs counts its own trees.
    assert run.won - 600_000 <= freed <= run.won + run.summary["compressed"] + 600_000
    for path in sub.rglob("*"):
        assert not path.is_file() or path.read_bytes() == content
    for one in btrfs.iterdir():
        subprocess.run(["btrfs", "-q", "subvolume", "delete", "-c", one], check=True)
    subprocess.run(["btrfs", "subvolume", "sync", btrfs], check=True, capture_output=True)


@pytest.mark.needs("xfs")
def test_other_users_files_are_shared_with() -> None:
    with image_directory() as place, mounted("xfs", place) as point:
        place.chmod(0o755)
        point.chmod(0o755)
        for name, owner in (("a-mine", 65534), ("z-theirs", 0)):
            os.chown(write(point / name, blob(1, SIZE)), owner, owner)
        settle(point)
        child = os.fork()
        if not child:
            try:
                os.setgid(65534)
                os.setuid(65534)
                run = dedupe("--apply", point, environ={"HOME": str(place)})
                os._exit(run.code if run.summary["files"] == 1 else 99)
            finally:
                traceback.print_exc()
                os._exit(98)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
