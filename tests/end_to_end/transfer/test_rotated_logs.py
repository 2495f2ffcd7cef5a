"""Rotated logs: what moved on to the next name is found under the one before."""

from __future__ import annotations

import itertools
import random
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.model.preserved import Preserved
from rdc.model.sync import SyncOptions
from rdc.plan import compare as rotation
from rdc.plan.compare import compare, rotated
from rdc.tree.manifest import Entry
from tests.support.running.syncing import Run, Way, run_sync
from tests.support.share import examples
from tests.support.trees.manifests import entry, listing
from tests.support.trees.trees import File, describe, litter, read_tree, tree, write_tree

DAY = 86_400 * 10**9
GROWN = random.Random(9).randbytes(50_000)


def day(number: int, size: int = 60_000) -> bytes:
    return random.Random(number).randbytes(size + number)


def names_of(count: int) -> list[str]:
    return ["log/app.log", "log/app.log.1", *(f"log/app.log.{i}.gz" for i in range(2, count))]


def written(top: Path, files: dict[str, File | bytes]) -> Path:
    return write_tree(top, tree(dict(files)))


def synced(source: Path, destination: Path, way: Way, *, delete: bool) -> Run:
    run = run_sync(source, destination, SyncOptions(fsync=False, delete=delete, fewest_bytes=True), way=way)
    assert run.problems == []
    assert litter(read_tree(destination)) == []
    assert describe(read_tree(source), read_tree(destination)) == []
    return run


@pytest.mark.parametrize("delete", [True, False], ids=["delete", "keep"])
@pytest.mark.parametrize("way", list(Way))
def test_a_rotation_costs_what_was_written_since(way: Way, delete: bool, tmp_path: Path) -> None:
    """Names stay, contents move: the last one goes, the first is new, one was written to before it moved."""
    names = names_of(9)
    old = {name: File(day(i), 0o644, (100 - i) * DAY) for i, name in enumerate(names)}
    first = old[names[0]]
    new = {name: old[before] for before, name in itertools.pairwise(names)}
    new[names[1]] = File(first.content + GROWN, 0o644, 100 * DAY + 5)
    new[names[0]] = File(day(99, 3_000), 0o644, 101 * DAY)
    source = written(tmp_path / "source", dict(new))
    destination = written(tmp_path / "destination", dict(old))
    report = synced(source, destination, way, delete=delete).done
    assert report.literal_bytes <= len(GROWN) + 3_100 + 2_000
    assert report.round_trips <= 10


@pytest.mark.parametrize("way", [Way.HERE, Way.PULL], ids=["here", "pull"])
def test_the_first_rotations_make_new_names(way: Way, tmp_path: Path) -> None:
    old: dict[str, File | bytes] = {
        "a.log": File(day(1), 0o644, DAY),
        "b.log": File(day(2), 0o644, DAY),
        "stays": b"s",
    }
    new: dict[str, File | bytes] = {
        "a.log": File(day(3, 2_500), 0o644, 2 * DAY),
        "a.log.1": old["a.log"],
        "b.log": File(day(4, 2_500), 0o644, 2 * DAY),
        "b.log-20240131": File(day(2) + GROWN, 0o644, 9),
        "stays": b"s",
    }
    source, destination = written(tmp_path / "source", new), written(tmp_path / "destination", old)
    report = synced(source, destination, way, delete=True).done
    assert report.literal_bytes <= len(GROWN) + 2 * 2_600 + 1_000


def test_a_stamp_proves_nothing(tmp_path: Path) -> None:
    old = {"x.1": File(day(1), 0o644, DAY), "x.2": File(day(2, 30_000), 0o644, 2 * DAY)}
    new = {"x.1": File(day(3, 5_000), 0o644, 3 * DAY), "x.2": File(bytes(len(day(1))), 0o644, DAY)}
    source, destination = (
        written(tmp_path / "source", dict(new)),
        written(tmp_path / "destination", dict(old)),
    )
    synced(source, destination, Way.HERE, delete=True)


