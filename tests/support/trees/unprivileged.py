"""Runs part of a test as somebody whom permissions bind, also where the tests run as root."""

from __future__ import annotations

import importlib
import os
import pickle
import pkgutil
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import rdc

__all__ = ["NOBODY", "as_nobody", "place_of_nobody"]

T = TypeVar("T")

NOBODY = 65_534
"""uid and gid that own nothing."""


@contextmanager
def place_of_nobody() -> Iterator[Path]:
    """An empty directory that `as_nobody` may work in; pytest's own are closed to others."""
    place = Path(tempfile.mkdtemp(prefix="rdc-test-"))
    if os.geteuid() == 0:
        os.chown(place, NOBODY, NOBODY)
    try:
        yield place
    finally:
        for _, names, _, fd in os.fwalk(place):
            for name in names:
                if stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
                    os.chmod(name, 0o700, dir_fd=fd)
        shutil.rmtree(place)


def as_nobody(work: Callable[[], T]) -> T:
    """Return what `work` returns, or raise what it raises, without privileges: in a forked process if this
    one is root's."""
    if os.geteuid() != 0:
        return work()
    # Whoever runs the tests may keep this checkout to themselves: what is imported later must be here now.
    for module in pkgutil.walk_packages(rdc.__path__, "rdc."):
        if module.name != "rdc.__main__":
            importlib.import_module(module.name)
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        _answer(work, write_end)
    os.close(write_end)
    with open(read_end, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    value: T
    value, error = pickle.loads(answer)  # noqa: S301 - our own child's
    if error is not None:
        raise error
    return value


def _answer(work: Callable[[], T], pipe: int) -> None:
    try:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        answer = pickle.dumps((work(), None))
    except BaseException as error:  # noqa: BLE001 - told to the parent
        answer = pickle.dumps((None, AssertionError(f"as nobody: {type(error).__name__}: {error}")))
    with open(pipe, "wb") as file:
        file.write(answer)
    os._exit(0)
