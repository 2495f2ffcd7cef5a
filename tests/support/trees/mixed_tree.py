"""A tree of everything that a scan counts, and its report held to an independent count."""

from __future__ import annotations

import os
import random
from pathlib import Path

from rdc.model.scan import ScanReport
from tests.support.running.expected_counts import PlainCensus

__all__ = ["agree", "mixed_tree"]


def agree(report: ScanReport, plain: PlainCensus) -> None:
    assert report.files == plain.files
    assert report.bytes == plain.bytes
    assert report.holes_bytes == plain.holes_bytes
    assert report.allocated_bytes == plain.allocated_bytes
    assert report.hardlinks == plain.hardlinks
    for level in report.levels:
        found = (level.chunks, level.bytes, level.unique_chunks, level.unique_bytes)
        assert found == plain.level(level.name).figures, level.name
        assert level.exact
        assert level.low == level.high == level.unique_bytes
        assert sum(one.chunks for one in level.sizes) == level.unique_chunks
        assert sum(one.bytes for one in level.copies) == level.unique_bytes
    files = plain.level("file")
    groups = [content for content, times in files.seen.items() if times > 1 and files.sizes[content]]
    assert report.duplicate_groups == len(groups)
    assert report.duplicate_bytes == sum(files.sizes[one] * (files.seen[one] - 1) for one in groups)


def mixed_tree(top: Path, seed: int = 1) -> None:
    """Text, noise, copies, moved pieces, empty files, hard links, symlinks, holes."""
    drawn = random.Random(seed)
    words = [drawn.randbytes(drawn.randint(2, 9)).hex() for _ in range(400)]
    noise = drawn.randbytes(700_000)
    (top / "a" / "deep").mkdir(parents=True)
    (top / "b").mkdir()
    for number in range(60):
        text = " ".join(drawn.choices(words, k=drawn.choice([0, 30, 400, 3000]))).encode()
        (top / "a" / f"{number}.txt").write_bytes(text)
        if number % 3 == 0:
            (top / "b" / f"{number}.TXT").write_bytes(text)
    (top / "a" / "noise").write_bytes(noise)
    (top / "b" / "shifted").write_bytes(b"new start" + noise)
    (top / "a" / "deep" / "same").write_bytes(noise)
    (top / "a" / "large").write_bytes(noise * 8)
    (top / "b" / "zeros").write_bytes(bytes(3_000_000))
    (top / "b" / "zeros and more").write_bytes(noise + bytes(800_000) + noise[:9999])
    os.link(top / "a" / "noise", top / "b" / "second name")
    os.link(top / "a" / "large", top / "b" / "large")
    (top / "a" / "loop").symlink_to("..")
    (top / "b" / "dangling").symlink_to("nowhere")
    for name, size, parts in (
        ("hole", 9_000_000, []),
        ("small hole", 300_000, []),
        ("holes", 20_000_000, [(0, noise), (9_000_000, noise[:5000]), (12_345_678, b"x")]),
        ("holes again", 20_000_000, [(0, noise), (9_000_000, noise[:5000]), (12_345_678, b"x")]),
        ("little", 50_000, [(30_000, b"y" * 100)]),
    ):
        with (top / "b" / name).open("wb") as file:
            for offset, data in parts:
                file.seek(offset)
                file.write(data)
            file.truncate(size)
