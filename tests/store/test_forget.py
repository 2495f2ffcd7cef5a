"""Retention keeps what it says, by numbers and the store's own times. Forgotten snapshots can come back."""

from __future__ import annotations

import os
import shlex
import struct
import subprocess
import time
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

import rdc
from rdc.errors import FileError, UsageError
from rdc.model.entries import Metadata
from rdc.store.forget import RetentionRule, kept_by, parse_retention
from rdc.store.place import PackStore
from rdc.store.snapshots import Snapshot, decode_snapshot, encode_snapshot
from rdc.store.tree_rows import StreamRef
from tests.support.running.syncing import RDC
from tests.support.store.stores import Problems, put_tree, state_of

NOON = int(datetime(2026, 11, 29, 12, 30).timestamp())


def at(number: int, seconds: int, series: bytes = b"data", problems: int = 0) -> Snapshot:
    top, tree = Metadata(0o755, 0, 0, 0), StreamRef(0, 0, b"")
    return Snapshot(number, seconds, series, b"", b"/", 0, 0, 0, 0, top, b"", tree, problems)


def period_of(rule: str, seconds: int) -> object:
    """A slow definition, from the calendar."""
    day = datetime.fromtimestamp(seconds)
    monday = (day - timedelta(days=day.weekday())).date()
    return {
        "h": (day.date(), day.hour),
        "d": day.date(),
        "w": monday,
        "m": (day.year, day.month),
        "y": day.year,
    }[rule]


@given(
    st.lists(
        st.tuples(st.integers(0, 3 * 365 * 24), st.sampled_from((b"one", b"two")), st.integers(0, 1)),
        max_size=30,
    ),
    st.lists(st.tuples(st.integers(1, 5), st.sampled_from("hdwmy")), min_size=1, max_size=3),
)
def test_it_keeps_the_newest_of_each_period(
    hours: list[tuple[int, bytes, int]], rules: list[tuple[int, str]]
) -> None:
    """Times need not increase: a clock was set back. One with problems counts where there is no other."""
    snapshots = [
        at(number, NOON - 3600 * back, series, problems)
        for number, (back, series, problems) in enumerate(hours, 1)
    ]
    wanted = set[int]()
    for series in (b"one", b"two"):
        own = [one for one in snapshots if one.series == series]
        wanted.update([one.number for one in own][-1:])
        wanted.update([one.number for one in own if not one.problems][-1:])
        for count, period in rules:
            groups = dict[object, list[Snapshot]]()
            for one in own:
                groups.setdefault(period_of(period, one.seconds), []).append(one)
            for group in sorted(groups.values(), key=lambda group: group[-1].number)[-count:]:
                wanted.add(([one for one in group if not one.problems] or group)[-1].number)
    found = kept_by(snapshots, [RetentionRule(count, period) for count, period in rules])
    assert found == wanted


def test_hours_days_weeks_and_months_of_a_year_of_hourly_snapshots() -> None:
    snapshots = [at(number + 1, NOON - 3600 * (8760 - number)) for number in range(8760)]
    kept = kept_by(snapshots, parse_retention("24h,7d,4w,12m"))
    assert 24 + 6 + 2 + 10 <= len(kept) <= 24 + 7 + 4 + 12
    assert set(range(8760 - 23, 8761)) <= kept


@pytest.mark.parametrize("seconds", [-(1 << 62), 1 << 62, -62135596800 - 86400])
def test_a_clock_that_was_far_off_is_no_error(seconds: int) -> None:
    assert kept_by([at(1, seconds), at(2, NOON)], parse_retention("1w,1h")) == {2}


@pytest.mark.parametrize("text", ["", "7", "d", "7d,", "0d", "7x", "-7d", "7d 4w", "1234567d"])
def test_rules_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--retain"):
        parse_retention(text)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "tree").mkdir()
    for number in range(3):
        (tmp_path / "tree" / "file").write_bytes(b"%d" % number)
        put_tree(tmp_path / "tree", tmp_path / "st")
    return tmp_path / "st"


