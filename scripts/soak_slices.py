"""Random slices of random trees, through the engines that are installed, with workers that die.

The JSON document of the merged parts must equal that of one scan, to the byte.

    scripts/soak slices [--rounds=N] [--trees=N] [--engines=processes,dask,ray:local,ray] [--seed=N]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import Executor
from importlib.util import find_spec
from pathlib import Path

import rdc
from rdc.cluster.engines import Engine, opened_engine, parse_engine
from rdc.survey.report.terminal import scan_json
from tests.cluster.clusters import TOKEN, dask_cluster, ray_cluster
from tests.cluster.failing_executors import Killing
from tests.support.trees.linked_tree import linked_tree
from tests.support.trees.mixed_tree import mixed_tree

NEEDED = {"processes": "concurrent", "dask": "distributed", "ray:local": "ray", "ray": "ray"}
SLICES = 32


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rounds", type=int, default=200)
    arguments.add_argument("--trees", type=int, default=5)
    arguments.add_argument("--engines", default="processes,dask,ray:local")
    arguments.add_argument("--seed", type=int, default=time.time_ns() & 0xFFFFFF)
    given = arguments.parse_args()
    names = [name for name in given.engines.split(",") if find_spec(NEEDED[name]) is not None]
    print(f"seed {given.seed}, engines {' '.join(names)}", flush=True)
    os.environ.update(TOKEN)
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        trees = [_tree(top / f"tree{number}", given.seed + number) for number in range(given.trees)]
        wholes = {
            (tree, shift): scan_json(rdc.scan(tree, rdc.ScanOptions(shift=shift), catalog=None))
            for tree in trees
            for shift in (0, 2)
        }
        # Ray ends all of its own processes with the connection, so one engine is open at a time.
        for number, engine in enumerate(names):
            rounds = range(number, given.rounds, len(names))
            _soak(engine, rounds, trees, wholes, top / engine.replace(":", "-"), given.seed)


def _soak(
    name: str,
    rounds: range,
    trees: list[Path],
    wholes: dict[tuple[Path, int], str],
    top: Path,
    seed: int,
) -> None:
    """Run the rounds of one engine."""
    top.mkdir()
    begun, slices, deaths = time.monotonic(), 0, 0
    with contextlib.ExitStack() as stack:
        url = {"processes": "processes:2", "ray:local": "ray:local"}.get(name)
        if url is None:
            url = stack.enter_context(dask_cluster(top) if name == "dask" else ray_cluster(top))
        engine = stack.enter_context(opened_engine(parse_engine(url)))
        for number in rounds:
            rng = random.Random(f"{seed} {number}")
            tree, of, shift = rng.choice(trees), rng.randint(1, SLICES), rng.choice((0, 0, 2))
            killed = {rng.randrange(of)} if not rng.randrange(4) else set()
            out, marks = top / f"parts{number}", top / f"marks{number}"
            out.mkdir()
            options = rdc.ScanOptions(shift=shift)
            parts = list(rdc.scan_parts(tree, deadly(engine, marks, killed), of, out, options))
            rng.shuffle(parts)
            if scan_json(rdc.merge(parts)) != wholes[tree, shift]:
                raise SystemExit(f"{name}: round {number} of seed {seed}: {tree} in {of} slices differs")
            slices += of
            deaths += len(list(marks.iterdir())) if marks.exists() else 0
            subprocess.run(["rm", "-r", out], check=True)
    seconds = time.monotonic() - begun
    text = f"{len(rounds)} splits, {slices} slices, {deaths} workers killed, {seconds:.0f} s"
    print(f"{name}: {text}", flush=True)


def deadly(engine: Engine, marks: Path, killed: set[int]) -> Executor | Callable[[], Executor]:
    given = engine.executor
    if isinstance(given, Executor):
        return Killing(given, marks, killed)
    return lambda: Killing(given(), marks, killed)


def _tree(path: Path, seed: int) -> Path:
    if seed % 3:
        linked_tree(path, seed)
    else:
        mixed_tree(path, seed)
    return path


if __name__ == "__main__":
    main()
