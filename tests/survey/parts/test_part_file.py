"""Merged parts equal one scan of everything. Damaged, forged or foreign parts are refused, and named."""

from __future__ import annotations

import functools
import io
import os
import random
import struct
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard
from blake3 import blake3

from rdc.errors import ExitCode, UsageError
from rdc.limits import PART_SECTION_BYTES
from rdc.model.scan import DEFAULT_MEMORY, ScanOptions, ScanReport
from rdc.survey.container import PartError
from rdc.survey.count import chunk_counter
from rdc.survey.count.counters import Outcome
from rdc.survey.parts import part_file
from rdc.survey.parts import part_file as part_module
from rdc.survey.parts.merge import PartSource, merge_parts
from rdc.survey.parts.part_file import encode_part, write_part
from rdc.survey.parts.sections import MAGIC, encode_section
from rdc.survey.scan.scanner import survey
from rdc.survey.scan.summary import report_of
from tests.support.share import examples
from tests.support.trees.mixed_tree import mixed_tree

FIXED = ScanOptions(fixed=("fixed-4096",))


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    tops = [tmp_path_factory.mktemp(name) for name in ("one", "two", "three")]
    for number, top in enumerate(tops):
        mixed_tree(top, seed=number // 2)
        (top / "own").write_bytes(random.Random(number).randbytes(123_456))
    return tops


def encoded(outcome: Outcome) -> bytes:
    return b"".join(encode_part(outcome))


def merged(*parts: bytes, memory: int = DEFAULT_MEMORY, names: str = "abcdefghi") -> Outcome:
    sources = [
        PartSource(name, functools.partial(io.BytesIO, part))
        for name, part in zip(names, parts, strict=False)
    ]
    return merge_parts(sources, memory)


def scanned(*tops: Path, options: ScanOptions = FIXED) -> Outcome:
    return survey(list(tops), options)


def test_merged_parts_are_the_whole(trees: list[Path]) -> None:
    whole = report_of(scanned(*trees))
    parts = [encoded(scanned(top)) for top in trees]
    assert report_of(merged(*parts)) == whole
    # The order of merging does not matter, nor does merging merged parts.
    again = report_of(merged(encoded(merged(parts[1], parts[2])), parts[0]))
    assert again.levels == whole.levels
    assert again.bytes == whole.bytes


def unordered(report: ScanReport) -> ScanReport:
    """The report without the order in which paths were given, which also decides between equal entries."""
    return replace(
        report,
        paths_bytes=(),
        directories=tuple(sorted(report.directories, key=repr)),
        types=tuple(sorted(report.types, key=repr)),
        overlaps=(),
        similar=(),
    )


def test_random_splits_are_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples are small here, so that each part has its own and the sum is thinned."""
    monkeypatch.setattr(chunk_counter, "SAMPLE_CHUNKS", 32)
    rng = random.Random(7)
    shared = [rng.randbytes(rng.randrange(1, 90_000)) for _ in range(6)]
    tops = [tmp_path / f"{number:02}" for number in range(9)]
    for number, top in enumerate(tops):
        top.mkdir()
        for name in range(rng.randrange(1, 5)):
            own = rng.randbytes(rng.randrange(number * 9_000 + 1))
            content = rng.choice(shared) + (own.hex().encode() if name % 2 else own)
            (top / f"{name}.x").write_bytes(content[: rng.choice((len(content), 5_000))])
    whole = unordered(report_of(scanned(*tops)))
    assert any(level.compressed_low != level.compressed_high for level in whole.levels)
    each = [encoded(scanned(top)) for top in tops]
    for _ in range(examples(30)):
        rng.shuffle(each)
        left, slices = list(each), []
        while left:
            count = rng.randrange(1, len(left) + 1)
            slices.append(encoded(merged(*left[:count])))
            del left[:count]
        assert unordered(report_of(merged(*slices))) == whole


def test_a_part_alone_is_its_scan(trees: list[Path]) -> None:
    outcome = scanned(trees[0])
    assert report_of(merged(encoded(outcome))) == report_of(outcome)
    assert encoded(merged(encoded(outcome))) == encoded(outcome)


def test_sampled_parts_stay_within_their_bounds(trees: list[Path]) -> None:
    whole = report_of(scanned(*trees))
    parts = [
        encoded(scanned(top, options=replace(FIXED, memory=memory)))
        for top, memory in zip(trees, (8_000, 16_000, 1 << 20), strict=True)
    ]
    together = report_of(merged(*parts))
    for exact, about in zip(whole.levels, together.levels, strict=True):
        assert (about.chunks, about.bytes) == (exact.chunks, exact.bytes)
        if exact.unique_chunks > 200:
            assert not about.exact
            assert about.low <= exact.unique_bytes <= about.high
    # Exact parts are sampled if the memory is too small.
    small = report_of(merged(*[encoded(scanned(top)) for top in trees], memory=8_000))
    fine, true = small.level("cdc-4096"), whole.level("cdc-4096")
    assert fine is not None
    assert true is not None
    assert not fine.exact
    assert fine.bytes == true.bytes


def test_trees_of_the_same_name_are_told_apart(trees: list[Path]) -> None:
    part = encoded(scanned(trees[0]))
    report = report_of(merged(part, part))
    top = os.fsencode(trees[0])
    assert report.paths_bytes == (top, b"b:" + top)
    assert {b"b:" + top, top} <= {one.path_bytes for one in report.directories}
    (first, *_) = report.overlaps
    assert {first.first, first.second} == {top, b"b:" + top}


def test_problems_and_reasons_come_along(trees: list[Path]) -> None:
    stopped = survey(
        [trees[0], trees[0] / "gone"], FIXED, stopped=iter([False] * 6 + [True] * 10**6).__next__
    )
    report = report_of(merged(encoded(scanned(trees[1])), encoded(stopped)))
    assert report.coverage.reason == "interrupted"
    assert [one.path_bytes for one in report.errors] == [os.fsencode(trees[0] / "gone")]
    assert report.exit is ExitCode.PARTIAL


def test_other_parameters_are_refused_by_name(trees: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    part = encoded(scanned(trees[0]))
    with pytest.raises(UsageError, match=r"^b: made with other parameters than a: --level differs"):
        merged(part, encoded(scanned(trees[1], options=ScanOptions())))
    with pytest.raises(UsageError, match=r"^b: made with other parameters than a: compression differs"):
        merged(part, encoded(scanned(trees[1], options=replace(FIXED, compress=False))))
    monkeypatch.setattr(part_file, "METHOD", "rdc survey 2")
    with pytest.raises(UsageError, match=r"^a: made with other parameters.*found 'rdc survey 1;"):
        merged(part)
    with pytest.raises(UsageError, match="no part"):
        merged()


def test_any_damage_is_noticed(trees: list[Path]) -> None:
    part = encoded(scanned(trees[0]))
    drawn = random.Random(6)
    places = [0, 7, 8, 20, len(part) - 1, *(drawn.randrange(len(part)) for _ in range(150))]
    for at in places:
        broken = bytearray(part)
        broken[at] ^= 1 << drawn.randrange(8)
        with pytest.raises(PartError, match=r"^a: "):
            merged(bytes(broken))
    for length in (0, 5, 8, 9, 60, len(part) // 2, len(part) - 1):
        with pytest.raises(PartError, match=r"^a: "):
            merged(part[:length])
    with pytest.raises(PartError, match="more bytes"):
        merged(part + b"x")
    with pytest.raises(PartError, match="another kind of file"):
        merged(b"#!/bin/sh\n" * 10)


def sections(part: bytes) -> list[tuple[bytes, bytes]]:
    """Tags and whole sections."""
    found, at = [], len(MAGIC)
    while at < len(part):
        length = int.from_bytes(part[at + 8 : at + 12], "little")
        found.append((part[at : at + 4], part[at : at + 44 + length]))
        at += 44 + length
    return found


def column(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(8, "little") for number in numbers)


FORGED = {
    "no head": [encode_section(b"TYPE", b"")],
    "keys out of order": [
        encode_section(b"TABL", "cdc-4096", 0, 0, 9, 9),
        encode_section(b"ROWS", column(2, 1), column(1, 1), column(1, 1)),
    ],
    "more chunks than": [
        encode_section(b"TABL", "cdc-4096", 0, 0, 1, 9),
        encode_section(b"ROWS", column(1), column(1), column(2)),
    ],
    "more chunks than the table": [
        encode_section(b"TABL", "cdc-4096", 0, 0, 9, 9),
        encode_section(b"ROWS", column(1), column(1), column(0)),
    ],
    "fewer chunks than": [encode_section(b"TABL", "cdc-4096", 0, 0, 1, 1), encode_section(b"TYPE", b"")],
    "keys out": [
        encode_section(b"TABL", "cdc-4096", 0, 2, 9, 9),
        encode_section(b"ROWS", column(1 << 63), column(1), column(1)),
    ],
    "no table": [encode_section(b"ROWS", column(1), column(1), column(1))],
    "cdc-99": [encode_section(b"TABL", "cdc-99", 0, 0, 0, 0)],
    "out of range": [encode_section(b"TABL", "file", 9, 0, 0, 0)],
    "number out of range": [encode_section(b"TABL", "file", 0, 64, 0, 0)],
    "a chunk that grew": [encode_section(b"ZSTD", "file", 0, column(1), column(5), column(6))],
    "a directory above itself": [encode_section(b"DIRS", b"a\0", column(2), column(0), column(0))],
    "above itself, or of no path": [encode_section(b"DIRS", b"a\0b\0", column(0), column(0), column(0))],
    "names without an end": [encode_section(b"DIRS", b"a", column(0), column(0), column(0))],
    "in no directory": [encode_section(b"PLAC", column(0), column(0), column(0), column(0))],
    "a reference to no place": [encode_section(b"REFS", 0, column(1), column(1), column(0))],
    "64-bit numbers": [encode_section(b"DIRS", b"a\0", b"123", column(0), column(0))],
    "traits of another": [encode_section(b"LIKE", 0, column(1), column(1), column(0), b"12345678", b"a\0")],
    "a file in no": [encode_section(b"LIKE", 0, column(1), column(1), column(0), b"123456789", b"a\0")],
    "unknown section": [encode_section(b"WHAT", b"")],
    "a section b'FAIL' with 1 fields": [encode_section(b"FAIL", b"")],
    "a number out": [encode_section(b"FAIL", b"p", "m", (1 << 64) - 1)],
    "not a valid ExitCode": [encode_section(b"FAIL", b"p", "m", 99)],
}


@pytest.mark.parametrize("message", FORGED)
def test_forged_sections_are_refused(trees: list[Path], message: str) -> None:
    """Forged sections with correct digests, from an attacker who knows the format."""
    head = sections(encoded(Outcome(FIXED)))[0][1]
    forged = (
        MAGIC + (b"" if message == "no head" else head) + b"".join(FORGED[message]) + encode_section(b"LAST")
    )
    expected = "expected a head" if message == "no head" else message
    with pytest.raises(PartError, match=expected):
        merged(forged)


def test_sections_are_bounded_before_they_are_read() -> None:
    # What cannot be packed may take 1/256 more.
    huge = (PART_SECTION_BYTES + (PART_SECTION_BYTES >> 7)).to_bytes(4, "little")
    bomb = zstandard.ZstdCompressor().compress(bytes(1 << 20))
    head = struct.pack("<4sII32s", b"HEAD", 100, len(bomb), blake3(b"HEAD" + bomb).digest())
    with pytest.raises(PartError, match="that can be unpacked"):
        merged(MAGIC + head + bomb)
    for sizes in (huge + b"\0\0\0\0", b"\0\0\0\0" + huge):
        with pytest.raises(PartError, match="at most"):
            merged(MAGIC + b"HEAD" + sizes + bytes(32))


def test_a_part_is_written_whole_or_not_at_all(
    trees: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "a.rdcscan"
    target.write_bytes(MAGIC + b"before")
    outcome = scanned(trees[0])

    def broken(_outcome: Outcome) -> object:
        yield b"half"
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(part_module, "encode_part", broken)
        with pytest.raises(Exception, match="No space"):
            write_part(outcome, str(target))
    assert target.read_bytes() == MAGIC + b"before"
    write_part(outcome, str(target))
    assert target.read_bytes() == encoded(outcome)
    assert os.listdir(tmp_path) == ["a.rdcscan"]
    with pytest.raises(Exception, match="cannot write it"):
        write_part(outcome, str(tmp_path / "none" / "a"))
