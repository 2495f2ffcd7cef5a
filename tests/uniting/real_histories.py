"""Histories on real trees: a run does what the plan in memory does, a second run writes nothing, and after
kills, lost, damaged and outdated state no content is lost that both sides did not have in common.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from rdc.errors import StreamError
from rdc.lean.records import replace
from rdc.session.runtime.commands import Conversation
from rdc.uniting.plan import Rules
from rdc.uniting.records import UniteItem
from rdc.uniting.rows import FILE, LEFT, RIGHT, SYMLINK, Ancestor, is_below
from tests.uniting.histories import (
    PATHS,
    STEPS_WITH_ATTRIBUTES,
    STEPS_WITH_LINKS,
    USERS_STEPS,
    populate,
    take_step,
)
from tests.uniting.real_world import (
    QUICK,
    RealWorld,
    Snapshot,
    attributes_in,
    conflicts_of,
    every_stat,
    items_of,
    problems_of,
    shown,
    snapshot,
    ties_in,
)
from tests.uniting.remote_runs import Wrap


def users_steps(rng: random.Random, world: RealWorld, most: int = 8) -> None:
    for _ in range(rng.randint(1, most)):
        what: tuple[str, ...] = STEPS_WITH_ATTRIBUTES if world.has_attributes else USERS_STEPS
        what += STEPS_WITH_LINKS if world.has_links else ()
        step = rng.choice(what), rng.randrange(2), rng.randrange(len(PATHS)), rng.randrange(len(PATHS))
        take_step(world, step)


def history_beside_memory(
    seed: int,
    top: Path,
    *,
    remote: bool = False,
    has_attributes: bool = False,
    has_acls: bool = False,
    has_links: bool = False,
) -> None:
    """Check that real runs do what the plan in memory does, and that a second run writes nothing."""
    rng = random.Random(seed)
    others = random.Random(~seed) if remote else None
    world = RealWorld(top, others, has_attributes=has_attributes, has_acls=has_acls, has_links=has_links)
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
            things = world.disks[side].items()
            sets = {path: thing.attributes for path, thing in things if thing.attributes}
            assert attributes_in(world.tops[side]) == sets
            if has_links:
                assert ties_in(world.tops[side]) == world.ties_at(side)
        assert conflicts_of(events) == {each[:2] for each in plan.conflicts}
        world.run_real()  # what the last one read, this one knows
        before = [every_stat(top) for top in world.tops]
        report, events = world.run_real()
        assert (report.left, report.right, items_of(events)) == (0, 0, [])
        assert [every_stat(top) for top in world.tops] == before


# Kills


class Lives:
    """The files' contents at both sides, and what runs made disappear that they had no right to."""

    def __init__(self, world: RealWorld) -> None:
        self._world = world
        self._common: set[bytes] = set()
        """What both sides had."""
        self._dismissed: tuple[set[bytes], set[bytes]] = (set(), set())
        """What a user at this side deleted, replaced or moved since both sides had it at the same paths."""
        self._places = self._look()

    def _look(self) -> tuple[Places, Places]:
        """Return what each side has now."""
        left, right = map(_places_in, self._world.tops)
        self._common |= left.keys() & right.keys()
        return left, right

    def users_did(self) -> None:
        """Note what users did since the last look."""
        before, self._places = self._places, self._look()
        for side in (LEFT, RIGHT):
            now = self._places[side]
            self._dismissed[side].update(
                content for content, paths in before[side].items() if paths - now.get(content, set())
            )

    def check(self) -> None:
        """Check what the last run made disappear. Raises AssertionError.

        A content goes from a side only if both sides had it, and if a user at the other side dismissed it.
        """
        before, self._places = self._places, self._look()
        for side in (LEFT, RIGHT):
            lost = before[side].keys() - self._places[side].keys()
            assert lost <= self._common, (side, lost - self._common)
            assert lost <= self._dismissed[1 - side], (side, lost - self._dismissed[1 - side])
        left, right = self._places
        for content in left.keys() & right.keys():
            if left[content] == right[content]:
                for dismissed in self._dismissed:
                    dismissed.discard(content)


Places = dict[bytes, set[bytes]]
"""Contents of files, and the paths that have each."""


def _places_of(rows: Snapshot) -> Places:
    found: Places = {}
    for path, (kind, content, _) in rows.items():
        if kind == FILE and not _is_temporary(path):
            found.setdefault(content, set()).add(path)
    return found


def _places_in(top: Path) -> Places:
    """Return the contents of files below a directory, and the sets of attributes of all entries."""
    found = _places_of(snapshot(top))
    for path, digest in attributes_in(top).items():
        if not _is_temporary(path):
            found.setdefault(b"the set " + digest, set()).add(path)
    return found


