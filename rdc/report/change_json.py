"""What the JSON events of all commands share that change files on request: how they start."""

from __future__ import annotations

from rdc.report.json_events import JsonEvents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ChangeJson"]


class ChangeJson(JsonEvents):
    """Receives the events of one run, which changes files or, as a dry run, only says how."""

    def __init__(
        self,
        write: Callable[[str], None],
        flush: Callable[[], None],
        clock: Callable[[], float],
        *,
        dry_run: bool,
    ) -> None:
        super().__init__(write, flush, clock)
        self._dry_run = dry_run

    def start(self) -> None:
        self.emit("start", dry_run=self._dry_run)
