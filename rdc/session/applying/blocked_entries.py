"""Entries that have a directory in their place, which has to be emptied before they can be put there.

To empty it is a deletion, so all of them wait until everything else is in place. Content of files waits
beside the directory by then, verified.
"""

from __future__ import annotations

from rdc.errors import ExitCode, FileError, printable
from rdc.lean.records import dataclass
from rdc.progress import Problem
from rdc.session.applying.writing_code import writing_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.session.applying.extraneous_entries import ExtraneousEntries
    from rdc.session.runtime.event_relay import EventRelay

__all__ = ["BlockedEntries"]


@dataclass(frozen=True, slots=True)
class _Blocked:
    path: bytes
    is_ready: Callable[[], bool]
    put: Callable[[], object]


class BlockedEntries:
    """Collects such entries, and puts each in its place once the directory may go."""

    def __init__(self, extraneous: ExtraneousEntries, events: EventRelay) -> None:
        self._extraneous = extraneous
        self._events = events
        self._waiting: list[_Blocked] = []
        self._paths: set[bytes] = set()

    def add(
        self, path: bytes, put: Callable[[], object], is_ready: Callable[[], bool] = lambda: True
    ) -> None:
        """Notes the entry at `path`. `put`: puts it there, where an empty directory is. `is_ready`: whether
        what is to be put is here; if not, that was reported."""
        self._waiting.append(_Blocked(path, is_ready, put))
        self._paths.add(path)

    def __contains__(self, path: bytes) -> bool:
        """Whether the entry at `path` still waits."""
        return path in self._paths

    def put_all(self, withheld: Callable[[], str | None]) -> None:
        """Empties the directories, and puts the entries there. `withheld`: why nothing may be deleted now, as
        ExtraneousEntries.withheld returns it.

        No directory is emptied if it is known of one that it cannot be, and that forbids deletions.
        """
        waiting, self._waiting = self._waiting, []
        self._paths.clear()
        why = withheld()
        ready = [one for one in waiting if one.is_ready() and self._may_go(one, why, foresee=True)]
        for one in ready:
            # An obstacle that was found, or that an earlier one met, may forbid the deletions from there on.
            if self._may_go(one, withheld(), foresee=False):
                try:
                    one.put()
                except FileError as error:
                    self._events.report(Problem(writing_code(error), one.path, str(error)))

    def _may_go(self, one: _Blocked, withheld: str | None, *, foresee: bool) -> bool:
        obstacle = self._extraneous.make_way(one.path, withheld, foresee=foresee)
        if obstacle is not None:
            text = f"{printable(one.path)}: a directory is in the way, {obstacle}"
            self._events.report(Problem(ExitCode.PARTIAL, one.path, text))
        return obstacle is None
