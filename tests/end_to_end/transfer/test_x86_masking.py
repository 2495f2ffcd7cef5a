"""Rebuilt x86 code: blocks match with masked displacements, the source sends these apart, and lies fail."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rdc import kernel
from rdc.model.sync import SyncOptions
from rdc.plan import check_blocks as cells_module
from rdc.protocol.messages import Correction, Role, Targets
from rdc.protocol.messages.field_types import CHECK_BLOCK_BYTES
from rdc.session.binaries import SEARCH_FILLER, looks_like
from rdc.session.source import range_answers as cell_checks_module
from rdc.session.source import range_answers as range_answers_module
from rdc.session.source.range_answers import corrections
from rdc.session.transfer import compare as gaps_module
from rdc.session.transfer import rebuild as file_fetch_module
from rdc.session.transfer.range_requests import AskedRanges, literal_requests
from tests.support.kernel.masked_code import fields_in, held, hidden
from tests.support.running.paired_sync import kinds, sync_in_turns
from tests.support.running.programs import functions, linked
from tests.support.running.syncing import Run
from tests.support.trees.trees import File, describe, litter, read_tree, tree, write_tree

SECRET = b"sixteen bytes of"

PROGRAM = list(enumerate(functions(1, 3_000)))
MORE = [(number + len(PROGRAM), function) for number, function in enumerate(functions(2, 40))]
OLD = linked(PROGRAM)
NEW = linked(PROGRAM[:300] + MORE[:20] + PROGRAM[300:1500] + PROGRAM[1510:] + MORE[20:])
"""Some functions are new, some are gone: most others call and read at other distances."""


def places(top: Path, old: bytes = OLD, new: bytes = NEW) -> tuple[Path, Path]:
    top.mkdir(exist_ok=True)
    source = write_tree(top / "source", tree({"f": new}))
    return source, write_tree(top / "destination", tree({"f": File(old, 0o644, 1)}))


def synced(source: Path, destination: Path) -> Run:
    run = sync_in_turns(source, destination, SyncOptions(fsync=False), dialler=Role.SOURCE)
    assert run.problems == []
    assert litter(read_tree(destination)) == []
    assert describe(read_tree(source), read_tree(destination)) == []
    return run


def counts(run: Run) -> dict[str, int]:
    return {cost.name: cost.count for cost in run.done.by_kind}


def test_code_built_again_takes_half_the_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = synced(*places(tmp_path / "with"))
    assert "Targets" in kinds(run)
    assert counts(run)["FileEnd"] == counts(run)["RangeRequest"]
    monkeypatch.setattr(gaps_module, "looks_like", lambda source: False)
    plain = synced(*places(tmp_path / "without"))
    assert "Targets" not in kinds(plain)
    assert run.done.bytes_sent < plain.done.bytes_sent * 0.55
    assert run.done.round_trips == plain.done.round_trips - 1


def test_code_that_only_moved_comes_as_its_targets(tmp_path: Path) -> None:
    """Nothing is missing but targets, about 4 of 29 bytes, and what was put before them."""
    inserted = MORE[:1]
    run = synced(*places(tmp_path, new=linked(PROGRAM[:5] + inserted + PROGRAM[5:])))
    assert "Targets" in kinds(run)
    assert run.done.literal_bytes < len(OLD) * 0.2


def test_what_is_no_code_is_looked_for_as_it_is(tmp_path: Path) -> None:
    rng = random.Random(3)
    words = [rng.randbytes(6).hex().encode() for _ in range(4_000)]
    old = b" ".join(rng.choices(words, k=60_000))
    kept = [old[at : at + 900] for at in range(0, len(old), 1000)]
    assert "Targets" not in kinds(synced(*places(tmp_path, old, b"?".join(kept))))


def test_code_is_told_from_other_content() -> None:
    rng = random.Random(4)
    assert looks_like(held(OLD))
    assert looks_like(held(OLD[:8192] + bytes(16_000)))
    unlinked = hidden(OLD, fields_in(kernel, OLD), 0)
    for other in (unlinked, b"", OLD[:4000], bytes(300_000), rng.randbytes(300_000), b"\xe8 or e9 " * 40_000):
        assert not looks_like(held(other))


@pytest.mark.parametrize(("functions_between", "blank"), [(300, True), (1500, False)])
def test_gaps_that_are_much_together_are_looked_for_so(
    functions_between: int, blank: bool, tmp_path: Path
) -> None:
    """Functions that were rewritten, with some chunks between them that are the same."""
    new = bytearray(OLD)
    at = 0
    for number, function in PROGRAM:
        length = sum(4 if isinstance(part, int) else len(part) for part in function)
        if number % functions_between == 0:
            new[at : at + 20] = random.Random(number).randbytes(20)
        at += length
    run = synced(*places(tmp_path, new=bytes(new)))
    assert ("Targets" in kinds(run)) == blank


def test_many_requests_put_one_file_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of them ask for nothing but targets."""
    monkeypatch.setattr(cells_module, "CHECK_BLOCKS_PER_MESSAGE", 3)
    run = synced(*places(tmp_path))
    assert counts(run)["RangeRequest"] > 10
    assert counts(run)["FileEnd"] == counts(run)["RangeRequest"]
    assert counts(run)["TreeAnswer"] == 1


