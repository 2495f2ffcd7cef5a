"""Equal new contents: several paths get what was fetched once, without a round trip more."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from rdc.errors import ExitCode, FileChangedError
from rdc.model.sync import SyncOptions
from rdc.protocol.messages import RangeRequest
from rdc.session import equals as equals_module
from rdc.session.driver import Conversation
from rdc.session.equals import Equals
from rdc.session.source import Source
from tests.syncing import Run, Way, run_sync
from tests.trees import File, describe, litter, read_tree, tree, write_tree

OLD = random.Random(1).randbytes(300_000)
INSERTED = random.Random(2).randbytes(40_000)
NEW = OLD[:150_000] + INSERTED + OLD[150_000:]
NAMES = ("a", "b", "c/d")


def places(tmp_path: Path, new: dict[str, bytes], old: dict[str, bytes]) -> tuple[Path, Path]:
    held = {name: File(content, 0o644, 1) for name, content in old.items()}
    tmp_path.mkdir(exist_ok=True)
    return write_tree(tmp_path / "source", tree(dict(new))), write_tree(tmp_path / "destination", tree(held))


def synced(source: Path, destination: Path, way: Way = Way.PUSH, *, delete: bool = False) -> Run:
    run = run_sync(source, destination, SyncOptions(fsync=False, delete=delete), way=way)
    assert litter(read_tree(destination)) == []
    return run


def same(source: Path, destination: Path) -> bool:
    return describe(read_tree(source), read_tree(destination)) == []


@pytest.mark.parametrize("way", [Way.PUSH, Way.PULL], ids=["push", "pull"])
def test_a_content_for_several_paths_is_fetched_once(way: Way, tmp_path: Path) -> None:
    alone = synced(*places(tmp_path / "alone", {"a": NEW}, {"a": OLD}), way).done
    source, destination = places(tmp_path, dict.fromkeys(NAMES, NEW), dict.fromkeys(NAMES, OLD))
    run = synced(source, destination, way)
    assert run.problems == []
    assert same(source, destination)
    assert run.done.literal_bytes == alone.literal_bytes >= len(INSERTED)
    assert run.done.literal_bytes + run.done.reused_bytes == len(NAMES) * len(NEW)
    assert run.done.round_trips == alone.round_trips
    # Two names, sizes, times, and tops of trees more.
    both = run.done.bytes_sent + run.done.bytes_received
    assert both <= alone.bytes_sent + alone.bytes_received + 1_500


def test_what_was_renamed_and_edited_lands_where_its_copy_does(tmp_path: Path) -> None:
    source, destination = places(
        tmp_path, {"lib.so": NEW, "lib.so.1.1": NEW}, {"lib.so": OLD, "lib.so.1.0": OLD}
    )
    run = synced(source, destination, delete=True)
    assert run.problems == []
    assert same(source, destination)
    assert len(INSERTED) <= run.done.literal_bytes <= len(INSERTED) + 2_000
    assert run.done.round_trips <= 10


def test_each_of_them_keeps_its_own_times_and_modes(tmp_path: Path) -> None:
    old = {name: File(OLD, 0o644, 1) for name in NAMES}
    new = {"a": File(NEW, 0o600, 10**9), "b": File(NEW, 0o755, 2 * 10**9), "c/d": File(NEW, 0o640, 3 * 10**9)}
    source = write_tree(tmp_path / "source", tree(dict(new)))
    destination = write_tree(tmp_path / "destination", tree(dict(old)))
    synced(source, destination)
    assert same(source, destination)


def test_small_ones_do_not_wait(tmp_path: Path) -> None:
    old, new = OLD[:3_000], OLD[:1_500] + b"and" + OLD[1_500:3_000]
    source, destination = places(tmp_path, dict.fromkeys(NAMES, new), dict.fromkeys(NAMES, old))
    run = synced(source, destination)
    assert same(source, destination)
    assert run.done.literal_bytes > 0


def test_beyond_the_limit_equal_files_are_fetched_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(equals_module, "EQUAL_ROOTS", 0)
    source, destination = places(tmp_path, dict.fromkeys(NAMES, NEW), dict.fromkeys(NAMES, OLD))
    run = synced(source, destination, Way.HERE)
    assert same(source, destination)
    assert run.done.literal_bytes >= 3 * len(INSERTED)


def test_a_first_one_that_fails_takes_nobody_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, destination = places(tmp_path, dict.fromkeys(NAMES, NEW), dict.fromkeys(NAMES, OLD))
    send_ranges = Source._send_ranges
    failed: list[int] = []

    def failing(self: Source, message: RangeRequest, round_: int) -> Conversation[None]:
        if not failed:
            failed.append(message.file)
            raise FileChangedError(b"a", "a: changed while it was synced")
        yield from send_ranges(self, message, round_)

    monkeypatch.setattr(Source, "_send_ranges", failing)
    run = synced(source, destination, Way.HERE)
    assert [problem.code for problem in run.problems] == [ExitCode.VANISHED]
    assert (destination / "a").read_bytes() == OLD
    assert (destination / "b").read_bytes() == (destination / "c" / "d").read_bytes() == NEW


def test_a_first_one_that_somebody_changed_is_not_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, destination = places(tmp_path, dict.fromkeys(NAMES, NEW), dict.fromkeys(NAMES, OLD))
    held = Equals._sign

    def changing(self: Equals, file: int, round_: int) -> object:
        with (destination / "a").open("r+b") as first:
            first.write(b"changed")
        return held(self, file, round_)

    monkeypatch.setattr(Equals, "_sign", changing)
    run = synced(source, destination, Way.HERE)
    assert run.problems == []
    assert (destination / "b").read_bytes() == (destination / "c" / "d").read_bytes() == NEW
