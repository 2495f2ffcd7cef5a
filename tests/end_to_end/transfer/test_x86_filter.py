"""Machine code that is fetched has absolute targets on its way, for fewer bytes, and lies are noticed."""

from __future__ import annotations

import random
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.kernel import absolute_displacements
from rdc.limits import DATA_BYTES
from rdc.protocol.messages import Code, Data
from rdc.protocol.messages.field_types import CHECK_BLOCK_BYTES
from rdc.session import binaries as filters_module
from rdc.session.binaries import SAMPLED_BYTES, RangeOffsets, decode_branches, encode_branches, sample_of
from rdc.session.source import range_answers as cell_checks_module
from rdc.session.source import range_answers as range_answers_module
from rdc.session.transfer import compare as gaps_module
from rdc.session.transfer import range_requests as literal_requests_module
from tests.end_to_end.transfer.one_file import NEW, places, program, synced
from tests.reference import blocks as search_reference
from tests.reference import gaps as pure_gaps
from tests.support.kernel.range_rows import pairs_of, rows_of
from tests.support.running.paired_sync import kinds


def pieces_of(ranges: Sequence[tuple[int, int]], start: int, stop: int) -> list[int]:
    """As RangeOffsets.take(), a byte at a time."""
    places = [offset + i for offset, length in ranges for i in range(length)]
    ends = {sum(length for _, length in ranges[: n + 1]) for n in range(len(ranges))}
    found: list[int] = []
    for at in range(start, stop):
        if at == start or at in ends:
            found += (places[at], 0)
        found[-1] += 1
    return found


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(1, 9)), min_size=1, max_size=9),
    st.lists(st.tuples(st.integers(1, 12), st.booleans())),
)
def test_places_of_messages_of_any_length(
    drawn: list[tuple[int, int]], messages: list[tuple[int, bool]]
) -> None:
    at, ranges = 0, []
    for gap, length in drawn:
        ranges.append((at + gap, length))
        at += gap + length
    places, at, total = RangeOffsets(rows_of(ranges)), 0, sum(length for _, length in ranges)
    for size, looked_at in messages:
        if at + size > total:
            break
        if looked_at:
            assert list(places.take(size)) == pieces_of(ranges, at, at + size)
        else:
            places.at += size
        at += size


def test_code_comes_with_absolute_targets_for_fewer_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(NEW) > 3 * DATA_BYTES
    run = synced(*places(tmp_path / "with"))
    assert "Code" in kinds(run)
    monkeypatch.setattr(filters_module, "encode_branches", lambda content, places: False)
    plain = synced(*places(tmp_path / "without"))
    assert "Code" not in kinds(plain)
    assert run.done.literal_bytes == plain.done.literal_bytes
    assert run.done.bytes_sent < plain.done.bytes_sent * 0.8


def test_what_is_no_code_comes_as_it_is(tmp_path: Path) -> None:
    rng = random.Random(3)
    words = [rng.randbytes(6).hex().encode() for _ in range(4_000)]
    run = synced(*places(tmp_path, b" ".join(rng.choices(words, k=150_000))))
    assert "Code" not in kinds(run)


def test_nothing_is_rewritten_where_nothing_is_compressed(tmp_path: Path) -> None:
    assert "Code" not in kinds(synced(*places(tmp_path), compress=False))


def test_too_few_targets_leave_the_content_alone() -> None:
    place = array("Q", [7, 1000])
    for calls, rewritten in ((4, False), (5, True)):
        content = bytearray(b"\xe8\x01\0\0\0" * calls + bytes(1000 - 5 * calls))
        before = bytes(content)
        assert encode_branches(content, place) == rewritten
        assert (content != before) == rewritten
        assert not rewritten or decode_branches(content, place) == before


def test_a_sample_is_of_all_parts_of_the_content() -> None:
    rng = random.Random(8)
    file = rng.randbytes(400_000)
    starts = sorted(rng.sample(range(0, 400_000, 100), 900))
    ranges = [(start, rng.randint(1, 100)) for start in starts]
    content = bytearray().join([file[at : at + length] for at, length in ranges])
    sample, where = sample_of(content, rows_of(ranges))
    assert sample == b"".join(file[at : at + length] for at, length in pairs_of(where))
    assert len(content) / 9 < len(sample) <= len(content) / 8
    for eighth in range(8):
        first, last = starts[900 * eighth // 8], starts[900 * (eighth + 1) // 8 - 1]
        assert any(first <= at <= last for at, _ in pairs_of(where))


@pytest.mark.parametrize("in_targets", [0, 1, 3, 8])
def test_code_beside_other_content_is_rewritten(in_targets: int) -> None:
    """So many of eight parts of it: one has few targets in all."""
    call = b"\xe8\x01\0\0\0" + bytes(20)
    part = SAMPLED_BYTES // 8 // len(call) + 1
    words = random.Random(9).randbytes(part * len(call) // 2).hex().encode()
    content = bytearray(call * part * in_targets + words * (8 - in_targets))
    place = array("Q", [7, len(content)])
    assert len(content) >= SAMPLED_BYTES
    assert encode_branches(content, place) == (in_targets > 0)


@pytest.mark.parametrize("lie", ["as data", "as code", "with other places"])
def test_code_that_is_none_is_noticed_and_fetched_again(
    lie: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice, since the second attempt is lied to as well; then the whole file."""

    def data(file: int, content: bytearray, places: Any) -> Data | Code:
        where = places.take(len(content))
        if lie == "as code":
            return Code(file, bytes(content))
        if lie == "with other places":
            where[0] += 1
        absolute_displacements(content, where)
        return (Data if lie == "as data" else Code)(file, bytes(content))

    monkeypatch.setattr(range_answers_module, "_data", data)
    run = synced(*places(tmp_path))
    assert run.done.literal_bytes == len(NEW)


def test_chunks_that_were_wrong_are_mended_with_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every second few blocks seem to be found, and nothing tells better: what is asked for then lies at
    other places than at first."""

    def found(key: bytes, base: bytes, size: int, width: int, fingerprints: bytes) -> bytes:
        rows = range(len(fingerprints) // width)
        return b"".join((bytes if row % 16 < 8 else b"\xff".__mul__)(8) for row in rows)

    for module in (literal_requests_module, cell_checks_module):
        monkeypatch.setattr(
            module,
            "check_block_digests",
            lambda secret, images: bytes(2 * -(-len(images) // CHECK_BLOCK_BYTES)),
        )
    monkeypatch.setattr(search_reference, "match_blocks", found)
    monkeypatch.setattr(gaps_module, "match_blocks", found)
    monkeypatch.setattr(gaps_module, "search_gaps", pure_gaps.search_gaps)
    run = synced(*places(tmp_path, program(5, 6_000)))
    sent = {cost.name: cost.count for cost in run.done.by_kind}
    assert (sent["TreeAnswer"], sent["FileEnd"], sent["Code"]) == (1, 2, 2)


def test_a_few_hundred_thousand_bytes_are_compressed_hard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Text that a descent did not find comes for a twentieth less than that of a first copy."""
    rng = random.Random(7)
    words = [rng.randbytes(rng.randrange(2, 6)).hex().encode() for _ in range(3_000)]
    phrases = [b" ".join(rng.choices(words, k=rng.randrange(2, 9))) for _ in range(9_000)]
    new = b"\n".join(rng.choices(phrases, k=20_000))[:400_000]
    hard = synced(*places(tmp_path / "hard", new)).done.bytes_sent
    monkeypatch.setattr(range_answers_module, "HARD_BYTES", 1 << 30)
    assert hard < synced(*places(tmp_path / "soft", new)).done.bytes_sent * 0.95
