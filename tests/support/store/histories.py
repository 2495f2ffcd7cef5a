"""Random histories of a store beside a model that keeps every state as a dict.

A step puts, edits, forgets, brings back, cleans, restores or kills. After each, what the store lists is what
the model has, and all of it can be read. Listed snapshots are restored byte by byte from time to time. A
history ends with damage: verify names it, and restore brings all other files.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import rdc
from rdc.progress import Event
from tests.support.running.syncing import RDC
from tests.support.store.stores import put_tree, state_of

__all__ = ["StoreHistory"]

MINUTES_AHEAD = 8 * 86400
"""Seconds by which the trash is made older, so that gc empties it."""


class StoreHistory:
    """One history in a directory of its own."""

    def __init__(self, seed: int, top: Path) -> None:
        self._drawn = random.Random(seed)
        self._top = top
        self._tree = top / "tree"
        self._store = top / "st"
        self._tree.mkdir()
        self._states: dict[int, dict[str, object]] = {}
        """What each listed snapshot has."""
        self._trash: dict[int, dict[str, object]] = {}
        self._texts = [self._drawn.randbytes(self._drawn.choice((10, 3000, 70_000))) for _ in range(4)]

    def run(self, steps: int) -> None:
        """Take steps and check. Raises AssertionError."""
        self._edit()
        self._put()
        for _ in range(steps):
            step = self._drawn.choice(
                (self._edit, self._edit, self._edit, self._put, self._put, self._put, self._forget,
                 self._recall, self._clean, self._clean, self._kill, self._restore)
            )  # fmt: skip
            step()
            self._check_listed()
        for number in self._states:
            self._check(number)
        self._damage()

    # Steps.

    def _edit(self) -> None:
        drawn = self._drawn
        for _ in range(drawn.randrange(1, 5)):
            files = sorted(path for path in self._tree.rglob("*") if path.is_file() and not path.is_symlink())
            path = self._tree / drawn.choice("ab") / drawn.choice("xyz")
            match drawn.randrange(6):
                case 0 | 1:
                    path.parent.mkdir(exist_ok=True)
                    path.write_bytes(drawn.choice(self._texts))
                case 2 | 3 if files:
                    one = drawn.choice(files)
                    content = bytearray(one.read_bytes())
                    at = drawn.randrange(len(content) + 1)
                    content[at:at] = drawn.randbytes(drawn.randrange(1, 30))
                    one.write_bytes(content)
                case 4 if files:
                    drawn.choice(files).rename(self._tree / drawn.choice("pqr"))
                case _ if len(files) > 2:
                    drawn.choice(files).unlink()

    def _put(self) -> None:
        options = rdc.StoreOptions(
            name="tree", deltas=self._drawn.random() < 0.9, heal=self._drawn.random() < 0.1
        )
        state = state_of(self._tree)
        self._states[put_tree(self._tree, self._store, options).number] = state

    def _forget(self) -> None:
        if len(self._states) < 2:
            return
        gone = self._drawn.sample(sorted(self._states), self._drawn.randrange(1, len(self._states)))
        rdc.forget_snapshots(self._store, rdc.ForgetOptions(numbers=tuple(gone), apply=True))
        for number in gone:
            self._trash[number] = self._states.pop(number)

    def _recall(self) -> None:
        if self._trash:
            number = self._drawn.choice(sorted(self._trash))
            os.rename(self._store / "forgotten" / str(number), self._store / "snapshots" / str(number))
            self._states[number] = self._trash.pop(number)

    def _clean(self) -> None:
        old = time.time() - MINUTES_AHEAD
        for number in [one for one in self._trash if self._drawn.random() < 0.5]:
            os.utime(self._store / "forgotten" / str(number), (old, old))
        rdc.clean_store(self._store)
        there = self._numbers("forgotten")
        self._trash = {number: state for number, state in self._trash.items() if number in there}

    def _restore(self) -> None:
        self._check(self._drawn.choice(sorted(self._states)))

    def _kill(self) -> None:
        """Kill a put and a gc, which run at once, somewhere."""
        state = state_of(self._tree)
        put = ["put", "-q", "--name=tree", str(self._tree), str(self._store)]
        environ = {**os.environ, "RDC_CATALOG": "off"}
        running = [
            subprocess.Popen(
                [*RDC, "store", *words], env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
            )
            for words in (put, ["gc", "-q", str(self._store)])
        ]
        time.sleep(self._drawn.uniform(0.05, 0.4))
        for one in running:
            if self._drawn.random() < 0.8:
                one.send_signal(signal.SIGKILL)
        for one in running:
            _, told = one.communicate()
            assert one.returncode in (0, -signal.SIGKILL, 40), told
        # A gc that ended has emptied the trash of what was old.
        self._trash = {
            number: kept for number, kept in self._trash.items() if number in self._numbers("forgotten")
        }
        new = self._numbers("snapshots") - self._states.keys()
        assert len(new) <= 1
        for number in new:
            self._states[number] = state

    def _numbers(self, directory: str) -> set[int]:
        """Return the numbers of the snapshots in a directory, without temporaries of killed puts."""
        return {int(name) for name in os.listdir(self._store / directory) if name.isdecimal()}

    # Checks.

    def _check_listed(self) -> None:
        assert {one.number for one in rdc.snapshots(self._store)} == self._states.keys()
        problems: list[Event] = []
        assert rdc.verify_store(self._store, 1.0, reporter=problems.append).damaged == 0, problems

    def _check(self, number: int) -> None:
        assert self._restored(number) == self._states[number], f"snapshot {number} differs"

    def _restored(self, number: int) -> dict[str, object]:
        out = self._top / "out"
        shutil.rmtree(out, ignore_errors=True)
        rdc.sync(f"{self._store}/@{number}/", f"{out}/", rdc.SyncOptions(hard_links=True), catalog=None)
        return state_of(out)

    def _damage(self) -> None:
        """Flip a bit of the frames of a pack: what is restored is right, and verify names what is not."""
        packs = sorted(self._store.rglob("*.pack"))
        pack = self._drawn.choice(packs)
        data = bytearray(pack.read_bytes())
        end = int.from_bytes(data[-64:-56], "little")
        data[self._drawn.randrange(8, end)] ^= 1 << self._drawn.randrange(8)
        pack.chmod(0o600)
        pack.write_bytes(data)
        problems: list[Event] = []
        rdc.verify_store(self._store, 1.0, reporter=problems.append)
        named = {str(one.message) for one in problems if isinstance(one, rdc.Problem)}
        for number, state in self._states.items():
            lost = f"snapshot {number}: its tree cannot be read"
            if any(lost in text for text in named):
                continue
            try:
                found = self._restored(number)
            except rdc.RdcError:
                found = {}
            for path, kept in state.items():
                if path != "." and found.get(path) != kept and _content(kept) is not None:
                    assert _content(found.get(path)) is None, f"snapshot {number}: {path} is wrong"
                    assert any(text.startswith(f"snapshot {number}: ") for text in named), (
                        number,
                        path,
                        named,
                    )


def _content(entry: object) -> object:
    """Return the content of a file in what state_of returns; None of anything else."""
    if not isinstance(entry, tuple) or not isinstance(entry[4], tuple):
        return None
    return entry[4][0]
