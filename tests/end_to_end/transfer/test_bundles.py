"""Many changed files at once, end to end: described and put together, and none the worse for another."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rdc import kernel
from rdc.errors import ProtocolError
from rdc.files.bulk import open_many as snapshot_module
from rdc.files.bulk import small_files as small_module
from rdc.files.bulk.open_many import Look
from rdc.files.root.root import Root
from rdc.limits import BUNDLE_BYTES, BUNDLED_FILE_BYTES
from rdc.model.sync import SyncOptions
from rdc.protocol.messages import BundleRequest, Message, Role
from rdc.protocol.messages.field_types import CHECK_BLOCK_BYTES
from rdc.session import sync_run
from rdc.session.runtime.commands import Send
from rdc.session.source import range_answers as bundle_source_module
from rdc.session.transfer import bundle as bundle_module
from rdc.session.transfer import bundle as bundles_module
from rdc.session.transfer.bundle import Rebuilt
from rdc.session.transfer.compare import MASKING_BYTES
from tests.support.running.delta_sync import counts, edited, places, synced, text
from tests.support.running.paired_sync import sync_in_turns
from tests.support.running.programs import functions, linked
from tests.support.running.syncing import Run, run_sync
from tests.support.trees.bundled_files import NEW, OLD
from tests.support.trees.trees import describe, litter, read_tree

# Fingerprints are keyed anew for each session. In one session of 150 here one deceives, and a cell (8 KiB)
# comes again. Where two sessions are compared, that has to be in both or in none.
pytestmark = pytest.mark.usefixtures("nothing_likely", "fewest_bytes")


@pytest.mark.parametrize("dialler", list(Role), ids=["push", "pull"])
def test_edits_cost_their_own_bytes(dialler: Role, tmp_path: Path) -> None:
    source, destination = places(tmp_path, OLD, NEW)
    run = sync_in_turns(source, destination, dialler=dialler)
    assert describe(read_tree(source), read_tree(destination)) == []
    found, report = counts(run), run.done
    assert (found["BundleRequest"], found["BundleAnswer"]) == (1, 1)
    assert "TreeRequest" not in found
    # And now and then a cell, where a fingerprint deceived.
    assert report.literal_bytes <= len(NEW) * 3 * (2 * 64 + 10) + 2 * CHECK_BLOCK_BYTES
    assert report.literal_bytes + report.reused_bytes == sum(map(len, NEW.values()))
    fingerprints = sum(3 * (-(-len(new) // 1024) + 4 * 3 * 4) for new in NEW.values())
    assert report.bytes_sent + report.bytes_received <= 1_000 + fingerprints + 2 * report.literal_bytes
    assert found["RangeRequest"] == found["Literals"] == 1
    assert found["BlockRequest"] <= 6
    assert report.round_trips <= 10


def test_few_files_go_by_themselves(tmp_path: Path) -> None:
    few = dict(list(OLD.items())[:7])
    source, destination = places(tmp_path, few, {name: NEW[name] for name in few})
    found = counts(synced(source, destination))
    assert found["TreeAnswer"] == 7
    assert "BundleRequest" not in found


def test_files_of_every_other_kind_go_by_themselves(tmp_path: Path) -> None:
    """New ones, empty ones, long ones, and those whose old version is one of these. New ones and those that
    were empty come whole."""
    old = OLD | {"was empty": b"", "was long": text(90, 900_000)}
    old |= {"grows": text(91, 9_000), "shrinks": text(92, 9_000)}
    new = NEW | {
        "was empty": text(93, 9_000),
        "was long": text(90, 900_000)[:50_000],
        "grows": text(91, 9_000) + text(94, 700_000),
        "shrinks": b"",
        "new": text(95, 9_000),
    }
    source, destination = places(tmp_path, old, new)
    found = counts(synced(source, destination))
    assert (found["BundleRequest"], found["TreeAnswer"]) == (1, 2)


def test_long_machine_code_goes_by_itself(tmp_path: Path) -> None:
    """Between text, and only from the length on from which it may be compared without its targets."""
    program = list(enumerate(functions(1, 1_500)))
    long, short = linked(program), linked(program[:400])
    assert len(short) < MASKING_BYTES <= len(long) <= BUNDLED_FILE_BYTES
    old = OLD | {"long": long, "short": short, "zeros": bytes(MASKING_BYTES), "text": text(90, MASKING_BYTES)}
    new = {name: edited(content, 7) for name, content in (OLD | old).items()}
    source, destination = places(tmp_path, old, new)
    found = counts(synced(source, destination))
    assert (found["BundleRequest"], found["TreeAnswer"]) == (1, 1)


def requests(monkeypatch: pytest.MonkeyPatch) -> list[BundleRequest]:
    """What is going to be asked for."""
    asked: list[BundleRequest] = []

    def noted(message: Message, round_: int) -> Send:
        if isinstance(message, BundleRequest):
            asked.append(message)
        return Send(message, round_)

    monkeypatch.setattr(bundles_module, "Send", noted)
    return asked


def test_bundles_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many = {f"{row:04}": text(row, 9_000 + row) for row in range(300)}
    changed = {name: edited(content, row) for row, (name, content) in enumerate(many.items())}
    source, destination = places(tmp_path, many, changed)
    asked = requests(monkeypatch)
    synced(source, destination)
    names = sorted(changed)
    found = [[len(changed[names[file]]) for file in request.files] for request in asked]
    assert sum(map(len, found)) == 300
    assert all(sum(sizes) <= BUNDLE_BYTES for sizes in found)
    # As full as they can be.
    assert all(sum(sizes) + found[row + 1][0] > BUNDLE_BYTES for row, sizes in enumerate(found[:-1]))


def test_more_than_256_files_are_two_bundles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many = {f"{row:04}": text(row, 1_200) for row in range(300)}
    changed = {name: edited(content, row) for row, (name, content) in enumerate(many.items())}
    source, destination = places(tmp_path, many, changed)
    asked = requests(monkeypatch)
    synced(source, destination)
    assert [len(request.files) for request in asked] == [256, 44]


def test_what_is_compared_first_comes_in_bundles_too(tmp_path: Path) -> None:
    """Files of the same size with other times, most of them the same."""
    old = {f"{row:04}": text(row, 1_500) for row in range(200)}
    new = old | {f"{row:04}": b"X" + text(row, 1_500)[1:] for row in range(0, 200, 10)}
    source, destination = places(tmp_path, old, new)
    found = counts(synced(source, destination))
    assert found["BundleAnswer"] == 1
    assert "TreeAnswer" not in found


def test_a_file_that_was_empty_comes_whole(tmp_path: Path) -> None:
    source, destination = places(tmp_path, {**OLD, "empty": b""}, {**NEW, "empty": text(7, 4_000)})
    found = counts(synced(source, destination))
    assert (found["BundleRequest"], found["FileRequest"]) == (1, 1)
    assert "TreeRequest" not in found


@pytest.mark.parametrize("held", [0, 100_000])
def test_what_is_not_kept_in_memory_is_read_again(
    held: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (bundles_module, bundle_source_module):
        monkeypatch.setattr(module, "BUNDLES_CACHED_BYTES", held)
    source, destination = places(tmp_path, OLD, NEW)
    synced(source, destination)


def test_without_the_compiled_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_module, "can_open", lambda _: False)
    source, destination = places(tmp_path, OLD, NEW)
    assert counts(synced(source, destination))["BundleAnswer"] == 1


def test_a_fingerprint_that_deceives_costs_a_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under this one of 250 keys one does."""
    literal = []
    for number in (0, 176):
        monkeypatch.setattr(sync_run, "new_secret", partial(number.to_bytes, 16, "big"))
        (tmp_path / str(number)).mkdir()
        literal.append(synced(*places(tmp_path / str(number), OLD, NEW)).done.literal_bytes)
    assert literal[0] < literal[1] <= literal[0] + CHECK_BLOCK_BYTES


