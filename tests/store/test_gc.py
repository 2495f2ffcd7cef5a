"""gc removes what no snapshot needs and nothing else, while puts and restores go on."""

from __future__ import annotations

import fcntl
import os
import random
import time
from pathlib import Path

import pytest

import rdc
from rdc.errors import ExitCode, FileError, RdcError
from rdc.store import gc
from rdc.store.place import PackStore
from tests.support.store.histories import StoreHistory
from tests.support.store.stores import Problems, put_tree, read_alone, state_of

WEEK = 8 * 86400


def pack_bytes(store: Path) -> int:
    return sum(path.stat().st_size for path in store.rglob("*.pack"))


def forget_for_good(store: Path, *numbers: int) -> None:
    """Forget snapshots as if it was long ago."""
    rdc.forget_snapshots(store, rdc.ForgetOptions(numbers=numbers, apply=True))
    old = time.time() - WEEK
    for number in numbers:
        os.utime(store / "forgotten" / str(number), (old, old))


class Days:
    """A tree of which a tenth changes each day, and the states of all days."""

    def __init__(self, top: Path) -> None:
        self.drawn = random.Random(6)
        self.tree, self.store = top / "tree", top / "st"
        self.tree.mkdir()
        self.states: dict[int, dict[str, object]] = {}
        for number in range(10):
            (self.tree / f"file {number}").write_bytes(self.drawn.randbytes(60_000))

    def put(self, days: int = 1) -> None:
        for _ in range(days):
            for _ in range(4):
                path = self.tree / f"file {self.drawn.randrange(10)}"
                content = bytearray(path.read_bytes())
                at = self.drawn.randrange(len(content))
                content[at : at + 300] = self.drawn.randbytes(300)
                path.write_bytes(content)
            state = state_of(self.tree)
            self.states[put_tree(self.tree, self.store).number] = state

    def check(self, top: Path) -> None:
        listed = [one.number for one in rdc.snapshots(self.store)]
        for number in listed:
            out = top / f"out {number} {time.monotonic_ns()}"
            read_alone(self.store, number, out)
            assert state_of(out) == self.states[number]
        assert rdc.verify_store(self.store, 1.0).damaged == 0


@pytest.fixture
def days(tmp_path: Path) -> Days:
    return Days(tmp_path)


def test_nothing_is_removed_while_snapshots_need_it(days: Days, tmp_path: Path) -> None:
    days.put(3)
    before = state_of(days.store)
    report = rdc.clean_store(days.store)
    assert (report.packs, report.freed, report.written) == (0, 0, 0)
    assert state_of(days.store) == before
    days.check(tmp_path)


def test_progress_ends_at_the_trees_that_are_kept(days: Days) -> None:
    days.put(3)
    told = list[tuple[int, int | None]]()

    def tell(event: object) -> None:
        if isinstance(event, rdc.Progressed):
            told.append((event.done, event.total))

    rdc.clean_store(days.store, reporter=tell)
    with PackStore.open(os.fsencode(days.store)) as opened:
        sizes = [opened.snapshot(number).tree.size for number in (1, 2, 3)]
    assert told == [(sum(sizes[: at + 1]), sum(sizes)) for at in range(3)]


def test_the_trash_is_kept_for_a_week(days: Days, tmp_path: Path) -> None:
    days.put(3)
    rdc.forget_snapshots(days.store, rdc.ForgetOptions(numbers=(1, 2), apply=True))
    assert rdc.clean_store(days.store).packs == 0
    for number in (1, 2):
        os.rename(days.store / "forgotten" / str(number), days.store / "snapshots" / str(number))
    days.check(tmp_path)


def test_after_all_but_the_last_the_store_is_as_small_as_a_fresh_one(days: Days, tmp_path: Path) -> None:
    days.put(25)
    forget_for_good(days.store, *range(1, 25))
    report = rdc.clean_store(days.store)
    assert report.snapshots == 24
    assert report.freed > report.written > 0
    put_tree(days.tree, tmp_path / "fresh")
    assert pack_bytes(days.store) <= 1.1 * pack_bytes(tmp_path / "fresh")
    days.check(tmp_path)
    days.put(2)
    days.check(tmp_path)


