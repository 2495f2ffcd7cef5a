"""Which names are one file after a run: all triples of partitions, and random histories of users who make and
part hard links."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product

from hypothesis import given
from hypothesis import strategies as st

from rdc.uniting.plan import Plan
from rdc.uniting.rows import FILE, LEFT, RIGHT, is_below
from rdc.uniting.ties import grouped, groups_of, merged
from tests.uniting.histories import Step, populate, take_step, users_with_links
from tests.uniting.pure_world import World

NAMES = (b"a", b"b", b"c", b"d")

Ties = Mapping[bytes, int]
Partition = frozenset[frozenset[bytes]]


def partitions(names: Sequence[bytes]) -> Iterator[list[list[bytes]]]:
    if not names:
        yield []
        return
    first, rest = names[0], names[1:]
    for some in partitions(rest):
        yield [[first], *some]
        for at in range(len(some)):
            yield [*some[:at], [first, *some[at]], *some[at + 1 :]]


def are_one(ties: Ties, one: bytes, other: bytes) -> bool:
    return one in ties and ties[one] == ties.get(other)


def slowly_merged(names: Sequence[bytes], base: Ties, left: Ties, right: Ties) -> Partition | None:
    """Each pair by itself, and then whether the pairs make a partition."""
    pairs: set[tuple[bytes, bytes]] = {(name, name) for name in names}
    for one, other in combinations(names, 2):
        before, here, there = (are_one(ties, one, other) for ties in (base, left, right))
        if here if here == there else not before:
            pairs |= {(one, other), (other, one)}
    groups = {frozenset(other for other in names if (one, other) in pairs) for one in names}
    return frozenset(groups) if sum(map(len, groups)) == len(names) else None


def as_partition(names: Sequence[bytes], groups: list[list[bytes]]) -> Partition:
    tied = {path for group in groups for path in group}
    return frozenset(map(frozenset, [*groups, *([path] for path in names if path not in tied)]))


def check_merged(names: Sequence[bytes], base: Ties, left: Ties, right: Ties) -> Partition | None:
    found, wanted = merged(names, base, left, right), slowly_merged(names, base, left, right)
    assert (None if found is None else as_partition(names, found)) == wanted
    return wanted


def test_every_triple_of_partitions_of_four_names() -> None:
    every = [grouped(groups) for groups in partitions(NAMES)]
    assert len(every) == 15
    conflicts = 0
    for base, left, right in product(every, repeat=3):
        wanted = check_merged(NAMES, base, left, right)
        assert wanted == check_merged(NAMES, base, right, left)
        conflicts += wanted is None
        # The rule of one side that changed nothing, and of two that changed the same.
        for one, other in ((left, right), (right, left)):
            if one in (base, other):
                assert wanted == as_partition(NAMES, groups_of(other))
    assert conflicts > 0


@given(st.integers(0, 1 << 32), st.integers(5, 14), st.integers(1, 5))
def test_random_partitions_of_more_names(seed: int, count: int, files: int) -> None:
    rng = random.Random(seed)
    names = [b"%02d" % number for number in range(count)]

    def some() -> Ties:
        found: dict[int, list[bytes]] = {}
        for name in names:
            found.setdefault(rng.randrange(files), []).append(name)
        return grouped(found.values())

    base = some()
    check_merged(names, base, some(), some())
    check_merged(names, {}, some(), {name: number for name, number in some().items() if rng.random() < 0.5})
    check_merged(names, base, {**base, **dict.fromkeys(names[:2], 99)}, some())


# Histories

rounds = st.lists(users_with_links, min_size=1, max_size=5)


def tied(world: World, side: int, plan: Plan) -> Partition:
    """The names of each file that lie at no conflict."""
    at = [conflict.path for conflict in plan.conflicts]
    ties = world.ties_at(side)
    parts = {ties[conflict.path] for conflict in plan.conflicts if conflict.path in ties}
    return frozenset(
        frozenset(free)
        for group in groups_of(ties)
        if ties[group[0]] not in parts
        and len(free := [path for path in group if not any(path == top or is_below(path, top) for top in at)])
        > 1
    )


def check_settled(world: World, plan: Plan) -> None:
    assert not world.lost, world.lost
    again = world.plan()
    assert again.is_empty, (again.steps, again.links)
    assert {conflict[:2] for conflict in again.conflicts} == {conflict[:2] for conflict in plan.conflicts}
    if not plan.conflicts:
        left, right = (
            {path: (*thing[:4],) for path, thing in rows.items()}
            for rows in (contents(world, LEFT), contents(world, RIGHT))
        )
        assert left == right
        assert world.ties_at(LEFT) == world.ties_at(RIGHT) == world.ties


def contents(world: World, side: int) -> dict[bytes, tuple[int, bytes, int, int]]:
    return {
        path: (thing.kind, thing.content, thing.mode, thing.mtime if thing.kind == FILE else 0)
        for path, thing in world.disks[side].items()
    }


@given(rounds, st.booleans())
def test_a_run_makes_the_same_links_at_both_sides(history: list[list[Step]], has_sets: bool) -> None:
    world = World(has_links=True, has_attributes=has_sets)
    populate(world)
    for steps in history:
        for step in steps:
            take_step(world, step)
        check_settled(world, world.run())


@given(rounds)
def test_exchanged_sides_give_the_same(history: list[list[Step]]) -> None:
    world = World(has_links=True)
    populate(world)
    for steps in history:
        for step in steps:
            take_step(world, step)
        other = copy.deepcopy(world)
        plan, exchanged = world.run(), other.run(exchanged=True)
        assert {each[:2] for each in plan.conflicts} == {each[:2] for each in exchanged.conflicts}
        for side in (LEFT, RIGHT):
            assert world.ties_at(side) == other.ties_at(side)
            assert contents(world, side) == contents(other, side)
        assert world.ties == other.ties
