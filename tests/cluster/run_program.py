"""Runs a program with a home of its own, as a user of a cluster would."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.cluster.clusters import TOKEN
from tests.support.project_paths import TOP

__all__ = ["program"]


def program(
    home: Path, *words: str | Path, environ: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """`words`: a module and its arguments. `environ`: more variables, among them those that are there."""
    return subprocess.run(
        [sys.executable, "-m", *map(str, words)],
        env={**os.environ, "HOME": str(home), **TOKEN, "PYTHONPATH": str(TOP), **(environ or {})},
        cwd=TOP,
        capture_output=True,
        text=True,
        timeout=600,
    )
