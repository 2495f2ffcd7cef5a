"""A merge of many parts: one file open at a time, and memory that follows the directories alone."""

from __future__ import annotations

import io
import random
import tracemalloc
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO

from rdc.model.scan import DEFAULT_MEMORY, ScanOptions, ScanSlice
from rdc.survey.count.counters import Outcome
from rdc.survey.parts.merge import PartSource, merge_parts
from rdc.survey.parts.part_file import encode_part
from rdc.survey.report.terminal import scan_json
from rdc.survey.scan.scanner import survey
from rdc.survey.scan.summary import report_of
from tests.support.trees.linked_tree import linked_tree


def small_part(number: int) -> bytes:
    """A part with 20 chunks of its own and 20 that all parts have, in one directory."""
    outcome = Outcome(ScanOptions(compress=False))
    outcome.paths = [b"/data/%d" % number]
    location = outcome.locations.location(outcome.locations.add_directory(outcome.paths[0], -1), b".x")
    for seed in (number, 1_000_000):
        keys = random.Random(seed).randbytes(160)
        outcome.counters.levels["cdc-4096"].add(keys, (4096).to_bytes(8, "little") * 20)
    outcome.locations.count(location, 40 * 4096)
    outcome.files, outcome.bytes = 1, 40 * 4096
    return b"".join(encode_part(outcome))


class Counted:
    """Parts that know how many of them are open."""

    def __init__(self, parts: Sequence[bytes]) -> None:
        self.open, self.most, self.opened = 0, 0, 0
        self.sources = [
            PartSource(f"p{number}", partial(self._open, content)) for number, content in enumerate(parts)
        ]

    def _open(self, content: bytes) -> BinaryIO:
        counted = self

        class Part(io.BytesIO):
            def close(self) -> None:
                counted.open -= not self.closed
                super().close()

        self.open += 1
        self.opened += 1
        self.most = max(self.most, self.open)
        return Part(content)


def test_one_part_is_open_at_a_time_and_memory_follows_the_directories() -> None:
    parts = [small_part(number) for number in range(500)]
    peaks = []
    for count in (100, 500):
        counted = Counted(parts[:count])
        tracemalloc.start()
        outcome = merge_parts(counted.sources, DEFAULT_MEMORY)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert (counted.most, counted.open, counted.opened) == (1, 0, 2 * count)
        level = report_of(outcome).level("cdc-4096")
        assert level is not None
        assert (level.chunks, level.unique_chunks) == (40 * count, 20 * count + 20)
    # A head, a path and a row of each part stay. Its tables do not.
    assert (peaks[1] - peaks[0]) / 400 < 3_000


def test_hundreds_of_slices_are_one_scan(tmp_path: Path) -> None:
    linked_tree(tmp_path, 8)
    of = 300
    slices = [ScanOptions(slice=ScanSlice(number, of)) for number in range(1, of + 1)]
    parts = [b"".join(encode_part(survey([tmp_path], one))) for one in slices]
    random.Random(2).shuffle(parts)
    counted = Counted(parts)
    merged = scan_json(report_of(merge_parts(counted.sources, DEFAULT_MEMORY)))
    assert merged == scan_json(report_of(survey([tmp_path], ScanOptions())))
    assert counted.most == 1


def test_merges_of_merged_slices_are_one_scan(tmp_path: Path) -> None:
    """A tree of merges on several machines makes such parts."""
    linked_tree(tmp_path, 9)
    slices = [ScanOptions(slice=ScanSlice(number, 27)) for number in range(1, 28)]
    parts = [b"".join(encode_part(survey([tmp_path], one))) for one in slices]
    random.Random(3).shuffle(parts)
    while len(parts) > 1:
        groups = [Counted(parts[first : first + 3]).sources for first in range(0, len(parts), 3)]
        merged = [merge_parts(group, DEFAULT_MEMORY, incomplete=True) for group in groups]
        parts = [b"".join(encode_part(outcome)) for outcome in merged]
    assert merged[0].slices is None
    assert scan_json(report_of(merged[0])) == scan_json(report_of(survey([tmp_path], ScanOptions())))
