"""Files whose contents are compared by their roots before anything else is done about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rdc.errors import FileError
from rdc.limits import FILES_PER_MESSAGE
from rdc.protocol.messages import RootRequest
from rdc.session.driver import Send
from rdc.session.file_queue import FileQueue
from rdc.signature.records import SHORT_REFERENCE_BYTES, root_reference

if TYPE_CHECKING:
    from rdc.protocol.messages import RootAnswer
    from rdc.session.driver import Conversation
    from rdc.session.file_descents import FileDescents
    from rdc.session.transfer_context import TransferContext

__all__ = ["ContentChecks"]

ALIKE_FILES = 32
"""Files with another mtime and the same size from which on short references of all roots are compared first:
8 bytes a file, where a tree's top has 60, and a round trip more for those that differ."""

FILES_PER_CHECK = 1024
"""Files in one such request: the far side signs the next while this one compares."""


class ContentChecks:
    """Compares roots, and hands what differs to `descents`."""

    def __init__(self, context: TransferContext, descents: FileDescents) -> None:
        self._context = context
        self._descents = descents
        self._demanded = FileQueue()
        self._alike = FileQueue()
        self._touched: set[int] = set()
        """Of those being compared: the ones of which only the mtime said so."""
        self._asked: set[int] = set()

    @property
    def idle(self) -> bool:
        return not (self._demanded or self._alike or self._asked)

    def demand(self, file: int) -> None:
        """The user wants the contents of this file compared; its whole root is."""
        self._context.tally.compare_bytes += self._context.entries.entry(file).size
        self._demanded.append(file)

    def touched(self, file: int) -> None:
        """This file has another mtime and the same size; it is counted as one to be fetched already."""
        self._alike.append(file)

    def pump(self, round_: int, *, planned: bool) -> Conversation[None]:
        """Asks for the roots of all that wait; `planned`: how much there is to compare is known."""
        while self._demanded and planned:
            files = self._demanded.drained(FILES_PER_MESSAGE)
            self._asked.update(files)
            yield Send(RootRequest(files), round_)
        if len(self._alike) < ALIKE_FILES:
            for file in self._alike:
                self._descents.add(file)
            self._alike.clear()
        while self._alike:
            files = self._alike.drained(FILES_PER_CHECK)
            self._asked.update(files)
            self._touched.update(files)
            yield Send(RootRequest(files, SHORT_REFERENCE_BYTES), round_)

    def take(self, message: RootAnswer, round_: int) -> Conversation[None]:
        context = self._context
        for row, file in enumerate(message.files):
            self._asked.discard(file)
            entry, root = context.entries.entry(file), None
            try:
                with context.root.open_read(entry.path) as held:
                    if held.size == message.sizes[row]:
                        root = context.signer.catalog.root(held, context.signer.params)
                        root = root or (yield from context.sign(held, entry.size, round_)).root
            except FileError:
                root = None  # what cannot be compared is replaced
            if root is not None:
                root = root_reference(root, context.secret, message.width)
            touched = file in self._touched
            self._touched.discard(file)
            if touched and root != message.root(row):
                self._descents.add(file)
                continue
            context.tally.compared(entry.size)
            if root == message.root(row):
                context.landing.same(file, None)
                if touched:
                    context.tally.advance(message.sizes[row])
            elif context.landing.differs(file):
                context.tally.total_bytes += entry.size
                context.tally.compare_bytes += entry.size
                self._descents.add(file)

    def take_failure(self, file: int) -> bool:
        """The source could not read this file; False when its root was not asked for."""
        if file not in self._asked:
            return False
        self._asked.discard(file)
        self._touched.discard(file)
        self._context.tally.compared(self._context.entries.entry(file).size)
        return True
