"""Processes that write to files in every way a program can, and know what each file must hold in the end."""

from __future__ import annotations

import hashlib
import mmap
import os
import pickle
import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

__all__ = ["IN_PLACE", "WAYS", "Account", "Marks", "Writer", "disturb", "keep_account", "mark_files"]

T = TypeVar("T")


class Writer(Generic[T]):
    """A child process that does `work` and hands back its result."""

    def __init__(self, work: Callable[[], T]) -> None:
        read_end, write_end = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            try:
                with open(write_end, "wb") as pipe:
                    pickle.dump(work(), pipe)
                os._exit(0)
            finally:
                os._exit(1)
        os.close(write_end)
        self._pipe = open(read_end, "rb")  # noqa: SIM115 - it outlives this call
        self._over = False

    def at_work(self) -> bool:
        if not self._over:
            self._over = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        return not self._over

    def result(self) -> T:
        with self._pipe:
            data = self._pipe.read()
        _, status = os.waitpid(self.pid, 0)
        assert status == 0
        found: T = pickle.loads(data)  # noqa: S301 - of our own child
        return found


# A writer alone with its files


@dataclass(frozen=True)
class Account:
    changes: int
    digests: dict[str, str]
    """SHA-256 of what each file must hold."""


def keep_account(place: Path, names: list[str], seed: int, stop: Path, least: int) -> Account:
    """Change files until `stop` is there, `least` times at least: append, overwrite in place, through a
    mapping, truncate, save by renaming, change the mode. One change at a time, so that what each file holds
    follows from them alone."""
    rng = random.Random(seed)
    held = {name: (place / name).read_bytes() for name in names}
    number = 0
    while number < least or not stop.exists():
        number += 1
        name = rng.choice(names)
        held[name] = _change(place / name, held[name], rng, b"<%d>" % number)
        # Now and then a file is at rest long enough to be worked on.
        if rng.random() < 0.2:
            time.sleep(rng.random() * 0.02)
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in held.items()}
    return Account(number, digests)


def _change(path: Path, held: bytes, rng: random.Random, mark: bytes) -> bytes:
    way = rng.randrange(6)
    at = rng.randrange(len(held) - len(mark))
    if way == 0:
        with path.open("ab") as file:
            file.write(mark)
        return held + mark
    if way == 1:
        with path.open("r+b") as file:
            time.sleep(rng.random() * 0.003)  # open, and nothing written yet
            file.seek(at)
            file.write(mark)
        return held[:at] + mark + held[at + len(mark) :]
    if way == 2:
        _write_mapped(path, at, mark, rng.random() * 0.003)
        return held[:at] + mark + held[at + len(mark) :]
    if way == 3 and len(held) > 20_000:
        os.truncate(path, 20_000)
        return held[:20_000]
    if way == 4:
        _save(path, held + mark)
        return held + mark
    path.chmod(0o600 + rng.randrange(64))
    return held


def _write_mapped(path: Path, at: int, mark: bytes, wait: float) -> None:
    with path.open("r+b") as file:
        mapping = mmap.mmap(file.fileno(), 0)
    # The descriptor is closed: only the mapping can write now.
    time.sleep(wait)
    mapping[at : at + len(mark)] = mark
    mapping.close()


def _save(path: Path, content: bytes) -> None:
    beside = path.with_name(path.name + ".saving")
    beside.write_bytes(content)
    beside.rename(path)


# A writer whose files may become names of one


@dataclass
class Marks:
    """The marks that were written under each name and must be found under it: other names may have become
    names of the same file, so that their marks may be there too."""

    appended: dict[str, list[bytes]] = field(default_factory=dict)
    slots: dict[str, bytes] = field(default_factory=dict)
    """The last mark put into the name's own place within the file."""


SLOT = 16


def mark_files(place: Path, names: list[str], seed: int, changes: int, pause: float) -> Marks:
    """Make so many changes, each under a random name, `pause` seconds between them on average."""
    rng = random.Random(seed)
    made = Marks()
    for number in range(changes):
        time.sleep(rng.random() * 2 * pause)
        name = rng.choice(names)
        path, slot = place / name, names.index(name) * SLOT
        mark = b"<%d %d>" % (seed, number)
        way = rng.randrange(4)
        if way == 0:
            with path.open("ab") as file:
                time.sleep(rng.random() * 0.002)
                file.write(mark)
            made.appended.setdefault(name, []).append(mark)
        elif way == 1:
            _save(path, path.read_bytes() + mark)
            made.appended.setdefault(name, []).append(mark)
        else:
            mark = mark.ljust(SLOT)
            if way == 2:
                with path.open("r+b") as file:
                    time.sleep(rng.random() * 0.002)
                    file.seek(slot)
                    file.write(mark)
            else:
                _write_mapped(path, slot, mark, rng.random() * 0.002)
            made.slots[name] = mark
    return made


# A writer in a tree that is synced


WAYS = 9
IN_PLACE = 3
"""The first so many of them keep inodes and sizes."""


def disturb(place: Path, names: list[str], seed: int, changes: int, pause: float, ways: int = WAYS) -> int:
    """Make so many changes below `place`, `pause` seconds apart on average: overwrite files in place with as
    many bytes, in one write and in several, append, truncate, save by renaming, change modes, move files and
    directories away and back. How many could be made."""
    rng = random.Random(seed)
    made = 0
    for _ in range(changes):
        path = place / rng.choice(names)
        with suppress(OSError):  # the sync moved or replaced it
            _disturb(place, path, rng, rng.randrange(ways))
            made += 1
        if pause:
            time.sleep(rng.random() * 2 * pause)
    return made


def _disturb(place: Path, path: Path, rng: random.Random, way: int) -> None:
    if way < IN_PLACE:
        with path.open("r+b", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            for part in range(way + 1):
                file.write(rng.randbytes(size * (part + 1) // (way + 1) - size * part // (way + 1)))
    elif way == 3:
        with path.open("ab") as file:
            file.write(rng.randbytes(100))
    elif way == 4:
        _save(path, rng.randbytes(path.stat().st_size))
    elif way == 5:
        os.truncate(path, path.stat().st_size // 2 + 50)
    elif way == 6:
        path.chmod(0o600 + rng.randrange(64))
    elif way == 7:
        _move_there_or_back(path)
    elif path.parent != place:
        _move_there_or_back(path.parent)


def _move_there_or_back(path: Path) -> None:
    moved = path.with_name(path.name + ".moved")
    if moved.exists():
        moved.rename(path)
    else:
        path.rename(moved)
