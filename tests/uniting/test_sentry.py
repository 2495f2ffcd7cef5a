"""What a sentry takes for news, and what for an echo of a run. Its events are made by hand."""

from __future__ import annotations

import os
import random
import select
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rdc.files.root.root import Root
from rdc.model.selection import FilterRule, RuleAction
from rdc.uniting.sentry import Sentry
from rdc.uniting.state import pair_of_roots
from rdc.watching.events import Batch
from tests.support.share import share
from tests.uniting.pairs import Pair

NOTHING = Batch(frozenset(), frozenset(), (), False)


class Events:
    """Stands for TreeEvents: says what the test says."""

    limit: str | None = None

    def __init__(self, _start: bytes) -> None:
        self.bell, self._striker = os.pipe()
        self.batch: Batch | None = None
        self.watched: list[bytes] = []
        self.closed = False

    def due(self) -> float | None:
        return None if self.batch is None else 0.0

    def take(self) -> Batch:
        batch, self.batch = self.batch or NOTHING, None
        return batch

    def watch(self, _root: Root, path: bytes) -> None:
        self.watched.append(path)

    def missed(self, _path: bytes) -> None: ...

    def quiet(self) -> None: ...

    def close(self) -> None:
        os.close(self.bell)
        os.close(self._striker)
        self.closed = True


class Watched:
    """A pair of directories with a sentry at each side."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.sides = (pair.left, pair.right)
        self.made: list[Events] = []
        name = pair_of_roots([os.fsencode(side) for side in self.sides])
        self.sentries = [Sentry(self._opener(side), name, make_events=self._make) for side in self.sides]

    def _make(self, start: bytes) -> Any:
        self.made.append(Events(start))
        return self.made[-1]

    @staticmethod
    def _opener(side: Path) -> Callable[[], Root]:
        return lambda: Root.open(os.fsencode(side))

    def stirred(self, *, trees: bool = False) -> tuple[bool, ...]:
        """Each side's answer after an event in every directory that is there."""
        for side, sentry in zip(self.sides, self.sentries, strict=True):
            events = sentry._events
            if events is not None:
                paths = frozenset(directories(side))
                batch = Batch(frozenset() if trees else paths, paths if trees else frozenset(), (), False)
                events.batch = batch  # type: ignore[attr-defined] # these are FakeEvents
        return tuple([sentry.is_stirred() for sentry in self.sentries])

    def ran(self, **options: Any) -> None:
        self.pair.unite(**options)
        for sentry in self.sentries:
            sentry.forget_settled()

    def close(self) -> None:
        for sentry in self.sentries:
            sentry.close()


def directories(side: Path) -> list[bytes]:
    top = os.fsencode(side)
    found = [b""]
    for above, names, _ in os.walk(top):
        names[:] = [name for name in names if not name.startswith(b".rdc-")]
        found += [os.path.relpath(os.path.join(above, name), top) for name in names]
    return found


@pytest.fixture
def watched(pair: Pair) -> Iterator[Watched]:
    for name in ("a", "d/b", "d/e/c"):
        pair.both(name, f"text of {name}")
    os.symlink("a", pair.left / "link")
    pair.unite()
    found = Watched(pair)
    assert found.stirred() == (False, False), "the first look at what a run left"
    yield found
    found.close()


def link_at(path: Path) -> None:
    path.unlink()
    path.symlink_to("d")


def edit(path: Path) -> None:
    path.write_text("another text")


ACTS: dict[str, Callable[[Path], object]] = {
    "edited": lambda side: edit(side / "a"),
    "new": lambda side: (side / "d" / "new").write_text("new"),
    "deleted": lambda side: (side / "d" / "b").unlink(),
    "renamed": lambda side: (side / "a").rename(side / "d" / "a"),
    "directory renamed": lambda side: (side / "d").rename(side / "D"),
    "directory made": lambda side: (side / "d" / "n").mkdir(),
    "mode": lambda side: (side / "a").chmod(0o600),
    "mode of a directory": lambda side: (side / "d").chmod(0o700),
    "touched": lambda side: os.utime(side / "a"),
    "another target": lambda side: link_at(side / "link"),
    "a link in place of a file": lambda side: link_at(side / "a"),
}


@pytest.mark.parametrize("what", ACTS)
@pytest.mark.parametrize("at", [0, 1])
def test_a_users_step_is_news_once_and_what_the_run_makes_of_it_is_none(
    watched: Watched, what: str, at: int
) -> None:
    ACTS[what](watched.sides[at])
    assert watched.stirred() == (at == 0, at == 1)
    assert watched.stirred() == (False, False), "a run was asked for already"
    watched.ran()
    assert watched.pair.items()
    assert watched.stirred() == (False, False)
    assert watched.stirred(trees=True) == (False, False)


def test_a_conflict_is_news_when_it_arises_and_when_it_changes(watched: Watched) -> None:
    edit(watched.sides[0] / "a")
    (watched.sides[1] / "a").write_text("right")
    assert watched.stirred() == (True, True)
    watched.ran()
    assert watched.pair.conflicts() == [b"a"]
    assert watched.stirred() == (False, False)
    (watched.sides[1] / "a").write_text("right again")
    assert watched.stirred() == (False, True)
    watched.ran()
    (watched.sides[0] / "a").unlink()
    assert watched.stirred() == (True, False), "so the user solves it"
    watched.ran()
    assert watched.pair.texts("a") == ["right again"] * 2
    assert watched.stirred() == (False, False)


