"""Problems in the turns of a watch: each is reported once and tried again, and none ends the watch."""

from __future__ import annotations

from rdc.errors import ExitCode
from rdc.progress import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.progress import Event

__all__ = ["Troubles"]


class Troubles:
    def __init__(self) -> None:
        self.failed: set[bytes] = set()
        """Files of this turn that the destination did not get, because they changed during the read."""
        self.errors = False
        """Whether anything else failed in this turn."""
        self._said: set[tuple[bytes, str]] = set()

    def begin(self, *, whole: bool) -> None:
        """Start a turn. A comparison of the whole trees reports persistent problems again."""
        self.failed.clear()
        self.errors = False
        if whole:
            self._said.clear()

    def take(self, event: Event) -> bool:
        """Record a problem. True: the user should see it. A file that is being written is no error, since it
        is tried again."""
        if not isinstance(event, Problem):
            return True
        if event.code is ExitCode.VANISHED and event.path:
            self.failed.add(event.path)
            return False
        key = (event.path, event.message)
        self.errors = self.errors or event.code is not ExitCode.OK
        if key in self._said:
            return False
        self._said.add(key)
        return True
