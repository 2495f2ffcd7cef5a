"""`rdc dedupe` on real file systems: it frees what it announces, changes nothing else, and reports
refusals."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from rdc.duplicates.dedupe import Deduper
from rdc.model.duplicates import IdenticalFiles
from tests.support.running.deduping import TIME, Run, Seen, blob, dedupe, seen, write_duplicates
from tests.support.trees.loop_images import free_bytes, image_directory, mounted, places_on_disk, settle

SIZE = 3_000_000


@pytest.fixture
def tree(sharing: Path) -> dict[str, Seen]:
    found = write_duplicates(sharing, size=SIZE)
    settle(sharing)
    return found


def whole_stat(top: Path, tree: dict[str, Seen]) -> dict[str, tuple[int, ...]]:
    """All of stat, inode numbers and change times included."""
    found: dict[str, tuple[int, ...]] = {}
    for path in tree:
        now = os.stat(top / path)
        found[path] = (now.st_ino, now.st_ctime_ns, now.st_nlink, now.st_blocks)
    return found


@pytest.mark.needs("filefrag")
def test_a_dry_run_promises_what_is_won(sharing: Path, tree: dict[str, Seen]) -> None:
    before, free = whole_stat(sharing, tree), free_bytes(sharing)
    promised = dedupe(sharing)
    assert promised.code == 0
    assert promised.of("start") == [{"v": 1, "event": "start", "dry_run": True}]
    assert whole_stat(sharing, tree) == before
    assert free_bytes(sharing) == pytest.approx(free, abs=100_000)  # df itself is not still on btrfs
    assert dedupe(sharing).summary["won"] == promised.won

    done = dedupe("--apply", sharing)
    assert done.code == 0
    assert (done.won, done.summary["files"], done.summary["groups"]) == (promised.won, 6, 3)
    assert free_bytes(sharing) - free == pytest.approx(promised.won, rel=0.01)
    assert promised.won == pytest.approx(6 * SIZE, rel=0.02)
    # Programs see no change, not even in the change times.
    assert whole_stat(sharing, tree) == before
    assert seen(sharing) == tree
    for group in range(3):
        names = [path for path in tree if path.startswith((f"a/group{group}", f"b/group{group}"))]
        assert len({tuple(places_on_disk(sharing / name)) for name in names}) == 1

    again = dedupe("--apply", sharing)
    assert (again.won, again.summary["files"]) == (0, 0)
    assert again.summary["already"] == pytest.approx(6 * SIZE, rel=0.02)


def test_what_comes_later_joins_what_is_shared(sharing: Path, tree: dict[str, Seen]) -> None:
    dedupe("--apply", sharing)
    late = sharing / "a" / "early-in-the-alphabet"
    late.write_bytes((sharing / "a" / "group0-copy1").read_bytes())
    run = dedupe("--apply", sharing)
    (item,) = run.of("item")
    assert item["path"] == str(late)
    assert item["won"] == pytest.approx(SIZE, rel=0.02)


@pytest.mark.needs("filefrag")
def test_snapshots_are_not_promised(btrfs: Path) -> None:
    """Blocks in a snapshot are not freed by sharing, but are freed when the snapshot is removed too."""
    sub = btrfs / "sub"
    subprocess.run(["btrfs", "-q", "subvolume", "create", sub], check=True)
    wanted = write_duplicates(sub, groups=1, copies=2, size=SIZE)
    subprocess.run(["btrfs", "-q", "subvolume", "snapshot", "-r", sub, btrfs / "snap"], check=True)
    free = free_bytes(btrfs)
    run = dedupe("--apply", sub)
    assert run.won == 0
    assert run.summary["perhaps"] == pytest.approx(SIZE, rel=0.02)
    assert free_bytes(btrfs) - free < 200_000
    assert seen(sub) == wanted
    # Subvolumes have different device numbers, and blocks are shared across them.
    run = dedupe("--apply", btrfs)
    assert run.code == 0
    assert {tuple(places_on_disk(path)) for path in btrfs.rglob("group0-*")} == {
        tuple(places_on_disk(sub / "a" / "group0-copy1"))
    }
    assert free_bytes(btrfs) - free == pytest.approx(SIZE, rel=0.05)
    for name in ("snap", "sub"):
        subprocess.run(["btrfs", "-q", "subvolume", "delete", "-c", btrfs / name], check=True)
    # A deleted subvolume is freed later, while the tests after this one measure what is free.
    subprocess.run(["btrfs", "subvolume", "sync", btrfs], check=True, capture_output=True)


@pytest.mark.parametrize("pieces", [8 << 20, 256 << 10], ids=["large extents", "small extents"])
def test_equal_parts_of_files_that_differ(sharing: Path, pieces: int) -> None:
    """A disk image and its copy with edits in place, and a file that grew. btrfs frees whole extents only, so
    the rest of a large extent is moved if that is worth it."""
    blocks = blob(1, 8 << 20)
    edited = bytearray(blocks)
    for at in (100_000, 3_000_000, 6_000_001):
        edited[at : at + 50] = blob(at, 50)
    files = {"image": blocks, "edited": bytes(edited), "grown": blocks[: 5 << 20] + blob(2, 100_001)}
    for name, content in files.items():
        with (sharing / name).open("wb") as file:
            for at in range(0, len(content), pieces):
                file.write(content[at : at + pieces])
                file.flush()
                os.fsync(file.fileno())
    free = free_bytes(sharing)
    assert dedupe(sharing).summary["files"] == 0
    promised = dedupe("--chunks", sharing)
    assert promised.won > 12_800_000
    assert free_bytes(sharing) == pytest.approx(free, abs=100_000)
    done = dedupe("--chunks", "--apply", sharing)
    assert done.code == 0
    assert (done.won, done.summary["perhaps"]) == (promised.won, promised.summary["perhaps"])
    assert free_bytes(sharing) - free == pytest.approx(promised.won, rel=0.02)
    for name, content in files.items():
        assert (sharing / name).read_bytes() == content
    assert sorted(os.listdir(sharing)) == sorted(files)
    assert dedupe("--chunks", sharing).won == 0


def test_a_little_that_is_equal_is_not_worth_moving_the_rest(btrfs: Path) -> None:
    common, free = blob(1, 1 << 20), free_bytes(btrfs)
    for number in (1, 2):
        (btrfs / f"file{number}").write_bytes(common + blob(10 + number, 4 << 20))
    free = free_bytes(btrfs)
    run = dedupe("--chunks", "--apply", btrfs)
    assert (run.code, run.won) == (0, 0)
    assert run.summary["perhaps"] == pytest.approx(1 << 20, rel=0.1)
    assert abs(free_bytes(btrfs) - free) < 300_000


def test_hard_links_win_what_they_promise(linking: Path) -> None:
    wanted = write_duplicates(linking, size=SIZE)
    free = free_bytes(linking)
    promised = dedupe("--hardlink", linking)
    assert promised.code == 0
    assert free_bytes(linking) == pytest.approx(free, abs=100_000)
    journal = linking / "journal"
    done = dedupe("--hardlink", "--apply", "--journal", journal, linking)
    assert (done.won, done.summary["files"]) == (promised.won, 6)
    assert done.summary["journal"] == str(journal)
    journal_bytes = journal.read_bytes()
    journal.unlink()
    assert free_bytes(linking) - free == pytest.approx(promised.won, rel=0.01)
    assert promised.won == pytest.approx(6 * SIZE, rel=0.02)
    assert seen(linking) == wanted
    assert len({os.stat(linking / path).st_ino for path in wanted}) == 4
    assert dedupe("--hardlink", linking).won == 0

    journal.write_bytes(journal_bytes)
    undone = dedupe("--undo", journal)
    assert (undone.code, undone.summary["files"]) == (0, 6)
    journal.unlink()
    assert seen(linking) == wanted
    assert len({os.stat(linking / path).st_ino for path in wanted}) == len(wanted)
    journal.write_bytes(journal_bytes)
    again = dedupe("--undo", journal)
    assert (again.code, again.summary["files"], again.summary["skipped"]) == (0, 0, 6)


def test_links_of_shared_blocks_win_nothing(btrfs: Path) -> None:
    write_duplicates(btrfs, groups=1, copies=2, size=SIZE)
    assert dedupe("--apply", btrfs).won > 0
    settle(btrfs)
    run = dedupe("--hardlink", btrfs)
    assert run.won == 0


def test_a_report_that_lies_wins_nothing(sharing: Path) -> None:
    for number in (1, 2):
        (sharing / f"file{number}").write_bytes(blob(number, SIZE))
    files = [{"path": str(sharing / f"file{number}")} for number in (1, 2)]
    text = json.dumps({"v": 1, "event": "group", "size": SIZE, "files": files}).encode()
    for words in ([], ["--apply"]):
        run = dedupe(*words, "--from=-", sharing, stdin=text)
        assert (run.code, run.won, run.summary["files"]) == (24, 0, 0)
    assert (sharing / "file2").read_bytes() == blob(2, SIZE)


# Who says no


def refusals(run: Run) -> dict[str, str]:
    """The messages of all errors of a run, by file name."""
    return {os.path.basename(error["path"]): error["message"] for error in run.of("error") if error["code"]}


@pytest.mark.parametrize("apply", [False, True], ids=["dry run", "--apply"])
@pytest.mark.parametrize("chunks", [False, True], ids=["files", "--chunks"])
def test_a_file_system_without_shared_blocks_is_named_once(ext4: Path, apply: bool, chunks: bool) -> None:
    wanted = write_duplicates(ext4, groups=3)
    before = whole_stat(ext4, wanted)
    run = dedupe(*["--apply"] * apply, *["--chunks"] * chunks, ext4)
    assert run.code == 23
    ((name, message),) = refusals(run).items()
    assert re.search(rf"{name}: cannot share its blocks: found a file system that cannot", message)
    assert "--hardlink works elsewhere" in message
    assert (run.summary["won"], run.summary["errors"], run.summary["skipped"]) == (0, 1, 3 * 2 - 1)
    assert (whole_stat(ext4, wanted), seen(ext4)) == (before, wanted)


def test_immutable_files(sharing: Path) -> None:
    wanted = write_duplicates(sharing, groups=1)
    settle(sharing)
    before = whole_stat(sharing, wanted)
    subprocess.run(["chattr", "+i", *(sharing / path for path in wanted)], check=True)
    before = whole_stat(sharing, wanted)
    run = dedupe("--apply", sharing)
    assert run.code == 23
    assert len(refusals(run)) == 2
    assert all("immutable" in message for message in refusals(run).values())
    run = dedupe("--hardlink", "--apply", "--journal", sharing / "journal", sharing)
    assert run.code == 23
    assert all("(EPERM)" in message for message in refusals(run).values())
    assert whole_stat(sharing, wanted) == before
    subprocess.run(["chattr", "-i", *(sharing / path for path in wanted)], check=True)


@pytest.mark.needs("btrfs")
def test_read_only_file_systems() -> None:
    with image_directory() as place, mounted("btrfs", place) as point:
        wanted = write_duplicates(point, groups=1)
        subprocess.run(["mount", "-o", "remount,ro", point], check=True)
        before = whole_stat(point, wanted)
        for words in (["--apply"], [], ["--hardlink", "--apply", "--journal", str(place / "journal")]):
            run = dedupe(*words, point)
            assert run.code == 23, run
            assert len(refusals(run)) == 2
            assert all("a read-only file system (EROFS)" in message for message in refusals(run).values())
        assert (whole_stat(point, wanted), seen(point)) == (before, wanted)


def test_never_across_file_systems(btrfs: Path, xfs: Path) -> None:
    for place in (btrfs, xfs):
        (place / "one").write_bytes(blob(1, SIZE))
        os.utime(place / "one", ns=(TIME, TIME))
    for words in (["--apply"], ["--hardlink", "--apply", "--journal", str(btrfs / "journal")]):
        run = dedupe(*words, btrfs, xfs)
        assert (run.code, run.summary["files"]) == (0, 0)
        # No link leads from one to the other, so there is nothing to warn of.
        assert run.of("error") == []


def test_a_file_that_changed_since_it_was_found(sharing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file changes after the search and before the kernel's comparison."""
    write_duplicates(sharing, groups=1, copies=2, size=SIZE)
    groups = Deduper.groups

    def changing(self: Deduper, found: Sequence[IdenticalFiles]) -> None:
        with (sharing / "b" / "group0-copy0").open("r+b") as file:
            file.write(b"changed")
        groups(self, found)

    monkeypatch.setattr(Deduper, "groups", changing)
    run = dedupe("--apply", sharing)
    assert run.code == 24
    (message,) = refusals(run).values()
    assert "expected the content that was compared, found another" in message
    assert (sharing / "b" / "group0-copy0").read_bytes().startswith(b"changed")


def test_a_full_disk_stops_the_undo_and_loses_nothing(ext4: Path) -> None:
    wanted = write_duplicates(ext4, groups=1, copies=2, size=SIZE)
    journal = ext4 / "journal"
    dedupe("--hardlink", "--apply", "--journal", journal, ext4)
    with (ext4 / "filling").open("wb") as file, pytest.raises(OSError, match="No space left"):
        for at in range(0, 1 << 30, 1 << 20):
            os.posix_fallocate(file.fileno(), at, 1 << 20)
    run = dedupe("--undo", journal)
    assert run.code == 11
    now = {path: what for path, what in seen(ext4).items() if path in wanted}
    assert now == wanted
    (ext4 / "filling").unlink()
    assert dedupe("--undo", journal).summary["files"] == 1
