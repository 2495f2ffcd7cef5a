"""Files that come whole: asked for at once, in any number, and checked against their root as they arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from blake3 import blake3

from rdc.errors import FileError, ProtocolError, printable
from rdc.files.replace import Replacement
from rdc.files.spool import Spool
from rdc.limits import FILES_PER_MESSAGE
from rdc.protocol.messages import FileRequest
from rdc.session.driver import Send
from rdc.session.file_queue import FileQueue
from rdc.session.rebuild import Arrival, MismatchError
from rdc.signature.build import chunk_root

if TYPE_CHECKING:
    from rdc.protocol.messages import Data, FileBatch, FileEnd
    from rdc.session.driver import Conversation
    from rdc.session.transfer_context import TransferContext

__all__ = ["WholeFiles"]


class WholeFiles:
    """No state is needed for a file until it arrives, so all of them may be asked for at once."""

    def __init__(self, context: TransferContext) -> None:
        self._context = context
        self._waiting = FileQueue()
        self._asked = 0
        self._retried: set[int] = set()
        self._arrival: Arrival | None = None
        self._skipping: int | None = None

    @property
    def idle(self) -> bool:
        return not (self._waiting or self._asked)

    def add(self, file: int) -> None:
        """Have this file fetched."""
        self._waiting.append(file)

    def pump(self, round_: int) -> Conversation[None]:
        """Asks for all that wait."""
        while self._waiting:
            files = self._waiting.drained(FILES_PER_MESSAGE)
            self._asked += len(files)
            yield Send(FileRequest(files), round_)

    def take_data(self, message: Data) -> None:
        if message.file == self._skipping:
            return
        try:
            arrival = self._arriving(message.file)
            arrival.push(message.payload, message.chunks)
            self._context.tally.arriving(arrival.temporary.size)
        except FileError as error:
            self._context.problem(self._context.entries.entry(message.file).path, error)
            self._skip(message.file)

    def take_batch(self, message: FileBatch) -> None:
        """Small files: nothing of them is written before all their roots were compared."""
        self._asked -= len(message.files)
        context, params = self._context, self._context.signer.params
        with memoryview(message.payload) as view:
            contents = []
            at = 0
            for size in message.sizes:
                contents.append(view[at : at + size])
                at += size
            if (
                blake3(b"".join(chunk_root(content, params) for content in contents)).digest()
                != message.digest
            ):
                for file in message.files:
                    self._retry(file, "the contents that arrived do not have the announced roots")
                return
            for file, content in zip(message.files, contents, strict=True):
                entry = context.entries.entry(file)
                try:
                    expected = context.expected(file, entry.path)
                    temporary = Replacement(context.root, entry.path)
                    temporary.write(content)
                    context.landing.commit(file, entry.path, temporary, entry.metadata, expected)
                except FileError as error:
                    context.problem(entry.path, error)
                context.tally.literal_bytes += len(content)
                context.tally.advance(len(content))

    def take_end(self, message: FileEnd) -> None:
        self._asked -= 1
        if self._skipping == message.file:
            self._skipping = None
            return
        context = self._context
        path = context.entries.entry(message.file).path
        try:
            arrival, self._arrival = self._arriving(message.file), None
            arrival.finish(message.root)
        except MismatchError:
            arrival.temporary.abandon()
            self._retry(message.file, "the content that arrived does not have the announced root")
            return
        except FileError as error:
            context.problem(path, error)
            return
        context.tally.literal_bytes += message.size
        metadata = context.metadata(message.file, message.mtime_ns)
        context.landing.commit(message.file, path, arrival.temporary, metadata, arrival.expected)
        context.tally.advance(message.size)

    def take_failure(self, file: int) -> None:
        """The source could not send this file, or its rest."""
        if self._asked:
            self._asked -= 1
            if self._arrival is not None and self._arrival.file == file:
                self._skip(file)
            self._skipping = None

    def close(self) -> None:
        """What came of an unfinished file stays for the next run to go on from."""
        if self._arrival is not None:
            self._arrival.temporary.keep()
            self._arrival = None

    def _arriving(self, file: int) -> Arrival:
        if self._arrival is None:
            context = self._context
            entry = context.entries.entry(file)
            path = entry.path
            expected = context.expected(file, path)
            temporary = Replacement(context.root, path, expected_size=entry.size)
            self._arrival = Arrival(file, path, context.signer.params, temporary, expected, Spool)
        if self._arrival.file != file:
            raise ProtocolError(f"content of file {file} before file {self._arrival.file} ended")
        return self._arrival

    def _retry(self, file: int, why: str) -> None:
        path = self._context.entries.entry(file).path
        if file in self._retried:
            self._context.problem(path, MismatchError(path, f"{printable(path)}: {why}"))
        else:
            self._retried.add(file)
            self.add(file)

    def _skip(self, file: int) -> None:
        if self._arrival is not None:
            self._arrival.temporary.abandon()
        self._arrival = None
        self._skipping = file