def test_small_files_that_are_gone_count_in_frames_that_are_needed(tmp_path: Path) -> None:
    """Hundreds of files share a frame, of which one is still there."""
    drawn, tree, store = random.Random(3), tmp_path / "tree", tmp_path / "st"
    tree.mkdir()
    for number in range(300):
        (tree / str(number)).write_bytes(drawn.randbytes(3000))
    put_tree(tree, store)
    for number in range(300):
        if number % 60:
            (tree / str(number)).unlink()
    put_tree(tree, store)
    forget_for_good(store, 1)
    rdc.clean_store(store)
    put_tree(tree, tmp_path / "fresh")
    assert pack_bytes(store) <= 1.1 * pack_bytes(tmp_path / "fresh")
    read_alone(store, 2, tmp_path / "out")
    assert state_of(tmp_path / "out") == state_of(tree)


def test_kept_snapshots_are_written_again_against_each_other(days: Days, tmp_path: Path) -> None:
    days.put(20)
    forget_for_good(days.store, *[number for number in range(1, 21) if number not in (10, 15, 20)])
    before = pack_bytes(days.store)
    report = rdc.clean_store(days.store)
    assert report.written
    assert pack_bytes(days.store) == before - report.freed + report.written
    one = tmp_path / "one"
    put_tree(days.tree, one)
    assert pack_bytes(days.store) < 1.5 * pack_bytes(one), "the others are differences"
    days.check(tmp_path)


@pytest.mark.parametrize("what", ["pack", "tree", "snapshot"])
def test_nothing_is_removed_if_something_is_damaged(days: Days, what: str) -> None:
    days.put(4)
    forget_for_good(days.store, 1, 2)
    if what == "snapshot":
        (days.store / "snapshots" / "3").chmod(0o600)
        (days.store / "snapshots" / "3").write_bytes(b"RDCSNAP1 something")
    else:
        last = max(days.store.rglob("*.pack"), key=lambda path: path.stat().st_mtime_ns)
        last.unlink()
    before = state_of(days.store)
    with pytest.raises(FileError):
        rdc.clean_store(days.store)
    assert state_of(days.store) == before


