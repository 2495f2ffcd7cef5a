"""Runs a program with an input and keeps a bounded part of what it prints."""

from __future__ import annotations

import os
import selectors
import subprocess

from rdc.lean.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Ended", "run_bounded"]

_PIPE_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class Ended:
    """What is left of a program that ran."""

    code: int
    """Its exit status, negative for a signal."""
    out: bytes
    err: bytes
    cut: bool
    """It printed more than it may, and was killed."""


def run_bounded(argv: Sequence[str], data: bytes, most: int) -> Ended:
    """Run `argv` with `data` as its input until it ends, or until it has printed more than `most` bytes to
    stdout or stderr. A program that reads no further loses the rest of its input. Raises OSError."""
    process = subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    )
    stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
    if stdin is None or stdout is None or stderr is None:
        raise ValueError("all three are pipes")
    printed = {stdout.fileno(): bytearray(), stderr.fileno(): bytearray()}
    left, cut = memoryview(data), False
    with process, selectors.DefaultSelector() as waiting:
        for fd in printed:
            waiting.register(fd, selectors.EVENT_READ)
        os.set_blocking(stdin.fileno(), False)
        waiting.register(stdin, selectors.EVENT_WRITE)
        while waiting.get_map() and not cut:
            for key, _ in waiting.select():
                if key.fileobj is stdin:
                    left = _written(key.fd, left)
                    if not left:
                        waiting.unregister(stdin)
                        stdin.close()
                    continue
                some = os.read(key.fd, _PIPE_BYTES)
                printed[key.fd] += some
                if not some:
                    waiting.unregister(key.fd)
                cut = cut or len(printed[key.fd]) > most
        if cut:
            process.kill()
        out, err = (bytes(printed[stream.fileno()]) for stream in (stdout, stderr))
    return Ended(process.returncode, out, err, cut)


def _written(fd: int, data: memoryview) -> memoryview:
    """Write some of `data`. Return what is left: nothing if nobody reads it."""
    try:
        return data[os.write(fd, data[:_PIPE_BYTES]) :]
    except BlockingIOError:
        return data
    except BrokenPipeError:
        return data[:0]
