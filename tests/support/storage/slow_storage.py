"""Runs rdc with tests/kernel/native/slow_calls.c preloaded, as on storage that makes one wait."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tests.support.project_paths import NATIVE, TOP

__all__ = ["SlowRun", "SlowStorage"]


@dataclass(frozen=True, slots=True)
class SlowRun:
    """The result of a run, and the counts of the preloaded library."""

    code: int
    output: str
    errors: str
    seconds: float
    threads: int
    """Threads that were started, in all processes."""
    deepest: int
    """Calls of one process that waited at a time."""


class SlowStorage:
    """Builds the preloaded library in `place`, an empty directory, and runs rdc with it."""

    def __init__(self, place: Path) -> None:
        self._counts = place / "counts"
        self._library = place / "slow_calls.so"
        flags = ["-std=c11", "-O1", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"]
        source = NATIVE / "slow_calls.c"
        subprocess.run([os.environ.get("CC", "cc"), *flags, source, "-o", self._library, "-ldl"], check=True)

    def run(self, *words: str | Path, **waits: int | str) -> SlowRun:
        """Run `rdc WORDS`. `waits`: variables of slow_calls.c without SLOW_, such as open=2000."""
        return self.run_python("-m", "rdc", *words, **waits)

    def run_python(self, *words: str | Path, **waits: int | str) -> SlowRun:
        """Run Python with these words."""
        self._counts.write_bytes(bytes(8))
        variables = {f"SLOW_{name.upper()}": str(value) for name, value in waits.items()}
        environ = {
            **{name: value for name, value in os.environ.items() if name != "RDC_DEPTH"},
            "RDC_CATALOG": "off",
            # The library of a sanitizer, if there is one, has to come first.
            "LD_PRELOAD": f"{os.environ.get('LD_PRELOAD', '')} {self._library}".strip(),
            "SLOW_COUNT": str(self._counts),
            **variables,
        }
        begun = time.monotonic()
        command = [sys.executable, *map(str, words)]
        ran = subprocess.run(command, env=environ, cwd=TOP, capture_output=True, text=True, timeout=300)
        seconds = time.monotonic() - begun
        threads, deepest = struct.unpack("ii", self._counts.read_bytes())
        return SlowRun(ran.returncode, ran.stdout, ran.stderr, seconds, threads, deepest)