def test_a_put_between_marking_and_removing_is_seen(
    days: Days, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its snapshot needs packs that were marked for removal."""
    days.put(2)
    old = {path.name: path.read_bytes() for path in days.tree.iterdir()}
    days.put(10)
    forget_for_good(days.store, *range(1, 12))
    look = gc._Collecting.run
    seen: list[int] = []

    def looked(self: gc._Collecting) -> gc._Collection:
        found = look(self)
        if not seen:
            for name, content in old.items():
                (days.tree / name).write_bytes(content)
            state = state_of(days.tree)
            days.states[put_tree(days.tree, days.store).number] = state
        seen.append(len(found.packs))
        return found

    monkeypatch.setattr(gc._Collecting, "run", looked)
    rdc.clean_store(days.store)
    assert len(seen) == 2
    days.check(tmp_path)


def test_a_store_in_use_is_left_alone(days: Days, tmp_path: Path) -> None:
    days.put(8)
    forget_for_good(days.store, *range(1, 8))
    with PackStore.open(os.fsencode(days.store)) as opened:
        opened.hold()
        with pytest.raises(RdcError, match="in use") as caught:
            rdc.clean_store(days.store, rdc.GcOptions(wait=0.1))
        assert caught.value.code is ExitCode.BUSY
        days.check(tmp_path)
    rdc.clean_store(days.store)
    days.check(tmp_path)


def test_one_gc_at_a_time(days: Days) -> None:
    days.put(1)
    fd = os.open(days.store / "forgotten", os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    with pytest.raises(RdcError, match="another gc"):
        rdc.clean_store(days.store)
    os.close(fd)


def test_without_locks_puts_go_on_and_gc_asks_for_trust(
    days: Days, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_fd: int, _how: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", refuse)
    days.put(3)
    forget_for_good(days.store, 1)
    with pytest.raises(RdcError, match="--exclusive"):
        rdc.clean_store(days.store)
    rdc.clean_store(days.store, rdc.GcOptions(exclusive=True))
    days.check(tmp_path)


def test_what_each_snapshot_takes_alone_is_what_forgetting_it_frees(days: Days) -> None:
    days.put(1)
    (days.tree / "only once").write_bytes(days.drawn.randbytes(600_000))
    days.put(1)
    (days.tree / "only once").unlink()
    days.put(1)
    alone = {one.number: one.alone for one in rdc.snapshots(days.store, alone=True)}
    assert 600_000 < (alone[2] or 0) < 605_000
    assert (alone[1] or 0) < 3000, "later ones are made against it"
    forget_for_good(days.store, 2)
    report = rdc.clean_store(days.store)
    assert report.freed - report.written > 595_000


def test_put_with_heal_mends_what_is_damaged(days: Days, tmp_path: Path) -> None:
    days.put(3)
    drawn = random.Random(1)
    for pack in days.store.rglob("*.pack"):
        data = bytearray(pack.read_bytes())
        end = int.from_bytes(data[-64:-56], "little")
        data[drawn.randrange(8, end)] ^= 4
        pack.chmod(0o600)
        pack.write_bytes(data)
    assert rdc.verify_store(days.store, 1.0).damaged
    state = state_of(days.tree)
    report = put_tree(days.tree, days.store, rdc.StoreOptions(name="tree", heal=True))
    days.states[report.number] = state
    out = tmp_path / "healed"
    rdc.sync(f"{days.store}/@{report.number}/", f"{out}/", catalog=None)
    assert state_of(out) == state
    # Damaged copies of chunks are in the store still, beside the sound ones.
    read_alone(days.store, report.number, tmp_path / "alone")
    assert state_of(tmp_path / "alone") == state
    rdc.forget_snapshots(days.store, rdc.ForgetOptions(numbers=(1, 2, 3), apply=True))
    problems = Problems()
    checked = rdc.verify_store(days.store, 1.0, reporter=problems)
    assert (checked.damaged, checked.exit) == (0, ExitCode.OK)
    assert problems.found
    told = ("; other packs have them, so nothing is lost", "; no snapshot needs them, unless forgotten ones")
    assert all(text.endswith(told) for text in problems.texts)


def test_damage_that_only_a_forgotten_snapshot_has_is_a_notice(days: Days) -> None:
    content = days.drawn.randbytes(300_000)
    (days.tree / "only once").write_bytes(content)
    days.put(1)
    (days.tree / "only once").unlink()
    days.put(1)
    for pack in days.store.rglob("*.pack"):
        data = bytearray(pack.read_bytes())
        at = data.find(content[1000:1100])
        if at >= 0:
            data[at] ^= 1
            pack.chmod(0o600)
            pack.write_bytes(data)
    assert rdc.verify_store(days.store, 1.0).damaged == 2
    rdc.forget_snapshots(days.store, rdc.ForgetOptions(numbers=(1,), apply=True))
    problems = Problems()
    assert rdc.verify_store(days.store, 1.0, reporter=problems).exit is ExitCode.OK
    (text,) = problems.texts
    assert text.endswith("; no snapshot needs them, unless forgotten ones")


def test_a_snapshot_that_is_forgotten_before_it_is_read_is_no_failure(
    days: Days, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    days.put(3)
    read = PackStore.needed_snapshot

    def late(store: PackStore, number: int, *, forgotten: bool = False) -> object:
        monkeypatch.setattr(PackStore, "needed_snapshot", read)
        rdc.forget_snapshots(days.store, rdc.ForgetOptions(numbers=(1, 2), apply=True))
        return read(store, number, forgotten=forgotten)

    monkeypatch.setattr(PackStore, "needed_snapshot", late)
    assert rdc.clean_store(days.store).packs == 0
    days.check(tmp_path)


@pytest.mark.parametrize("seed", range(2))
def test_a_history_beside_a_model(tmp_path: Path, seed: int) -> None:
    """A sample of what scripts/soak store runs."""
    StoreHistory(seed, tmp_path).run(15)


def test_a_delta_that_a_killed_put_left_needs_nothing(tmp_path: Path) -> None:
    """Its base is removed, as no snapshot needs it. Another put stores its chunk again, and gc goes on."""
    source, store = tmp_path / "tree", tmp_path / "st"
    source.mkdir()
    drawn = random.Random(11)
    old, other = drawn.randbytes(40_000), drawn.randbytes(400_000)
    (source / "file").write_bytes(old)
    put_tree(source, store)
    changed = old[:100] + b"changed" + old[100:]
    (source / "file").write_bytes(changed)
    (source / "other").write_bytes(other)
    assert put_tree(source, store).deltas
    (store / "snapshots" / "2").unlink()
    (source / "file").unlink()
    assert put_tree(source, store).number == 2
    forget_for_good(store, 1)
    assert rdc.clean_store(store).packs == 1, "that with the base"
    (source / "file").write_bytes(changed)
    assert put_tree(source, store).new_bytes > len(changed)
    for _ in range(2):
        rdc.clean_store(store)
        assert rdc.verify_store(store, 1.0).damaged == 0
        assert all(one.alone is not None for one in rdc.snapshots(store, alone=True))
    rdc.sync(f"{store}/@latest/", str(tmp_path / "out"), catalog=None)
    assert state_of(tmp_path / "out") == state_of(source)
