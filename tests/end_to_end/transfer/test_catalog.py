"""Syncs that remember: what the catalog knows is not read again, and what it says is never wrong."""

from __future__ import annotations

import os
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rdc.catalog.catalog import Catalog
from rdc.files.root.source_file import SourceFile
from rdc.library.trees import sync
from rdc.model.runs import SyncReport
from rdc.model.sync import SyncOptions
from tests.support.children.catalog_child import later
from tests.support.running.syncing import RDC, Way, command, contents_of, run_sync

SIZES = {"small": 500, "middle": 60_000, "large": 900_000}


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Content bytes read by this process, by what directory they came from and which file it was."""
    counted: Counter[str] = Counter()
    pread = SourceFile.pread

    def counting(self: SourceFile, offset: int, length: int) -> bytes:
        path = Path(os.readlink(f"/proc/self/fd/{self.fileno()}"))
        counted[f"{path.parent.name}/{path.name}"] += length
        return pread(self, offset, length)

    monkeypatch.setattr(SourceFile, "pread", counting)
    return counted


@pytest.fixture
def trees(tmp_path: Path) -> tuple[Path, Path]:
    source, destination = tmp_path / "src", tmp_path / "dst"
    source.mkdir()
    for name, size in SIZES.items():
        (source / name).write_bytes(os.urandom(size))
    sync(os.fsdecode(contents_of(source)), os.fsdecode(destination), catalog=None)
    return source, destination


def again(trees: tuple[Path, Path], cache: Path, **options: Any) -> SyncReport:
    """One more sync with a catalog that takes what was just written for old."""
    with Catalog(cache, clock=later) as catalog:
        return sync(
            os.fsdecode(contents_of(trees[0])),
            os.fsdecode(trees[1]),
            SyncOptions(**options),
            catalog=catalog,
        )


def touch(directory: Path, second: int) -> None:
    for name in SIZES:
        os.utime(directory / name, (second, second))


def test_changed_mtimes_cost_no_reading_of_what_is_known(
    trees: tuple[Path, Path], tmp_path: Path, reads: Counter[str]
) -> None:
    code = command("index", "--catalog", tmp_path / "c", trees[1]).code
    assert code == 0
    again(trees, tmp_path / "c", checksum=True)  # what index found too new, this knows
    reads.clear()
    touch(trees[0], 1_000_000)
    report = again(trees, tmp_path / "c")
    assert report.literal_bytes == 0
    # The source's files have a new ctime: they must be read. The destination's have not.
    # Once, although the fingerprints of the small one's blocks come with its root.
    assert reads == {f"src/{name}": size for name, size in SIZES.items()}


def test_a_second_checksum_run_reads_nothing(
    trees: tuple[Path, Path], tmp_path: Path, reads: Counter[str]
) -> None:
    again(trees, tmp_path / "c", checksum=True)
    assert sum(reads.values()) == 2 * sum(SIZES.values())
    reads.clear()
    assert again(trees, tmp_path / "c", checksum=True).changed == 0
    assert not reads


def test_what_changed_behind_its_back_is_seen(trees: tuple[Path, Path], tmp_path: Path) -> None:
    """Same size, same mtime, other content, on either side: -c sees it with a catalog as without."""
    again(trees, tmp_path / "c", checksum=True)
    for side in trees:
        path = side / "middle"
        before = path.stat()
        with path.open("r+b") as file:
            file.write(os.urandom(100))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert again(trees, tmp_path / "c", checksum=True).changed == 1
        assert (trees[0] / "middle").read_bytes() == (trees[1] / "middle").read_bytes()


def test_a_first_copy_is_not_cut_and_so_not_remembered(tmp_path: Path, reads: Counter[str]) -> None:
    source = tmp_path / "src"
    source.mkdir()
    for name, size in SIZES.items():
        (source / name).write_bytes(os.urandom(size))
    again((source, tmp_path / "dst"), tmp_path / "c")
    for expected in (set(SIZES), set()):
        reads.clear()
        again((source, tmp_path / "dst"), tmp_path / "c", checksum=True)
        assert {name for name in reads if name.startswith("src/")} == {f"src/{name}" for name in expected}


@pytest.mark.parametrize("choice", ["off", "directory"])
def test_both_sides_go_by_the_environment(
    trees: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, choice: str
) -> None:
    """The remote side is a process of its own, with the same environment here."""
    monkeypatch.setenv("RDC_CATALOG", "off" if choice == "off" else str(tmp_path / "c"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for side in trees:
        for name in SIZES:
            os.utime(side / name, ns=(1, 1))
    time.sleep(2.1)  # the racy rule, with the real clock
    run = run_sync(trees[0], trees[1], SyncOptions(checksum=True), way=Way.PUSH)
    assert run.done.changed == 0
    if choice == "off":
        assert not (tmp_path / "home").exists()
        return
    with Catalog(tmp_path / "c") as catalog:
        count = catalog.database.read(lambda c: c.execute("SELECT count(*) FROM signature").fetchone())
    assert count == (2 * len(SIZES),)


def test_a_damaged_catalog_is_mentioned_once_and_costs_nothing(
    trees: tuple[Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "catalog.sqlite").write_bytes(b"x" * 10_000)
    words = ("sync", "-c", "--catalog", tmp_path / "c", f"{trees[0]}/", trees[1])
    first, second = command(*words), command(*words)
    assert (first.code, second.code) == (0, 0)
    assert len(first.complaints) == 1
    assert "was damaged" in first.complaints[0]
    assert second.complaints == []


def test_a_catalog_that_cannot_be_is_mentioned_once_and_costs_nothing(
    trees: tuple[Path, Path], tmp_path: Path
) -> None:
    time.sleep(2.1)  # the racy rule, with the real clock

    def notes(*words: str, **environ: str) -> list[str]:
        command = [*RDC, "sync", "-c", *words, f"{trees[0]}/", str(trees[1])]
        environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), **environ}
        done = subprocess.run(command, env=environ, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return [line for line in done.stderr.splitlines() if line.startswith("rdc: ")]

    beginning = "rdc: note: {}/catalog.sqlite: not used as catalog: {}"
    assert notes("--catalog=/dev/null") == [beginning.format("/dev/null", "Not a directory")]
    assert notes("--catalog=/dev/null", "-q") == []
    assert notes(RDC_CATALOG="/dev/null") == [beginning.format("/dev/null", "Not a directory")]
    home = tmp_path / "home"
    assert notes() == [beginning.format(home / ".cache" / "rdc", f"there is no directory {home}")]
    assert not home.exists()
    # The base directory of caches is made by whoever comes first, as its specification says.
    assert notes(XDG_CACHE_HOME=str(tmp_path / "cache")) == []
    assert (tmp_path / "cache" / "rdc" / "catalog.sqlite").exists()
    assert (tmp_path / "cache" / "rdc").stat().st_mode & 0o777 == 0o700


def test_verbs(tmp_path: Path) -> None:
    files, cache = tmp_path / "files", tmp_path / "c"
    (files / "sub").mkdir(parents=True)
    for name in ("a", "b.tmp", "sub/c", "sub/d"):
        (files / name).write_bytes(name.encode())
    time.sleep(2.1)
    choice = ("--catalog", cache)
    assert "not there yet" in command("catalog", "show", *choice).out
    assert command("index", *choice, "--exclude=*.tmp", files).err == "3 files: 0 known, 3 read (11 B)\n"
    assert command("index", *choice, files).err == "4 files: 3 known, 1 read (5 B)\n"
    nowhere = command("index", "--catalog", files / "a", files)
    assert nowhere.code == 11
    assert "4 not kept" in nowhere.err
    shown = command("catalog", "show", *choice).out
    assert "entries    4 (of files of 16 B)" in shown
    (files / "sub" / "c").unlink()
    (files / "a").rename(files / "sub" / "a")
    pruned = command("catalog", "prune", *choice)
    assert pruned.err == "dropped 2 entries of files that are gone, 0 unused, 0 above the size\n"
    assert command("catalog", "forget", *choice, files / "sub").err == "forgot 1 entry\n"
    assert command("catalog", "forget", *choice, "--all").err == "forgot 1 entry\n"
    assert "entries    0" in command("catalog", "show", *choice).out
    for wrong in (["catalog"], ["catalog", "forget"], ["catalog", "prune", "--max-size=big"], ["index"]):
        assert command(*wrong, *choice).code == 1


def test_a_place_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    assert command("index", "--catalog", tmp_path / "c", tmp_path / "missing").code == 23


def test_nothing_heavy_is_loaded_for_the_version() -> None:
    heavy = "{'sqlite3', 'concurrent.futures'}"
    code = (
        f"import sys; from rdc.cli import main; main._version_text(); assert not {heavy} & set(sys.modules)"
    )
    subprocess.run([RDC[0], "-c", code], check=True)