@pytest.mark.parametrize("fsync", [False, True])
def test_file_by_file_the_same_lands(fsync: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In C many at a time, and as where there is no C part: the same tree, told in the same lines."""
    found = []
    for way in (True, False):
        if not way:
            monkeypatch.setattr(small_module, "_extension", None)
        (tmp_path / str(way)).mkdir()
        source, destination = places(tmp_path / str(way), OLD, NEW)
        for row, name in enumerate(NEW):
            (source / name).chmod(0o600 + row)
        run = run_sync(source, destination, SyncOptions(fsync=fsync))
        assert run.problems == []
        assert counts(run)["BundleAnswer"] == 1
        assert describe(read_tree(source), read_tree(destination)) == []
        found.append((sorted(run.items), run.done.literal_bytes, run.done.reused_bytes, run.done.changed))
    assert found[0] == found[1]


# What changes on the way


def after_look(monkeypatch: pytest.MonkeyPatch, module: object, change: Callable[[], object]) -> None:
    """Something happens once, after the first look of one side."""
    pending = [change]
    real = snapshot_module.look

    def look(root: Root, paths: list[bytes]) -> Look:
        found = real(root, paths)
        if pending:
            pending.pop()()
        return found

    monkeypatch.setattr(module, "look", look)


def test_a_source_file_that_changed_before_it_was_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, destination = places(tmp_path, OLD, NEW)
    changed, gone, other = (source / name for name in list(NEW)[2:5])

    def change() -> None:
        changed.write_bytes(b"another content")
        gone.unlink()
        other.unlink()
        other.mkdir()

    after_look(monkeypatch, bundles_module, change)
    run = run_sync(source, destination, SyncOptions(fsync=False))
    assert counts(run)["BundleAnswer"] == 1
    assert {os.fsdecode(problem.path_bytes) for problem in run.problems} == {
        str(path.relative_to(source)) for path in (gone, other)
    }
    for name, content in NEW.items():
        if source / name not in (changed, gone, other):
            assert (destination / name).read_bytes() == content
    assert (destination / changed.relative_to(source)).read_bytes() == b"another content"
    assert litter(read_tree(destination)) == []


def test_a_source_that_is_gone_before_it_was_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, destination = places(tmp_path, OLD, NEW)
    before = read_tree(destination)

    def remove() -> None:
        for path in source.iterdir():
            shutil.rmtree(path)

    after_look(monkeypatch, bundles_module, remove)
    run = run_sync(source, destination, SyncOptions(fsync=False))
    assert len(run.problems) == len(NEW)
    assert describe({path: before[path] for path in before}, read_tree(destination)) == []


def test_a_source_file_that_changes_before_it_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle_source_module, "BUNDLES_CACHED_BYTES", 0)
    source, destination = places(tmp_path, OLD, NEW)
    changed = source / next(iter(NEW))
    after_look(monkeypatch, bundle_source_module, lambda: changed.write_bytes(b"later"))
    run = run_sync(source, destination, SyncOptions(fsync=False))
    assert run.problems == []
    assert describe(read_tree(source), read_tree(destination)) == []
    assert counts(run)["FileFailed"] >= 1  # for each question that was open
    assert counts(run)["TreeAnswer"] == len(NEW)


@pytest.mark.parametrize("held", [0, 1 << 20])
def test_an_old_version_that_changes_is_not_lost_sight_of(
    held: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundles_module, "BUNDLES_CACHED_BYTES", held)
    source, destination = places(tmp_path, OLD, NEW)
    changed = destination / list(NEW)[4]
    after_look(monkeypatch, bundles_module, lambda: changed.write_bytes(text(7, 3_000)))
    run = run_sync(source, destination, SyncOptions(fsync=False))
    # As with a single file: what was not listed stays.
    assert [os.fsdecode(problem.path_bytes) for problem in run.problems] == [list(NEW)[4]]
    assert changed.read_bytes() == text(7, 3_000)
    assert counts(run)["TreeAnswer"] == (1 if held else len(NEW))
    assert run_sync(source, destination, SyncOptions(fsync=False)).problems == []
    assert describe(read_tree(source), read_tree(destination)) == []


def test_an_old_version_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, destination = places(tmp_path, OLD, NEW)
    gone = destination / list(NEW)[4]
    after_look(monkeypatch, bundles_module, gone.unlink)
    run_sync(source, destination, SyncOptions(fsync=False))
    assert litter(read_tree(destination)) == []
    for name, content in NEW.items():
        if destination / name != gone:
            assert (destination / name).read_bytes() == content


# What is wrong


def test_what_blocks_are_wrong_about_is_corrected_in_the_same_trip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second block of each file has the fingerprint of the one that was there."""
    spoiled = {}
    for name, old in OLD.items():
        spoiled[name] = old[:1024] + b"~" * len(old[1024:2048]) + old[2048:]
    real = kernel.block_fingerprints

    def colliding(key: bytes, data: bytes, size: int, width: int, lengths: Any) -> bytes:
        for name, content in spoiled.items():
            data = bytes(data).replace(content[:2048], OLD[name][:2048])
        return real(key, data, size, width, lengths)

    monkeypatch.setattr(bundle_source_module, "block_fingerprints", colliding)
    source, destination = places(tmp_path, OLD, spoiled)
    run = synced(source, destination)
    found = counts(run)
    assert found["Correction"] >= 1
    assert found["RangeRequest"] == 1
    assert "TreeAnswer" not in found


def test_a_bundle_that_is_wrong_in_the_end_goes_file_by_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = bundle_module.Bundle.finish

    def failing(self: bundle_module.Bundle) -> Rebuilt:
        self.digest = bytes(32)
        return finish(self)

    monkeypatch.setattr(bundle_module.Bundle, "finish", failing)
    source, destination = places(tmp_path, OLD, NEW)
    assert counts(synced(source, destination))["TreeAnswer"] == len(NEW)


def test_a_forgotten_bundle_goes_file_by_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle_source_module, "BUNDLES_IN_FLIGHT", 1)
    many = {f"{row:04}": text(row, 1_200) for row in range(300)}
    changed = {name: edited(content, row) for row, (name, content) in enumerate(many.items())}
    source, destination = places(tmp_path, many, changed)
    found = counts(synced(source, destination))
    assert found["FileFailed"] >= 1
    assert found["TreeAnswer"] == 256


