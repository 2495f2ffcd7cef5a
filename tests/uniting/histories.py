"""Random histories of two users: what they do between runs, as values that hypothesis can shrink."""

from __future__ import annotations

from hypothesis import strategies as st

from rdc.uniting.rows import FILE, is_below
from tests.uniting.pure_world import World

PATHS = (
    b"a", b"b", b"c", b"d", b"d/a", b"d/b", b"d/e", b"d/e/a", b"d/e/b", b"n", b"n/a", b"n/d", b"n/d/a",
    b"n/d/b", b"n/d/e", b"r/.git", b"r/.git/x", b"r", b"r/.git/y",
)  # fmt: skip

USERS_STEPS = (
    "write", "write", "write", "mkdir", "mkdir", "move", "move", "remove", "link", "touch", "mode",
    "same", "back",
)  # fmt: skip

STEPS_WITH_ATTRIBUTES = (*USERS_STEPS, "attributes", "attributes", "attributes", "attributes")

STEPS_WITH_LINKS = (*USERS_STEPS, "tie", "tie", "tie", "tie", "part", "part")

Step = tuple[str, int, int, int]

side = st.integers(0, 1)
number = st.integers(0, len(PATHS) - 1)
steps = st.tuples(
    st.sampled_from(USERS_STEPS),
    side, number, number,
)  # fmt: skip
users = st.lists(steps, min_size=1, max_size=10)
users_with_attributes = st.lists(
    st.tuples(st.sampled_from(STEPS_WITH_ATTRIBUTES), side, number, number), min_size=1, max_size=10
)
users_with_links = st.lists(
    st.tuples(st.sampled_from(STEPS_WITH_LINKS), side, number, number), min_size=1, max_size=10
)


def populate(world: World) -> None:
    """Give both users the same small tree, and let a run find that."""
    for at in (0, 1):
        for path in (b"d", b"d/e", b"r", b"r/.git"):
            world.mkdir(at, path)
        for number, path in enumerate((b"a", b"b", b"d/a", b"d/b", b"d/e/a", b"r/.git/x")):
            world.write(at, path, b"of both in " + path, mtime=1 + number * world.has_times)
    world.run()


def take_step(world: World, step: Step) -> None:
    """Do one user's step. What cannot be done is left out. Most steps are about entries that exist."""
    what, at, one, other = step
    new = PATHS[other]
    there = sorted(world.disks[at]) or [new]
    path = there[one % len(there)]
    match what:
        case "write":
            world.write(at, path if other % 3 else new, b"new %d" % world.tick())
        case "mkdir":
            world.mkdir(at, new)
        case "move":
            target = there[other % len(there)]
            inside = target + b"/" + path.rpartition(b"/")[2]
            world.move(at, path, inside if other % 2 and not is_below(inside, path) else new)
        case "remove":
            world.remove(at, path)
        case "link":
            world.link(at, new, b"to %d" % (one % 3))
        case "touch":
            world.change(at, path, mtime=world.tick())
        case "mode":
            world.change(at, path, mode=(0o600, 0o644, 0o755)[other % 3])
        case "attributes":
            world.attribute(at, path, world.tick() if other % 4 else 0)
        case "tie":
            world.tie(at, there[other % len(there)] if other % 2 else new, path)
        case "part":
            world.part(at, path)
        case "same":
            # Both users write the same, at other times.
            content = b"both %d" % world.tick()
            world.write(0, path, content)
            world.write(1, path, content)
        case "back":
            # The user goes back to what the ancestor has, by hand.
            known = world.base.get(path)
            if known is not None and known.kind == FILE:
                world.write(at, path, known.content, mtime=known.mtime_ns)
            elif known is None and world.base:
                gone = sorted(world.base)[other % len(world.base)]
                if world.base[gone].kind == FILE:
                    world.write(at, gone, world.base[gone].content)
