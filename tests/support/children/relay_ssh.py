"""A stand-in for ssh that counts, cuts or garbles what passes: relay_ssh.py [OPTIONS] HOST COMMAND...

Counts go to a file as JSON, with the peak memory and CPU seconds of COMMAND, and how often the direction of
the stream turned. A cut kills COMMAND and ends both streams; after junk both end, and COMMAND is left to find
out. A signal goes to COMMAND, to who started this, or to both, once so many bytes have passed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable

READ_BYTES = 1 << 16

JUNK_BYTES = 1 << 16
"""Random bytes in place of the rest of a stream: more than any block, so that nobody waits for its end."""


class Lane:
    """One direction."""

    def __init__(
        self,
        read_fd: int,
        write_fd: int,
        cut: int | None,
        junk: int | None,
        passing: Callable[[Lane], None],
    ) -> None:
        self.passed = 0
        self._passing = passing
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._limit = cut if junk is None else junk
        self._junk = junk is not None

    def run(self, at_limit: Callable[[], None]) -> None:
        """Pass everything on, up to the limit of a cut, which is `at_limit`'s, or of junk."""
        while data := os.read(self._read_fd, READ_BYTES):
            if self._limit is not None and self.passed + len(data) >= self._limit:
                self._write(data[: self._limit - self.passed])
                if not self._junk:
                    at_limit()
                self._write(random.Random(self._limit).randbytes(JUNK_BYTES))
                break
            self._write(data)
        os.close(self._write_fd)

    def _write(self, data: bytes) -> None:
        self.passed += len(data)
        self._passing(self)
        left = memoryview(data)
        try:
            while left:
                try:
                    left = left[os.write(self._write_fd, left) :]
                except BlockingIOError:  # rsync sets this for its end of the pipe, which is ours as well
                    select.select((), (self._write_fd,), ())
        except BrokenPipeError:
            return  # as with ssh: what nobody reads any more is dropped


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in ("--cut-up", "--cut-down", "--junk-up", "--junk-down"):
        parser.add_argument(name, type=int)
    parser.add_argument("--account")
    parser.add_argument("--signal", help="NAME:near|far|both:BYTES, of both directions together")
    parser.add_argument("host")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()

    child = subprocess.Popen(given.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    assert child.stdin is not None and child.stdout is not None
    into, out_of = os.dup(child.stdin.fileno()), os.dup(child.stdout.fileno())
    child.stdin.close()
    child.stdout.close()
    lanes: list[Lane] = []
    turns = 0
    last: Lane | None = None
    watch = threading.Lock()
    name, whom, after = (given.signal or "::").split(":")

    def passing(lane: Lane) -> None:
        nonlocal turns, last, whom
        with watch:
            turns += lane is not last
            last = lane
            if whom and sum(one.passed for one in lanes) >= int(after):
                number = signal.Signals[f"SIG{name}"]
                if whom in {"near", "both"}:
                    os.kill(os.getppid(), number)
                if whom in {"far", "both"}:
                    child.send_signal(number)
                whom = ""

    up = Lane(0, into, given.cut_up, given.junk_up, passing)
    down = Lane(out_of, 1, given.cut_down, given.junk_down, passing)
    lanes += [up, down]

    once = threading.Lock()

    def end(status: int) -> None:
        once.acquire()  # for good: the first end is the end
        _, code, usage = os.wait4(child.pid, 0)
        if given.account:
            account = {
                "up": up.passed,
                "down": down.passed,
                "turns": turns,
                "rss": usage.ru_maxrss * 1024,
                "cpu": usage.ru_utime + usage.ru_stime,
                "relay_cpu": time.process_time(),
            }
            with open(given.account, "w") as file:
                json.dump(account, file)
        os._exit(status or os.waitstatus_to_exitcode(code) & 0xFF)

    def cut() -> None:
        child.send_signal(signal.SIGKILL)
        end(255)

    threading.Thread(target=up.run, args=(cut,), daemon=True).start()
    down.run(cut)
    end(0)


if __name__ == "__main__":
    main()
