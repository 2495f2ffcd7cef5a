"""Change both sides of `rdc unite --watch` at random; both must be equal in the end, and nothing may be lost.

    scripts/soak unite_watch [--minutes=N] [--seed=N]

Each round runs here, through a remote shell or with a daemon. Users write, rename and delete at both sides;
the process, its other side and the line are killed. In the end every file that a user wrote and nobody
replaced or deleted is at both sides, or named as a conflict.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

import rdc
from rdc.lean.records import replace
from tests.support.running.uniting import ReplicaChurn, UniteWatching
from tests.support.running.watching import DaemonLine, Line, ShellLine


class Others(ReplicaChurn):
    """Churn that leaves the files of the ledger alone."""

    def _all(self) -> list[Path]:
        return [path for path in super()._all() if not path.name.startswith("own-")]


class Ledger:
    """Files that only one user touches, so that what has to be at both sides after a run is known.

    A run that is interrupted may have brought a version to the other side before both sides agreed on it. If
    its user deletes the file before the next run, that version comes back, whichever was written later; if
    its user wrote another one, both are a conflict, and a deletion leaves the other side's. A version that
    both sides agreed on never comes back.
    """

    def __init__(self, sides: tuple[Path, Path], rng: random.Random) -> None:
        self._sides = sides
        self._rng = rng
        self._texts: dict[str, str | None] = {}
        """The files that its user left, by name; None: deleted."""
        self._written: dict[str, set[str]] = {}
        """The texts that were written since all doubts were over."""
        self._doubtful: dict[str, set[str]] = {}
        """The changes that an interrupted run may have brought to the other side."""

    def step(self) -> None:
        """One user writes a file of its own, or deletes it."""
        side = self._rng.randrange(2)
        name = f"own-{side}-{self._rng.randrange(6)}"
        path = self._sides[side] / name
        if path.exists() and self._rng.random() < 0.4:
            path.unlink()
            self._texts[name] = None
        else:
            text = f"{side} {self._rng.random()} " + "x" * self._rng.randrange(200)
            path.write_text(text)
            self._texts[name] = text
            self._written.setdefault(name, set()).add(text)

    def interrupted(self) -> None:
        """Note that a run may have been interrupted: what was written before is in doubt."""
        for name, texts in self._written.items():
            self._doubtful.setdefault(name, set()).update(texts)

    def settle(self) -> list[str]:
        """Return what is wrong after a whole run that no user disturbed. It ends all doubts but those about
        files with a conflict."""
        found = []
        for name, text in self._texts.items():
            doubtful = self._doubtful.get(name, set())
            number = int(name.split("-")[1])
            own, other = (_text_of(self._sides[side] / name) for side in (number, 1 - number))
            came_back = text is None and own is not None and own == other and own in doubtful
            in_conflict = text is not None and own == text and other in doubtful
            if not (came_back or in_conflict or own == other == text):
                found.append(
                    f"{name}: its user left {text!r}, found {own!r}, and {other!r} at the other side"
                )
            self._texts[name] = own
            self._doubtful[name] = {other} if other not in (None, own) else set()
        self._written.clear()
        return found


def _text_of(path: Path) -> str | None:
    return path.read_text() if path.exists() else None


def one_round(place: Path, seed: int) -> int:
    """Run one round, and return the conflicts that were left. Raises AssertionError."""
    rng = random.Random(seed)
    left, right = place / "left", place / "far" / "right"
    left.mkdir()
    right.mkdir(parents=True)
    for number in range(20):
        (left / f"f{number}").write_bytes(rng.randbytes(rng.choice([0, 100, 5_000, 200_000])))
    kind = rng.choice(["here", "shell", "daemon"])
    line: Line | None = None
    if kind != "here":
        line = ShellLine(place) if kind == "shell" else DaemonLine(place, place / "far")
    watching = UniteWatching(left, right, place=place, line=line)
    churns = [Others(side, seed + number) for number, side in enumerate((left, right))]
    ledger = Ledger((left, right), rng)
    try:
        for _ in range(rng.randint(1, 3)):
            with watching.running():
                assert not (wrong := ledger.settle()), wrong
                for _ in range(rng.randint(2, 5)):
                    for _ in range(rng.randint(1, 3)):
                        for churn in churns:
                            churn.run(rng.randint(1, 25), pause=rng.choice([0.0, 0.004, 0.1]))
                        ledger.step()
                    if line is not None and rng.random() < 0.4:
                        line.kill()
                        ledger.interrupted()
                    time.sleep(rng.choice([0.0, 0.3]))
                if rng.random() < 0.3:
                    assert watching.end() == 0, watching.story
                else:
                    watching.kill()
                ledger.interrupted()
            churns[rng.randrange(2)].run(10)
            for _ in range(rng.randint(1, 3)):
                ledger.step()
        with watching.running():
            assert not (wrong := ledger.settle()), wrong
            (left / "the last").write_text("end")
            watching.wait_texts("the last", "end")
            assert watching.end() == 0, watching.story
        return check(watching, ledger)
    finally:
        if line is not None:
            line.close()


def check(watching: UniteWatching, ledger: Ledger) -> int:
    """Check that every difference is a conflict, or below one, and is reported as one; all else must be
    equal."""
    quick = rdc.UniteOptions(fsync=False)
    told = {event["path"] for event in watching.named("conflict")}
    rdc.unite(watching.left, watching.right, quick)
    events: list[object] = []
    report = rdc.unite(watching.left, watching.right, quick, reporter=events.append)
    open_ = {event.path for event in events if isinstance(event, rdc.UniteConflict)}
    assert (report.left, report.right) == (0, 0), f"a second run did something: {events[-5:]}"
    assert open_ <= told, f"conflicts that were not named: {sorted(open_ - told)}"
    assert not (wrong := ledger.settle()), wrong
    held = [event.message for event in events if isinstance(event, rdc.Problem) and event.code]
    for path in watching.different:
        named = any(path == each or path.startswith(f"{each}/") for each in open_)
        assert named, f"{path}: {watching.differences}; conflicts {open_}; held {held}"
    rdc.unite(watching.left, watching.right, replace(quick, prefer=rdc.Prefer.LEFT, guard=100))
    assert watching.differences == []
    return len(open_)


def main() -> int:
    """Run rounds until the time is over or one fails."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    given = parser.parse_args()
    ends = time.monotonic() + 60 * given.minutes
    seed, conflicts = given.seed, 0
    while time.monotonic() < ends:
        with tempfile.TemporaryDirectory(prefix="rdc-unite-watch-") as name:
            try:
                conflicts += one_round(Path(name), seed)
            except AssertionError as error:
                print(f"seed {seed}: {error}", flush=True)
                return 1
        seed += 1
    print(f"{seed - given.seed:,} rounds from seed {given.seed}, {conflicts:,} conflicts left, all named")
    return 0


if __name__ == "__main__":
    sys.exit(main())
