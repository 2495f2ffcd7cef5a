"""The resemblance that scan estimates agrees with what similar measures, within the error that SURVEY.md
states."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

from rdc.cli.main import run as run_command
from tests.support.running.fake_environment import FakeProcess

ERROR = 0.3
"""The error that SURVEY.md states for 95 of 100 pairs."""


def edited(data: bytes, rng: random.Random, part: float) -> bytes:
    """Replaces runs of a few lines until about this part of the bytes is new."""
    lines = [data[at : at + 40] for at in range(0, len(data), 40)]
    left = part * len(lines)
    while left > 0:
        run = rng.randrange(1, 24)
        at = rng.randrange(len(lines))
        lines[at : at + run] = [rng.randbytes(40) for _ in lines[at : at + run]]
        left -= run
    return b"".join(lines)


def pairs(top: Path) -> int:
    """Unrelated files, each with an edited copy: of 16 KB to 2 MB, with up to a quarter edited."""
    rng = random.Random(21)
    count = 0
    for size, times in ((16_000, 30), (48_000, 20), (200_000, 20), (2_000_000, 6)):
        for _ in range(times):
            data = rng.randbytes(size)
            (top / f"{count:02}-old").write_bytes(data)
            (top / f"{count:02}-new").write_bytes(
                edited(data, rng, rng.choice([0.002, 0.03, 0.08, 0.15, 0.25]))
            )
            count += 1
    return count


def told(verb: str, top: Path, *words: str) -> list[dict[str, Any]]:
    process = FakeProcess()
    assert run_command([verb, "--json", "--no-catalog", "-q", *words, str(top)], process.environment) == 0
    if verb == "scan":
        found: list[dict[str, Any]] = json.loads(process.out)["similar"]
        return found
    return [event for line in process.out.splitlines() if (event := json.loads(line))["event"] == "group"]


def test_scan_and_similar_agree_within_the_stated_error(tmp_path: Path) -> None:
    count = pairs(tmp_path)
    measured: dict[str, float] = {}
    for group in told("similar", tmp_path, "--threshold=0.01"):
        for file in group["files"]:
            measured[os.path.basename(file["path"])] = file["similarity"]
    differences = []
    for group in told("scan", tmp_path):
        names = [os.path.basename(path["path"]) for path in group["paths"]]
        assert len(names) == 2
        assert names[0][:2] == names[1][:2]
        assert 0 < group["resemblance"] < 1
        differences.append(group["resemblance"] - measured[names[0]])
    assert len(differences) > count / 2
    assert sum(abs(one) <= ERROR for one in differences) >= 0.95 * len(differences), sorted(differences)
    assert abs(sum(differences) / len(differences)) < 0.1, sorted(differences)
