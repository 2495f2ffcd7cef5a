"""`verify`: every damage is found and named with what it reaches; a sound store has none."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

import rdc
from rdc.errors import ExitCode, FileError, RdcError, UsageError
from rdc.progress import Event, Progressed
from rdc.store.place import PackStore
from rdc.store.reader import StoreReader
from tests.support.store.stores import PackedFrame, Problems, add_pack, put_tree, state_of

NOISE = random.Random(8).randbytes(2_500_000)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    top = tmp_path / "tree"
    (top / "docs").mkdir(parents=True)
    for number in range(40):
        (top / "docs" / f"{number}.txt").write_bytes(b"text %d\n" % number * 200)
    (top / "noise").write_bytes(NOISE)
    return top


@pytest.fixture
def store(source: Path, tmp_path: Path) -> Path:
    """Two snapshots: `noise` of the second one is a delta against the first one's."""
    put_tree(source, tmp_path / "st")
    (source / "noise").write_bytes(NOISE[:1_000_000] + b"new" + NOISE[1_000_000:])
    put_tree(source, tmp_path / "st")
    return tmp_path / "st"


def packs_by_size(store: Path) -> list[Path]:
    return sorted(store.rglob("*.pack"), key=lambda path: path.stat().st_size)


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0x10
    path.chmod(0o600)
    path.write_bytes(data)


def test_a_sound_store_has_no_damage(store: Path) -> None:
    problems = Problems()
    report = rdc.verify_store(store, reporter=problems)
    assert (report.snapshots, report.packs, report.damaged, report.exit) == (2, 2, 0, ExitCode.OK)
    assert report.bytes_read == 0
    whole = rdc.verify_store(store, 1.0, reporter=problems)
    assert whole.bytes_read > len(NOISE)
    assert not problems.found


def test_a_bad_base_is_named_with_every_snapshot_that_it_reaches(store: Path) -> None:
    """The first pack has the noise that the second one's delta is made against."""
    problems = Problems()
    flip(packs_by_size(store)[-1], 2_000_000)
    assert rdc.verify_store(store, reporter=Problems()).damaged == 0
    report = rdc.verify_store(store, 1.0, reporter=problems)
    assert report.exit is ExitCode.PARTIAL
    assert any(text.startswith("snapshot 1: noise: cannot be restored") for text in problems.texts)
    assert any(text.startswith("snapshot 2: noise: cannot be restored") for text in problems.texts)
    assert not any("docs/" in text for text in problems.texts)


def test_a_missing_pack_is_named_without_reading(store: Path) -> None:
    problems = Problems()
    packs_by_size(store)[0].unlink()
    report = rdc.verify_store(store, reporter=problems)
    assert report.exit is ExitCode.PARTIAL
    assert problems.texts[0].startswith("snapshot 2: its tree cannot be read")


def test_a_damaged_directory_of_a_pack_costs_what_is_in_it(store: Path, tmp_path: Path) -> None:
    """The second pack: snapshot 1 is untouched, and can be restored."""
    problems = Problems()
    flip(packs_by_size(store)[0], -70)
    report = rdc.verify_store(store, reporter=problems)
    assert report.damaged >= 2
    assert "damaged: expected the directory" in problems.texts[0]
    rdc.sync(f"{store}/@1/", str(tmp_path / "out"), catalog=None)
    assert (tmp_path / "out" / "noise").read_bytes() == NOISE


def test_a_damaged_snapshot_is_named(store: Path) -> None:
    problems = Problems()
    flip(store / "snapshots" / "2", 40)
    report = rdc.verify_store(store, reporter=problems)
    assert report.damaged == 1
    assert problems.texts[0].startswith("snapshot 2: its tree cannot be read")


def test_a_put_after_damage_stores_again_what_is_lost(source: Path, store: Path, tmp_path: Path) -> None:
    problems = Problems()
    flip(packs_by_size(store)[-1], -70)
    report = put_tree(source, store, problems=problems)
    assert report.exit is ExitCode.PARTIAL
    assert report.files_read == 41
    rdc.sync(f"{store}/@3/", str(tmp_path / "out"), rdc.SyncOptions(times=True), catalog=None)
    assert state_of(tmp_path / "out") == state_of(source)


