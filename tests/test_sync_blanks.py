"""Code that was built again is found without its targets, which come by themselves; lies are noticed."""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc import kernel
from rdc.files.source import SourceFile
from rdc.kernel import blank_targets, block_fingerprints, hide, target_bits
from rdc.kernel.pieces import put_images, tile_reads
from rdc.limits import RANGES_PER_MESSAGE
from rdc.model.sync import SyncOptions
from rdc.plan import cells as cells_module
from rdc.plan.blocks import BlockSearch
from rdc.plan.cells import divided_wholly
from rdc.plan.descent import Fetch, Patch, Repeat
from rdc.protocol.claims import CELL_BYTES, Claims
from rdc.protocol.messages import BlockRequest, Correction, RangeRequest, Role, Targets
from rdc.session import cell_checks as cell_checks_module
from rdc.session import file_fetch as file_fetch_module
from rdc.session import gaps as gaps_module
from rdc.session import range_answers as range_answers_module
from rdc.session.blanks import (
    CLAIMED,
    LOOK_AHEAD,
    LOOK_BACK,
    SOUGHT,
    blanked_into,
    blanked_ranges,
    blanking,
    is_code,
)
from rdc.session.cell_checks import corrections
from rdc.session.corrections import Corrections
from rdc.session.literal_requests import Asked, literal_requests
from rdc.session.range_answers import held_fingerprints, read_fingerprints
from tests.paired_sync import kinds, sync_in_turns
from tests.programs import functions, linked
from tests.range_rows import pairs_of, rows_of
from tests.syncing import Run
from tests.test_kernel_blanks import bits_of, codes, fields_in, hidden
from tests.trees import File, describe, litter, read_tree, tree, write_tree

pytestmark = pytest.mark.usefixtures("same_secret")

SECRET = b"sixteen bytes of"

PROGRAM = list(enumerate(functions(1, 3_000)))
MORE = [(number + len(PROGRAM), function) for number, function in enumerate(functions(2, 40))]
OLD = linked(PROGRAM)
NEW = linked(PROGRAM[:300] + MORE[:20] + PROGRAM[300:1500] + PROGRAM[1510:] + MORE[20:])
"""Some functions are new, some are gone: most others call and read at other distances."""


class Held:
    """As much of a SourceFile as a look at its bytes takes."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.size = len(content)

    def pread(self, offset: int, length: int) -> bytes:
        assert 0 <= offset <= offset + length <= self.size
        return self.content[offset : offset + length]

    peek = pread

    def read_into(self, buffer: memoryview, offset: int) -> None:
        buffer[:] = self.pread(offset, len(buffer))

    def read_ranges(self, rows: array[int]) -> bytes:
        return b"".join(map(self.pread, rows[0::2], rows[1::2]))

    def read_ranges_into(self, buffer: memoryview, rows: array[int]) -> None:
        buffer[:] = self.read_ranges(rows)

    def check_unchanged(self) -> None:
        pass


def held(content: bytes) -> SourceFile:
    return cast(SourceFile, Held(content))


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
    monkeypatch.setattr(gaps_module, "is_code", lambda source: False)
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
    assert is_code(held(OLD))
    assert is_code(held(OLD[:8192] + bytes(16_000)))
    unlinked = hidden(OLD, fields_in(kernel, OLD), 0)
    for other in (unlinked, b"", OLD[:4000], bytes(300_000), rng.randbytes(300_000), b"\xe8 or e9 " * 40_000):
        assert not is_code(held(other))


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
    monkeypatch.setattr(cells_module, "CELLS_PER_MESSAGE", 3)
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
            old[at : at + length] = hidden(old[at : at + length], marks[at : at + length], SOUGHT)
        at += length
    run = synced(*places(tmp_path, bytes(old)))
    assert {"Targets", "Correction"} <= kinds(run)
    assert counts(run)["FileEnd"] == counts(run)["RangeRequest"] == 1


def test_cells_that_are_wrong_have_no_targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Digests that hardly say anything: one cell in four seems to be wrong that is not."""
    made = cells_module.cell_digests

    def digests(secret: bytes, images: bytes) -> bytes:
        found = bytearray(made(secret, images))
        found[::8] = bytes(byte ^ 1 for byte in found[::8])
        return bytes(found)

    monkeypatch.setattr(cell_checks_module, "cell_digests", digests)
    run = synced(*places(tmp_path))
    assert {"Targets", "Correction"} <= kinds(run)
    assert counts(run)["FileEnd"] == counts(run)["RangeRequest"] == 1


