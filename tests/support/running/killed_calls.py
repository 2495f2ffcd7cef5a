"""Runs of rdc that are killed right before any system call that changes something, those of C code as
well."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.project_paths import NATIVE, TOP

__all__ = ["CallKiller", "call_killer", "killing_library"]


class CallKiller:
    """A process that forks one for each run."""

    def __init__(self, child: subprocess.Popen[str]) -> None:
        self._child = child

    def __call__(
        self, step: int, *words: str | Path, verb: str = "dedupe", environ: dict[str, str] | None = None
    ) -> bool:
        """Run `rdc VERB WORDS`, killed right before its call number `step`. Return False if it made no
        more."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        order = [step, verb, [str(word) for word in words], environ or {}]
        self._child.stdin.write(json.dumps(order) + "\n")
        self._child.stdin.flush()
        status = int(self._child.stdout.readline())
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        assert killed or status == 0, status
        return killed


def killing_library(place: Path) -> Path:
    """Compile what counts calls. It has to be preloaded; `arm` begins the count."""
    library = place / "killed_calls.so"
    flags = ["-std=c11", "-O1", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"]
    source = NATIVE / "killed_calls.c"
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, *flags, source, "-o", library, "-ldl"], check=True)
    return library


@contextmanager
def call_killer() -> Iterator[CallKiller]:
    """Compile what counts calls, and start the process. It leaves no process behind."""
    with tempfile.TemporaryDirectory() as place:
        library = killing_library(Path(place))
        preloaded = f"{os.environ.get('LD_PRELOAD', '')} {library}".strip()
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.support.children.killed_child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=TOP,
            env={**os.environ, "LD_PRELOAD": preloaded},
        )
        with child:
            yield CallKiller(child)
        assert child.returncode == 0
