"""Files whose contents are compared by their roots before anything else is done about them."""

from __future__ import annotations

from math import isqrt
from typing import TYPE_CHECKING

from rdc.errors import FileError
from rdc.limits import FILES_PER_GROUP, FILES_PER_MESSAGE
from rdc.protocol.messages import RootRequest
from rdc.session.driver import Send
from rdc.session.file_queue import FileQueue
from rdc.signature.records import group_references, root_reference

if TYPE_CHECKING:
    from rdc.protocol.messages import RootAnswer
    from rdc.session.driver import Conversation
    from rdc.session.file_descents import FileDescents
    from rdc.session.transfer_context import TransferContext

__all__ = ["ContentChecks"]

ALIKE_FILES = 32
"""Files with another mtime and the same size from which on short references of roots are compared first,
where a tree's top has 60 bytes: a round trip or two more for those that differ."""

GROUP_FILES = 16
"""Of so many files at least at first by one reference: 0.4 bytes a file, and 6 bytes for those of groups that
differ. Where one in a hundred differs, 1.3 bytes a file in place of 6."""

REFERENCE_BYTES = 6
"""Of a root, or of a group of them. Each is compared with one other: that a million files which differ all
show is certain but for 2^-28."""

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
        self._suspects = FileQueue()
        """Of groups that differ."""
        self._roots: dict[int, bytes] = {}
        """Of the files here that have to be asked about once more."""

    @property
    def idle(self) -> bool:
        return not (self._demanded or self._alike or self._suspects or self._asked)

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
        if planned and len(self._alike) < ALIKE_FILES:
            for file in self._alike:
                self._descents.add(file)
            self._alike.clear()
        group = self._group() if planned else 0
        while self._alike and planned:
            files = self._alike.drained(FILES_PER_CHECK)
            self._asked.update(files)
            self._touched.update(files)
            yield Send(RootRequest(files, REFERENCE_BYTES, group), round_)
        while self._suspects:
            files = self._suspects.drained(FILES_PER_MESSAGE)
            self._asked.update(files)
            yield Send(RootRequest(files, REFERENCE_BYTES), round_)

    def _group(self) -> int:
        """Files to a reference where half as many differ in content alone as differ in size: both questions
        then cost the same."""
        alike = len(self._alike)
        differing = max(0, self._context.landing.planned - alike) // 2 + 1
        return max(GROUP_FILES, min(isqrt(alike // differing), FILES_PER_GROUP))

    def take(self, message: RootAnswer, round_: int) -> Conversation[None]:
        context = self._context
        if message.group > 1:
            yield from self._take_groups(message, round_)
            return
        for row, file in enumerate(message.files):
            self._asked.discard(file)
            entry = context.entries.entry(file)
            size = message.sizes[row] if message.sizes else None
            root = self._roots.pop(file, None) or (yield from self._root(file, size, round_))
            if root is not None:
                root = root_reference(root, context.secret, message.width)
            touched = file in self._touched
            if touched and root != message.root(row):
                self._touched.discard(file)
                self._descents.add(file)
            elif root == message.root(row):
                self._same(file)
            else:
                context.tally.compared(entry.size)
                if context.landing.differs(file):
                    context.tally.total_bytes += entry.size
                    context.tally.compare_bytes += entry.size
                    self._descents.add(file)

    def _take_groups(self, message: RootAnswer, round_: int) -> Conversation[None]:
        """Where a group differs, its files are asked about one by one."""
        context, group = self._context, message.group
        for number in range(message.references):
            files = message.files[number * group : (number + 1) * group]
            roots: list[bytes] = []
            for file in files:
                self._asked.discard(file)
                root = yield from self._root(file, None, round_)
                if root is not None:
                    roots.append(root)
                    self._roots[file] = root
            reference = b""
            if len(roots) == len(files):
                reference = group_references(roots, context.secret, message.width, group)
            for file in files:
                if reference == message.root(number):
                    del self._roots[file]
                    self._same(file)
                else:
                    self._suspects.append(file)

    def _root(self, file: int, size: int | None, round_: int) -> Conversation[bytes | None]:
        """The root of what is held, if it has the right `size`; what cannot be compared is replaced."""
        context = self._context
        entry = context.entries.entry(file)
        try:
            with context.root.open_read(entry.path) as held:
                if size is not None and held.size != size:
                    return None
                root = context.signer.catalog.root(held, context.signer.params)
                return root or (yield from context.sign(held, entry.size, round_)).root
        except FileError:
            return None

    def _same(self, file: int) -> None:
        size = self._context.entries.entry(file).size
        self._context.tally.compared(size)
        self._context.landing.same(file, None)
        if file in self._touched:
            self._touched.discard(file)
            self._context.tally.advance(size)

    def take_failure(self, file: int) -> bool:
        """The source could not read this file; False when its root was not asked for."""
        if file not in self._asked:
            return False
        self._asked.discard(file)
        self._touched.discard(file)
        self._roots.pop(file, None)
        self._context.tally.compared(self._context.entries.entry(file).size)
        return True