def _is_temporary(path: bytes) -> bool:
    """Return whether a killed run left this: no user edits it, and the next run removes it."""
    return os.path.basename(path).startswith(b".rdc-")


Kill = Callable[[RealWorld, random.Random, bool], None]
"""Runs with the sides exchanged or not, and kills that run."""


def killed_run(world: RealWorld, rng: random.Random, exchanged: bool) -> None:
    """Run in a child that ends itself at a step, or at one of its calls."""
    steps, calls = rng.choice([(rng.randint(0, 6), 1 << 30), (1 << 30, rng.randint(20, 400))])
    wrap = None
    if world.remote is not None and rng.random() < 0.5:
        steps = calls = 1 << 30
        wrap = one_ends_at(rng.randrange(2), rng.randint(1, 60))

    def run() -> None:
        with suppress(StreamError):
            _end_at(steps, calls, lambda report: world.unite(QUICK, report, exchanged=exchanged, wrap=wrap))

    assert in_a_child(run) in (0, ENDED << 8)


def in_a_child(act: Callable[[], object]) -> int:
    """Act in a child process. Return its wait status."""
    child = os.fork()
    if child == 0:
        try:
            act()
            os._exit(0)
        except BaseException:  # noqa: BLE001 - the parent sees the status
            traceback.print_exc()
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1]


ENDED = 9
"""The exit code of a run that ends itself."""


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
            os._exit(ENDED)

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


def history_with_kills(
    seed: int,
    loses: bool,
    top: Path,
    *,
    remote: bool = False,
    has_attributes: bool = False,
    has_acls: bool = False,
    has_links: bool = False,
    kill: Kill = killed_run,
) -> None:
    """Check that no content is lost that both sides did not have in common, or that no user dismissed.

    `loses`: state is lost, too. `remote`: runs are as between two machines, and a kill may be of one side
    alone.
    """
    rng = random.Random(seed)
    others = random.Random(~seed) if remote else None
    world = RealWorld(
        top,
        others,
        has_times=loses,
        has_attributes=has_attributes,
        has_acls=has_acls,
        has_links=has_links,
    )
    populate(world)
    world.run_real()
    lives = Lives(world)
    saved: dict[int, Path] = {}
    for _ in range(6):
        adopt(world)
        users_steps(rng, world, 5)
        if loses and rng.random() < 0.5:
            lose_state(world, rng, saved)
        lives.users_did()
        if rng.random() < 0.6:
            kill(world, rng, rng.random() < 0.5)
        else:
            world.run_real(exchanged=rng.random() < 0.3)
        lives.check()
    _, events = world.run_real()
    lives.check()
    names = {path for path, _ in conflicts_of(events)}
    for ties in map(ties_in, world.tops) if has_links else ():
        # Nothing is done to a file that has a name in conflict.
        numbers = {
            number for path, number in ties.items() if any(path == at or is_below(path, at) for at in names)
        }
        names |= {path for path, number in ties.items() if number in numbers}
    left, right = (
        {
            path: (row, sets.get(path))
            for path, row in snapshot(top).items()
            if not any(path == name or path.startswith(name + b"/") for name in names)
        }
        for top, sets in ((top, attributes_in(top)) for top in world.tops)
    )
    assert left == right
    assert not problems_of(events)
    if has_links and not names:
        assert ties_in(world.tops[LEFT]) == ties_in(world.tops[RIGHT])


def adopt(world: RealWorld) -> None:
    """Give the users in memory the trees that are on disk: nobody knows where a killed run ended. What both
    sides have now is what a user may go back to later."""
    from tests.uniting.pure_world import Thing

    for side in (LEFT, RIGHT):
        world.disks[side].clear()
        sets = attributes_in(world.tops[side], world.sets)
        for path, (kind, content, mode) in snapshot(world.tops[side]).items():
            if _is_temporary(path):
                continue
            seen = os.lstat(world.at(side, path))
            inode = seen.st_ino if kind != SYMLINK else world.inode() << 80
            attributes = sets.get(path, b"")
            time = seen.st_mtime_ns
            world.disks[side][path] = Thing(kind, content, mode, time, inode, world.tick(), attributes)
    left, right = world.disks
    for path in left.keys() & right.keys():
        one, other = left[path], right[path]
        if (one.kind, one.content) == (other.kind, other.content):
            stamps = one.stamp, other.stamp
            world.base[path] = Ancestor(one.kind, one.content, one.mode, one.mtime, stamps, None)
