"""A file system that is too small or read-only: a real one where one can be mounted, else system calls that
fail as its would."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.needs import optional_programs

__all__ = ["read_only", "small_disk"]


def _mount(*words: str | Path) -> bool:
    with optional_programs():
        done = subprocess.run(["mount", *map(str, words)], capture_output=True, check=False)
    return done.returncode == 0


def _unmount(place: Path) -> None:
    with optional_programs():
        subprocess.run(["umount", "-l", place], check=True)


@contextmanager
def small_disk(place: Path, size: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """`place` with room for about `size` bytes."""
    place.mkdir()
    if os.geteuid() == 0 and _mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs", place):
        try:
            yield place
        finally:
            _unmount(place)
        return
    pwrite = os.pwrite

    def bounded_pwrite(fd: int, data: memoryview, offset: int) -> int:
        room = size - sum(entry.stat().st_size for entry in place.rglob("*") if entry.is_file())
        if room <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return pwrite(fd, data[:room], offset)

    monkeypatch.setattr("os.pwrite", bounded_pwrite)
    monkeypatch.setattr(
        "rdc.files.bulk.small_files._extension", None
    )  # what is written in C does not pass here
    yield place


@contextmanager
def read_only(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """`place` on a file system that nothing can be written to."""
    if os.geteuid() == 0 and _mount("--bind", place, place):
        try:
            if _mount("-o", "remount,bind,ro", place):
                yield place
                return
        finally:
            _unmount(place)
    fstatvfs = os.fstatvfs

    def read_only_fstatvfs(fd: int) -> os.statvfs_result:
        found = list(fstatvfs(fd))
        if Path(os.readlink(f"/proc/self/fd/{fd}")).is_relative_to(place):
            found[8] |= os.ST_RDONLY
        return os.statvfs_result(found)

    monkeypatch.setattr("os.fstatvfs", read_only_fstatvfs)
    yield place
