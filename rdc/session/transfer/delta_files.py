"""The scheduler of files that come by delta: it starts them and routes each message to its file.

rdc.session.transfer.delta_file has the steps of one file. Here is what files share: tree requests are sent
together, files wait until there is room, and equal contents are copied after everything else.
"""

from __future__ import annotations

from itertools import chain

from rdc.limits.wire import FILES_PER_MESSAGE
from rdc.protocol.messages import TreeRequest
from rdc.session.delta.bases import Bases
from rdc.session.delta.file_comparison import LEAF_BLOCK
from rdc.session.runtime.commands import Flush, Send
from rdc.session.transfer.delta_context import DeltaContext, DuplicateContents, Room, StaleAnswers
from rdc.session.transfer.delta_file import Answer, DeltaFile, NextAnswer
from rdc.session.transfer.file_queue import FileQueue
from rdc.signature.records import SHORT_REFERENCE_BYTES, reference_width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.protocol.messages.content import FileMessage
    from rdc.session.delta.bases import SignedFile
    from rdc.session.landing.transfer_context import TransferContext
    from rdc.session.runtime.commands import Conversation
    from rdc.session.transfer.delta_file import Steps
    from rdc.session.transfer.whole_files import WholeFiles

__all__ = ["DeltaFiles"]


class DeltaFiles:
    """Files wait, start when there is room, and get the messages that are about them."""

    def __init__(self, context: TransferContext, wholes: Callable[[], WholeFiles]) -> None:
        self._context = context
        self._shared = DeltaContext(
            context, Bases(context), DuplicateContents(context), wholes, Room(), StaleAnswers()
        )
        self._waiting = FileQueue()
        self._files: dict[int, DeltaFile] = {}
        self._steps: dict[int, Steps[None]] = {}
        """The files in work, and how far each is."""

    @property
    def idle(self) -> bool:
        return not (self._waiting or self._files or self._shared.stale or self._shared.duplicates)

    @property
    def waits(self) -> bool:
        """Files wait for `pump`."""
        return bool(self._waiting or self._shared.duplicates)

    def add(self, file: int, bases: tuple[bytes, ...] = ()) -> None:
        """Adds a file to be brought up to date from its old version and from the files at `bases`."""
        if bases:
            self._shared.bases.name(file, bases)
        self._waiting.append(file)

    def copy(
        self, file: int, base: SignedFile, round_: int, *, mtime_ns: int | None = None
    ) -> Conversation[None]:
        """Makes a file from `base`, which has its content. `mtime_ns`: in place of the listed one."""
        path = self._context.entries.entry(file).path
        one = DeltaFile(self._shared, file, path, width=SHORT_REFERENCE_BYTES)
        yield from self._start(one, one.copy(base, self._context.metadata(file, mtime_ns), round_))

    def pump(self, round_: int) -> Conversation[None]:
        """Starts as many waiting files as there is room for."""
        starting: dict[int, list[DeltaFile]] = {}
        while self._waiting and self._shared.room.has_room:
            one = self._enter(self._waiting.popleft())
            starting.setdefault(one.width, []).append(one)
        for width, files in starting.items():
            for first in range(0, len(files), FILES_PER_MESSAGE):
                asked = sorted(one.file for one in files[first : first + FILES_PER_MESSAGE])
                yield Send(TreeRequest(tuple(asked), width, LEAF_BLOCK), round_)
        if starting:
            # The source signs its versions now, so ours are signed at the same time.
            yield Flush()
            for one in chain(*starting.values()):
                yield from self._start(one, one.bring_up_to_date(round_))
        elif self._shared.duplicates and not self._files and self._shared.wholes().idle:
            yield from self._copy_duplicates(round_)

    def _enter(self, file: int) -> DeltaFile:
        """Makes the state of a file that is about to be requested."""
        entry, mean = self._context.entries.entry(file), self._context.signer.params.mean
        # About 50 bytes a chunk on each side, and as much again for the lookup.
        estimate = 4096 + entry.size // int(mean) * 100
        width = reference_width(entry.size, mean)
        one = DeltaFile(
            self._shared,
            file,
            entry.path,
            width=width,
            listed=entry.metadata,
            listed_size=entry.size,
            estimate=estimate,
        )
        self._files[file] = one
        return one

    def _copy_duplicates(self, round_: int) -> Conversation[None]:
        """Copies files whose content was fetched for another path."""
        duplicates = self._shared.duplicates
        for copied in duplicates.drained():
            base = yield from duplicates.base(copied, round_)
            if base is None:
                self._shared.wholes().add(copied.file)
            else:
                yield from self.copy(copied.file, base, round_, mtime_ns=copied.mtime_ns)

    def take(self, message: FileMessage, round_: int) -> Conversation[bool]:
        """Gives a message to the file that it is about. False: to none of these."""
        one = self._files.get(message.file)
        if one is None:
            return self._shared.stale.drop(message)
        yield from self._advance(one, Answer(message, round_))
        return True

    def take_failure(self, file: int) -> bool:
        """The source could not answer for this file. False: it is none of these, or was given up before."""
        one = self._files.get(file)
        if one is None:
            return False
        one.leave(failed=True)
        self._end(one)
        return True

    def close(self) -> None:
        """Releases everything. Parts of unfinished files stay for the next run to resume from."""
        for one in self._files.values():
            one.interrupt()
        for steps in self._steps.values():
            steps.close()

    def _start(self, one: DeltaFile, steps: Steps[None]) -> Conversation[None]:
        self._files[one.file] = one
        self._steps[one.file] = steps
        yield from self._advance(one, None)

    def _advance(self, one: DeltaFile, answer: Answer | None) -> Conversation[None]:
        """Runs a file until it waits for its next answer, or has ended."""
        steps = self._steps[one.file]
        try:
            step = steps.send(answer)
            while not isinstance(step, NextAnswer):
                step = steps.send((yield step))
        except StopIteration:
            self._end(one)

    def _end(self, one: DeltaFile) -> None:
        del self._files[one.file]
        self._steps.pop(one.file).close()
