"""Many files that the source takes for changed: their blocks come unasked, and change only the time."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from rdc.errors import ExitCode, ProtocolError
from rdc.model.sync import SyncOptions
from rdc.protocol.messages import LikelyBlocks, Message, Role
from rdc.session.destination.comparison import ManifestComparison
from rdc.session.runtime.commands import Send
from rdc.session.source import answers as file_answers_module
from rdc.session.source.tree_description import LIKELY_SHARE, Description, LikelyFiles
from rdc.session.transfer.content_checks import ContentChecks
from tests.support.running.delta_sync import counts, edited, text
from tests.support.running.paired_sync import sync_in_turns
from tests.support.trees.trees import LONG_AGO, File, describe, litter, read_tree, tree, write_tree

pytestmark = pytest.mark.usefixtures("fewest_bytes")

LATER = LONG_AGO + 10**9
OLD = {f"d{i // 50}/f{i:03}": text(i, 1_500 + 40 * i) for i in range(300)}
CHANGED = [f"d{i // 50}/f{i:03}" for i in range(3, 300, 9)]
NEW: dict[str, bytes | File] = {
    **OLD,
    **{name: File(edited(OLD[name], 1), mtime_ns=LATER) for name in CHANGED},
}

DIALLERS = pytest.mark.parametrize("dialler", list(Role), ids=lambda role: f"{role.name.lower()} dials")


def places(tmp_path: Path, after: dict[str, bytes | File]) -> tuple[Path, Path]:
    return write_tree(tmp_path / "source", tree(after)), write_tree(tmp_path / "destination", tree(OLD))


def check(source: Path, destination: Path) -> None:
    assert litter(read_tree(destination)) == []
    assert describe(read_tree(source), read_tree(destination)) == []


@DIALLERS
def test_changed_files_are_compared_one_round_trip_earlier(
    dialler: Role, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, destination = places(tmp_path, NEW)
    run = sync_in_turns(source, destination, dialler=dialler)
    check(source, destination)
    found = counts(run)
    assert (found["LikelyBlocks"], found["BundleRequest"], found["BundleAnswer"]) == (1, 1, 1)
    assert "TreeRequest" not in found
    without = tmp_path / "without"
    without.mkdir()
    source, destination = places(without, NEW)
    monkeypatch.setattr(
        Description,
        "likely",
        lambda *args, likely=Description.likely, **_: likely(*args, blocks=False),
    )
    other = sync_in_turns(source, destination, dialler=dialler)
    check(source, destination)
    assert "LikelyBlocks" not in counts(other)
    assert other.done.round_trips == run.done.round_trips + 1
    assert run.done.literal_bytes == other.done.literal_bytes


def test_new_files_come_whole_and_their_blocks_are_dropped(tmp_path: Path) -> None:
    new = {"d0/new": File(text(9, 9_000), mtime_ns=LATER), "d9/new": File(text(8, 70_000), mtime_ns=LATER)}
    source, destination = places(tmp_path, {**NEW, **new})
    run = sync_in_turns(source, destination)
    check(source, destination)
    assert counts(run)["LikelyBlocks"] == 1
    assert 79_000 <= run.done.literal_bytes < 79_000 + 20_000


def test_long_files_come_by_their_trees(tmp_path: Path) -> None:
    long = random.Random(4).randbytes(600_000)
    source, destination = places(tmp_path, {**NEW, "d1/long": File(edited(long, 1), mtime_ns=LATER)})
    (destination / "d1/long").write_bytes(long)
    os.utime(destination / "d1/long", ns=(LONG_AGO, LONG_AGO))
    run = sync_in_turns(source, destination)
    check(source, destination)
    found = counts(run)
    assert (found["LikelyBlocks"], found["TreeAnswer"]) == (1, 1)
    assert "TreeRequest" not in found


@pytest.mark.parametrize("touched", [len(OLD) // LIKELY_SHARE - len(CHANGED), len(OLD) // LIKELY_SHARE])
def test_files_that_were_only_touched(touched: int, tmp_path: Path) -> None:
    """A few cost their blocks. Many look like a tree whose files were all touched, which has none."""
    alike = [name for name in OLD if name not in CHANGED][:touched]
    source, destination = places(
        tmp_path, {**NEW, **{name: File(OLD[name], mtime_ns=LATER) for name in alike}}
    )
    run = sync_in_turns(source, destination)
    check(source, destination)
    is_told = (touched + len(CHANGED)) * LIKELY_SHARE <= len(OLD)
    assert ("LikelyBlocks" in counts(run)) == is_told
    assert run.done.literal_bytes < 30_000


def test_what_the_destination_leaves_alone_stays(tmp_path: Path) -> None:
    source, destination = places(tmp_path, NEW)
    run = sync_in_turns(source, destination, SyncOptions(fsync=False, max_size=8_000))
    assert run.problems == []
    for name in CHANGED:
        changed = NEW[name]
        assert isinstance(changed, File)
        expected = OLD[name] if len(changed.content) > 8_000 else changed.content
        assert (destination / name).read_bytes() == expected


@DIALLERS
@pytest.mark.parametrize("when", ["before its blocks", "after its blocks"])
def test_a_file_that_cannot_be_read(
    when: str, dialler: Role, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, destination = places(tmp_path, NEW)
    likely = Description.likely

    def vanishing(self: Description, newest: int, *, blocks: bool) -> LikelyFiles | None:
        (source / CHANGED[0]).unlink()
        return likely(self, newest, blocks=blocks)

    def vanished(message: Message, round_: int) -> Send:
        if isinstance(message, LikelyBlocks):
            (source / CHANGED[0]).unlink()
        return Send(message, round_)

    if when == "before its blocks":
        monkeypatch.setattr(Description, "likely", vanishing)
    else:
        monkeypatch.setattr(file_answers_module, "Send", vanished)
    run = sync_in_turns(source, destination, dialler=dialler)
    assert [os.fsencode(problem.path) for problem in run.problems] == [os.fsencode(CHANGED[0])]
    assert run.done.exit in {ExitCode.PARTIAL, ExitCode.VANISHED}
    for name in CHANGED[1:]:
        assert (destination / name).read_bytes() == edited(OLD[name], 1)
    assert (destination / CHANGED[0]).read_bytes() == OLD[CHANGED[0]]


def test_an_old_version_that_changes_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, destination = places(tmp_path, NEW)

    def changing(message: Message, round_: int) -> Send:
        if isinstance(message, LikelyBlocks):
            (destination / CHANGED[0]).write_bytes(b"other")
        return Send(message, round_)

    monkeypatch.setattr(file_answers_module, "Send", changing)
    sync_in_turns(source, destination)
    assert (destination / CHANGED[0]).read_bytes() in {b"other", edited(OLD[CHANGED[0]], 1)}
    for name in CHANGED[1:]:
        assert (destination / name).read_bytes() == edited(OLD[name], 1)


def test_after_a_collision_the_blocks_are_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ManifestComparison, "is_usable", lambda *_: False)
    source, destination = places(tmp_path, NEW)
    run = sync_in_turns(source, destination)
    check(source, destination)
    assert counts(run)["LikelyBlocks"] == 2


def lying(monkeypatch: pytest.MonkeyPatch, lie: Callable[[LikelyBlocks], LikelyBlocks]) -> None:
    def changed(message: Message, round_: int) -> Send:
        return Send(lie(message) if isinstance(message, LikelyBlocks) else message, round_)

    monkeypatch.setattr(file_answers_module, "Send", changed)


@pytest.mark.parametrize(
    "lie",
    [
        lambda m: LikelyBlocks(m.files, random.Random(1).randbytes(len(m.fingerprints))),
        lambda m: LikelyBlocks(m.files, m.fingerprints[-60:] + m.fingerprints[:-60]),
    ],
    ids=["prints", "prints moved"],
)
def test_blocks_that_are_not_true_cost_bytes_alone(
    lie: Callable[[LikelyBlocks], LikelyBlocks], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lying(monkeypatch, lie)
    source, destination = places(tmp_path, NEW)
    sync_in_turns(source, destination)
    check(source, destination)


@pytest.mark.parametrize(
    "lie",
    [
        lambda m: LikelyBlocks(m.files, m.fingerprints[:-3]),
        lambda m: LikelyBlocks(m.files, m.fingerprints + bytes(3)),
        lambda m: LikelyBlocks(m.files[:-1], m.fingerprints),
        lambda m: LikelyBlocks((*m.files, 100_000), m.fingerprints),
    ],
    ids=["short", "long", "one file less", "no entry"],
)
def test_blocks_that_do_not_fit_the_files_end_the_session(
    lie: Callable[[LikelyBlocks], LikelyBlocks], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lying(monkeypatch, lie)
    source, destination = places(tmp_path, NEW)
    before = read_tree(destination)
    with pytest.raises((ProtocolError, RuntimeError)):
        sync_in_turns(source, destination)
    assert read_tree(destination) == before


@DIALLERS
def test_blocks_of_files_whose_contents_are_being_checked(
    dialler: Role, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bundles are then asked for after the checks, and their answers have no fingerprints either."""
    monkeypatch.setattr(ContentChecks, "release", lambda *_: [])
    same_size = {name: File(b"#" + text(i, 1_499 + 40 * i), mtime_ns=LATER) for i, name in enumerate(OLD)}
    source, destination = places(tmp_path, {**OLD, **{name: same_size[name] for name in CHANGED}})
    run = sync_in_turns(source, destination, dialler=dialler)
    check(source, destination)
    assert counts(run)["LikelyBlocks"] == 1
    assert counts(run)["BundleRequest"] >= 1
