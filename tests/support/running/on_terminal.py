"""A command of rdc on a terminal, with answers typed."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

PATIENCE = 60


def on_terminal(answer: bytes, *words: str) -> tuple[int, str]:
    """The exit code of `rdc sync` on a terminal where somebody types `answer` if asked, and what it said."""
    outer, inner = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "rdc", "sync", "--no-fsync", "--no-catalog", *words],
        stdin=inner, stdout=inner, stderr=inner, start_new_session=True,
    )  # fmt: skip
    os.close(inner)
    said = b""
    while True:
        try:
            some = os.read(outer, 4096)
        except OSError:  # the child closed its end
            break
        if not some:
            break
        said += some
        if said.endswith(b"[y/N] "):
            os.write(outer, answer)
    os.close(outer)
    return child.wait(PATIENCE), said.decode(errors="replace")
