"""Files on their way to the destination: from the decision that one differs to its hand-over for commit.

A file that the destination lacks comes whole; one that it has in another version moves by descent. Nothing is
handed over before a 32-byte digest of it was compared: the digest of what came whole, the root of what was
rebuilt.
"""

from __future__ import annotations

from rdc.errors import ProtocolError, printable
from rdc.files.replacement import KEEP_BYTES
from rdc.progress import Problem
from rdc.protocol.messages import (
    BlockAnswer,
    Code,
    Correction,
    Data,
    DigestAnswer,
    FileBatch,
    FileEnd,
    FileFailed,
    Literals,
    NodeAnswer,
    RootAnswer,
    Table,
    Targets,
    TraitsAnswer,
    TreeAnswer,
)
from rdc.typed import Generic, TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.protocol.connection import Received
    from rdc.session.bundles import Bundles
    from rdc.session.commands import Conversation
    from rdc.session.content_checks import ContentChecks
    from rdc.session.file_descents import FileDescents
    from rdc.session.held_back import HeldBack
    from rdc.session.origins import Origins
    from rdc.session.transfer_context import TransferContext
    from rdc.session.vanished import Vanished
    from rdc.session.whole_files import WholeFiles

__all__ = ["Transfers"]

P = TypeVar("P")

WHOLE_BYTES = 1024
"""Changed files up to this size come whole: compressed hardly longer than a root and fingerprints, and round
trips sooner."""


class _Part(Generic[P]):
    """A part of the transfers, loaded and made when it first has something to do: most runs need one or two
    of the five, and loading all takes longer than what many runs do with them."""

    def __init__(self, make: Callable[[], P]) -> None:
        self._make = make
        self.made: P | None = None
        """None: it never had anything to do."""

    def __call__(self) -> P:
        if self.made is None:
            self.made = self._make()
        return self.made