def numbers(store: Path) -> list[int]:
    return [one.number for one in rdc.snapshots(store)]


def test_nothing_is_forgotten_without_apply(store: Path) -> None:
    before = state_of(store)
    report = rdc.forget_snapshots(store, rdc.ForgetOptions(retain="1d"))
    assert (report.forgotten, report.kept, report.applied) == ((1, 2), 1, False)
    assert state_of(store) == before


def test_what_would_be_forgotten_is_shown_of_a_store_that_cannot_be_written(store: Path) -> None:
    os.unlink(store / "lock")
    retain = rdc.ForgetOptions(retain="1h")
    assert rdc.forget_snapshots(store, retain).forgotten == (1, 2)
    with pytest.raises(FileError, match="the file that shows gc whether puts"):
        rdc.forget_snapshots(store, rdc.ForgetOptions(retain="1h", apply=True))


def test_a_forgotten_snapshot_can_be_brought_back(store: Path, tmp_path: Path) -> None:
    began = time.time() - 1
    rdc.forget_snapshots(store, rdc.ForgetOptions(numbers=(1, 3), apply=True))
    assert numbers(store) == [2]
    assert sorted(os.listdir(store / "forgotten")) == ["1", "3"]
    assert (store / "forgotten" / "3").stat().st_mtime >= began
    rdc.clean_store(store)
    assert put_tree(tmp_path / "tree", store).number == 4, "a number is given once"
    os.rename(store / "forgotten" / "1", store / "snapshots" / "1")
    rdc.sync(f"{store}/@1/", f"{tmp_path}/out/", catalog=None)
    assert (tmp_path / "out" / "file").read_bytes() == b"0"


def damage(store: Path, number: int) -> None:
    path = store / "snapshots" / str(number)
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-1])


def advised(error: pytest.ExceptionInfo[FileError]) -> list[str]:
    """Return the words of the command at the end of a message."""
    return shlex.split(str(error.value).rpartition(": ")[2])


def test_a_snapshot_that_cannot_be_read_is_given_up_as_the_messages_say(store: Path) -> None:
    """A retention would count it, and gc would remove what it needs, so both stop there."""
    damage(store, 2)
    retain = rdc.ForgetOptions(retain="1d", apply=True)
    with pytest.raises(FileError, match="give up snapshot 2") as refused:
        rdc.forget_snapshots(store, retain)
    with pytest.raises(FileError, match="give up snapshot 2"):
        rdc.clean_store(store)
    assert rdc.forget_snapshots(store, rdc.ForgetOptions(numbers=(1,), apply=True)).kept == 2
    words = advised(refused)
    assert words == ["rdc", "store", "forget", "--apply", str(store), "@2"]
    subprocess.run([*RDC, *words[1:]], check=True, capture_output=True)
    assert numbers(store) == [3]
    assert rdc.forget_snapshots(store, retain).forgotten == ()
    with pytest.raises(FileError, match="give up snapshot 2") as refused:
        rdc.clean_store(store)
    subprocess.run(advised(refused), check=True)
    rdc.clean_store(store)