def lied_to(monkeypatch: pytest.MonkeyPatch, lie: Any) -> None:
    def lies(*given: Any) -> Iterator[Correction | Targets]:
        for found in corrections(*given):
            if isinstance(found, Targets):
                yield from lie(found)
            else:
                yield found

    monkeypatch.setattr(range_answers_module, "corrections", lies)


@pytest.mark.parametrize("lie", ["none", "fewer", "more", "others"])
def test_targets_that_are_wrong_reach_no_file(
    lie: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The chunks say so, and are asked for once more."""

    def told(found: Targets) -> list[Targets]:
        payload = bytes(found.payload)
        changed = {
            "none": b"",
            "fewer": payload[:-3],
            "more": b"a" + payload,
            "others": bytes(byte ^ 1 for byte in payload),
        }[lie]
        return [Targets(found.file, changed)] if changed else []

    lied_to(monkeypatch, told)
    run = synced(*places(tmp_path))
    assert counts(run)["FileEnd"] == counts(run)["RangeRequest"] > 1
    assert counts(run)["TreeAnswer"] == 1


def test_bytes_that_look_like_blanks_are_corrected(tmp_path: Path) -> None:
    """Some functions of the old version have in place of each target what blanks are made of: their blocks
    seem to be found, but the claims say otherwise."""
    old = bytearray(OLD)
    marks = fields_in(kernel, OLD)
    at = 0
    for number, function in PROGRAM:
        length = sum(4 if isinstance(part, int) else len(part) for part in function)
        if number % 50 == 0:
            old[at : at + length] = hidden(old[at : at + length], marks[at : at + length], SEARCH_FILLER)
        at += length
    run = synced(*places(tmp_path, bytes(old)))
    assert {"Targets", "Correction"} <= kinds(run)
    assert counts(run)["FileEnd"] == counts(run)["RangeRequest"] == 1


def test_cells_that_are_wrong_have_no_targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Digests that hardly say anything: one cell in four seems to be wrong that is not."""
    made = cells_module.check_block_digests

    def digests(secret: bytes, images: bytes) -> bytes:
        found = bytearray(made(secret, images))
        found[::8] = bytes(byte ^ 1 for byte in found[::8])
        return bytes(found)

    monkeypatch.setattr(cell_checks_module, "check_block_digests", digests)
    run = synced(*places(tmp_path))
    assert {"Targets", "Correction"} <= kinds(run)
    assert counts(run)["FileEnd"] == counts(run)["RangeRequest"] == 1


@pytest.mark.parametrize("room", [0, 5_000])
def test_masks_that_there_is_no_room_for_are_found_again(
    room: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them, and those behind the first batch."""
    usual = synced(*places(tmp_path / "usual"))
    monkeypatch.setattr(cells_module, "CHECK_BLOCKS_PER_ANSWER", 4)
    ask = literal_requests

    def small(recipe: Any, ranges: Any, context: Any, _: int, open_base: Any) -> AskedRanges:
        asked = ask(recipe, ranges, context, room, open_base)
        assert (0 < asked.mask_bytes <= room) if room else asked.mask_bytes == 0
        return asked

    monkeypatch.setattr(file_fetch_module, "literal_requests", small)
    run = synced(*places(tmp_path / "small"))
    assert "Targets" in kinds(run)
    assert counts(run)["FileEnd"] == counts(run)["RangeRequest"]
    assert abs(run.done.literal_bytes - usual.done.literal_bytes) < 2 * CHECK_BLOCK_BYTES