def test_what_was_moved_here_is_still_renamed(tmp_path: Path) -> None:
    """Though its number says that it may have begun as the file before it."""
    old = {"here/n-1": File(day(1), 0o644, 5), "there/m": File(day(2), 0o644, 7)}
    new = {"here/n-1": File(day(3), 0o644, 8), "here/n-2": old["there/m"]}
    source, destination = (
        written(tmp_path / "source", dict(new)),
        written(tmp_path / "destination", dict(old)),
    )
    run = synced(source, destination, Way.HERE, delete=True)
    assert run.done.literal_bytes <= len(day(3))
    assert "*renaming   there/m" in run.items


# ---- which names ----


def bases(wanted: list[Entry], held: list[Entry]) -> dict[bytes, tuple[bytes, ...]]:
    new, old = listing(wanted), listing(held)
    found = rotated(new, old, compare(new, old, preserved=Preserved(True), checksum=False), Preserved(True))
    return {new.names[row]: names for row, names in found.items()}


def files(**sizes: int) -> list[Entry]:
    return [
        entry(name.replace("_", ".").encode(), size=size, mtime_ns=size)
        for name, size in sorted(sizes.items())
    ]


def test_the_stamp_comes_before_the_number() -> None:
    held = files(a_1=5_000, a_2=6_000, a_3=7_000)
    assert bases(files(a_1=8_000, a_2=5_000, a_3=9_500), held) == {b"a.2": (b"a.1",), b"a.3": (b"a.2",)}


def test_files_that_stay_as_they_are_gave_nothing_up() -> None:
    held = files(a_1=5_000, a_2=6_000)
    assert bases(files(a_1=5_000, a_2=6_001), held) == {}


def test_new_files_leave_the_vanished_to_the_whole_tree() -> None:
    assert bases(files(b=5_000), files(a=5_000)) == {}
    assert bases(files(b=5_000), files(a=5_000, b=6_000)) == {b"b": (b"a",)}


def test_small_files_are_left_out() -> None:
    assert bases(files(a_1=900, a_2=800), files(a_1=800, a_2=700)) == {}


def test_small_files_are_not_searched_for_by_name_alone() -> None:
    held, least = files(a_1=5_000, a_2=6_000), rotation.NAMED_BYTES
    assert bases(files(a_1=5_001, a_2=least - 1), held) == {}
    assert bases(files(a_1=5_001, a_2=least), held) == {b"a.2": (b"a.1",)}
    assert bases(files(a_1=5_001, a_2=5_000), held) == {b"a.2": (b"a.1",)}  # by its stamp


@pytest.mark.parametrize(
    ("name", "before"),
    [
        (b"log.1", [b"log.0", b"log"]),
        (b"log.010.gz", [b"log.009.gz", b"log.9.gz", b"log.gz", b"log"]),
        (b"log-20240131", [b"log-20240130", b"log"]),
        (b"log", []),
        (b".1", []),
        (b"1", []),
        (b"a\n.2", [b"a\n.1", b"a\n"]),
        (b"a.123456789012345", []),
    ],
)
def test_names_before_a_number(name: bytes, before: list[bytes]) -> None:
    assert rotation._names_before(name) == before


@settings(max_examples=examples(500))
@given(st.text("a1.-\n", max_size=22), st.binary(max_size=2))
def test_a_number_is_what_the_pattern_finds(text: str, end: bytes) -> None:
    name = text.encode() + end
    pattern = re.fullmatch(rb"(.+)[.-]([0-9]{1,14})(\.[A-Za-z0-9]{1,4})?", name, re.DOTALL)
    expected = (name, b"", b"") if pattern is None else (pattern[1], pattern[2], pattern[3] or b"")
    assert rotation._numbered(name) == expected


def test_a_directory_of_very_many_changes_is_no_rotation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotation, "ROTATED_FILES", 1)
    assert bases(files(a_1=8_000, a_2=5_000), files(a_1=5_000, a_2=6_000)) == {}
