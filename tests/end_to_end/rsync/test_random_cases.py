"""A sample of `scripts/soak rsync`: trees, lines and exit codes are rsync's, but for intended differences."""

from __future__ import annotations

import pytest

from rdc.files.depth import Depths
from scripts.soak_rsync import block
from tests.support.storage.forced_depth import forced

pytestmark = pytest.mark.needs("rsync")

CASES = 25
"""Cases of each block. Each kind of cases has its blocks among any eight."""
LEAST = 2
"""Of several SRC with their options, rsync answers few as rdc means to."""


@pytest.mark.parametrize("number", range(20_000_000, 20_000_032))
def test_a_block_ends_as_with_rsync(number: int) -> None:
    found = block(number, CASES)
    assert found.differing == ()
    assert found.compared > LEAST


@pytest.mark.parametrize("number", range(21_000_000, 21_000_004))
def test_a_block_ends_as_with_rsync_with_16_calls_in_flight(
    monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """A sample of `scripts/soak rsync --depth=16`."""
    monkeypatch.setattr(Depths.__init__, "__defaults__", forced(16))
    assert block(number, 8).differing == ()