def seen(code: bytes, rows: array[int]) -> tuple[bytes, bytes]:
    """Ranges of the code and a bit for each byte, as both sides of a claim come to see them."""
    tiles = array("Q", [number for at, length in pairs_of(rows) for number in (0, at, length)])
    sizes = array("Q", (len(code),))
    _, reads, sources = tile_reads(tiles, 0, LOOK_BACK, LOOK_AHEAD, sizes)
    wider = array("Q", reads)
    del wider[0::3]
    content = held(code).read_ranges(wider)
    images, bits = put_images(sources, content, target_bits(content, wider[1::2]))
    return bytes(images), bits


@given(codes, st.data())
def test_a_part_is_blanked_as_the_whole_is(code: bytes, data: st.DataObject) -> None:
    offset = data.draw(st.integers(0, len(code)))
    length = data.draw(st.integers(0, len(code) - offset))
    whole = bytearray(code)
    blank_targets(whole, CLAIMED)
    read = blanking(held(code), CLAIMED)
    for start in (0, offset, 0):
        assert read(start, length) == whole[start : start + length]
    bits = bits_of(fields_in(kernel, code)[offset : offset + length])
    part = bytearray(code[offset : offset + length])
    assert seen(code, array("Q", (offset, length))) == (bytes(part), bits)
    hide(part, bits, CLAIMED)
    assert part == whole[offset : offset + length]