def test_a_snapshot_that_lacks_a_pack_is_given_up_as_the_messages_say(tmp_path: Path) -> None:
    store = tmp_path / "st"
    for name in ("lost", "kept"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_bytes(os.urandom(5_000))
        put_tree(tmp_path / name, store)
        for pack in store.rglob("*.pack"):
            if name == "lost":
                pack.unlink()
    for words in (
        ["rdc", "store", "forget", "--apply", str(store), "@1"],
        ["rm", "-f", f"{store}/forgotten/1"],
    ):
        with pytest.raises(FileError, match=r"no pack has chunk .* or give up snapshot 1: ") as refused:
            rdc.clean_store(store)
        assert advised(refused) == words
        subprocess.run([*RDC, *words[1:]] if words[0] == "rdc" else words, check=True, capture_output=True)
    rdc.clean_store(store)
    assert (rdc.verify_store(store, 1.0).damaged, numbers(store)) == (0, [2])


def test_of_a_published_store_none_is_forgotten_whose_index_could_not_be_written(
    store: Path, tmp_path: Path
) -> None:
    put_tree(tmp_path / "tree", store, rdc.StoreOptions(name="tree", publish=True))
    damage(store, 2)
    with pytest.raises(FileError, match="give up snapshot 2"):
        rdc.forget_snapshots(store, rdc.ForgetOptions(numbers=(1,), apply=True))
    assert sorted(os.listdir(store / "snapshots")) == ["1", "2", "3", "4"]
    rdc.forget_snapshots(store, rdc.ForgetOptions(numbers=(2,), apply=True))
    rdc.forget_snapshots(store, rdc.ForgetOptions(numbers=(1,), apply=True))
    assert numbers(store) == [3, 4]


def test_a_missing_lock_is_made_again_as_the_message_says(store: Path, tmp_path: Path) -> None:
    (store / "lock").unlink()
    with pytest.raises(FileError, match="once no rdc uses the store") as refused:
        put_tree(tmp_path / "tree", store)
    for run in (
        rdc.clean_store,
        lambda at: rdc.forget_snapshots(at, rdc.ForgetOptions(numbers=(1,), apply=True)),
    ):
        with pytest.raises(FileError, match="once no rdc uses the store"):
            run(store)
    subprocess.run(advised(refused), check=True)
    assert put_tree(tmp_path / "tree", store).number == 4
    rdc.clean_store(store)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (rdc.ForgetOptions(), "give one of them"),
        (rdc.ForgetOptions(retain="1d", numbers=(1,)), "give one of them"),
        (
            rdc.ForgetOptions(numbers=(1, 9)),
            "^@9: the store has no such snapshot; see rdc store list /.*/st$",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(store: Path, options: rdc.ForgetOptions, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        rdc.forget_snapshots(store, options)
    assert numbers(store) == [1, 2, 3]


@pytest.mark.parametrize("problems", [0, 1, 2**64 - 1])
def test_a_snapshot_comes_back_with_its_problems(problems: int) -> None:
    snapshot, key = at(7, NOON, problems=problems), bytes(32)
    data = encode_snapshot(snapshot, key)
    assert data.startswith(b"RDCSNAP2" if problems else b"RDCSNAP1")
    assert decode_snapshot(data, key) == snapshot


def test_a_snapshot_that_says_it_has_problems_has_some() -> None:
    key = bytes(32)
    data = encode_snapshot(at(7, NOON, problems=1), key)
    begin = len(b"RDCSNAP2") + struct.calcsize("<QqQQQQHqIIQB")
    assert data[begin : begin + 8] == (1).to_bytes(8, "little")
    wrong = data[:begin] + bytes(8) + data[begin + 8 : -32]
    with pytest.raises(ValueError, match="no problems"):
        decode_snapshot(wrong + blake3(wrong, key=key).digest(), key)


def test_snapshots_that_another_run_forgot_meanwhile_are_left_out(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first snapshot of each list is gone before it is read."""
    tree = tmp_path / "tree"
    put_tree(tree, store, rdc.StoreOptions(publish=True))
    rdc.forget_snapshots(store, rdc.ForgetOptions(numbers=(1,), apply=True))
    listed = PackStore.numbers
    monkeypatch.setattr(PackStore, "numbers", lambda store: [1, *listed(store)])
    put_tree(tree, store)
    problems = Problems()
    assert rdc.verify_store(store, reporter=problems).damaged == 0
    report = rdc.forget_snapshots(store, rdc.ForgetOptions(retain="1y", apply=True))
    assert 1 not in report.forgotten
    assert [one.number for one in rdc.snapshots(store)] == [5]
    rdc.forget_snapshots(store, rdc.ForgetOptions(numbers=(1, 5), apply=True))
    assert not problems.found
