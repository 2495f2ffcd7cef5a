"""A remote shell behind a line of a rate and a delay: line_shell.py [--mbit RATE] [--ms MS] HOST COMMAND...

It stands in for ssh, runs COMMAND on this machine, and passes its standard input and output as the line does:
each direction carries RATE, and each byte takes MS more. The line takes up to QUEUE_SECONDS of its rate
before the sender has to wait, as buffers of sockets and routers do. Without --mbit there is no limit.

--account names a file for what passed and what it cost, as JSON: bytes `up` and `down`, `turns` of the
direction, `own_cpu` of this process and `far_cpu` of COMMAND, in seconds.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import select
import shlex
import subprocess
import sys
import time
from collections import deque

READ_BYTES = 1 << 18
"""Read at a time, at most: the fastest lines would need too many turns of this loop with less."""

QUEUE_SECONDS = 0.02

PIPE_BYTES = 1 << 20
"""The size of a pipe if the system allows it. A side then seldom waits for this process to be scheduled."""


class Lane:
    """A direction: `source` to `sink` at `rate` bytes a second, `delay` seconds later. Rate 0: no limit."""

    def __init__(self, source: int, sink: int, rate: float, delay: float) -> None:
        self.source, self.sink = source, sink
        self.passed = 0
        """Bytes taken from `source`."""
        self._rate, self._delay = rate, delay
        self._free = 0.0
        """The time at which the line has carried all that it took."""
        self._queue: deque[tuple[float, memoryview]] = deque()
        """The time at which the bytes arrive, and the bytes."""
        self._held = 0
        """Bytes in `_queue`."""
        self._most = int(rate * (delay + QUEUE_SECONDS)) + PIPE_BYTES
        self._reads = self.open = True
        os.set_blocking(source, False)
        os.set_blocking(sink, False)

    def readable_from(self, now: float) -> float | None:
        """Return when the line takes more; None if the source has ended or the line is full."""
        if not self._reads:
            return None
        if self._held > self._most:
            return None  # nobody takes what has arrived
        return max(now, self._free - QUEUE_SECONDS) if self._rate else now

    def arrival(self) -> float | None:
        """Return when the next bytes arrive; None if none are under way."""
        return self._queue[0][0] if self._queue else None

    def take(self, now: float) -> bool:
        """Read what is there. Return whether bytes came."""
        try:
            content = os.read(self.source, READ_BYTES)
        except BlockingIOError:
            return False
        if not content:
            self._reads = False
            return False
        self.passed += len(content)
        self._held += len(content)
        self._free = max(self._free, now) + (len(content) / self._rate if self._rate else 0.0)
        self._queue.append((self._free + self._delay, memoryview(content)))
        return True

    def give(self, now: float) -> None:
        """Write what has arrived, as far as the sink takes it. What nobody reads any more is dropped."""
        while self._queue and self._queue[0][0] <= now:
            moment, content = self._queue.popleft()
            try:
                written = os.write(self.sink, content)
            except BlockingIOError:
                written = 0
            except BrokenPipeError:
                written = len(content)
            self._held -= written
            if written < len(content):
                self._queue.appendleft((moment, content[written:]))
                return

    def close_if_over(self) -> None:
        """Close the sink once everything has arrived."""
        if self.open and not self._reads and not self._queue:
            os.close(self.sink)
            self.open = False


def carry(up: Lane, down: Lane) -> int:
    """Carry both directions until `down` is over. Return how often the direction changed."""
    turns, last = 0, None
    while down.open:
        now = time.monotonic()
        reads, writes, moments = list[int](), list[int](), list[float]()
        for lane in (up, down):
            arrival, readable = lane.arrival(), lane.readable_from(now)
            for moment, ends, end in ((arrival, writes, lane.sink), (readable, reads, lane.source)):
                if moment is not None and moment <= now:
                    ends.append(end)
                elif moment is not None:
                    moments.append(moment)
        wait = max(0.0, min(moments) - now) if moments else None
        try:
            ready, _, _ = select.select(reads, writes, (), wait)
        except OSError:
            ready = reads
        now = time.monotonic()
        for lane in (up, down):
            if lane.source in ready and lane.take(now):
                turns += lane is not last
                last = lane
            if lane.open:
                lane.give(now)
                lane.close_if_over()
    return turns


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument(
        "--mbit", type=float, default=0.0, help="million bits a second, each direction; 0: no limit"
    )
    parser.add_argument("--ms", type=float, default=0.0, help="milliseconds that each byte takes")
    parser.add_argument("--account", help="where to write what passed")
    parser.add_argument("host")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    words = shlex.split(" ".join(given.command))  # as a remote shell joins and splits them
    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    assert child.stdin is not None and child.stdout is not None
    into, out_of = os.dup(child.stdin.fileno()), child.stdout.fileno()
    child.stdin.close()
    for end in (0, 1, into, out_of):
        with contextlib.suppress(OSError):  # one of them may be a socket
            fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    rate, delay = given.mbit * 1e6 / 8, given.ms / 1e3
    up, down = Lane(0, into, rate, delay), Lane(out_of, 1, rate, delay)
    turns = carry(up, down)
    _, status, usage = os.wait4(child.pid, 0)
    if given.account:
        account = {
            "up": up.passed,
            "down": down.passed,
            "turns": turns,
            "own_cpu": time.process_time(),
            "far_cpu": usage.ru_utime + usage.ru_stime,
        }
        with open(given.account, "w") as file:
            json.dump(account, file)
    sys.stdout.flush()
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


if __name__ == "__main__":
    main()
