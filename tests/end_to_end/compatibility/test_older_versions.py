"""An rdc of each version of the protocol that is still spoken, at either end, in both roles, with today's.

scripts/keep_version keeps them.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from rdc.protocol.connection import DIALECT
from tests.support.project_paths import TOP
from tests.support.running.older_versions import KEPT, kernel_of, older_rdc
from tests.support.trees.trees import describe, read_tree

VERSIONS = range(DIALECT.oldest, DIALECT.newest + 1)
TREES = 4
"""Random pairs of trees for each end, role and version."""


@pytest.fixture(scope="module", params=VERSIONS)
def old(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory that a Python of today finds the old rdc in."""
    return older_rdc(request.param, tmp_path_factory)


def run(rdc: Path, shell: Path, far: Path, *words: str) -> dict[str, object]:
    """Runs `rdc sync` of the rdc in `rdc` with the one in `far` at the other end; its summary."""
    shell.write_text(
        f"#!/bin/sh\nPYTHONPATH={far} PYTHONSAFEPATH=1 RDC_KERNEL={kernel_of(far)}"
        f" exec {sys.executable} -m rdc serve --stdio\n"
    )
    shell.chmod(0o755)
    env = {**os.environ, "PYTHONPATH": str(rdc), "PYTHONSAFEPATH": "1", "RDC_KERNEL": kernel_of(rdc)}
    line = [sys.executable, "-m", "rdc", "sync", "--json", "--no-catalog", "--no-fsync", "--delete"]
    done = subprocess.run(
        [*line, "-e", str(shell), *words], env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize("push", [True, False], ids=["push", "pull"])
@pytest.mark.parametrize("old_is_far", [True, False], ids=["old far", "old near"])
def test_it_talks_with_today_s(old: Path, old_is_far: bool, push: bool, tmp_path: Path) -> None:
    near, far = (TOP, old) if old_is_far else (old, TOP)
    for seed in range(TREES):
        place = tmp_path / str(seed)
        rng = random.Random(seed)
        source, top = place / "s", place / "d"
        fill(source, rng)
        if seed % 2:
            fill(top, rng)
        else:
            subprocess.run(["cp", "-a", str(source), str(top)], check=True)
            change(top, rng)
        before = read_tree(source)
        words = (f"{source}/", f"h:{top}/") if push else (f"h:{source}/", f"{top}/")
        run(near, tmp_path / "shell", far, *words)
        assert describe(before, read_tree(top)) == []
        again = run(near, tmp_path / "shell", far, *words)
        assert (again["changed"], again["deleted"]) == (0, 0)


def fill(top: Path, rng: random.Random) -> None:
    top.mkdir(parents=True)
    for number in range(rng.randrange(1, 12)):
        directory = top / rng.choice(("a", "b", "a/c"))
        directory.mkdir(parents=True, exist_ok=True)
        size = rng.choice((0, 10, 3_000, 30_000))
        (directory / f"f{number}").write_bytes(rng.randbytes(size))
    (top / "link").symlink_to("a/f1")
    os.utime(top, ns=(10**18, 10**18))


def change(top: Path, rng: random.Random) -> None:
    files = sorted(path for path in top.rglob("f*") if path.is_file())
    for path in rng.sample(files, min(4, len(files))):
        content = path.read_bytes()
        at = rng.randrange(len(content) + 1)
        step = rng.randrange(4)
        if step == 0:
            path.unlink()
        elif step == 1:
            path.rename(path.with_name("moved-" + path.name))
        else:
            path.write_bytes(content[:at] + b"an edit" + content[at + step :])
    (top / "own").write_bytes(b"only here")


def test_a_build_of_each_version_is_kept() -> None:
    assert {path.name for path in KEPT.iterdir()} == {f"rdc-{version}.tar.xz" for version in VERSIONS}
