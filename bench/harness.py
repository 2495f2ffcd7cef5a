"""The shared parts of benchmarks: running commands and measuring their costs, turns, medians, tables, and
made corpora.

A benchmark is a module whose docstring states its question, metrics, corpora and command, and whose `main`
prints its figures. Corpora and scratch directories are arguments, never fixed places.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from rdc.kernel import kernel_name

__all__ = [
    "FAR",
    "MEMORY",
    "MIB",
    "RDC",
    "RELAY",
    "TOP",
    "Cost",
    "Table",
    "arguments",
    "big_file",
    "cost_of",
    "in_turns",
    "machine",
    "medians",
    "rate",
    "run",
    "scratch",
    "small_files",
]

T = TypeVar("T")

TOP = Path(__file__).resolve().parent.parent
"""The checkout."""
RDC = (sys.executable, "-m", "rdc")
FAR = " ".join(RDC)
"""RDC, as a value of --remote-path."""
RELAY = TOP / "tests" / "support" / "children" / "relay_ssh.py"
"""A stand-in for ssh that counts the bytes of both directions."""
MEMORY = "/dev/shm"  # noqa: S108 - directories of random names are made in it
MIB = 1 << 20


@dataclasses.dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a command, including the processes that it waited for."""

    cpu: float
    """User and system seconds."""
    wall: float
    """Seconds."""
    memory: int
    """Bytes of the largest process."""


def run(
    words: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    out: Path | None = None,
    accept: Sequence[int] = (0,),
    beside: Callable[[int], object] = lambda pid: None,
) -> Cost:
    """Return what a command takes, from its start to its end.

    env: its environment, ours if None. out: a file for its output, which is dropped if None. beside: called
    with the process id once it runs. SystemExit with its command and messages if its exit code is not in
    `accept`.
    """
    with (
        open(out or os.devnull, "wb") as output,
        tempfile.TemporaryFile() as told,
    ):
        began = time.perf_counter()
        child = subprocess.Popen(
            words, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=output, stderr=told
        )
        beside(child.pid)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - began
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode not in accept:
            told.seek(0)
            line = " ".join(map(str, words))
            raise SystemExit(f"{line}: exit code {child.returncode}\n{told.read().decode(errors='replace')}")
    return Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss * 1024)


def cost_of(work: Callable[[], T]) -> tuple[T, Cost]:
    """Return what `work` returns, and what the processes that it started and waited for took."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    found = work()
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return found, Cost(cpu, wall, after.ru_maxrss * 1024)


def rate(work: Callable[[], object], amount: float, seconds: float = 0.02) -> float:
    """Return `amount` per second of this thread's CPU time, from repetitions that take `seconds` at least."""
    done, began = 0.0, time.thread_time()
    while (spent := time.thread_time() - began) < seconds:
        work()
        done += amount
    return done / spent


def in_turns(ways: Mapping[str, Callable[[], T]], runs: int, *, uncounted: int = 0) -> dict[str, list[T]]:
    """Return `runs` results of each way. The ways alternate, so that a busy machine slows all alike, and each
    follows every other one about as often, since the previous one leaves its caches. `uncounted` turns come
    before: they warm the page cache and compile modules."""
    found: dict[str, list[T]] = {name: [] for name in ways}
    names = list(ways)
    for turn in range(-uncounted, runs):
        at = turn % len(names)
        for name in names[at:] + names[:at]:
            result = ways[name]()
            if turn >= 0:
                found[name].append(result)
    return found


def medians(found: Sequence[T]) -> T:
    """Return a record whose numbers are the medians of those of `found`; its other fields are the last's."""
    last: Any = found[-1]
    middle = {
        field.name: type(value)(statistics.median(getattr(one, field.name) for one in found))
        for field in dataclasses.fields(last)
        if type(value := getattr(last, field.name)) in (int, float)
    }
    return dataclasses.replace(last, **middle)  # type: ignore[no-any-return] # of the type of `last`


class Table:
    """A table in Markdown that is printed row by row as the figures come."""

    def __init__(self, *heads: str) -> None:
        """Print the heads. Columns whose head ends with a colon are aligned to the right."""
        self.row(*(head.rstrip(":") for head in heads))
        print("".join("|--:" if head.endswith(":") else "|---" for head in heads) + "|", flush=True)

    def row(self, *cells: object) -> None:
        print(f"| {' | '.join(map(str, cells))} |", flush=True)


def machine() -> str:
    """Return what a figure must be read with: the kernel variant and the cores."""
    return f"kernel {kernel_name()}, {os.cpu_count()} cores"


def arguments(text: str | None, *, runs: int | None = None, place: bool = False) -> argparse.ArgumentParser:
    """Return a parser whose help is the benchmark's docstring, with --runs and --place if it has them."""
    parser = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    if runs is not None:
        parser.add_argument("--runs", type=int, default=runs, help=f"of each (default: {runs})")
    if place:
        parser.add_argument("--place", type=Path, help="where directories are made (default: TMPDIR)")
    return parser


@contextmanager
def scratch(place: Path | str | None = None) -> Iterator[Path]:
    """Yield a directory that is removed afterwards, in `place` or where the system keeps temporary files."""
    with tempfile.TemporaryDirectory(prefix="rdc-bench-", dir=place) as name:
        yield Path(name)


def small_files(
    top: Path, count: int, *, size: int = 8 << 10, per_directory: int = 200, text: bool = True
) -> Path:
    """Make `count` files below `size` bytes, of words or of random bytes, always the same; return `top`."""
    rng = random.Random(1)
    words = [bytes(rng.choices(b"abcdefghijklmnopqrstuvwxyz", k=rng.randrange(2, 10))) for _ in range(4_000)]
    for number in range(count):
        directory = top / f"d{number // per_directory:04}"
        directory.mkdir(parents=True, exist_ok=True)
        if text:
            content = b" ".join(rng.choices(words, k=rng.randrange(size // 7 + 1)))[:size]
        else:
            content = rng.randbytes(rng.randrange(size))
        (directory / f"f{number:06}").write_bytes(content)
    return top


def big_file(top: Path, mib: int) -> Path:
    """Make one file of random bytes, the same in every run; return `top`."""
    rng = random.Random(2)
    top.mkdir()
    with (top / "file").open("wb") as file:
        for _ in range(mib):
            file.write(rng.randbytes(MIB))
    return top
