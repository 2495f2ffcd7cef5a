"""Syncs that are killed: at a given step, or after some time, at either end."""

from __future__ import annotations

import gc
import os
import random
import resource
import shutil
import signal
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

import rdc.files.base.taking_names
import rdc.files.names.entry_names
from rdc.model.location import RemoteShell
from rdc.model.sync import SyncOptions
from tests.support.running.syncing import FAR, Way, run_sync
from tests.support.trees.old_or_new import check_old_or_new
from tests.support.trees.trees import (
    Directory,
    File,
    Link,
    Tree,
    describe,
    litter,
    read_tree,
    tree,
    write_tree,
)

__all__ = ["HELD", "WANTED", "Killable", "Killer", "Scene", "Tally", "Victim", "steps_of"]


def _blob(seed: int, size: int) -> bytes:
    return random.Random(seed).randbytes(size)


_MOVED: dict[str, File | bytes] = {
    "big": File(_blob(5, 300_000), 0o644, 7),
    **{f"small{i}": _blob(10 + i, 3_000) for i in range(4)},
}

# Half of them are there in an older version, most of which come together in a bundle.
_SMALL = {f"many/{i}": _blob(i, 900 if i % 6 == 0 else 1_500) for i in range(24)}

WANTED = tree(
    {
        **_SMALL,
        "edited": _blob(1, 1_000_000) + b"edit" + _blob(2, 2_000_000),
        "new": _blob(4, 2_500_000),
        "grown": _blob(3, 900_000) + bytes(400_000),
        "d/small": b"a new file",
        "d/link": Link(b"small"),
        "d/new/deep": b"new",
        "file-now": b"was a directory",
        "directory-now/x": b"was a file",
        "link-now": Link(b"edited"),
        "was-link": b"a file now",
        "metadata": File(b"the same", 0o755),
        "untouched": b"the same",
        "closed": Directory(0o555),
        **{f"moved/{name}": content for name, content in _MOVED.items()},
        "resembles": _blob(6, 200_000) + b"edit" + _blob(7, 100_000),
    }
)
HELD = tree(
    {
        **{name: File(content[:-1], 0o600, 1) for name, content in list(_SMALL.items())[::2]},
        "edited": File(_blob(1, 1_000_000) + _blob(2, 2_000_000), 0o600, 1),
        "grown": File(_blob(3, 900_000), 0o600, 1),
        "d/small": File(b"an old file", 0o600, 1),
        "d/link": Link(b"elsewhere", 1),
        "file-now/was/deep": b"a directory",
        "directory-now": File(b"a file", 0o600, 1),
        "link-now/was": b"a directory",
        "was-link": Link(b"edited"),
        "metadata": File(b"the same", 0o644, 1),
        "untouched": b"the same",
        "extra/deep/er": b"to go",
        "extra-link": Link(b"to go"),
        **{f"was/{name}": content for name, content in _MOVED.items()},
        "resembled": _blob(6, 200_000) + _blob(7, 100_000),
    }
)

DESCRIPTORS = 144
"""Limit of open files in the killed process: its commit groups then hold eight files, so that kills fall
between groups."""


class Victim(Enum):
    NEAR = "the process that was run"
    FAR = "the other one"


class Killable(Protocol):
    """The part of a killed sync that `steps_of` uses."""

    @property
    def said(self) -> Path:
        """Where its child writes what it has to say."""

    def sync(self, *, fsync: bool) -> None: ...


class Scene:
    """A source and a destination, put back to the start as often as wanted."""

    def __init__(self, place: Path, *, fewest_bytes: bool = False) -> None:
        """`fewest_bytes`: changed files come by delta; otherwise they come whole in one process, and as the
        line is between two."""
        self.fewest_bytes = fewest_bytes
        self.source = write_tree(place / "source", WANTED)
        self.destination = place / "destination"
        self.pid_file = place / "far.pid"
        self.said = place / "said"
        """What the last child wrote to its stderr: the traceback, where it failed."""
        # As ssh, and the remote side's pid is known.
        self.remote_shell = ("sh", "-c", 'echo $$ >"$0"; shift; exec "$@"', str(self.pid_file))
        self.renew()

    def renew(self) -> None:
        shutil.rmtree(self.destination, ignore_errors=True)
        write_tree(self.destination, HELD)

    def sync(self, way: Way = Way.HERE, *, fsync: bool = False) -> None:
        options = SyncOptions(delete=True, fsync=fsync, fewest_bytes=self.fewest_bytes)
        remote = RemoteShell(self.remote_shell, FAR)
        run = run_sync(self.source, self.destination, options, way=way, remote=remote)
        assert run.problems == [], run.problems

    def far_pid(self) -> int | None:
        try:
            return int(self.pid_file.read_text())
        except (FileNotFoundError, ValueError):
            return None

    def await_far(self) -> None:
        """Wait until the remote side of the last sync, if it was started, has noticed its end and cleaned
        up."""
        far = self.far_pid()
        while far is not None and _runs(far):
            time.sleep(0.001)

    def look(self) -> Tree:
        """Return the destination after a kill; every path must be old or new."""
        assert describe(WANTED, read_tree(self.source)) == []
        return check_old_or_new(read_tree(self.destination), HELD, WANTED, killed=True)

    def finish(self) -> None:
        """The next run completes the work and leaves nothing behind."""
        self.sync()
        assert describe(WANTED, read_tree(self.destination)) == []


