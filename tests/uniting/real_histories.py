"""Histories on real trees: a run does what the plan in memory does, a second run writes nothing, and after
kills, lost, damaged and outdated state no content is lost that both sides did not have in common.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from rdc.errors import StreamError
from rdc.lean.records import replace
from rdc.session.runtime.commands import Conversation
from rdc.uniting.plan import Rules
from rdc.uniting.records import UniteItem
from rdc.uniting.rows import FILE, LEFT, RIGHT, SYMLINK
from tests.uniting.histories import PATHS, USERS_STEPS, populate, take_step
from tests.uniting.real_world import (
    QUICK,
    RealWorld,
    conflicts_of,
    every_stat,
    items_of,
    problems_of,
    shown,
    snapshot,
)
from tests.uniting.remote_runs import Wrap


def users_steps(rng: random.Random, world: RealWorld, most: int = 8) -> None:
    for _ in range(rng.randint(1, most)):
        step = rng.choice(USERS_STEPS), rng.randrange(2), rng.randrange(len(PATHS)), rng.randrange(len(PATHS))
        take_step(world, step)


def history_beside_memory(seed: int, top: Path, *, remote: bool = False) -> None:
    """Check that real runs do what the plan in memory does, and that a second run writes nothing."""
    rng = random.Random(seed)
    world = RealWorld(top, random.Random(~seed) if remote else None)
    populate(world)
    world.run_real(replace(QUICK, checksum=True))
    for _ in range(4):
        users_steps(rng, world)
        exchanged = rng.random() < 0.3
        _, events = world.run_real(exchanged=exchanged)
        plan = world.run(exchanged=exchanged, rules=Rules())
        world.refresh()
        assert not problems_of(events)
        for side in (LEFT, RIGHT):
            assert snapshot(world.tops[side]) == shown(world.disks[side])
        assert conflicts_of(events) == {each[:2] for each in plan.conflicts}
        world.run_real()  # what the last one read, this one knows
        before = [every_stat(top) for top in world.tops]
        report, events = world.run_real()
        assert (report.left, report.right, items_of(events)) == (0, 0, [])
        assert [every_stat(top) for top in world.tops] == before


# Kills


class Lives:
    """What both sides had in common, by content, and what runs made disappear although they had not."""

    def __init__(self, world: RealWorld) -> None:
        self.world = world
        self.common: set[tuple[int, bytes]] = set()
        self.before: list[set[tuple[int, bytes]]] = [set(), set()]
        self.look()

    def contents(self, side: int) -> set[tuple[int, bytes]]:
        rows = snapshot(self.world.tops[side]).values()
        return {(kind, content) for kind, content, _ in rows if kind in (FILE, SYMLINK)}

    def look(self) -> None:
        self.before = [self.contents(side) for side in (LEFT, RIGHT)]
        self.common |= self.before[LEFT] & self.before[RIGHT]

    def check(self) -> None:
        now = [self.contents(side) for side in (LEFT, RIGHT)]
        for side in (LEFT, RIGHT):
            lost = {each for each in self.before[side] - now[side] if each[0] == FILE} - self.common
            assert not lost, (side, lost)
        self.look()


def killed_run(world: RealWorld, rng: random.Random, exchanged: bool) -> None:
    """Run in a child that ends itself at a step, or at one of its calls."""
    steps, calls = rng.choice([(rng.randint(0, 6), 1 << 30), (1 << 30, rng.randint(20, 400))])
    wrap = None
    if world.remote is not None and rng.random() < 0.5:
        steps = calls = 1 << 30
        wrap = one_ends_at(rng.randrange(2), rng.randint(1, 60))
    child = os.fork()
    if child == 0:
        try:
            _end_at(steps, calls, lambda report: world.unite(QUICK, report, exchanged=exchanged, wrap=wrap))
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def one_ends_at(side: int, commands: int) -> Wrap:
    """One end of a session stops for good at one of its commands, and the other one loses it."""
    dead: list[object] = []

    def wrap(conversation: Conversation[object], number: int) -> Conversation[object]:
        if number != side:
            return conversation
        dead.append(conversation)  # it does not even clean up
        return ending(conversation)

    def ending(conversation: Conversation[object]) -> Conversation[object]:
        answer = None
        for _ in range(commands):
            try:
                command = conversation.send(answer)
            except StopIteration as stop:
                return stop.value
            answer = yield command
        raise StreamError("the other side was killed")

    return wrap


def _end_at(steps: int, calls: int, run: Callable[[Callable[[object], None]], object]) -> None:
    counts = [steps, calls]

    def count(number: int) -> None:
        counts[number] -= 1
        if counts[number] < 0:
            os._exit(9)

    def report(event: object) -> None:
        if isinstance(event, UniteItem):
            count(0)

    sys.addaudithook(lambda name, _: count(1) if name.startswith(("os.", "open")) else None)
    run(report)


def lose_state(world: RealWorld, rng: random.Random, saved: dict[int, Path]) -> None:
    """Something happens to the state of one side: it is lost, damaged, or set back."""
    side = rng.randrange(2)
    state = world.tops[side] / ".rdc-unite"
    what = rng.choice(["lose", "damage", "save", "back"])
    if what == "lose" and state.exists():
        shutil.rmtree(state)
    elif what == "damage":
        for path in state.glob("*/ancestor"):
            data = bytearray(path.read_bytes())
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            path.write_bytes(data)
    elif what == "save" and state.exists():
        target = world.tops[side].parent / f"saved-{side}"
        shutil.rmtree(target, ignore_errors=True)
        saved[side] = Path(shutil.copytree(state, target))
    elif what == "back" and side in saved:
        shutil.rmtree(state, ignore_errors=True)
        shutil.copytree(saved[side], state)


def history_with_kills(seed: int, loses: bool, top: Path, *, remote: bool = False) -> None:
    """Check that no content is lost that both sides did not have in common. `loses`: state is lost, too.
    `remote`: runs are as between two machines, and a kill may be of one side alone."""
    rng = random.Random(seed)
    world = RealWorld(top, random.Random(~seed) if remote else None)
    populate(world)
    world.run_real()
    lives = Lives(world)
    saved: dict[int, Path] = {}
    for _ in range(6):
        adopt(world)
        users_steps(rng, world, 5)
        if loses and rng.random() < 0.5:
            lose_state(world, rng, saved)
        lives.look()
        if rng.random() < 0.6:
            killed_run(world, rng, exchanged=rng.random() < 0.5)
        else:
            world.run_real(exchanged=rng.random() < 0.3)
        lives.check()
    _, events = world.run_real()
    lives.check()
    names = {path for path, _ in conflicts_of(events)}
    left, right = (
        {
            path: row
            for path, row in snapshot(top).items()
            if not any(path == name or path.startswith(name + b"/") for name in names)
        }
        for top in world.tops
    )
    assert left == right
    assert not problems_of(events)


def adopt(world: RealWorld) -> None:
    """Give the users in memory the trees that are on disk: nobody knows where a killed run ended."""
    from tests.uniting.pure_world import Thing

    for side in (LEFT, RIGHT):
        world.disks[side].clear()
        for path, (kind, content, mode) in snapshot(world.tops[side]).items():
            if os.path.basename(path).startswith(b".rdc-"):
                continue  # a temporary that a killed run left: no user edits it, and the next run removes it
            seen = os.lstat(world.at(side, path))
            inode = seen.st_ino if kind != SYMLINK else world.inode() << 80
            world.disks[side][path] = Thing(kind, content, mode, seen.st_mtime_ns, inode, world.tick())