def test_an_added_conflict_that_one_side_takes_back_is_news(watched: Watched) -> None:
    for number, side in enumerate(watched.sides):
        (side / "both").write_text("x" * (number + 1))
    assert watched.stirred() == (True, True)
    watched.ran()
    (watched.sides[0] / "both").unlink()
    assert watched.stirred() == (True, False)


def test_an_edit_during_a_run_is_news_after_it(watched: Watched) -> None:
    edit(watched.sides[0] / "a")
    assert watched.stirred() == (True, False)
    watched.ran()
    edit(watched.sides[1] / "a")
    assert watched.stirred() == (False, True)


def test_lost_events_another_directory_and_other_rules_ask_for_a_whole_look(watched: Watched) -> None:
    for events in watched.made:
        events.batch = Batch(frozenset(), frozenset(), (), True)
        events.watched.clear()
    assert [sentry.is_stirred() for sentry in watched.sentries] == [True, True]
    assert all(sorted(events.watched) == [b"", b"d", b"d/e"] for events in watched.made)
    watched.pair.unite(rules=(FilterRule(RuleAction.EXCLUDE, b"e"),))
    assert watched.stirred() == (True, True)
    assert watched.stirred() == (False, False)
    (watched.sides[0] / "d" / "e" / "more").write_text("excluded")
    assert watched.stirred() == (False, False)
    # The same directory comes back as another one.
    os.rename(watched.sides[0], watched.sides[0].with_name("aside"))
    first = watched.made[0]
    first.batch = NOTHING
    assert watched.sentries[0].is_stirred(), "it is gone"
    assert first.closed
    watched.sides[0].mkdir()
    assert watched.sentries[0].is_stirred(), "nothing is remembered in it"


def test_rdcs_own_directories_are_never_listed(watched: Watched) -> None:
    watched.made[0].watched.clear()
    watched.made[0].batch = Batch(
        frozenset(), frozenset({b".rdc-undo", b".rdc-unite/0123456789abcdef"}), (), False
    )
    assert not watched.sentries[0].is_stirred()
    assert watched.made[0].watched == []


def test_the_bell_is_that_of_the_events(pair: Pair) -> None:
    pair.both("a", "text")
    pair.unite()
    name = pair_of_roots([os.fsencode(pair.left), os.fsencode(pair.right)])
    sentry = Sentry(lambda: Root.open(os.fsencode(pair.left)), name)
    try:
        assert (sentry.bell, sentry.due()) == (None, 0.0)
        assert not sentry.is_stirred()
        assert sentry.bell is not None
        assert sentry.due() is None
        (pair.left / "b").write_text("new")
        poll = select.poll()
        poll.register(sentry.bell, select.POLLIN)
        assert poll.poll(30_000) == [(sentry.bell, select.POLLIN)]
        assert sentry.due() is not None
    finally:
        sentry.close()


@pytest.mark.parametrize("seed", share(range(40)))
def test_random_steps_are_told_and_random_runs_leave_no_echo(watched: Watched, seed: int) -> None:
    """Whatever users did: a run follows until both sides are as the ancestor, but for conflicts, and the last
    run asks for no other one."""
    rng = random.Random(seed)
    for _ in range(4):
        for side in rng.sample(watched.sides, rng.randint(1, 2)):
            for _ in range(rng.randint(1, 4)):
                random_step(rng, side)
        before = [tree_of(side) for side in watched.sides]
        runs = 0
        while any(watched.stirred(trees=rng.random() < 0.3)):
            watched.ran(prefer=None)
            runs += 1
            # A file that changed right before a listing is looked at once more.
            assert runs <= 2
        after = [tree_of(side) for side in watched.sides]
        watched.pair.unite()
        assert watched.pair.items() == [], "nothing was left to do"
        assert [tree_of(side) for side in watched.sides] == after
        assert runs or before == after


def random_step(rng: random.Random, side: Path) -> None:
    paths = [side / os.fsdecode(path) for path in directories(side)]
    names = [rng.choice(paths) / rng.choice("abcdenxyz") for _ in range(2)]
    what = rng.choice(["write", "write", "mkdir", "remove", "rename", "mode"])
    try:
        if what == "write":
            names[0].write_bytes(rng.randbytes(rng.randint(0, 9)))
        elif what == "mkdir":
            names[0].mkdir()
        elif what == "remove":
            names[0].unlink()
        elif what == "rename":
            names[0].rename(names[1])
        else:
            names[0].chmod(rng.choice([0o600, 0o700, 0o755]))
    except OSError:
        return


def tree_of(side: Path) -> dict[bytes, tuple[object, ...]]:
    found: dict[bytes, tuple[object, ...]] = {}
    for path in directories(side):
        for entry in os.scandir(os.path.join(os.fsencode(side), path)):
            if entry.name.startswith(b".rdc-"):
                continue
            stat = entry.stat(follow_symlinks=False)
            content = os.readlink(entry.path) if entry.is_symlink() else b""
            if entry.is_file(follow_symlinks=False):
                content = Path(os.fsdecode(entry.path)).read_bytes()
            found[os.path.join(path, entry.name)] = (stat.st_mode, content)
    return found