def test_more_bundles_than_may_be_in_flight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundles_module, "BUNDLES_IN_FLIGHT", 1)
    many = {f"{row:04}": text(row, 1_200) for row in range(600)}
    changed = {name: edited(content, row) for row, (name, content) in enumerate(many.items())}
    source, destination = places(tmp_path, many, changed)
    found = counts(synced(source, destination))
    assert found["BundleAnswer"] == 3
    assert "TreeAnswer" not in found


@pytest.mark.parametrize(
    "change",
    [
        lambda r: BundleRequest(r.bundle, (0, *r.files), r.block),  # the directory d0
        lambda r: BundleRequest(r.bundle, (4, *r.files), r.block),  # "z long"
        lambda r: BundleRequest(r.bundle, (3, *r.files), r.block),  # "z", which is empty
    ],
    ids=["a directory", "a long file", "an empty file"],
)
def test_a_request_for_what_makes_no_bundle_ends_the_session(
    change: Callable[[BundleRequest], BundleRequest], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changed(message: Message, round_: int) -> Send:
        return Send(change(message) if isinstance(message, BundleRequest) else message, round_)

    monkeypatch.setattr(bundles_module, "Send", changed)
    source, destination = places(tmp_path, OLD, NEW)
    for place in (source, destination):
        (place / "z long").write_bytes(bytes(BUNDLED_FILE_BYTES + 1))
        (place / "z").write_bytes(b"")
        for name in ("z long", "z"):
            os.utime(place / name, (5, 5))
    before = read_tree(destination)
    with pytest.raises(ProtocolError, match="bundle"):
        sync_in_turns(source, destination)
    assert read_tree(destination) == before


def test_a_dry_run_says_what_would_come(tmp_path: Path) -> None:
    source, destination = places(tmp_path, OLD, NEW)
    before = read_tree(destination)
    run: Run = run_sync(source, destination, SyncOptions(fsync=False, dry_run=True))
    assert len([line for line in run.items if line.startswith(">f")]) == len(NEW)
    assert read_tree(destination) == before
