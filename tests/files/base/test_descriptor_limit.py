"""The limit of open files: raised where it may be, kept to where it may not."""

from __future__ import annotations

import os
import random
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rdc.files.base.syscalls import ENOUGH_DESCRIPTORS, share_of_descriptors
from tests.support.project_paths import PSEUDO_SSH
from tests.support.running.syncing import FAR, RDC, Way
from tests.support.trees.trees import describe, read_tree

CHANGED = 700
"""Files, each in a directory of its own: more than any group has."""


@contextmanager
def limited(soft: int, hard: int | None = None) -> Iterator[None]:
    """For this process, or also for those that it starts and that may not raise it past `hard`."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard or before[1]))
    try:
        yield
    finally:
        # Root may take a hard limit back.
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def under(hard: int, *words: str) -> list[str]:
    """A command line whose limit is this one, and cannot be raised."""
    return ["/bin/sh", "-c", f'ulimit -n {hard} && exec "$@"', "sh", *words]


@pytest.mark.parametrize(
    ("soft", "hard", "raised"),
    [(256, 5_000, ENOUGH_DESCRIPTORS), (256, 700, 700), (4_000, 5_000, 4_000), (64, 64, 64)],
)
def test_the_limit_is_raised_as_far_as_it_may_be(soft: int, hard: int, raised: int) -> None:
    script = (
        "import resource, sys\n"
        "from rdc.files.base.syscalls import raise_descriptor_limit\n"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))\n"
        "raise_descriptor_limit()\n"
        "print(*resource.getrlimit(resource.RLIMIT_NOFILE))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(raised), str(hard)]


def test_shares_fit_the_limit() -> None:
    """Two caches of directories, a group with a directory for each file, small files on both sides, bases."""
    holders = (64, 64, 256, 256, 256, 256, 64)
    for limit in (4096, 2048, 1024, 512, 256, 128, 64):
        with limited(limit):
            shares = [share_of_descriptors(most) for most in holders]
        assert sum(shares) + 30 <= limit, limit
        assert min(shares) >= 1
        if limit >= ENOUGH_DESCRIPTORS:
            assert shares == list(holders)


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Of files changed in two ways, touched ones, and ones that take each other's place."""
    rng = random.Random(1)
    source, destination = tmp_path / "source", tmp_path / "destination"
    for number in range(CHANGED):
        content = rng.randbytes(3_000)
        edited = content[:1_000] + b"edit" * (number % 2) + content[1_000:]
        write(source / f"d{number}" / "file", edited, 2)
        write(destination / f"d{number}" / "file", content, 1)
    logs = [rng.randbytes(150_000) for _ in range(41)]
    for number in range(40):
        write(source / f"logs/{number}", logs[number], 2)
        write(destination / f"logs/{number}", logs[number + 1], 1)
    return source, destination


def write(path: Path, content: bytes, mtime: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (mtime, mtime))


@pytest.mark.parametrize("hard", [256, 48])
@pytest.mark.parametrize("way", [Way.HERE, Way.PUSH])
def test_a_sync_keeps_to_a_low_limit(pair: tuple[Path, Path], hard: int, way: Way) -> None:
    source, destination = pair
    far = ["-e", str(PSEUDO_SSH), f"--remote-path={FAR}"] if way is Way.PUSH else []
    to = f"far:{destination}" if far else str(destination)
    done = subprocess.run(
        under(hard, *RDC, "sync", "-q", "--no-catalog", *far, f"{source}/", to),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert describe(read_tree(source), read_tree(destination)) == []


def test_hard_links_keep_to_a_low_limit(tmp_path: Path) -> None:
    for number in range(80):
        write(tmp_path / f"tree/d{number}/file", b"%d" % (number % 4) * 5_000, 1)
    words = ("dedupe", "--no-catalog", "--hardlink", "--apply", str(tmp_path / "tree"))
    environment = os.environ | {"XDG_STATE_HOME": str(tmp_path)}
    done = subprocess.run(
        under(64, *RDC, *words), capture_output=True, text=True, env=environment, check=False
    )
    assert (done.returncode, done.stderr.count("rdc:")) == (0, 0), done.stderr
    assert len({path.stat().st_ino for path in (tmp_path / "tree").glob("*/file")}) == 4
