"""A real daemon and a few hundred damaged beginnings: every one ends with a line, and the daemon goes on."""

from __future__ import annotations

from pathlib import Path

from tests.fuzzed_daemon import Fuzz
from tests.hostile_peer import neighbour, serving

ATTEMPTS = 150
"""A longer run is scripts/soak daemon."""


def test_damaged_beginnings(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with serving(tmp_path / "data") as daemon:
        daemon.keys_of("bob")
        fuzz = Fuzz(daemon, tmp_path, seed=1)
        with neighbour(daemon, tmp_path):
            for _ in range(ATTEMPTS):
                fuzz.attempt()
        codes = fuzz.check()
        # It came as far as to sessions, and to several ways to go wrong in them.
        assert codes.total() > ATTEMPTS / 2 and len(codes) >= 4, codes
        assert daemon.sync(daemon.url("data/new/"), tmp_path / "last").code == 0