@given(codes, st.lists(st.integers(0, 40), max_size=5))
def test_many_parts_are_blanked_as_the_whole_is(code: bytes, lengths: list[int]) -> None:
    rows, at = array("Q"), 0
    for length in lengths:
        start = min(len(code), at + length // 3)
        at = min(len(code), start + length)
        rows.extend((start, at - start))
    whole, marks = bytearray(code), fields_in(kernel, code)
    blank_targets(whole, SOUGHT)
    ranges = [slice(start, start + length) for start, length in zip(rows[0::2], rows[1::2], strict=True)]
    marked = b"".join(marks[part] for part in ranges)
    assert seen(code, rows) == (b"".join(code[part] for part in ranges), bits_of(marked))
    memory = memoryview(bytearray(1_000))
    places = blanked_into(memory, held(code), SOUGHT, rows)
    assert [memory[at : at + length] for at, length in zip(places, rows[1::2], strict=True)] == [
        whole[part] for part in ranges
    ]
    assert blanked_ranges(held(code), SOUGHT, rows) == b"".join(whole[part] for part in ranges)
    backwards = array("Q", [number for at, length in reversed(pairs_of(rows)) for number in (at, length)])
    expected = b"".join(whole[part] for part in reversed(ranges))
    assert blanked_ranges(held(code), SOUGHT, backwards) == expected


@pytest.mark.parametrize(("most", "at_once"), [(1 << 19, 2_048), (1_024, 2_048), (128, 2), (64, 1)])
def test_fingerprints_are_of_the_blanked_file(
    most: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the content is at hand or read, wherever a range begins, and however many are read at once."""
    monkeypatch.setattr(range_answers_module, "DATA_BYTES", most)
    monkeypatch.setattr(range_answers_module, "RANGES_AT_ONCE", at_once)
    rows = ((3, 900), (1_000, 64), (5_000, 200_000), (OLD.find(b"\xe8", 300_000) + 3, 100))
    ranges = sorted(rows)
    whole = bytearray(OLD)
    blank_targets(whole, SOUGHT)
    sought = b"".join(whole[at : at + length] for at, length in ranges)
    expected = block_fingerprints(SECRET, sought, 64, 4, array("Q", [length for _, length in ranges]))
    request = BlockRequest.of(1, ranges, 64, 4, blank=True)
    assert held_fingerprints(OLD, request, SECRET) == expected
    assert read_fingerprints(held(OLD), request, SECRET) == expected
    assert read_fingerprints(held(OLD), BlockRequest.of(1, ranges, 64, 4), SECRET) != expected


@settings(deadline=None)
@given(st.integers(0, 3 * CELL_BYTES), st.integers(1, 2 * CELL_BYTES), st.integers(0, 3))
def test_what_is_told_makes_the_file(offset: int, length: int, wrong: int) -> None:
    """Of a version with other targets, a range that is missing, and a cell that is wrong."""
    true = NEW[: 5 * CELL_BYTES - 9]
    marks = bytearray(fields_in(kernel, true))
    length = min(length, len(true) - offset)
    ranges = [(offset, length)]
    old = bytearray(byte ^ 3 if mark else byte for mark, byte in zip(marks, true, strict=True))
    old[offset : offset + length] = bytes(length)
    marks[offset : offset + length] = bytes(length)
    wrong_at = wrong * CELL_BYTES + 77
    told = bytearray(hidden(old, marks, CLAIMED))
    inside = offset <= wrong_at < offset + length
    if not inside:
        told[wrong_at] ^= 1
        old[wrong_at] ^= 1
    cells = range(5)
    parts = [slice(cell * CELL_BYTES, (cell + 1) * CELL_BYTES) for cell in cells]
    images = [bytes(told[part]) for part in parts]
    digests = cells_module.cell_digests(SECRET, b"".join(images))
    request = RangeRequest.of(1, rows_of(ranges), claims=Claims(tuple(cells), digests), blank=True)
    taken = Corrections(
        len(true),
        iter([((0, 1), bits_of(marks[: 2 * CELL_BYTES])), ((2, 3, 4), bits_of(marks[2 * CELL_BYTES :]))]),
    )
    taken.ask(request)
    corrected: list[int] = []
    for answer in corrections(held(true), request, SECRET):
        if isinstance(answer, Targets):
            taken.take_targets(answer)
        else:
            corrected += answer.cells
            taken.take(answer)
    assert corrected == ([] if inside else [wrong])
    taken.settle()
    for start in range(0, len(true), 3_000):
        content, _ = taken.amend(start, bytes(old[start : start + 3_000]))
        for at, (found, wanted) in enumerate(zip(content, true[start : start + 3_000], strict=True), start):
            assert found == wanted or offset <= at < offset + length
    taken.end(len(true))
    assert taken.amend(0, b"as it is") == (b"as it is", 0)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 3 * CELL_BYTES), st.integers(1, 2 * CELL_BYTES)), max_size=12),
    st.sets(st.integers(0, 60)),
)
def test_every_range_and_every_cell_is_in_a_request(drawn: list[tuple[int, int]], chosen: set[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells_module, "CELLS_PER_MESSAGE", 5)
        patch.setattr(cells_module, "RANGES_PER_MESSAGE", CELL_BYTES // 2 + 1)
        ranges, at = [], 0
        for gap, length in drawn:
            ranges.append((at + gap, length))
            at += gap + length
        cells = sorted(chosen)
        requests = [(pairs_of(some), cells[rows]) for some, rows in divided_wholly(rows_of(ranges), cells)]
    assert [cell for _, some in requests for cell in some] == cells
    asked = [at for some, _ in requests for offset, length in some for at in (offset, offset + length)]
    assert asked == sorted(asked)
    bytes_of = [(offset, offset + length) for some, _ in requests for offset, length in some]
    assert sum(stop - start for start, stop in bytes_of) == sum(length for _, length in ranges)
    for number, (some, here) in enumerate(requests):
        assert some or here
        assert len(here) <= 5
        others = [one for row, (more, _) in enumerate(requests) if row != number for one in more]
        for offset, length in others:
            touched = range(offset // CELL_BYTES, (offset + length - 1) // CELL_BYTES + 1)
            assert set(touched).isdisjoint(here)


def test_many_short_ranges_are_in_several_requests() -> None:
    """More than a request may have, in fewer cells than it may have."""
    ranges = [(at, 1) for at in range(0, 40_000 * 3, 3)]
    cells = list(range(16))
    requests = [(pairs_of(some), cells[rows]) for some, rows in divided_wholly(rows_of(ranges), cells)]
    assert [one for some, _ in requests for one in some] == ranges
    assert [cell for _, some in requests for cell in some] == cells
    assert all(len(some) <= RANGES_PER_MESSAGE for some, _ in requests)
    assert len(requests) == 3


def test_chunks_that_repeat_are_fetched() -> None:
    """What came of their targets would be told for the first of them alone."""
    search = BlockSearch((), ())
    once = Fetch(b"r", 100, 1)
    parts = (once, Fetch(b"r", 100, 3), Repeat((once,), 100, 2))
    search._parts = parts
    copies = array("Q", (0, 0, 500, 800))

    class Found:
        base = 0
        pieces = array("Q", (0, 500, 800))
        regions = ()

    search._gaps = cast(Any, [Found()])
    assert len(copies) == 4
    found = search.parts(single=True)
    assert isinstance(found[0], Patch)
    assert found[1:] == parts[1:]
    assert isinstance(search.parts()[1], Patch)


@pytest.mark.parametrize("room", [0, 5_000])
def test_masks_that_there_is_no_room_for_are_found_again(
    room: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them, and those behind the first batch."""
    usual = synced(*places(tmp_path / "usual"))
    monkeypatch.setattr(cells_module, "CELLS_PER_ANSWER", 4)
    ask = literal_requests

    def small(fetch: Any, ranges: Any, context: Any, _: int) -> Asked:
        asked = ask(fetch, ranges, context, room)
        assert (0 < asked.mask_bytes <= room) if room else asked.mask_bytes == 0
        return asked

    monkeypatch.setattr(file_fetch_module, "literal_requests", small)
    run = synced(*places(tmp_path / "small"))
    assert "Targets" in kinds(run)
    assert counts(run)["FileEnd"] == counts(run)["RangeRequest"]
    assert abs(run.done.literal_bytes - usual.done.literal_bytes) < 2 * CELL_BYTES
