"""A real daemon, damaged beginnings of sessions, strangers and reloads: each ends, and the daemon goes on."""

from __future__ import annotations

from pathlib import Path

from tests.support.daemon.fuzzed_daemon import Fuzz
from tests.support.daemon.hostile_events import HostileEvents
from tests.support.trees.trees import tree, write_tree
from tests.support.wire.hostile_peer import neighbour, serving

ATTEMPTS = 80
"""A longer run is scripts/soak daemon."""

EVENTS, RELOADS = 3_000, 40
"""A longer run is scripts/soak daemon --events=100000 --reloads=1000."""


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
        assert codes.total() > ATTEMPTS / 2 and len(codes) >= 3, codes
        assert daemon.sync(daemon.url("data/new/"), tmp_path / "last").code == 0


def test_strangers_and_reloads_in_random_orders(tmp_path: Path) -> None:
    """No key is needed for any of it. The daemon lives, and trusted clients notice nothing."""
    data = write_tree(tmp_path / "data", tree({"d/f": b"f" * 50_000, "g": b"g"}))
    with serving(data) as daemon:
        told = HostileEvents(daemon, tmp_path, seed=2).run(EVENTS, RELOADS)
        assert told.events >= EVENTS and told.served >= 2
        assert (told.failed_reloads, told.reloads) == (RELOADS * 9 // 10, RELOADS // 10)
        assert daemon.end() == 0
