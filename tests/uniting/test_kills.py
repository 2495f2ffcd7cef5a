"""A run killed before each of its writes, then users who edit, revert and delete: nothing unseen is lost."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from rdc.uniting.rows import LEFT, RIGHT
from tests.support.running.killed_calls import CallKiller, call_killer
from tests.uniting.real_histories import Lives
from tests.uniting.real_world import RealWorld, conflicts_of, items_of, problems_of, snapshot, ties_in

NAMES = ("edited", "gone", "moved", "mode", "d/in", "stays")


@pytest.fixture(scope="module")
def killer() -> Iterator[CallKiller]:
    with call_killer() as started:
        yield started


def filled(place: Path, *, has_links: bool = False) -> RealWorld:
    """Two directories that were united once."""
    place.mkdir()
    world = RealWorld(place, has_links=has_links)
    for top in world.tops:
        (top / "d").mkdir()
        for name in NAMES:
            (top / name).write_text(f"text of {name}")
            os.utime(top / name, ns=(1_000_000_123, 1_000_000_123))
    if has_links:
        for name in ("tied", "d/tied", "with"):
            os.link(world.tops[LEFT] / "stays", world.tops[LEFT] / name)
    world.run_real()
    return world


def users_begin(world: RealWorld) -> None:
    """Make changes after which a run has steps of all kinds at both sides."""
    left, right = world.tops
    (left / "edited").write_text("edited at the left")
    (left / "gone").unlink()
    (left / "moved").rename(left / "d/moved")
    (left / "new").write_text("new at the left")
    (right / "mode").chmod(0o600)
    (right / "d/in").write_text("edited at the right")
    (right / "more").mkdir()
    (right / "more/new").write_text("new at the right")


def users_go_on(world: RealWorld, number: int) -> None:
    """Edit, revert or delete, at one side or at both."""
    for side in (LEFT, RIGHT) if number % 3 == 2 else (number % 2,):
        for name in ("edited", "d/in", "new", "more/new"):
            path = world.tops[side] / name
            match number // 2 % 3:
                case 0 if path.parent.is_dir():
                    path.write_text(f"later edit of {name}, side {side}")
                case 1 if path.parent.is_dir():
                    path.write_text(f"text of {name}")
                case 2:
                    path.unlink(missing_ok=True)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("first", range(4))
def test_after_a_kill_before_any_write_nothing_unseen_is_lost(
    tmp_path: Path, killer: CallKiller, first: int
) -> None:
    environ = {"RDC_CATALOG": "off", "XDG_STATE_HOME": str(tmp_path)}
    at, killed = first, True
    while killed:
        world = filled(tmp_path / f"{at}")
        lives = Lives(world)
        users_begin(world)
        lives.users_did()
        killed = killer(
            at, "--no-undo", "--no-fsync", "--guard=100", *world.tops, verb="unite", environ=environ
        )
        lives.check()
        users_go_on(world, at)
        lives.users_did()
        _, events = world.run_real(exchanged=bool(at % 2))
        lives.check()
        assert not problems_of(events)
        torn = {path for path, _ in conflicts_of(events)}
        left, right = (snapshot(top) for top in world.tops)
        assert {path for path in left.keys() | right.keys() if left.get(path) != right.get(path)} <= torn
        report, events = world.run_real()
        assert (report.left, report.right, items_of(events)) == (0, 0, [])
        at += 4
    assert at > 50


def tie(top: Path, old: str, *names: str) -> None:
    """Make these names further ones of a file."""
    for name in names:
        (top / name).unlink(missing_ok=True)
        os.link(top / old, top / name)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("first", range(4))
def test_after_a_kill_before_any_write_links_are_made_and_parted(
    tmp_path: Path, killer: CallKiller, first: int
) -> None:
    environ = {"RDC_CATALOG": "off", "XDG_STATE_HOME": str(tmp_path)}
    at, killed = first, True
    while killed:
        world = filled(tmp_path / f"{at}", has_links=True)
        lives = Lives(world)
        left, right = world.tops
        tie(left, "gone", "moved", "mode")
        (left / "many").write_text("new with several names")
        tie(left, "many", "d/many", "more")
        (right / "d/tied").unlink()
        (right / "d/tied").write_text("text of stays")
        os.utime(right / "d/tied", ns=(1_000_000_123, 1_000_000_123))
        (right / "edited").write_text("edited at the right")
        tie(right, "edited", "also")
        (right / "stays").chmod(0o600)
        lives.users_did()
        words = ("--hard-links", "--no-undo", "--no-fsync", "--guard=100", *world.tops)
        killed = killer(at, *words, verb="unite", environ=environ)
        lives.check()
        exchanged = at % 8 > 3
        _, events = world.run_real(exchanged=exchanged)
        lives.check()
        assert not problems_of(events)
        # A journal of one machine says less where the sides are exchanged.
        assert exchanged or not conflicts_of(events)
        if not conflicts_of(events):
            assert snapshot(left) == snapshot(right)
            assert ties_in(left) == ties_in(right)
            assert len(ties_in(left)) == 11
        report, events = world.run_real()
        assert (report.left, report.right, items_of(events)) == (0, 0, [])
        at += 4
    assert at > 50
