"""A child process that ends, as by SIGKILL, right before one of its system calls that change a tree."""

from __future__ import annotations

import gc
import os
import signal
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rdc.files.base.metadata
import rdc.files.base.taking_names
import rdc.files.bulk.small_files
import rdc.files.names.entry_names
import rdc.undoing.undo

__all__ = ["ended_at_step"]

_STEPS: dict[Any, tuple[str, ...]] = {
    os: (
        *("chmod", "chown", "fsync", "ftruncate", "link", "mkdir", "open", "pwrite", "removexattr", "rename"),
        *("rmdir", "setxattr", "symlink", "unlink", "utime", "write"),
    ),
    rdc.files.base.metadata: ("chmod_no_follow",),
    rdc.files.base.taking_names: ("rename_exchange", "rename_no_replace_between"),
    rdc.files.names.entry_names: ("rename_no_replace_between",),
    rdc.undoing.undo: ("rename_no_replace_between",),
}
"""Every way in which a destination and its records are changed, but for what C does in bulk."""


def ended_at_step(work: Callable[[], object], stop_at: int, said: Path) -> bool:
    """Do `work` in a child that kills itself right before its step `stop_at`. Returns whether it came so far.

    `said`: the file for its traceback, if it fails.
    """
    child = os.fork()
    if not child:
        _child(work, stop_at, said)
    _, status = os.waitpid(child, 0)
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    assert killed or status == 0, said.read_text(errors="replace")
    return killed


def _child(work: Callable[[], object], stop_at: int, said: Path) -> None:
    write, open_file, made = os.write, os.open, 0

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **named: Any) -> Any:
            nonlocal made
            if made >= stop_at:
                os.kill(os.getpid(), signal.SIGKILL)
            made += 1
            return call(*arguments, **named)

        return step

    try:
        gc.disable()
        for module, names in _STEPS.items():
            for name in names:
                setattr(module, name, counted(getattr(module, name)))
        work()
        os._exit(0)
    except BaseException:
        write(open_file(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), traceback.format_exc().encode())
        raise
    finally:
        os._exit(1)
