"""A power cut, or SIGKILL, at any moment of a put: every snapshot that is listed can be restored.

tests/support/power/power_cut.py says what a cut may lose.
"""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

import rdc
from rdc.store.place import PackStore
from tests.support.power.power_cut import History, State
from tests.support.power.power_log import Ordering, Snapshot, snapshot
from tests.support.power.recorded_writes import Call, built_recorder, record
from tests.support.store.stores import put_tree, state_of
from tests.support.store.trials import kill_at_once

NOISE = random.Random(3).randbytes(150_000)


def write_tree(top: Path, version: int) -> None:
    (top / "docs").mkdir(parents=True, exist_ok=True)
    (top / "docs" / "noise").write_bytes(NOISE[: 1000 * version] + b"%d" % version + NOISE[1000 * version :])
    (top / "docs" / f"new {version}").write_bytes(b"text %d\n" % version * 100)


@pytest.fixture(scope="module")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_recorder(tmp_path_factory.mktemp("native"))


def trees_of(store: Path) -> dict[int, bytes]:
    """The keys of the tree of each listed snapshot: they say all that is in it."""
    with PackStore.open(os.fsencode(store)) as opened:
        return {number: opened.snapshot(number).tree.keys for number in opened.numbers()}


def check_state(at: Path, trees: dict[int, bytes]) -> int:
    """Every listed snapshot is one of those that were put, and all of it can be read. Return how many."""
    if not (at / "st" / "store").exists():
        return 0
    listed = trees_of(at / "st")
    assert all(trees[number] == keys for number, keys in listed.items())
    problems: list[str] = []
    report = rdc.verify_store(at / "st", 1.0, reporter=lambda event: problems.append(str(event)))
    assert report.damaged == 0, problems
    return len(listed)


@pytest.mark.parametrize("earlier", [0, 1], ids=["first put", "second put"])
def test_after_a_power_cut_each_listed_snapshot_is_whole(
    recorder: Path, tmp_path: Path, earlier: int
) -> None:
    source, top = tmp_path / "tree", tmp_path / "top"
    top.mkdir()
    for version in range(1, earlier + 1):
        write_tree(source, version)
        put_tree(source, top / "st")
    before: Snapshot = snapshot(top)
    write_tree(source, earlier + 1)
    calls: list[Call] = record(
        recorder, top, tmp_path / "log", "store", "put", "--name=tree", str(source), str(top / "st")
    )
    trees = trees_of(top / "st")
    history = History(before, calls)
    assert history.differences(snapshot(top).tree) == []
    found = set()
    for seed, ordering in enumerate(Ordering):
        for cut in history.cuts(ordering, seed, subsets=2):
            at = tmp_path / "at"
            shutil.rmtree(at, ignore_errors=True)
            at.mkdir()
            state: State = history.state(cut)
            state.write(at)
            count = check_state(at, trees)
            found.add(count)
            assert count >= earlier
            if cut.prefix == len(history):
                assert count == earlier + 1, "what was told is lost"
    assert found == ({0, 1} if not earlier else {1, 2})


FORGOTTEN = ("1", "2", "3")


@pytest.mark.parametrize(
    "words",
    [("forget", "--apply"), ("forget", "--retain=1y", "--apply"), ("gc",)],
    ids=["forget two", "forget by retention", "gc"],
)
def test_after_a_power_cut_of_forget_or_gc_each_listed_snapshot_is_whole(
    recorder: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """gc writes what the last snapshot needs again, as the first pack is mostly bases."""
    source, top = tmp_path / "tree", tmp_path / "top"
    top.mkdir()
    for version in range(1, 5):
        write_tree(source, version)
        scattered = bytearray(NOISE)
        for at_byte in range(version, len(NOISE), 10_000):
            scattered[at_byte] ^= 1
        (source / "docs" / "scattered").write_bytes(scattered)
        put_tree(source, top / "st")
    trees = trees_of(top / "st")
    operands = ["@1", "@3"] if words == ("forget", "--apply") else []
    if words == ("gc",):
        rdc.forget_snapshots(top / "st", rdc.ForgetOptions(numbers=(1, 2, 3), apply=True))
        for number in FORGOTTEN:
            os.utime(top / "st" / "forgotten" / number, (1_000_000_000, 1_000_000_000))
    before: Snapshot = snapshot(top)
    packs = set(top.rglob("*.pack"))
    calls: list[Call] = record(recorder, top, tmp_path / "log", "store", *words, str(top / "st"), *operands)
    left = len(trees_of(top / "st"))
    if words == ("gc",):
        assert not packs & set(top.rglob("*.pack")), "everything is written again"
    history = History(before, calls)
    assert history.differences(snapshot(top).tree) == []
    found = set()
    for seed, ordering in enumerate(Ordering):
        for cut in history.cuts(ordering, seed, subsets=2):
            at = tmp_path / "at"
            shutil.rmtree(at, ignore_errors=True)
            at.mkdir()
            history.state(cut).write(at)
            found.add(check_state(at, trees))
            assert left in found or cut.prefix < len(history)
    assert found <= set(range(left, 5))


def test_after_a_power_cut_the_next_put_goes_on(recorder: Path, tmp_path: Path) -> None:
    source, top = tmp_path / "tree", tmp_path / "top"
    top.mkdir()
    write_tree(source, 1)
    before = snapshot(top)
    calls = record(
        recorder, top, tmp_path / "log", "store", "put", "--name=tree", str(source), str(top / "st")
    )
    history = History(before, calls)
    drawn = random.Random(1)
    for prefix in range(0, len(history) + 1, 3):
        cut = drawn.choice(list(history.cuts_at(prefix, Ordering.JOURNAL, drawn, subsets=2)))
        at = tmp_path / "at"
        shutil.rmtree(at, ignore_errors=True)
        at.mkdir()
        history.state(cut).write(at)
        number = put_tree(source, at / "st").number
        out = tmp_path / f"out-{prefix}"
        rdc.sync(f"{at}/st/@{number}/", str(out), catalog=None)
        assert state_of(out) == state_of(source)


def test_kills_of_two_puts_and_a_gc_at_once(tmp_path: Path) -> None:
    """Each is killed somewhere, or ends. Every snapshot that is listed afterwards is whole, and later puts
    go on."""
    assert kill_at_once(tmp_path, 4, kills=20)


def test_what_a_killed_put_left_is_removed(tmp_path: Path) -> None:
    source, store = tmp_path / "tree", tmp_path / "st"
    write_tree(source, 1)
    put_tree(source, store)
    from rdc.files.base.paths import temporary_name

    left = store / "snapshots" / os.fsdecode(temporary_name(b"2"))
    young = store / "snapshots" / os.fsdecode(temporary_name(b"3"))
    for path in (left, young):
        path.write_bytes(b"part")
    os.utime(left, (1_000_000_000, 1_000_000_000))
    put_tree(source, store)
    assert not left.exists()
    assert young.exists()
    assert sorted(trees_of(store)) == [1, 2]
