"""Loads rdc once and forks a process of it for each request. Its one argument is the number of a socket.

A request is one packet: a FarProcess, with the descriptors that become 0, 1 and 2, and one that takes the
exit status at the end. The answer is the process's number.
"""

from __future__ import annotations

import gc
import importlib
import os
import pkgutil
import select
import signal
import socket
import sys
import traceback
from contextlib import suppress

import rdc
from tests.support.children.far_process import REQUEST_BYTES, FarProcess

LOADED = ("chunking", "files", "kernel", "protocol", "session", "tree")


FAILED = 70
"""The exit status of a fork that ends in an exception. rdc itself never has it."""

LAST_DESCRIPTOR = 1 << 10
"""The server has fewer."""


def load() -> None:
    """Load what a session needs, so that no fork has to."""
    for module in pkgutil.walk_packages(rdc.__path__, "rdc."):
        if module.name.split(".")[1] in LOADED or module.name in ("rdc.cli.main", "rdc.cli.verbs.serve"):
            with suppress(Exception):  # it fails again in the fork, as after a start
                importlib.import_module(module.name)


def become(process: FarProcess, ends: list[int]) -> None:
    """Make this fork what a start of `python -m rdc` would be, then run it."""
    for number, fd in enumerate(ends):
        os.dup2(fd, number)
    os.closerange(3, LAST_DESCRIPTOR)
    # The server's own files know of other descriptors whether they can seek.
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, errors="backslashreplace", closefd=False)
    os.environ.clear()
    os.environ.update(process.environ)
    os.chdir(process.directory)
    os.umask(process.umask)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["rdc", *process.words]
    from rdc.__main__ import main

    main()


def start(process: FarProcess, ends: list[int]) -> int:
    """Fork one process. Return its number."""
    number = os.fork()
    if not number:
        try:
            become(process, ends)
        except BaseException:  # noqa: BLE001 - this process ends here
            traceback.print_exc()
        finally:
            os._exit(FAILED)
    return number


def report(ended: int, number: int, status: int) -> None:
    """Write the exit status of the process whose end the descriptor `ended` told of."""
    _, code = os.waitpid(number, 0)
    with suppress(OSError):
        os.write(status, b"%d" % os.waitstatus_to_exitcode(code))
    os.close(status)
    os.close(ended)


def main() -> None:
    asked = int(sys.argv[1])
    server = socket.socket(fileno=asked)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    load()
    gc.freeze()
    running: dict[int, tuple[int, int]] = {}
    while True:
        ready, _, _ = select.select([asked, *running], [], [])
        for ended in set(ready) & running.keys():
            report(ended, *running.pop(ended))
        if asked not in ready:
            continue
        packet, ends, _, _ = socket.recv_fds(server, REQUEST_BYTES, 4)
        if not packet:
            return
        number = start(FarProcess.read(packet), ends[:3])
        running[os.pidfd_open(number)] = (number, ends.pop())
        for fd in ends:
            os.close(fd)
        server.send(b"%d" % number)


if __name__ == "__main__":
    main()
