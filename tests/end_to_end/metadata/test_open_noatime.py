"""--open-noatime: what a sync reads keeps its access time, beside rsync's; without it, it does not."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from rdc.files.root import confined_root
from rdc.model.sync import SyncOptions
from tests.support.running.beside_rsync import rsync
from tests.support.running.syncing import Way, run_sync
from tests.support.trees.trees import File, describe, read_tree, tree, write_tree
from tests.support.trees.unprivileged import as_nobody, place_of_nobody

OLD = 981_220_662 * 10**9
"""Nanoseconds, in 2001: any read would change an access time so far back, on a relatime mount too."""

CONTENTS: dict[str, bytes] = {
    **{f"small/{number}": b"content %d" % number for number in range(20)},
    "large": os.urandom(300_000),
    "changed": b"new" * 9_000,
    "same": b"same",
}
HELD: dict[str, File | bytes] = {
    "changed": File(b"new" * 8_000, 0o644, 5),
    "same": b"same",
    "extra": b"content of an extra file",
}
OPTIONS = SyncOptions(open_noatime=True, fsync=False)


def aged(top: Path) -> Path:
    """`top`, all files of which were last read long ago."""
    for path in files(top):
        os.utime(path, ns=(OLD, path.stat().st_mtime_ns))
    return top


def files(top: Path) -> list[Path]:
    return [path for path in top.rglob("*") if path.is_file()]


def read_since(top: Path) -> set[str]:
    return {str(path.relative_to(top)) for path in files(top) if path.stat().st_atime_ns != OLD}


def both(top: Path) -> tuple[Path, Path]:
    source = write_tree(top / "source", tree(CONTENTS))
    return aged(source), aged(write_tree(top / "destination", tree(HELD)))


@pytest.mark.parametrize("checksum", [False, True])
@pytest.mark.parametrize("way", list(Way))
def test_what_is_read_keeps_its_access_time(way: Way, checksum: bool, tmp_path: Path) -> None:
    source, destination = both(tmp_path)
    run = run_sync(source, destination, replace(OPTIONS, checksum=checksum), way=way)
    assert run.problems == []
    assert read_since(source) == set()
    assert (destination / "same").stat().st_atime_ns == OLD
    (destination / "extra").unlink()
    for top in (source, destination):
        os.utime(top, (5, 5))
    assert describe(read_tree(source), read_tree(destination)) == []


@pytest.mark.needs("rsync")
def test_it_is_as_with_rsync_and_needs_the_option(tmp_path: Path) -> None:
    source, destination = both(tmp_path)
    assert rsync("-c", "--open-noatime", f"{source}/", f"{destination}/")[0] == 0
    assert read_since(source) == set()
    run_sync(source, tmp_path / "other", replace(OPTIONS, open_noatime=False))
    assert read_since(source) == set(CONTENTS)


def test_several_sources_keep_theirs(tmp_path: Path) -> None:
    source, _ = both(tmp_path)
    run = run_sync(bytes(source) + b"/./small", tmp_path / "copy", replace(OPTIONS, relative=True))
    assert (run.problems, read_since(source)) == ([], set())
    assert len(files(tmp_path / "copy")) == 20


def read_as_nobody(place: Path) -> None:
    run = run_sync(place / "source", place / "destination", OPTIONS)
    assert run.problems == []
    assert len(files(place / "destination")) == len(CONTENTS)


def test_a_file_of_another_owner_is_read_all_the_same() -> None:
    with place_of_nobody() as place:
        aged(write_tree(place / "source", tree(CONTENTS)))
        as_nobody(lambda: read_as_nobody(place))


def test_a_system_without_the_flag_reads_as_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confined_root, "NO_ATIME", 0)
    source, destination = both(tmp_path)
    assert run_sync(source, destination, OPTIONS).problems == []
