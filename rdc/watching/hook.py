"""Hook: a command of the user's that runs after changes, once the watch is quiet.

It runs beside the watch, in a thread that waits for it, so that the session goes on meanwhile. There is never
more than one at a time: what changes while it runs leads to another run after it. What changed is counted,
not listed, so a burst of any length takes no memory.
"""

from __future__ import annotations

import os
import subprocess
import threading

from rdc.errors import ExitCode, one_line
from rdc.lean.records import dataclass
from rdc.limits.sessions import QUIET_SECONDS
from rdc.progress import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.model.watch import InStep

__all__ = ["Changes", "Hook", "run_command"]


@dataclass(frozen=True, slots=True)
class Changes:
    """What one or more turns changed."""

    turns: int = 0
    changed: int = 0
    deleted: int = 0
    files: int = 0
    """Files of the source after the last of these turns."""

    @property
    def environment(self) -> dict[str, str]:
        """The variables that say it."""
        return {
            "RDC_WATCH_TURNS": str(self.turns),
            "RDC_WATCH_CHANGED": str(self.changed),
            "RDC_WATCH_DELETED": str(self.deleted),
            "RDC_WATCH_FILES": str(self.files),
        }


def run_command(words: Sequence[str], changes: Changes) -> str | None:
    """Runs the command, without a shell, and waits for its end. Its stdout is this process's stderr, since
    stdout may be events for a program. Returns what is wrong with it; None if it ended with 0."""
    try:
        ended = subprocess.run(
            words, stdin=subprocess.DEVNULL, stdout=2, env=os.environ | changes.environment, check=False
        )
    except OSError as error:
        return f"cannot be run: {error.strerror or error}"
    except ValueError as error:  # such as a NUL
        return f"cannot be run: {error}"
    if ended.returncode < 0:
        return f"ended by signal {-ended.returncode}"
    return f"ended with exit code {ended.returncode}" if ended.returncode else None


class Hook:
    """Runs a command after turns that changed something. `note` each turn, `close` at the end."""

    def __init__(
        self,
        words: Sequence[str],
        report: Callable[[Problem], None],
        *,
        run: Callable[[Sequence[str], Changes], str | None] = run_command,
        quiet: float = QUIET_SECONDS,
    ) -> None:
        """`report`: told of each run that fails, by the thread that waits for it. `quiet`: seconds without a
        turn before a run begins."""
        self._words = tuple(words)
        self._report = report
        self._run = run
        self._quiet = quiet
        self._state = threading.Condition()
        self._noted = Changes()
        self._closing = False
        self._thread: threading.Thread | None = None

    def note(self, turn: InStep) -> None:
        """Counts what a turn changed, if it did. Never waits."""
        if not (turn.changed or turn.deleted):
            return
        with self._state:
            before = self._noted
            self._noted = Changes(
                before.turns + 1,
                before.changed + turn.changed,
                before.deleted + turn.deleted,
                turn.files,
            )
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="rdc hook", daemon=True)
                self._thread.start()
            self._state.notify()

    def close(self) -> None:
        """Runs what is due at once, and waits for its end."""
        with self._state:
            self._closing = True
            self._state.notify()
            thread = self._thread
        if thread is not None:
            thread.join()

    def _work(self) -> None:
        while (changes := self._next()) is not None:
            problem = self._run(self._words, changes)
            if problem is not None:
                said = f"--on-sync: {one_line(' '.join(self._words))}: {problem}; the watch goes on"
                self._report(Problem(ExitCode.PARTIAL, b"", said))

    def _next(self) -> Changes | None:
        """Waits for changes, and then until it is quiet. None: there will be no more."""
        with self._state:
            while not self._noted.turns:
                if self._closing:
                    return None
                self._state.wait()
            turns = 0
            while turns != self._noted.turns and not self._closing:
                turns = self._noted.turns
                self._state.wait(self._quiet)
            changes, self._noted = self._noted, Changes()
            return changes