class Transfers:
    """All files in flight. Requests go out in `pump`, answers come in by `take`."""

    def __init__(self, context: TransferContext) -> None:
        self._context = context
        self.tally = context.tally
        self._wholes = _Part(self._make_wholes)
        self._descents = _Part(self._make_descents)
        self._bundles = _Part(self._make_bundles)
        self._checks = _Part(self._make_checks)
        self._held_back = _Part(self._make_held_back)
        self._origins: Origins | None = None
        """None: nothing was held back."""
        self._planned = False

    def _make_wholes(self) -> WholeFiles:
        from rdc.session.whole_files import WholeFiles

        return WholeFiles(self._context)

    def _make_descents(self) -> FileDescents:
        from rdc.session.file_descents import FileDescents

        return FileDescents(self._context, self._wholes())

    def _make_bundles(self) -> Bundles:
        from rdc.session.bundles import Bundles

        return Bundles(self._context, self._descents())

    def _make_checks(self) -> ContentChecks:
        from rdc.session.content_checks import ContentChecks

        return ContentChecks(self._context, self._bundles())

    def _make_held_back(self) -> HeldBack:
        from rdc.session.held_back import HeldBack

        return HeldBack()

    @property
    def idle(self) -> bool:
        # Asked after each message: what most of them are about comes first.
        made = self._bundles.made, self._checks.made
        for part in (self._descents.made, self._wholes.made, *made, self._origins):
            if part is not None and not part.idle:
                return False
        return not self._held_back.made

    @property
    def waits(self) -> bool:
        """There may be something for `pump` to send: after most messages there is not."""
        descents = self._descents.made
        return (
            (descents is not None and descents.waits)
            or (self._bundles.made is not None and self._bundles.made.waits)
            or (self._wholes.made is not None and not self._wholes.made.idle)
            or (self._checks.made is not None and not self._checks.made.idle)
            or (self._origins is not None and not self._origins.idle)
        )

    def check(self, files: Sequence[int]) -> None:
        """Compare the content of files that both sides have, then go on as needed."""
        if files:
            self._checks().demand(files)

    def update(self, file: int, size: int, bases: tuple[bytes, ...] = ()) -> None:
        """Bring the content of a file up to date, which is to have `size`, from the version at its path, and
        from the files at `bases`."""
        self.tally.total_bytes += size
        if size <= WHOLE_BYTES:
            self._wholes().add(file, size)
        else:
            self.tally.compare_bytes += size
            if bases:
                self._descents().add(file, bases)
            else:
                self._bundles().add(file, size)

    def touch(self, files: Sequence[int], size: int) -> None:
        """The same for files that have the right size already, together `size`, but another mtime: they may
        be what they are to be."""
        self.tally.total_bytes += size
        self.tally.compare_bytes += size
        self._checks().touched(files)

    def create(self, file: int, path: bytes, size: int, bases: tuple[bytes, ...] = ()) -> None:
        """Fetch a file that is not here: what an interrupted run did not get of it, or what no other file
        here has, or all of it. `bases`: files that seem to have its content."""
        self.tally.total_bytes += size
        if self._context.dry:
            if self._planned or not self._context.seeks:
                self._context.landing.rehearse(file)
            else:
                self._held_back().add(file)
        elif size > KEEP_BYTES and self._context.leftovers.of(path) is not None:
            self.tally.compare_bytes += size
            self._descents().add(file, bases)
        elif self._context.seeks and not self._planned:
            self._held_back().add(file, bases)
        elif bases:
            self.tally.compare_bytes += size
            self._descents().add(file, bases)
        else:
            self._wholes().add(file, size)

    def plan_known(
        self,
        vanished: Callable[[], Vanished],
        *,
        rename: bool,
        names: Callable[[int], tuple[bytes, ...]] | None = None,
    ) -> None:
        """Everything is listed: how much there is to compare is known. `vanished`: files here that the source
        does not have; with `rename` they will be deleted. `names`: paths here at which a new file may be."""
        self._planned = True
        held_back = self._held_back.made
        if held_back:
            from rdc.session.origins import Origins

            self._origins = Origins(
                self._context, self._descents(), self._wholes(), vanished(), rename=rename
            )
            self._origins.seek(held_back, names=names)
        self.tally.plan_known()

    def pump(self, round_: int) -> Conversation[None]:
        """Sends what may be asked for now. Whole files come while the rest is still listed."""
        if self._checks.made is not None and not self._checks.made.idle:
            yield from self._checks.made.pump(round_, planned=self._planned)
        if self._origins is not None and not self._origins.idle:
            yield from self._origins.pump(round_)
        if self._planned and self._bundles.made is not None and self._bundles.made.waits:
            more = self._checks.made is not None and not self._checks.made.idle
            yield from self._bundles.made.pump(round_, more=more)
        if self._planned and self._descents.made is not None and self._descents.made.waits:
            yield from self._descents.made.pump(round_)
        if self._wholes.made is not None and not self._wholes.made.idle:
            yield from self._wholes.made.pump(round_, more=not self._planned)

    def move(self, spare: Callable[[bytes], None], round_: int) -> Conversation[None]:
        """Renames what was only moved, now that deletions begin; in a dry run tells `spare` what would be."""
        if self._origins is not None:
            yield from self._origins.move(spare, round_)

    def take(self, received: Received) -> Conversation[None]:
        """Takes one answer."""
        message, round_ = received.message, received.round + 1
        bundles = self._bundles.made
        if bundles is not None and bundles.concerns(message):
            yield from bundles.take(message, round_)
        elif isinstance(message, BlockAnswer):
            yield from self._descents().take_blocks(message, round_)
        elif isinstance(message, Literals):
            yield from self._descents().take_literals(message, round_)
        elif isinstance(message, Correction):
            self._descents().take_correction(message)
        elif isinstance(message, Targets):
            self._descents().take_targets(message)
        elif isinstance(message, TreeAnswer):
            yield from self._descents().take_tree(message, round_)
        elif isinstance(message, Data):
            if not (self._descents.made is not None and self._descents.made.take_data(message)):
                self._wholes().take_data(message)
        elif isinstance(message, Code | Table):
            self._descents().take_data(message)
        elif isinstance(message, FileBatch):
            self._wholes().take_batch(message)
        elif isinstance(message, FileEnd):
            descents = self._descents.made
            if descents is None or not (yield from descents.take_end(message.file, round_)):
                if message.digest:
                    self._wholes().take_end(message)
                elif descents is not None:
                    descents.expire(message.file)
        elif isinstance(message, NodeAnswer):
            yield from self._descents().take_nodes(message, round_)
        elif isinstance(message, RootAnswer):
            yield from self._checks().take(message, round_)
        elif isinstance(message, DigestAnswer) and self._origins is not None:
            yield from self._origins.take_digest(message, round_)
        elif isinstance(message, TraitsAnswer) and self._origins is not None:
            yield from self._origins.take_traits(message, round_)
        elif isinstance(message, FileFailed):
            self._take_failure(message)
        else:
            raise ProtocolError(f"a destination was sent {type(message).__name__}")

    def close(self) -> None:
        """Gives everything back. What came of unfinished files stays for the next run to go on from."""
        for part in (self._descents.made, self._wholes.made):
            if part is not None:
                part.close()

    def _take_failure(self, message: FileFailed) -> None:
        file = message.file
        descents, checks, origins = self._descents.made, self._checks.made, self._origins
        if descents is None or not descents.take_failure(file):
            if descents is not None and descents.expire(file):
                return
            if not (
                (checks is not None and checks.take_failure(file))
                or (origins is not None and origins.take_failure(file))
            ):
                self._wholes().take_failure(file)
        path = self._context.entries.entry(file).path
        self._context.news.report(Problem(message.code, path, printable(message.message)))
