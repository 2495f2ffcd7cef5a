"""A pair that closes a ring is refused at its first meeting; stars and chains are not."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rdc
from rdc.errors import UsageError
from rdc.uniting.rings import closes_ring, edge_of, merged_edges, pack_edges, unpack_edges
from rdc.uniting.rows import LEFT, RIGHT
from tests.support.share import examples
from tests.uniting.pairs import QUICK
from tests.uniting.remote_runs import unite_in_turns

NAMES = "abcdef"


def unite(top: Path, left: str, right: str, *, remote: bool, **options: Any) -> None:
    chosen = rdc.UniteOptions(fsync=False, **options)
    if remote:
        unite_in_turns(top / left, top / right, chosen, lambda _: None)
    else:
        rdc.unite(top / left, top / right, chosen)


@pytest.fixture
def top(tmp_path: Path) -> Path:
    for name in NAMES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").write_text("text")
        os.utime(tmp_path / name / "f", (5, 5))
    return tmp_path


@pytest.mark.parametrize("remote", [False, True], ids=["local", "remote"])
@pytest.mark.parametrize("last", ["ab", "ba"])
def test_a_ring_of_three_is_refused_before_anything_moves(top: Path, remote: bool, last: str) -> None:
    unite(top, "a", "c", remote=remote)
    unite(top, "c", "b", remote=remote)
    (top / last[0] / "new").write_text("new")
    for dry_run in (True, False):
        with pytest.raises(UsageError, match=r"connected already.*--ring"):
            unite(top, last[0], last[1], remote=remote, dry_run=dry_run)
    assert not (top / last[1] / "new").exists()
    unite(top, last[0], last[1], remote=remote, ring=True)
    assert (top / last[1] / "new").exists()
    # It is no first meeting any more.
    unite(top, last[0], last[1], remote=remote)


@pytest.mark.parametrize("remote", [False, True], ids=["local", "remote"])
def test_stars_and_chains_are_united(top: Path, remote: bool) -> None:
    for left, right in ("ab", "cb", "bd", "de", "fe"):
        unite(top, left, right, remote=remote)
    with pytest.raises(UsageError, match="no ring"):
        unite(top, "a", "f", remote=remote)


def test_a_pair_that_is_forgotten_closes_no_ring(top: Path) -> None:
    unite(top, "a", "b", remote=False)
    unite(top, "b", "c", remote=False)
    assert rdc.forget_united(top / "a", top / "b")
    unite(top, "a", "c", remote=False)


@pytest.mark.parametrize("remote", [False, True], ids=["local", "remote"])
def test_a_directory_that_lost_its_state_closes_no_ring_with_what_it_was(top: Path, remote: bool) -> None:
    """It has another id then, and the other directories know it under both."""
    for number in range(4):
        for spoke in "bc":
            unite(top, spoke, "a", remote=remote)
        shutil.rmtree(top / "acb"[number % 3] / ".rdc-unite")
    unite(top, "b", "a", remote=remote)
    unite(top, "c", "a", remote=remote)
    with pytest.raises(UsageError, match="no ring"):
        unite(top, "c", "b", remote=remote)


def test_two_directories_that_lose_their_states_in_turn_are_no_ring(top: Path) -> None:
    """Whichever side dials, they name each other by the same location, so each knows what the other was."""
    states = top / "a/.rdc-unite", top / "b/.rdc-unite"

    def meet(near: int) -> None:
        options = rdc.UniteOptions(fsync=False)
        unite_in_turns(top / "a", top / "b", options, lambda _: None, near=near)

    meet(RIGHT)
    shutil.copytree(states[RIGHT], top / "saved")
    shutil.rmtree(states[RIGHT])
    meet(LEFT)
    shutil.rmtree(states[LEFT])
    meet(RIGHT)
    shutil.rmtree(states[RIGHT])
    shutil.copytree(top / "saved", states[RIGHT])
    meet(LEFT)


@settings(max_examples=examples(30))
@given(st.integers(0, 1 << 32))
def test_two_directories_alone_are_no_ring_whatever_state_they_lose(seed: int) -> None:
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as place:
        top, saved = Path(place), Path(place) / "saved"
        for name in "ab":
            (top / name).mkdir()
        for _ in range(12):
            name, what = rng.choice("ab"), rng.choice(("lose", "save", "set back"))
            state = top / name / ".rdc-unite"
            if what == "save" and state.exists():
                shutil.rmtree(saved / name, ignore_errors=True)
                shutil.copytree(state, saved / name)
            elif what != "save":
                shutil.rmtree(state, ignore_errors=True)
                if what == "set back" and (saved / name).exists():
                    shutil.copytree(saved / name, state)
            left, right = rng.choice(("ab", "ba"))
            if rng.random() < 0.2:
                unite(top, left, right, remote=False)
            else:
                options, near = rdc.UniteOptions(fsync=False), rng.choice((LEFT, RIGHT))
                unite_in_turns(top / left, top / right, options, lambda _: None, near=near)


@pytest.mark.parametrize("damage", [b"", b"RDCEDGE\x01", b"x" * 500, b"RDCEDGE\x01" + b"y" * 20])
def test_damaged_edges_count_as_none(top: Path, damage: bytes) -> None:
    unite(top, "a", "b", remote=False)
    (top / "b/.rdc-unite/edges").write_bytes(damage)
    unite(top, "b", "c", remote=False)
    assert rdc.unite(top / "b", top / "c", QUICK).exit == 0


pairs = st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7)).filter(lambda pair: pair[0] != pair[1]))


@given(pairs)
@settings(max_examples=examples(200), deadline=None)
def test_a_ring_is_a_way_around(found: set[tuple[int, int]]) -> None:
    ids = [bytes([number]) * 16 for number in range(8)]
    edges = {edge_of(ids[one], ids[other]) for one, other in found}
    assert unpack_edges(pack_edges(edges)) == edges
    groups = {number: {number} for number in range(8)}
    for one, other in found - {(0, 1), (1, 0)}:
        if groups[one] is not groups[other]:
            groups[one] |= groups[other]
            for number in groups[one]:
                groups[number] = groups[one]
    assert closes_ring(ids[0], ids[1], edges) == (1 in groups[0])


def test_each_side_knows_its_own_pairs_best() -> None:
    one, other, third = (bytes([number]) * 16 for number in range(3))
    over = edge_of(one, third)
    assert merged_edges(one, frozenset(), other, frozenset({over})) == frozenset()
    assert merged_edges(one, frozenset({over}), other, frozenset()) == {over}


@pytest.mark.parametrize(
    "data", [b"x", bytes(16), b"b" * 8 + b"a" * 8, b"a" * 8 + b"b" * 8 + b"c", b"ab" * 800]
)
def test_what_is_no_list_of_pairs_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="edges"):
        unpack_edges(data)
