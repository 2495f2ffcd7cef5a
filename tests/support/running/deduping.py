"""Runs `rdc dedupe` in this process, and builds trees that have something to dedupe."""

from __future__ import annotations

import hashlib
import json
import os
import random
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rdc.cli.main import run as run_command
from tests.support.running.fake_environment import FakeProcess

__all__ = ["Run", "Seen", "blob", "dedupe", "dupes", "linked", "messages", "seen", "write_duplicates"]

TIME = 1_600_000_000_000_000_000


@dataclass(frozen=True, slots=True)
class Run:
    code: int
    out: str
    err: str

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]

    def of(self, event: str) -> list[dict[str, Any]]:
        return [found for found in self.events if found["event"] == event]

    @property
    def summary(self) -> dict[str, Any]:
        (found,) = self.of("summary")
        return found

    @property
    def won(self) -> int:
        won: int = self.summary["won"]
        return won


def dedupe(*words: str | Path, stdin: bytes = b"", environ: dict[str, str] | None = None) -> Run:
    """One command line, without a catalog; --json unless words say --text."""
    texts = [str(word) for word in words if word != "--text"]
    if "--text" not in words:
        texts.append("--json")
    process = FakeProcess(stdin=stdin, environ=environ or {})
    code = run_command(["dedupe", "--no-catalog", *texts], process.environment)
    return Run(code, process.out, process.err)


def dupes(*words: str | Path, environ: dict[str, str] | None = None) -> Run:
    """`rdc dupes`, as `dedupe` runs its verb."""
    texts = [str(word) for word in words if word != "--text"]
    if "--text" not in words:
        texts.append("--json")
    process = FakeProcess(environ=environ or {})
    code = run_command(["dupes", "--no-catalog", *texts], process.environment)
    return Run(code, process.out, process.err)


def blob(seed: int, size: int) -> bytes:
    return random.Random(seed).randbytes(size)


@dataclass(frozen=True, slots=True)
class Seen:
    """The facts that a program can see of one file, except its inode."""

    digest: str
    size: int
    mode: int
    uid: int
    gid: int
    mtime_ns: int
    attributes: tuple[tuple[str, bytes], ...]


def seen(top: Path) -> dict[str, Seen]:
    """All files below `top` by path; links are not followed."""
    found = {}
    for directory, _, names in os.walk(top):
        for name in names:
            path = Path(directory) / name
            now = os.lstat(path)
            if not stat.S_ISREG(now.st_mode):
                continue
            attributes = tuple((key, os.getxattr(path, key)) for key in sorted(os.listxattr(path)))
            found[str(path.relative_to(top))] = Seen(
                hashlib.sha256(path.read_bytes()).hexdigest(),
                now.st_size,
                stat.S_IMODE(now.st_mode),
                now.st_uid,
                now.st_gid,
                now.st_mtime_ns,
                attributes,
            )
    return found


def write_duplicates(top: Path, *, groups: int = 3, copies: int = 3, size: int = 30_000) -> dict[str, Seen]:
    """Groups of identical files, alike in everything, spread over two directories, and one file alone."""
    for group in range(groups):
        for copy in range(copies):
            path = top / ("a" if copy % 2 else "b") / f"group{group}-copy{copy}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(blob(group, size + 4096 * group))
            os.setxattr(path, "user.group", str(group).encode())
            path.chmod(0o640)
            os.utime(path, ns=(TIME + group, TIME + group))
    (top / "alone").write_bytes(blob(99, size))
    return seen(top)


def linked(top: Path, *names: str) -> int:
    """Return the number of files that these names stand for."""
    return len({os.stat(top / name).st_ino for name in names})


def messages(run: Run) -> str:
    return "\n".join(error["message"] for error in run.of("error"))
