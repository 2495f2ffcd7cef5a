"""Processes that a test starts and looks at while they run: none outlives the test, whatever fails in it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

__all__ = ["started"]


@contextmanager
def started(words: Sequence[str | Path]) -> Iterator[subprocess.Popen[bytes]]:
    """The process, its output and its complaints in pipes. At the end of the block it is killed if it still
    runs: one that is left makes another test fail, by a warning."""
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()
