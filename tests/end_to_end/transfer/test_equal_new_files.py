"""Equal new contents: several paths get what was fetched once, without a round trip more."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from rdc.errors import ExitCode, FileChangedError, ProtocolError
from rdc.model.sync import SyncOptions
from rdc.protocol.messages import RangeRequest
from rdc.session.runtime.commands import Conversation
from rdc.session.source import file_sender
from rdc.session.source.answers import FileAnswers
from rdc.session.source.file_sender import SentContents, SentFile
from rdc.session.transfer import delta as equals_module
from rdc.session.transfer.delta import DuplicateContents
from rdc.session.transfer.whole import WholeFiles
from tests.support.running.paired_sync import sync_in_turns
from tests.support.running.syncing import Run, Way, run_sync
from tests.support.trees.trees import File, describe, litter, read_tree, tree, write_tree

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


@pytest.mark.usefixtures("fewest_bytes")
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


@pytest.mark.usefixtures("fewest_bytes")
def test_a_first_one_that_fails_takes_nobody_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, destination = places(tmp_path, dict.fromkeys(NAMES, NEW), dict.fromkeys(NAMES, OLD))
    send_ranges = FileAnswers._send_ranges
    failed: list[int] = []

    def failing(self: FileAnswers, message: RangeRequest, round_: int) -> Conversation[None]:
        if not failed:
            failed.append(message.file)
            raise FileChangedError(b"a", "a: changed while it was synced")
        yield from send_ranges(self, message, round_)

    monkeypatch.setattr(FileAnswers, "_send_ranges", failing)
    run = synced(source, destination, Way.HERE)
    assert [problem.code for problem in run.problems] == [ExitCode.VANISHED]
    assert (destination / "a").read_bytes() == OLD
    assert (destination / "b").read_bytes() == (destination / "c" / "d").read_bytes() == NEW


def test_a_first_one_that_somebody_changed_is_not_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, destination = places(tmp_path, dict.fromkeys(NAMES, NEW), dict.fromkeys(NAMES, OLD))
    held = DuplicateContents._sign

    def changing(self: DuplicateContents, file: int, round_: int) -> object:
        with (destination / "a").open("r+b") as first:
            first.write(b"changed")
        return held(self, file, round_)

    monkeypatch.setattr(DuplicateContents, "_sign", changing)
    run = synced(source, destination, Way.HERE)
    assert run.problems == []
    assert (destination / "b").read_bytes() == (destination / "c" / "d").read_bytes() == NEW


# ---- new files ----

BLOB = random.Random(5).randbytes(700_000)


def wire(run: Run) -> int:
    return run.done.bytes_sent + run.done.bytes_received


@pytest.mark.parametrize("old", [{}, {"here": b"before"}], ids=["empty", "filled"])
@pytest.mark.parametrize("way", list(Way))
def test_new_equal_files_come_once(way: Way, old: dict[str, bytes], tmp_path: Path) -> None:
    alone = synced(*places(tmp_path / "alone", {"here": b"x", "a": BLOB}, old), way)
    new = {"here": b"x", **dict.fromkeys((*NAMES, "e/f/g"), BLOB)}
    source, destination = places(tmp_path, new, old)
    run = synced(source, destination, way)
    assert run.problems == []
    assert same(source, destination)
    assert run.done.round_trips == alone.done.round_trips
    # A source that does not know them as new describes each of them, too.
    assert wire(run) <= wire(alone) + 3 * (150 + 450)
    assert run.done.literal_bytes == alone.done.literal_bytes
    assert run.done.reused_bytes == alone.done.reused_bytes + 3 * len(BLOB)


def test_files_that_differ_where_no_sample_is_are_sent_each(tmp_path: Path) -> None:
    files = {f"f{i}": BLOB[:100_000] + b"%d" % i + BLOB[100_001:] for i in range(6)}
    source, destination = places(tmp_path, files, {})
    run = synced(source, destination, Way.HERE)
    assert same(source, destination)
    assert run.done.literal_bytes == 6 * len(BLOB)


@pytest.mark.parametrize("limit", [0, 1, 2])
def test_beyond_the_limit_new_equal_files_come_each(
    limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_sender, "EQUAL_FILES", limit)
    source, destination = places(tmp_path, dict.fromkeys("abcd", BLOB), {})
    run = synced(source, destination, Way.HERE)
    assert same(source, destination)
    assert run.done.literal_bytes == (4 - limit) * len(BLOB)


def test_what_somebody_changed_since_it_came_is_not_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, destination = places(tmp_path, dict.fromkeys("abc", BLOB), {})
    copy = WholeFiles._copy_equals

    def changing(self: WholeFiles) -> None:
        self._context.landing.flush()
        (destination / "a").write_bytes(b"changed" + BLOB[7:])
        copy(self)

    monkeypatch.setattr(WholeFiles, "_copy_equals", changing)
    run = synced(source, destination, Way.HERE)
    assert run.problems == []
    assert (destination / "b").read_bytes() == (destination / "c").read_bytes() == BLOB
    assert run.done.literal_bytes == 3 * len(BLOB)


def test_a_file_that_never_came_is_no_origin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source learns nothing of what the destination holds by naming it."""
    source, destination = places(tmp_path, {"a": BLOB, "z": BLOB[1:]}, {"a": BLOB})
    monkeypatch.setattr(SentContents, "find", lambda *_: SentFile(0, bytes(32), False))
    with pytest.raises(ProtocolError, match="never came"):
        sync_in_turns(source, destination, SyncOptions(fsync=False))
    assert not (destination / "z").exists()