@dataclass(slots=True)
class Tally:
    """Counts of what the kills hit."""

    kills: int = 0
    too_late: int = 0
    """The run had ended."""
    untouched: int = 0
    """Nothing had been changed."""
    between: int = 0
    """Some paths were old and some new."""
    temporaries: int = 0
    """Something half made lay about."""
    ways: dict[str, int] = field(default_factory=dict)

    def count(self, scene: Scene, found: Tree, way: Way, victim: Victim) -> None:
        self.kills += 1
        self.temporaries += bool(litter(read_tree(scene.destination)))
        old = describe(HELD, found) == []
        self.untouched += old
        self.between += not old and describe(WANTED, found) != []
        name = f"{way.name.lower()}, {victim.name.lower()} end"
        self.ways[name] = self.ways.get(name, 0) + 1


def _forked(work: Callable[[], None], said: Path, *, kept_open: int | None = None) -> int:
    """Pid of a process that does `work`, and writes to `said` what it has to say.

    It has the standard descriptors and `kept_open`, not those of the tests that ran before in this process.
    """
    child = os.fork()
    if child:
        return child
    try:
        gc.disable()  # garbage of those tests would close a descriptor that is another file's by then
        for number in map(int, os.listdir("/proc/self/fd")):
            if number > 2 and number != kept_open:
                with suppress(OSError):  # the listing's own is closed already
                    os.close(number)
        resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        work()
        os._exit(0)
    except BaseException:
        # By its number: pytest has put something else in sys.stderr's place.
        os.write(2, traceback.format_exc().encode(errors="replace"))
        raise
    finally:
        os._exit(1)


# Steps

_STEPS = {
    os: (
        "chmod",
        "chown",
        "fsync",
        "ftruncate",
        "link",
        "mkdir",
        "pwrite",
        "rename",
        "rmdir",
        "symlink",
        "unlink",
        "utime",
    ),
    rdc.files.base.taking_names: ("rename_exchange", "rename_no_replace_between"),
    rdc.files.names.entry_names: ("rename_no_replace_between",),
}
"""Every way in which the destination is changed."""


def steps_of(scene: Killable, *, fsync: bool, stop_at: int | None = None) -> int:
    """Sync in one process that kills itself right before its step `stop_at`; the steps it made.

    A step is a system call that changes the destination. None: it runs to its end.
    """
    read_end, write_end = os.pipe()

    def work() -> None:
        made = 0

        def counted(call: Callable[..., Any]) -> Callable[..., Any]:
            def step(*arguments: Any, **named: Any) -> Any:
                nonlocal made
                if made == stop_at:
                    os.kill(os.getpid(), signal.SIGKILL)
                made += 1
                os.write(write_end, b".")
                return call(*arguments, **named)

            return step

        for module, names in _STEPS.items():
            for name in names:
                setattr(module, name, counted(getattr(module, name)))
        scene.sync(fsync=fsync)

    child = _forked(work, scene.said, kept_open=write_end)
    os.close(write_end)
    with open(read_end, "rb") as pipe:
        made = len(pipe.read())
    _, status = os.waitpid(child, 0)
    # A run may end by itself after just as many steps: how many it makes varies a little.
    killed = made == stop_at and os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    said = scene.said.read_text(errors="replace")
    assert killed or status == 0, f"status {status} after {made} steps\n{said}"
    return made


# Times


class Killer:
    """Kills syncs after random times, spread over how long they take."""

    def __init__(self, scene: Scene, seed: int) -> None:
        self._scene = scene
        self._rng = random.Random(seed)
        self._spans = {way: self._measure(way) for way in Way}
        self.tally = Tally()

    def _measure(self, way: Way) -> float:
        spans = []
        for _ in range(2):
            self._scene.renew()
            began = time.monotonic()
            os.waitpid(_forked(lambda: self._scene.sync(way), self._scene.said), 0)
            spans.append(time.monotonic() - began)
        self._scene.renew()
        return min(spans)

    def kill_once(self) -> None:
        """One kill, the check of what it left, and mostly the run that finishes."""
        rng = self._rng
        way = rng.choice((Way.HERE, Way.HERE, Way.PUSH, Way.PULL))
        victim = Victim.NEAR if way is Way.HERE else rng.choice(list(Victim))
        fsync = rng.random() < 0.3
        self._scene.fewest_bytes = rng.random() < 0.5
        # A child needs half of the time to start, when nothing can happen yet.
        delay = self._spans[way] * rng.uniform(0 if way is Way.HERE else 0.4, 1.6 if fsync else 1.05)
        if self._run_killed(way, victim, delay, fsync=fsync):
            self.tally.count(self._scene, self._scene.look(), way, victim)
            if rng.random() < 0.3:
                return  # the next one is killed in what this one left
        else:
            self.tally.too_late += 1
        self._scene.finish()
        self._scene.renew()

    def _run_killed(self, way: Way, victim: Victim, delay: float, *, fsync: bool) -> bool:
        """False when it had ended before."""
        self._scene.pid_file.unlink(missing_ok=True)
        near = _forked(lambda: self._scene.sync(way, fsync=fsync), self._scene.said)
        time.sleep(delay)
        target = near if victim is Victim.NEAR else self._scene.far_pid()
        if target is not None:
            with suppress(ProcessLookupError):
                os.kill(target, signal.SIGKILL)
        _, status = os.waitpid(near, 0)
        self._scene.await_far()
        return status != 0


def _runs(pid: int) -> bool:
    """Return whether the process exists and is not only waiting for somebody to ask how it ended."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except (FileNotFoundError, ProcessLookupError):
        return False
