"""Signs of life: only while a conversation works, and never beside who moves bytes."""

from __future__ import annotations

import threading

import pytest

from rdc.errors import RdcError
from rdc.session.runtime.driver import Keepalive

SHORT = 0.004
"""Seconds: of a limit whose beats come at once. Nothing here depends on how soon."""

PATIENCE = 120.0


class Beats:
    def __init__(self, error: Exception | None = None) -> None:
        self.inside = False
        self.outside = 0
        """Beats that came when they must not."""
        self.come = threading.Semaphore(0)
        self._error = error

    def __call__(self) -> None:
        self.outside += not self.inside
        self.come.release()
        if self._error is not None:
            raise self._error


def test_beats_come_inside_alone() -> None:
    beats = Beats()
    heart = Keepalive(beats, SHORT)
    for _ in range(30):
        with heart.working():
            beats.inside = True
            assert beats.come.acquire(timeout=PATIENCE)
            # As who works: it knows when it ends only by leaving.
        # Here the turn is taken back, so that no beat is on its way.
        beats.inside = False
    heart.stop()
    assert beats.outside == 0


@pytest.mark.parametrize("error", [RdcError("cut"), OSError(), ValueError("closed file")])
def test_a_beat_that_fails_is_for_the_next_exchange_to_find(error: Exception) -> None:
    beats = Beats(error)
    heart = Keepalive(beats, SHORT)
    with heart.working():
        for _ in range(3):
            assert beats.come.acquire(timeout=PATIENCE)
    heart.stop()


def test_no_beat_comes_after_the_stop() -> None:
    beats = Beats()
    heart = Keepalive(beats, SHORT)
    heart.stop()
    heart._thread.join(PATIENCE)
    assert not heart._thread.is_alive()
    with heart.working():
        assert not beats.come.acquire(blocking=False)


def test_an_error_in_the_work_takes_the_turn_back() -> None:
    beats = Beats()
    heart = Keepalive(beats, SHORT)
    with pytest.raises(ZeroDivisionError), heart.working():
        beats.inside = True
        raise ZeroDivisionError
    beats.inside = False
    with heart.working():
        beats.inside = True
        assert beats.come.acquire(timeout=PATIENCE)
    beats.inside = False
    heart.stop()
    assert beats.outside == 0
