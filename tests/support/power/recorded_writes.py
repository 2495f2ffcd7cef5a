"""Runs a command with tests/kernel/native/recorded_writes.c preloaded: every change below a directory, in
order.
"""

from __future__ import annotations

import os
import struct
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.project_paths import NATIVE, TOP
from tests.support.running.syncing import RDC

__all__ = ["Call", "built_recorder", "read_calls", "record", "recording_environment"]


_HEAD = struct.Struct("<cQQQHH")


@dataclass(frozen=True, slots=True)
class Call:
    """One call that succeeded. What its numbers are depends on the kind; 0 where unused."""

    kind: str
    """C, M, L, O: file, directory, symlink, nameless file made. H: linked. R, E: renamed, exchanged; the
    second directory is `file`. U, D: removed. W: written at `value`. T: truncated to `value`. A: mode, N:
    mtime set. G: mapped for writing. F: synced. S: its file system synced."""
    directory: int
    """Inode number."""
    file: int
    """Inode number."""
    value: int
    name: bytes
    other: bytes
    """The new name of a rename."""
    data: bytes


def built_recorder(place: Path) -> Path:
    """The library, compiled into `place`."""
    library = place / "recorded_writes.so"
    source = NATIVE / "recorded_writes.c"
    flags = ["-std=c11", "-O1", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([os.environ.get("CC", "cc"), *flags, source, "-o", library, "-ldl"], check=True)
    return library


def recording_environment(library: Path, top: Path, log: Path) -> dict[str, str]:
    """Return what to add to the environment of a process whose changes below `top` are to be recorded in
    `log`."""
    return {
        "LD_PRELOAD": str(library),
        "RECORD_TOP": os.path.realpath(top),
        "RECORD_LOG": str(log),
        # Byte code would be written beside what is recorded.
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def record(
    library: Path,
    top: Path,
    log: Path,
    *words: str | Path,
    argv: Sequence[str] = RDC,
    environ: Mapping[str, str] | None = None,
) -> list[Call]:
    """Run `rdc WORDS` to its end, which must be a good one; return its changes below `top`."""
    log.unlink(missing_ok=True)
    env = {**os.environ, "RDC_CATALOG": "off", **(environ or {}), **recording_environment(library, top, log)}
    done = subprocess.run([*argv, *map(str, words)], env=env, capture_output=True, timeout=600, cwd=TOP)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return read_calls(log)


def read_calls(log: Path) -> list[Call]:
    return list(_calls(log.read_bytes())) if log.exists() else []


def _calls(data: bytes) -> Iterator[Call]:
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at)
        kind, directory, file, value, one, two = _HEAD.unpack_from(data, at + 4)
        names = at + 4 + _HEAD.size
        at += 4 + length
        if kind == b"N" and value >= 1 << 63:
            value -= 1 << 64
        yield Call(
            kind.decode(),
            directory,
            file,
            value,
            data[names : names + one],
            data[names + one : names + one + two],
            data[names + one + two : at],
        )
