"""Events on their way to the user, who sits at the dialling side: told there, sent from the other side."""

from __future__ import annotations

import time

from rdc.errors import ExitCode, printable
from rdc.limits import ITEMS_BYTES, ITEMS_PER_MESSAGE
from rdc.progress import ItemChanged, PlanKnown, Problem, Progressed
from rdc.protocol.messages import Items, Notice, Plan, Progress
from rdc.session.commands import Send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rdc.progress import Event, Reporter
    from rdc.protocol.messages import Message
    from rdc.session.commands import Conversation

__all__ = ["News"]

PROGRESS_SECONDS = 0.25
"""Between two of the progress messages of a phase that are sent: some 20 bytes each."""


class News:
    """Takes a conversation's events. With a reporter (this is the user's side) they go there at once;
    without, they wait for `tell`, which sends them, progress no more often than it is worth on a slow line.
    Counts problems either way.
    """

    def __init__(
        self,
        reporter: Reporter | None,
        clock: Callable[[], float] = time.monotonic,
        *,
        items: bool = True,
    ) -> None:
        """`clock`: seconds that never go back. `items`: the far side wants to hear of changed entries."""
        self._reporter = reporter
        self._items = items
        self._clock = clock
        self._shown: dict[str, float] = {}
        self._waiting: list[Event] = []
        self.codes: set[ExitCode] = set()
        self.errors = 0

    def report(self, event: Event) -> None:
        if isinstance(event, Problem) and event.code is not ExitCode.OK:
            self.codes.add(event.code)
            self.errors += 1
        if self._reporter is not None:
            self._reporter(event)
        elif isinstance(event, ItemChanged) and not self._items:
            pass
        elif not (isinstance(event, Progressed) and self._too_soon(event)):
            self._waiting.append(event)

    @property
    def shown(self) -> bool:
        """This is the user's side."""
        return self._reporter is not None

    @property
    def lists_items(self) -> bool:
        """Somebody wants to hear of changed entries."""
        return self._items or self.shown

    @property
    def waits(self) -> bool:
        """Something is there to `tell`."""
        return bool(self._waiting)

    def tell(self, round_: int) -> Conversation[None]:
        """Sends what waits."""
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            for message in _messages(waiting):
                yield Send(message, round_)

    def _too_soon(self, event: Progressed) -> bool:
        now = self._clock()
        last = self._shown.get(event.phase)
        if last is not None and now - last < PROGRESS_SECONDS and event.done != event.total:
            return True
        self._shown[event.phase] = now
        return False

    def take(self, message: Message) -> bool:
        """Reports an event that the far side sent; False when the message is none."""
        if not isinstance(message, (Items, Progress, Plan, Notice)):
            return False
        if isinstance(message, Items):
            targets = message.targets or (b"",) * len(message.paths)
            for change, path, target in zip(message.codes, message.paths, targets, strict=True):
                # The far side received it, so from here it was sent: rsync's '<'.
                shown = "<" + change[1:] if change[0] == ">" else change
                self.report(ItemChanged(shown, path, target or None))
        elif isinstance(message, Progress):
            self.report(Progressed(message.phase, message.done, message.total))
        elif isinstance(message, Plan):
            self.report(PlanKnown(message.files, message.bytes, message.deletes))
        else:
            self.report(Problem(ExitCode(message.code), message.path, printable(message.message)))
        return True


def _messages(events: list[Event]) -> Iterator[Message]:
    """In their order; items that follow each other share messages."""
    items: list[ItemChanged] = []
    size = 0
    for event in events:
        if isinstance(event, ItemChanged):
            length = len(event.path) + len(event.target or b"") + 2
            if items and (len(items) == ITEMS_PER_MESSAGE or size + length > ITEMS_BYTES):
                yield _joined(items)
                items, size = [], 0
            items.append(event)
            size += length
            continue
        if items:
            yield _joined(items)
            items, size = [], 0
        if isinstance(event, Progressed):
            yield Progress(event.phase, event.done, event.total)
        elif isinstance(event, PlanKnown):
            yield Plan(event.files, event.bytes, event.deletes)
        else:
            yield Notice(event.code, event.path, event.message)
    if items:
        yield _joined(items)


def _joined(items: list[ItemChanged]) -> Items:
    linked = any(item.target for item in items)
    return Items(
        "".join([item.change for item in items]),
        tuple([item.path for item in items]),
        tuple([item.target or b"" for item in items]) if linked else (),
    )
