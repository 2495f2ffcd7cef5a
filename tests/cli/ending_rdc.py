"""rdc as a command that tells how its process ended: ending_rdc.py ACCOUNT WORDS...

ACCOUNT gets a line for each thread that is started, and one when Python takes itself apart.
"""

from __future__ import annotations

import atexit
import sys
import threading

from rdc.catalog import signer
from rdc.cli.main import entry

STARTED, APART = "thread", "taken apart"
_start = threading.Thread.start


def _note(line: str) -> None:
    with open(sys.argv[0], "a") as account:
        account.write(f"{line}\n")


def _noted(thread: threading.Thread) -> None:
    _note(STARTED)
    _start(thread)


if __name__ == "__main__":
    del sys.argv[0]
    signer._usable_cpus, signer.THREADS_WORTH = lambda: 2, 0
    threading.Thread.start = _noted  # type: ignore[method-assign, assignment] # for this process
    atexit.register(_note, APART)
    entry()
