"""Runs command lines of rdc, each in a process of its own that is killed at a system call; see
tests/support/running/killed_calls.py.

Run with killed_calls.c preloaded. Each line on stdin is a JSON array: the number of the call, the verb,
words, and the environment. The answer is a line with the status of the process.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys

from tests.support.running.deduping import dedupe, dupes
from tests.support.running.uniting import united

VERBS = {"dedupe": dedupe, "dupes": dupes, "unite": united}


def main() -> None:
    arm = ctypes.CDLL(None).arm
    # Loads what a run needs, so that each process only runs.
    for run in VERBS.values():
        run("--help")
    for line in sys.stdin:
        at, verb, words, environ = json.loads(line)
        child = os.fork()
        if not child:
            try:
                arm(ctypes.c_long(at))
                os._exit(VERBS[verb](*words, environ=environ).code)
            finally:
                os._exit(99)
        _, status = os.waitpid(child, 0)
        print(status, flush=True)


if __name__ == "__main__":
    main()
