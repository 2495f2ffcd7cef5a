"""What goes wrong in the turns of a watch: told once, tried again, never the end of it."""

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
        """Files of this turn that the destination did not get, because they changed while they were read."""
        self.errors = False
        """Something else failed in this turn."""
        self._said: set[tuple[bytes, str]] = set()

    def begin(self, *, whole: bool) -> None:
        """A turn. When the whole trees are compared, what still fails is news again."""
        self.failed.clear()
        self.errors = False
        if whole:
            self._said.clear()

    def take(self, event: Event) -> bool:
        """True when the user should hear of it. A file that is being written is no error: it is tried
        again."""
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
