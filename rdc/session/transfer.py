"""Files on their way to the destination: from the decision that one differs to its hand-over for commit.

A file that the destination lacks comes whole; one that it has in another version moves by descent. Nothing is
handed over before a 32-byte digest of it was compared: the digest of what came whole, the root of what was
rebuilt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rdc.errors import ProtocolError, printable
from rdc.files.replacement import KEEP_BYTES
from rdc.progress import Problem
from rdc.protocol.messages import (
    BlockAnswer,
    Data,
    DigestAnswer,
    FileBatch,
    FileEnd,
    FileFailed,
    Literals,
    NodeAnswer,
    RootAnswer,
    TraitsAnswer,
    TreeAnswer,
)
from rdc.session.content_checks import ContentChecks
from rdc.session.file_descents import FileDescents
from rdc.session.moves import Moves
from rdc.session.origins import Origins
from rdc.session.whole_files import WholeFiles

if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.protocol.connection import Received
    from rdc.session.driver import Conversation
    from rdc.session.transfer_context import TransferContext
    from rdc.session.vanished import Vanished

__all__ = ["Transfers"]

WHOLE_BYTES = 1024
"""Changed files up to this size come whole: compressed hardly longer than a root and fingerprints, and round
trips sooner."""


class Transfers:
    """All files in flight. Requests go out in `pump`, answers come in by `take`."""

    def __init__(self, context: TransferContext) -> None:
        self._context = context
        self.tally = context.tally
        self._wholes = WholeFiles(context)
        self._descents = FileDescents(context, self._wholes)
        self._checks = ContentChecks(context, self._descents)
        self._moves = Moves(context)
        self._origins = Origins(context, self._descents, self._wholes, self._moves)
        self._planned = False

    @property
    def idle(self) -> bool:
        return self._checks.idle and self._origins.idle and self._descents.idle and self._wholes.idle

    def check(self, file: int) -> None:
        """Compare the content of a file that both sides have, then go on as needed."""
        self._checks.demand(file)

    def update(self, file: int, *, same_size: bool = False) -> None:
        """Bring the content of a file up to date from the version at its path; `same_size`: as listed."""
        size = self._context.entries.entry(file).size
        self.tally.total_bytes += size
        if size <= WHOLE_BYTES and not same_size:
            self._wholes.add(file)
            return
        self.tally.compare_bytes += size
        if same_size:
            self._checks.touched(file)
        else:
            self._descents.add(file)

    def create(self, file: int, path: bytes, size: int) -> None:
        """Fetch a file that is not here: what an interrupted run did not get of it, or what no other file
        here has, or all of it."""
        self.tally.total_bytes += size
        if self._context.dry:
            if self._planned or not self._context.seeks:
                self._context.landing.rehearse(file)
            else:
                self._origins.seek(file)
        elif size > KEEP_BYTES and self._context.leftovers.of(path) is not None:
            self.tally.compare_bytes += size
            self._descents.add(file)
        elif self._context.seeks and not self._planned:
            self._origins.seek(file)
        else:
            self._wholes.add(file)

    def plan_known(self, vanished: Callable[[], Vanished], *, rename: bool) -> None:
        """Everything is listed: how much there is to compare is known. `vanished`: files here that the source
        does not have; with `rename` they will be deleted."""
        self._planned = True
        if self._origins.waiting:
            self._origins.plan(vanished(), rename=rename)
        self.tally.plan_known()

    def pump(self, round_: int) -> Conversation[None]:
        """Sends what may be asked for now. Whole files come while the rest is still listed."""
        yield from self._checks.pump(round_, planned=self._planned)
        if self._planned:
            yield from self._origins.pump(round_)
            yield from self._descents.pump(round_)
        yield from self._wholes.pump(round_)

    def move(self, spare: Callable[[bytes], None], round_: int) -> Conversation[None]:
        """Renames what was only moved, now that deletions begin; in a dry run tells `spare` what would be."""
        yield from self._origins.move(spare, round_)

    def take(self, received: Received) -> Conversation[None]:
        """Takes one answer."""
        message, round_ = received.message, received.round + 1
        if isinstance(message, Data):
            if not self._descents.take_data(message):
                self._wholes.take_data(message)
        elif isinstance(message, Literals):
            yield from self._descents.take_literals(message, round_)
        elif isinstance(message, FileBatch):
            self._wholes.take_batch(message)
        elif isinstance(message, FileEnd):
            if not (yield from self._descents.take_end(message.file, round_)):
                if message.digest:
                    self._wholes.take_end(message)
                else:
                    self._descents.expire(message.file)
        elif isinstance(message, TreeAnswer):
            yield from self._descents.take_tree(message, round_)
        elif isinstance(message, NodeAnswer):
            yield from self._descents.take_nodes(message, round_)
        elif isinstance(message, BlockAnswer):
            yield from self._descents.take_blocks(message, round_)
        elif isinstance(message, RootAnswer):
            yield from self._checks.take(message, round_)
        elif isinstance(message, DigestAnswer):
            yield from self._origins.take_digest(message, round_)
        elif isinstance(message, TraitsAnswer):
            yield from self._origins.take_traits(message, round_)
        elif isinstance(message, FileFailed):
            self._take_failure(message)
        else:
            raise ProtocolError(f"a destination was sent {type(message).__name__}")

    def close(self) -> None:
        """Gives everything back. What came of unfinished files stays for the next run to go on from."""
        self._descents.close()
        self._wholes.close()

    def _take_failure(self, message: FileFailed) -> None:
        file = message.file
        if not self._descents.take_failure(file):
            if self._descents.expire(file):
                return
            if not (self._checks.take_failure(file) or self._origins.take_failure(file)):
                self._wholes.take_failure(file)
        path = self._context.entries.entry(file).path
        self._context.news.report(Problem(message.code, path, printable(message.message)))