@pytest.mark.parametrize("seed", range(4))
def test_flipped_bits_are_found(store: Path, tmp_path: Path, seed: int) -> None:
    """Any bit of a pack, a snapshot or the head: either `verify` names it, or the store cannot be opened."""
    drawn = random.Random(seed)
    files = [path for path in store.rglob("*") if path.is_file() and path.stat().st_size]
    for _ in range(12):
        copy = tmp_path / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(store, copy)
        chosen = copy / drawn.choice(files).relative_to(store)
        data = bytearray(chosen.read_bytes())
        at = drawn.randrange(len(data))
        data[at] ^= 1 << drawn.randrange(8)
        chosen.chmod(0o600)
        chosen.write_bytes(data)
        problems = Problems()
        try:
            report = rdc.verify_store(copy, 1.0, reporter=problems)
        except FileError as error:
            assert "\n" not in str(error)
            continue
        assert report.damaged, f"byte {at} of {chosen}"
        assert all("\n" not in text for text in problems.texts)


def test_packs_that_were_read_longest_ago_come_first(store: Path, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    sizes = [path.stat().st_size for path in packs_by_size(store)]
    read = [rdc.verify_store(store, 0.0001, notes=notes).bytes_read for _ in range(2)]
    assert len(set(read)) == 2
    assert sum(read) == rdc.verify_store(store, 1.0).bytes_read
    assert sizes[0] < sizes[1]


@pytest.mark.parametrize("read", [0.0, -1.0, 1.01, float("nan")])
def test_a_share_that_is_none_is_refused(store: Path, read: float) -> None:
    with pytest.raises(UsageError, match="more than 0"):
        rdc.verify_store(store, read)


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    for call in (rdc.snapshots, rdc.verify_store):
        with pytest.raises(RdcError, match="expected a store"):
            call(tmp_path)
        with pytest.raises(RdcError, match="expected a store, found nothing"):
            call(tmp_path / "missing")


def test_two_packs_with_one_chunk_are_sound(store: Path, source: Path, tmp_path: Path) -> None:
    """As two puts at once make them."""
    put_tree(source, tmp_path / "other")
    with PackStore.open(os.fsencode(store)) as opened:
        reader = StoreReader(opened)
        key = reader.directory(reader.packs[0]).keys[:16]
        content = reader.chunk(key)
        reader.close()
    add_pack(store, PackedFrame(content))
    with PackStore.open(os.fsencode(store)) as opened:
        reader = StoreReader(opened)
        assert len(reader.frames_with(key)) == 2
        reader.close()
    assert rdc.verify_store(store, 1.0).damaged == 0


def test_a_missing_lock_is_a_notice(store: Path) -> None:
    (store / "lock").unlink()
    problems = Problems()
    report = rdc.verify_store(store, reporter=problems)
    assert (report.damaged, report.exit) == (0, ExitCode.OK)
    assert [one.code for one in problems.found] == [ExitCode.OK]
    (text,) = problems.texts
    assert "expected the file that shows gc whether puts and restores run, found none; once" in text
    assert f"touch {store}/lock" in text
    (store / "lock").touch()
    problems.found.clear()
    rdc.verify_store(store, reporter=problems)
    assert not problems.found


def test_puts_and_forget_and_gc_meanwhile_are_no_damage(store: Path, source: Path) -> None:
    problems, done = Problems(), list[object]()

    def meanwhile(event: Event) -> None:
        problems(event)
        if isinstance(event, Progressed) and not done:
            done.append(event)
            (source / "noise").write_bytes(random.Random(9).randbytes(400_000))
            put_tree(source, store)
            rdc.forget_snapshots(store, rdc.ForgetOptions(numbers=(1,), apply=True))
            os.utime(store / "forgotten" / "1", (1, 1))
            with pytest.raises(RdcError, match="puts, restores or checks run") as caught:
                rdc.clean_store(store, rdc.GcOptions(wait=0))
            assert caught.value.code is ExitCode.BUSY

    report = rdc.verify_store(store, 1.0, reporter=meanwhile)
    assert done and (report.snapshots, report.damaged) == (1, 0)
    assert not problems.found


def test_a_pack_that_cannot_be_read_and_that_nothing_needs_is_given_up_as_the_message_says(
    source: Path, store: Path
) -> None:
    for pack in packs_by_size(store):
        flip(pack, pack.stat().st_size - 100)
    put_tree(source, store, rdc.StoreOptions(name="tree", heal=True))
    problems = Problems()
    assert rdc.verify_store(store, reporter=problems).damaged > 2
    assert not any("rm -f" in text for text in problems.texts)
    rdc.forget_snapshots(store, rdc.ForgetOptions(numbers=(1, 2), apply=True))
    problems = Problems()
    assert rdc.verify_store(store, reporter=problems).damaged == 2
    advice = [text for text in problems.texts if "can be restored without" in text]
    for text in advice:
        subprocess.run(["sh", "-c", text[text.index("rm -f") : text.index(" gives")]], check=True)
    assert len(advice) == 2
    assert rdc.verify_store(store, 1.0).damaged == 0
