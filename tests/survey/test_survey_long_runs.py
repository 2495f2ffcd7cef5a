"""Files with runs of equal chunks count the same, whether they are read with others or singly."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from array import array
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rdc.library.scan import scan
from rdc.model.scan import ScanOptions
from rdc.survey.scan.large_file import LEAD_IN, PERIOD, rows_with_long_runs
from rdc.survey.scan.scanner import Scanner

KINDS = ("zeros", "noise", "zeros in noise", "a long period")
SIZES = (5_000, 130_000, 700_000, 1_500_000, 4_000_000)


def content(kind: str, size: int, drawn: random.Random) -> bytes:
    if kind == "zeros":
        return bytes(size)
    if kind == "noise":
        return drawn.randbytes(size)
    if kind == "a long period":
        period = random.Random(9).randbytes(7_000)
        return (period * (size // len(period) + 1))[:size]
    return drawn.randbytes(size // 4) + bytes(size // 2) + drawn.randbytes(size // 4)


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(st.tuples(st.sampled_from(KINDS), st.sampled_from(SIZES)), max_size=5), st.booleans())
@example([("zeros", 1_500_000), ("zeros", 4_000_000), ("zeros in noise", 4_000_000)], True)
def test_the_report_is_that_of_files_read_singly(
    tmp_path: Path, files: list[tuple[str, int]], compress: bool
) -> None:
    drawn, top = random.Random(1), Path(tempfile.mkdtemp(dir=tmp_path))
    for number, (kind, size) in enumerate(files):
        place = top / f"{number % 3}"
        place.mkdir(exist_ok=True)
        with (place / f"{number}").open("wb") as file:
            file.write(content(kind, size, drawn))
            os.posix_fallocate(file.fileno(), 0, size)
    options = ScanOptions(compress=compress)
    together = scan([top], options, catalog=None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Scanner, "_largest_in_batches", lambda *_: 0)
        assert scan([top], options, catalog=None) == together
    shutil.rmtree(top)


@given(
    st.lists(
        st.lists(
            st.tuples(
                st.integers(0, 3),
                st.sampled_from((1, 2, LEAD_IN, LEAD_IN + PERIOD - 1, LEAD_IN + PERIOD, 300)),
            ),
            max_size=5,
        ),
        max_size=6,
    )
)
def test_no_long_run_is_missed(files: list[list[tuple[int, int]]]) -> None:
    chunks = [[number for number, count in file for _ in range(count)] for file in files]
    digests = b"".join([number.to_bytes(8, "big") + bytes(24) for file in chunks for number in file])
    found = rows_with_long_runs(array("I", map(len, chunks)), digests)
    longest = [max((len(list(run)) for _, run in groupby(file)), default=0) for file in chunks]
    assert {row for row, run in enumerate(longest) if run >= LEAD_IN + PERIOD} <= set(found)
    assert found == sorted(set(found))
    assert all(len(chunks[row]) >= LEAD_IN + PERIOD for row in found)
