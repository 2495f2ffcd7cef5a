"""Deduplications that are killed before a given step."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import rdc.files.base.taking_names
import rdc.files.names.leased_files
import rdc.files.names.name_change
import rdc.files.names.return_name
from rdc.files.base.paths import is_temporary
from rdc.files.names.name_change import is_displaced
from tests.support.running.deduping import Run, dedupe

__all__ = ["killed_at", "leftovers"]

_STEPS: dict[ModuleType, tuple[str, ...]] = {
    os: (
        "chmod",
        "chown",
        "copy_file_range",
        "fsync",
        "ftruncate",
        "link",
        "mkdir",
        "open",
        "pwrite",
        "removexattr",
        "rename",
        "setxattr",
        "symlink",
        "unlink",
        "utime",
        "write",
    ),
    rdc.files.base.taking_names: ("syncfs",),
    rdc.files.names.name_change: ("rename_exchange", "rename_no_replace", "rename_no_replace_between"),
    rdc.files.names.return_name: ("rename_exchange", "rename_no_replace", "rename_no_replace_between"),
    rdc.files.names.leased_files: ("ioctl",),
}
"""Every call that changes something, and the opening of files: a kill between a lease and its use."""


def killed_at(
    step: int,
    *words: str | Path,
    before: Callable[[], None] | None = None,
    run: Callable[..., Run] = dedupe,
) -> bool:
    """Run `rdc dedupe` in a process that kills itself right before that step; False when it made no more.

    Without the C parts that take several steps at once: tests/support/running/killed_calls.py kills those.
    `before` runs in that process right before it is killed. `run` is what is run.
    """
    child = os.fork()
    if not child:
        try:
            rdc.files.names.leased_files._extension = None
            rdc.files.names.return_name._extension = None
            _count(step, before)
            os._exit(run(*words).code)
        finally:
            os._exit(99)
    _, status = os.waitpid(child, 0)
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    assert killed or status == 0, status
    return killed


def _count(stop_at: int, before: Callable[[], None] | None) -> None:
    made = 0

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **named: Any) -> Any:
            nonlocal made
            if made == stop_at:
                if before is not None:
                    before()
                os.kill(os.getpid(), signal.SIGKILL)
            made += 1
            return call(*arguments, **named)

        return step

    for module, names in _STEPS.items():
        for name in names:
            setattr(module, name, counted(getattr(module, name)))


def leftovers(top: Path) -> list[Path]:
    """Return the entries that rdc left beside files."""
    return [
        path
        for path in top.rglob(".rdc-*")
        if is_displaced(os.fsencode(path.name)) or is_temporary(os.fsencode(path.name))
    ]
