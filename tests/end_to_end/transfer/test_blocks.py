"""Below the chunk, end to end: edits cost their own bytes, and what goes wrong there reaches no file."""

from __future__ import annotations

import os
import random
from array import array
from collections.abc import Callable
from pathlib import Path

import pytest

from rdc import kernel
from rdc.errors import ProtocolError
from rdc.lean.records import replace
from rdc.model.sync import SyncOptions
from rdc.plan.search import NOWHERE, ONE_SIZES
from rdc.protocol.messages import Data, Message, TreeAnswer, TreeRequest
from rdc.protocol.messages.content import block_size
from rdc.protocol.messages.field_types import CHECK_BLOCK_BYTES
from rdc.session.runtime.commands import Conversation, Send
from rdc.session.source import answers as file_answers_module
from rdc.session.source import range_answers as cell_checks_module
from rdc.session.source import range_answers as range_answers_module
from rdc.session.source.answers import FileAnswers
from rdc.session.transfer import compare as gaps_module
from rdc.session.transfer import range_requests as literal_requests_module
from tests.reference import blocks as pure_blocks
from tests.reference import blocks as search_reference
from tests.reference import gaps as pure_gaps
from tests.support.running.delta_sync import NEW, OLD, counts, places, rebuilt_library, synced, text
from tests.support.running.paired_sync import sync_in_turns
from tests.support.running.syncing import Way, run_sync
from tests.support.trees.trees import litter, read_tree

pytestmark = pytest.mark.usefixtures("nothing_likely", "fewest_bytes")


@pytest.mark.parametrize("way", [Way.PUSH, Way.PULL], ids=["push", "pull"])
@pytest.mark.parametrize("name", OLD)
def test_edits_cost_their_own_bytes(name: str, way: Way, tmp_path: Path) -> None:
    source, destination = places(tmp_path, {name: OLD[name]}, {name: NEW[name]})
    report = synced(source, destination, way).done
    assert report.literal_bytes <= 3 * (2 * max(ONE_SIZES) + 10)
    assert report.literal_bytes + report.reused_bytes == len(NEW[name])
    # Names, times and roots of one file, up to 64 records of its tree, the fingerprints of three chunks in
    # blocks of 128 bytes or more, the edits themselves.
    unknown = min(len(NEW[name]), 3 * 16_384)
    assert report.bytes_sent + report.bytes_received <= 1_700 + 3 * unknown // 128
    assert report.round_trips <= 6


def test_many_ranges_share_messages(tmp_path: Path) -> None:
    old = text(20, 1_000_000)
    new = b"".join(old[i : i + 5_000] + b"+" for i in range(0, len(old), 5_000))
    source, destination = places(tmp_path, {"f": old}, {"f": new})
    found = counts(synced(source, destination))
    assert (found["RangeRequest"], found["Data"], found["FileEnd"]) == (1, 1, 1)
    assert found["BlockRequest"] == found["BlockAnswer"] <= 3


def test_ranges_longer_than_a_message_arrive_whole(tmp_path: Path) -> None:
    old = random.Random(21).randbytes(900_000)
    new = old[:300_001] + random.Random(22).randbytes(1_300_000) + old[300_001:600_000] + b"x" + old[600_000:]
    source, destination = places(tmp_path, {"f": old}, {"f": new})
    found = counts(synced(source, destination))
    assert found["Data"] == 3  # of 512 KiB


MATCH = kernel.match_blocks


def finding(monkeypatch: pytest.MonkeyPatch, match: Callable[[bytes, bytes, int, int, bytes], bytes]) -> None:
    """Blocks are found where `match` says."""
    monkeypatch.setattr(search_reference, "match_blocks", match)
    monkeypatch.setattr(gaps_module, "match_blocks", match)
    monkeypatch.setattr(gaps_module, "search_gaps", pure_gaps.search_gaps)


