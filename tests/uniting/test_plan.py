"""The laws of the plan, on random histories: nothing unseen is lost, both sides become equal, and nothing is
done twice. The same with the sides exchanged, with renames as without, and after kills at any step.
"""

from __future__ import annotations

import copy

from hypothesis import example, given
from hypothesis import strategies as st

from rdc.uniting.plan import Plan, Rules
from rdc.uniting.rows import DIRECTORY, FILE, LEFT, RIGHT, SYMLINK, Node, is_below
from tests.uniting import path_model
from tests.uniting.histories import Step, populate, take_step, users
from tests.uniting.path_model import Entry
from tests.uniting.pure_world import Disk, World

LETTERS = {DIRECTORY: "d", FILE: "f", SYMLINK: "l"}
NO_UNITS = Rules(units=frozenset())

rounds = st.lists(users, min_size=1, max_size=5)
inode_numbers = st.sampled_from([0, 0, 3, 8])


def described(disk: Disk, *, times: bool = True) -> dict[bytes, Entry]:
    """A disk as the model and the comparisons have it: a time of a directory or a link is no part of it."""
    return {
        path: Entry(
            LETTERS[thing.kind],
            thing.content,
            thing.mode if thing.kind != SYMLINK else 0,
            thing.mtime if thing.kind == FILE and times else 0,
        )
        for path, thing in disk.items()
    }


def outside(tree: dict[bytes, Entry], plan: Plan) -> dict[bytes, Entry]:
    """What does not lie at or below a conflict."""
    paths = [conflict.path for conflict in plan.conflicts]
    return {
        path: row for path, row in tree.items() if not any(path == at or is_below(path, at) for at in paths)
    }


def check_settled(world: World, plan: Plan) -> None:
    """The laws after a whole run."""
    assert not world.lost, world.lost
    left, right = (described(disk) for disk in world.disks)
    assert outside(left, plan) == outside(right, plan)
    again = world.plan()
    assert again.is_empty, again.steps
    assert {conflict[:2] for conflict in again.conflicts} == {conflict[:2] for conflict in plan.conflicts}


@given(rounds, inode_numbers)
def test_a_run_loses_nothing_and_makes_both_sides_equal(history: list[list[Step]], inodes: int) -> None:
    world = World(inodes)
    populate(world)
    for steps in history:
        for step in steps:
            take_step(world, step)
        check_settled(world, world.run())


@given(rounds, inode_numbers)
def test_exchanged_sides_give_the_same(history: list[list[Step]], inodes: int) -> None:
    world = World(inodes)
    populate(world)
    for steps in history:
        for step in steps:
            take_step(world, step)
        other = copy.deepcopy(world)
        plan, exchanged = world.run(), other.run(exchanged=True)
        assert [described(disk) for disk in world.disks] == [described(disk) for disk in other.disks]
        assert {each[:2] for each in plan.conflicts} == {each[:2] for each in exchanged.conflicts}
        assert {path: row[:4] for path, row in world.base.items()} == {
            path: row[:4] for path, row in other.base.items()
        }


@given(rounds, inode_numbers)
def test_the_result_is_that_of_the_rules_by_path(history: list[list[Step]], inodes: int) -> None:
    """Accepted renames only relabel: after them the slow model decides the same, path by path."""
    world = World(inodes)
    populate(world)
    for steps in history:
        for step in steps:
            take_step(world, step)
        plan = world.plan(rules=NO_UNITS)
        assert world.trees is not None
        base, *trees = (relabelled(tree) for tree in world.trees)
        wanted = path_model.merge(base, *trees)
        world.run(rules=NO_UNITS)
        assert described(world.disks[LEFT]) == wanted.left
        assert described(world.disks[RIGHT]) == wanted.right
        assert {each[:2] for each in plan.conflicts} == wanted.conflicts


def relabelled(tree: Node) -> dict[bytes, Entry]:
    """A tree that the plan has relabelled, as the model has it."""
    found: dict[bytes, Entry] = {}
    for node in tree.below():
        row = node.row
        assert row is not None
        mode, mtime = row.mode * (row.kind != SYMLINK), row.mtime_ns * (row.kind == FILE)
        found[node.path] = Entry(LETTERS[row.kind], row.content, mode, mtime)
    return found


# Kills

cuts = st.lists(
    st.tuples(users, st.one_of(st.none(), st.integers(0, 6)), st.booleans()), min_size=2, max_size=7
)


@given(cuts, inode_numbers)
@example(
    [
        ([("write", 0, 0, 0)], None, False),
        ([("write", 0, 0, 9), ("mkdir", 0, 0, 8), ("link", 1, 0, 0), ("same", 0, 18, 0)], 1, False),
        ([("back", 0, 5, 0)], 0, False),
    ],
    0,
)
def test_after_any_kill_no_step_of_a_user_is_overwritten(
    history: list[tuple[list[Step], int | None, bool]], inodes: int
) -> None:
    """Runs are cut after any number of steps, several in a row, with either side as the left one."""
    world = World(inodes)
    populate(world)
    for steps, stop, exchanged in history:
        for step in steps:
            take_step(world, step)
        world.run(stop=stop, exchanged=exchanged)
        assert not world.lost, world.lost
    check_settled(world, world.run())


@given(rounds, st.lists(st.integers(0, 5), min_size=1, max_size=3), inode_numbers)
def test_a_killed_run_goes_on_as_if_it_had_not_been_killed(
    history: list[list[Step]], stops: list[int], inodes: int
) -> None:
    world = World(inodes)
    populate(world)
    for steps in history:
        for step in steps:
            take_step(world, step)
        whole = copy.deepcopy(world)
        known = {(LETTERS[row.kind], row.content) for row in world.base.values()}
        plan = whole.run()
        for stop in stops:
            world.run(stop=stop)
        again = world.run()
        assert not world.lost, world.lost
        trees = [[contents(each, side, plan) for side in (LEFT, RIGHT)] for each in (world, whole)]
        if all(step[0] != "move" for step in steps):
            assert {each[:2] for each in again.conflicts} <= {each[:2] for each in plan.conflicts}
            assert trees[0] == trees[1]
        else:
            # A rename that the other side cannot follow, or that numbers that lie hide, may end in another
            # tree or in a conflict. What a user wrote since the last run is there.
            there, wanted = ({*left.values(), *right.values()} for left, right in trees)
            assert there >= wanted - known
        world = whole


def contents(world: World, side: int, plan: Plan) -> dict[bytes, tuple[str, bytes]]:
    """Kinds and contents outside of conflicts. A mode may be the stricter one after a kill."""
    return {path: row[:2] for path, row in outside(described(world.disks[side]), plan).items()}