def colliding(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Only so many bytes of a fingerprint say anything; the others are zeros."""

    def fingerprints(key: bytes, data: bytes, size: int, width: int, *lengths: array[int]) -> bytes:
        short = kernel.block_fingerprints(key, data, size, min(width, most), *lengths)
        rest = bytes(width - min(width, most))
        step = min(width, most)
        return b"".join(short[at : at + step] + rest for at in range(0, len(short), step))

    def narrow(prints: bytes, width: int) -> bytes:
        return b"".join(prints[at : at + min(width, most)] for at in range(0, len(prints), width))

    def match(key: bytes, base: bytes, size: int, width: int, prints: bytes) -> bytes:
        return kernel.match_blocks(key, base, size, min(width, most), narrow(prints, width))

    def near(
        key: bytes, base: bytes, windows: bytes, size: int, width: int, reach: int, runs: bytes, prints: bytes
    ) -> bytes:
        short = narrow(prints, width)
        return kernel.match_runs(key, base, windows, size, min(width, most), reach, runs, short)

    finding(monkeypatch, match)
    monkeypatch.setattr(gaps_module, "match_runs", near)
    for module in (file_answers_module, range_answers_module):
        monkeypatch.setattr(module, "block_fingerprints", fingerprints)


def test_every_fingerprint_collides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two bits they match nearly everywhere: what is wrong comes with what is in no block."""
    monkeypatch.setattr(pure_blocks.BlockHash, "fingerprint", staticmethod(lambda value, width: value & 3))
    finding(monkeypatch, search_reference.match_blocks)
    for module in (file_answers_module, range_answers_module):
        monkeypatch.setattr(module, "block_fingerprints", search_reference.block_fingerprints)
    names = ("tiny", "small", "one chunk")
    source, destination = places(tmp_path, {n: OLD[n] for n in names}, {n: NEW[n] for n in names})
    run = synced(source, destination)
    assert counts(run)["TreeAnswer"] == len(names) - 1  # the tiny one comes whole
    assert run.done.round_trips <= 10
    # A file of one chunk has three cells at most, so that hardly any stays that is right.
    assert sum(len(NEW[name]) for name in names) * 0.9 <= run.done.literal_bytes
    assert run.done.literal_bytes + run.done.reused_bytes == sum(len(NEW[name]) for name in names)
    assert run.done.bytes_sent + run.done.bytes_received <= sum(len(NEW[name]) for name in names) + 2_000


@pytest.mark.parametrize("width", [8, 3, 2, 1])
def test_what_is_wrong_in_a_region_comes_with_the_literals(
    width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a rebuilt library no cell, a few or all are put together from blocks that only look right."""
    source, destination = rebuilt_library(tmp_path)
    colliding(monkeypatch, width)
    run = synced(source, destination)
    assert counts(run)["TreeAnswer"] == counts(run)["RangeRequest"] == counts(run)["FileEnd"] == 1
    assert run.done.round_trips <= 7
    # Nothing comes twice, however much is wrong.
    least, most = {8: (10_000, 20_000), 3: (10_000, 120_000), 2: (250_000, 300_000), 1: (250_000, 300_000)}[
        width
    ]
    assert least <= run.done.literal_bytes <= most
    assert run.done.literal_bytes + run.done.reused_bytes == 300_000
    assert run.done.bytes_sent + run.done.bytes_received <= most + 13_000


@pytest.fixture
def blind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Digests of cells that say nothing, so that what is wrong slips through."""
    for module in (literal_requests_module, cell_checks_module):
        monkeypatch.setattr(
            module,
            "check_block_digests",
            lambda secret, images: bytes(2 * -(-len(images) // CHECK_BLOCK_BYTES)),
        )


@pytest.mark.usefixtures("blind")
@pytest.mark.parametrize("width", [3, 2])
def test_chunks_that_slip_through_come_once_more(
    width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, destination = rebuilt_library(tmp_path)
    colliding(monkeypatch, width)
    run = synced(source, destination)
    assert (counts(run)["TreeAnswer"], counts(run)["FileEnd"]) == (1, 2)
    assert run.done.round_trips <= 8
    assert run.done.literal_bytes <= 350_000


@pytest.mark.usefixtures("blind")
def test_what_slips_through_of_one_chunk_comes_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the root says what it has to be."""
    finding(monkeypatch, one_off)
    source, destination = places(tmp_path, {"f": OLD["small"]}, {"f": NEW["small"]})
    run = synced(source, destination)
    assert (counts(run)["TreeAnswer"], counts(run)["RangeRequest"]) == (2, 2)


def everything_first(key: bytes, base: bytes, size: int, width: int, fingerprints: bytes) -> bytes:
    return bytes(8) * (len(fingerprints) // width)


@pytest.mark.parametrize("name", ["small", "one chunk", "some chunks", "large"])
def test_what_is_wholly_found_and_wrong_costs_one_round_trip(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No byte would have been asked for, so that the round trip for them is left."""
    finding(monkeypatch, everything_first)
    source, destination = places(tmp_path, {"f": OLD[name]}, {"f": NEW[name]})
    run = synced(source, destination)
    assert counts(run)["TreeAnswer"] == counts(run)["FileEnd"] == counts(run)["RangeRequest"] == 1
    assert "Data" not in counts(run)
    assert run.done.round_trips <= 10
    assert run.done.literal_bytes <= 3 * 25_000
    assert run.done.literal_bytes + run.done.reused_bytes == len(NEW[name])


@pytest.mark.usefixtures("blind")
def test_wrong_chunks_among_equal_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of many chunks turn out to be the same wrong ones: a run, of which each is to be mended."""

    finding(monkeypatch, everything_first)
    rng = random.Random(5)
    old = rng.randbytes(400_000)
    new = b"".join(old[at : at + 999] + b"?" for at in range(0, len(old), 1000))
    source, destination = places(tmp_path, {"f": old}, {"f": new})
    run = synced(source, destination)
    assert counts(run)["TreeAnswer"] == 1
    assert run.done.literal_bytes >= len(new)


@pytest.mark.usefixtures("blind")
def test_what_mends_is_wrong_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is then described in full."""

    class Changed(Send):
        def __init__(self, message: Message, round: int) -> None:  # noqa: A002 - as it calls it
            if isinstance(message, Data):
                counted.append(round)
                if len(counted) == 2:
                    message = Data(message.file, bytes(len(message.payload)))
            super().__init__(message, round)

    counted: list[int] = []
    source, destination = rebuilt_library(tmp_path)
    colliding(monkeypatch, 3)
    monkeypatch.setattr(range_answers_module, "Send", Changed)
    run = synced(source, destination)
    assert counts(run)["TreeAnswer"] == 2
    assert run.done.literal_bytes >= 300_000


@pytest.mark.parametrize(("height", "name"), [(1, "small"), (0, "large")])
def test_only_one_chunk_needs_no_records(
    height: int, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tree that has none for other files is refused: nothing would check their chunks one by one."""

    def lies(self: FileAnswers, file: int, asked: TreeRequest, round_: int) -> Conversation[None]:
        size = len(NEW[name])
        blocks = b"1234" * -(-size // block_size(size, asked.block or 1024))
        yield Send(TreeAnswer(file, size, b"r" * 32, height, None, b"", blocks), round_)

    monkeypatch.setattr(FileAnswers, "_send_tree", lies)
    source, destination = places(tmp_path, {"f": OLD[name]}, {"f": NEW[name]})
    with pytest.raises(ProtocolError, match="without records"):
        sync_in_turns(source, destination)
    assert (destination / "f").read_bytes() == OLD[name]


def test_a_wrong_root_of_one_chunk_reaches_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a record the root alone says what the chunk is; it is looked at before the rename."""

    def other(message: Message, round_: int) -> Send:
        return Send(replace(message, root=b"r" * 32) if isinstance(message, TreeAnswer) else message, round_)

    monkeypatch.setattr(file_answers_module, "Send", other)
    source, destination = places(tmp_path, {"f": OLD["small"]}, {"f": NEW["small"]})
    run = sync_in_turns(source, destination)
    assert counts(run)["TreeAnswer"] == 2  # then it comes whole, with a digest of its own
    assert (destination / "f").read_bytes() == NEW["small"]


def one_off(key: bytes, base: bytes, size: int, width: int, fingerprints: bytes) -> bytes:
    """The last block of the first run is found a byte too far."""
    found = array("Q", MATCH(key, base, size, width, fingerprints))
    for row, after in enumerate(found[1:]):
        if found[row] != NOWHERE == after:
            found[row] += 1
            break
    return found.tobytes()


def test_one_wrong_block_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finding(monkeypatch, one_off)
    source, destination = places(tmp_path, {"f": OLD["small"]}, {"f": NEW["small"]})
    run = synced(source, destination)
    assert counts(run)["TreeAnswer"] == counts(run)["RangeRequest"] == counts(run)["Correction"] == 1


@pytest.mark.parametrize("name", ["small", "some chunks"])
@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_bytes(b"something else"),
        lambda path: path.unlink(),
        lambda path: os.truncate(path, 100),
    ],
    ids=["rewritten", "gone", "shorter"],
)
def test_the_base_changes_underneath(
    change: Callable[[Path], object], at: int, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While blocks are looked for: what is in place afterwards is the new version, or what the user wrote."""
    source, destination = places(tmp_path, {"f": OLD[name]}, {"f": NEW[name]})
    calls = 0

    def changing(key: bytes, base: bytes, size: int, width: int, fingerprints: bytes) -> bytes:
        nonlocal calls
        calls += 1
        if calls == at:
            change(destination / "f")
        return match(key, base, size, width, fingerprints)

    match = kernel.match_blocks
    finding(monkeypatch, changing)
    run = run_sync(source, destination, SyncOptions(fsync=False))
    assert calls >= at
    assert litter(read_tree(destination)) == []
    held = (destination / "f").read_bytes() if (destination / "f").exists() else None
    assert held == NEW[name] or run.problems
    assert held in (NEW[name], b"something else", OLD[name][:100], None)
    monkeypatch.undo()
    synced(source, destination)
