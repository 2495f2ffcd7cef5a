"""Decides which way the content of each file comes, and passes each answer to the part that asked.

A new file comes whole, and so does a changed file of another size and at most WHOLE_BYTES. Other changed
files come by delta: large ones singly, the rest in bundles. Every way compares a 32-byte digest before it
hands a file over for commit: the digest of a whole file, or the Merkle root of a rebuilt file.
"""

from __future__ import annotations

from rdc.errors import ProtocolError, one_line
from rdc.files.replace.replacement import KEEP_BYTES
from rdc.limits.sessions import BUNDLE_FILES_LEAST, BUNDLED_FILE_BYTES
from rdc.progress import Problem
from rdc.protocol import messages
from rdc.typed import Generic, TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from rdc.protocol.connection import Received
    from rdc.protocol.messages.content import FileMessage
    from rdc.session.landing.transfer_context import TransferContext
    from rdc.session.renames.deferred_files import DeferredFiles
    from rdc.session.renames.local_content import LocalContent
    from rdc.session.renames.removed_files import RemovedFiles
    from rdc.session.runtime.commands import Conversation
    from rdc.session.transfer.bundles import Bundles
    from rdc.session.transfer.content_checks import ContentChecks
    from rdc.session.transfer.delta import DeltaFiles
    from rdc.session.transfer.whole_files import WholeFiles

__all__ = ["FileRouter"]

P = TypeVar("P")

WHOLE_BYTES = 1024
"""Files whose size has changed to at most this, in bytes, come whole. Compressed they are hardly longer than
a root and fingerprints, and they save round trips."""


class _Part(Generic[P]):
    """A way of transfer that is imported and made on first use.

    Most runs need one or two of the five. Importing all takes longer than the work of many runs.
    """

    def __init__(self, make: Callable[[], P]) -> None:
        self._make = make
        self.made: P | None = None
        """None: it was never used."""

    def __call__(self) -> P:
        if self.made is None:
            self.made = self._make()
        return self.made


class FileRouter:
    """All files in transfer. `pump` sends requests, `take` receives answers.

    Files are named by their rows in the source's manifest.
    """

    def __init__(self, context: TransferContext) -> None:
        self._context = context
        self._progress = context.progress
        self._wholes = _Part(self._make_wholes)
        self._deltas = _Part(self._make_deltas)
        self._bundles = _Part(self._make_bundles)
        self._small: list[tuple[int, int]] = []
        """Changed files with their sizes, too few so far for a bundle."""
        self._checks = _Part(self._make_checks)
        self._deferred = _Part(self._make_deferred)
        self._local_content: LocalContent | None = None
        """None: no file was deferred."""
        self._planned = False

    def _make_wholes(self) -> WholeFiles:
        from rdc.session.transfer.whole_files import WholeFiles

        return WholeFiles(self._context)

    def _make_deltas(self) -> DeltaFiles:
        from rdc.session.transfer.delta import DeltaFiles

        return DeltaFiles(self._context, self._wholes)

    def _make_bundles(self) -> Bundles:
        from rdc.session.transfer.bundles import Bundles

        return Bundles(self._context, self._deltas())

    def _make_checks(self) -> ContentChecks:
        from rdc.session.transfer.content_checks import ContentChecks

        return ContentChecks(self._context, self._wholes() if self._context.whole else self._bundles())

    def _make_deferred(self) -> DeferredFiles:
        from rdc.session.renames.deferred_files import DeferredFiles

        return DeferredFiles()

    @property
    def idle(self) -> bool:
        """Whether no request is outstanding and no file waits."""
        # The session asks after each message, so the busiest parts come first.
        made = self._bundles.made, self._checks.made
        for part in (self._deltas.made, self._wholes.made, *made, self._local_content):
            if part is not None and not part.idle:
                return False
        return not (self._deferred.made or self._small)

    @property
    def waits(self) -> bool:
        """Whether `pump` may have something to send. After most messages it has nothing."""
        deltas = self._deltas.made
        return (
            (deltas is not None and deltas.waits)
            or bool(self._small)
            or (self._bundles.made is not None and self._bundles.made.waits)
            or (self._wholes.made is not None and not self._wholes.made.idle)
            or (self._checks.made is not None and not self._checks.made.idle)
            or (self._local_content is not None and not self._local_content.idle)
        )

    def check(self, files: Sequence[int]) -> None:
        """Compares the contents of files that both sides have and updates those that differ. Where content
        must not be compared, it updates all."""
        if not self._context.uses_content:
            for file, size in zip(files, self._context.entries.sizes_of(files), strict=True):
                if self._context.landing.differs(file):
                    self.update(file, size)
        elif files:
            self._checks().demand(files)

    def update(self, file: int, size: int, bases: tuple[bytes, ...] = ()) -> None:
        """Updates a file from the old version at its path and from the files at `bases`.

        `size`: of the new version, in bytes.
        """
        self._progress.count_total(size, compared=size > WHOLE_BYTES and not self._context.whole)
        if size <= WHOLE_BYTES or self._context.whole or self._context.guesses.spent:
            self._wholes().add(file, size)
        elif bases or size > BUNDLED_FILE_BYTES or self._context.landing.is_new(file):
            self._deltas().add(file, bases)
        else:
            self._small.append((file, size))
            if len(self._small) >= BUNDLE_FILES_LEAST or self._bundles.made is not None:
                self._bundle_small()

    def _bundle_small(self) -> None:
        """Hands the small changed files to the bundles."""
        for file, size in self._small:
            self._bundles().add(file, size)
        self._small = []

    def _start_small(self) -> None:
        """Updates the small changed files of a run that has too few for a bundle, one by one."""
        if self._bundles.made is not None:
            self._bundle_small()  # together with those whose contents were checked
            return
        for file, _ in sorted(self._small):
            self._deltas().add(file)
        self._small = []

    def touch(self, files: Sequence[int], size: int) -> None:
        """Updates files that have the right size but another mtime; their contents may be right.

        `size`: of all these files together, in bytes.
        """
        self._progress.count_total(size, compared=not self._context.whole)
        if self._context.whole:
            for file, its_size in zip(files, self._context.entries.sizes_of(files), strict=True):
                self._wholes().add(file, its_size)
            return
        self._checks().touched(files)

    def create(self, file: int, path: bytes, size: int, bases: tuple[bytes, ...] = ()) -> None:
        """Fetches a new file.

        Resumes from a partial file if there is one; otherwise rebuilds it from a similar local file;
        otherwise fetches it whole. `bases`: local files that seem to have its content.
        """
        self._progress.count_total(size, compared=False)
        if self._context.dry and not self._is_compared(file):
            if self._planned or not self._context.seeks:
                self._context.landing.rehearse(file)
            else:
                self._deferred().add(file)
        elif self._context.whole and not self._is_compared(file):
            self._wholes().add(file, size)
        elif self._has_partial_file(path, size) or self._has_base_elsewhere(file, size):
            self._progress.count_compared(size)
            self._deltas().add(file, bases)
        elif self._context.seeks and not self._planned:
            self._deferred().add(file, bases)
        elif bases:
            self._progress.count_compared(size)
            self._deltas().add(file, bases)
        else:
            self._wholes().add(file, size)

    def _has_partial_file(self, path: bytes, size: int) -> bool:
        return size > KEEP_BYTES and self._context.partial_files.of(path) is not None

    def _has_base_elsewhere(self, file: int, size: int) -> bool:
        """Whether an alternate directory has a base that pays, or whose content has to be compared."""
        alternates = self._context.alternates
        if alternates is None or not alternates.has_base(file):
            return False
        return size > WHOLE_BYTES or self._is_compared(file)

    def _is_compared(self, file: int) -> bool:
        """Whether the content in an alternate directory is compared (--checksum), in a dry run, too."""
        alternates = self._context.alternates
        return alternates is not None and alternates.make_equal is not None and alternates.has_base(file)

    def plan_known(
        self,
        removed_files: Callable[[], RemovedFiles],
        *,
        rename: bool,
        names: Callable[[int], tuple[bytes, ...]] | None = None,
    ) -> None:
        """Notes that all files are known and starts the search for local content of new files.

        `removed_files`: the files that only the destination has; with `rename` the run will delete them.
        `names`: local paths that may have a new file's content.
        """
        self._planned = True
        deferred = self._deferred.made
        if deferred:
            from rdc.session.renames.local_content import LocalContent

            self._local_content = LocalContent(
                self._context, self._deltas(), self._wholes(), removed_files(), rename=rename
            )
            self._local_content.seek(deferred, names=names)
        self._progress.plan_known()

    def pump(self, round_: int) -> Conversation[None]:
        """Sends the requests that may go now. Whole files are requested even before all files are known."""
        if self._checks.made is not None and not self._checks.made.idle:
            yield from self._checks.made.pump(round_, planned=self._planned)
        if self._local_content is not None and not self._local_content.idle:
            yield from self._local_content.pump(round_)
        if self._planned:
            yield from self._pump_changed(round_)
        if self._wholes.made is not None and not self._wholes.made.idle:
            yield from self._wholes.made.pump(round_, more=not self._planned)

    def _pump_changed(self, round_: int) -> Conversation[None]:
        """Sends requests for changed files, once all are known."""
        if self._small:
            self._start_small()
        bundles = self._bundles.made
        if bundles is not None and bundles.waits:
            more = self._checks.made is not None and not self._checks.made.idle
            yield from bundles.pump(round_, more=more)
        deltas = self._deltas.made
        if deltas is not None and deltas.waits:
            yield from deltas.pump(round_)

    def move(self, spare: Callable[[bytes], None], round_: int) -> Conversation[None]:
        """Renames moved files before deletions begin. A dry run calls `spare` with their old paths."""
        if self._local_content is not None:
            yield from self._local_content.move(spare, round_)

    def take(self, received: Received) -> Conversation[None]:
        """Passes one answer to the part that asked. Raises ProtocolError for an unexpected message."""
        message, round_ = received.message, received.round + 1
        bundles = self._bundles.made
        if bundles is not None and bundles.concerns(message):
            yield from bundles.take(message, round_)
            return
        take = _TAKES.get(type(message))
        if take is None:
            raise ProtocolError(f"a destination was sent {type(message).__name__}")
        yield from take(self, message, round_)

    def _take_delta(self, message: FileMessage, round_: int) -> Conversation[None]:
        """Takes an answer that only a file by delta asks for."""
        if not (yield from self._deltas().take(message, round_)):
            raise ProtocolError(f"{type(message).__name__} of file {message.file}, which was not asked for")

    def _take_data(self, message: messages.Data, round_: int) -> Conversation[None]:
        """Takes literals of a file by delta, or content of a whole file."""
        deltas = self._deltas.made
        if deltas is None or not (yield from deltas.take(message, round_)):
            self._wholes().take_data(message)

    def _take_end(self, message: messages.FileEnd, round_: int) -> Conversation[None]:
        """Takes the end of a file's literals or of a whole file."""
        deltas = self._deltas.made
        if (deltas is None or not (yield from deltas.take(message, round_))) and message.digest:
            self._wholes().take_end(message)

    def _take_batch(self, message: messages.FileBatch, _: int) -> Conversation[None]:
        self._wholes().take_batch(message)
        yield from ()

    def _take_holes(self, message: messages.Holes, round_: int) -> Conversation[None]:
        """Takes what is said of a file with holes, before its tree or its content."""
        deltas = self._deltas.made
        if deltas is None or not (yield from deltas.take(message, round_)):
            self._wholes().take_holes(message)

    def _take_size(self, message: messages.Resized, _: int) -> Conversation[None]:
        self._wholes().take_size(message)
        yield from ()

    def _take_roots(self, message: messages.RootAnswer, round_: int) -> Conversation[None]:
        return self._checks().take(message, round_)

    def _take_digest(self, message: messages.DigestAnswer, round_: int) -> Conversation[None]:
        return self._asked_local_content(message).take_digest(message, round_)

    def _take_traits(self, message: messages.TraitsAnswer, round_: int) -> Conversation[None]:
        return self._asked_local_content(message).take_traits(message, round_)

    def _asked_local_content(self, message: messages.Message) -> LocalContent:
        if self._local_content is None:
            raise ProtocolError(f"a destination was sent {type(message).__name__}")
        return self._local_content

    def _take_failure(self, message: messages.FileFailed, round_: int) -> Conversation[None]:
        """Passes the source's failure to read a file to the part that asked, and reports it."""
        file = message.file
        deltas, checks, local_content = self._deltas.made, self._checks.made, self._local_content
        if deltas is None or not deltas.take_failure(file):
            if deltas is not None and (yield from deltas.take(message, round_)):
                return  # the file was given up earlier, and that was reported
            if not (
                (checks is not None and checks.take_failure(file))
                or (local_content is not None and local_content.take_failure(file))
            ):
                self._wholes().take_failure(file)
        path = self._context.entries.entry(file).path
        self._context.events.report(Problem(message.code, path, one_line(message.message)))

    def close(self) -> None:
        """Closes all files. The next run resumes unfinished ones from their partial files."""
        for part in (self._deltas.made, self._wholes.made):
            if part is not None:
                part.close()


_TAKES: dict[type[messages.Message], Callable[[FileRouter, Any, int], Conversation[None]]] = {
    **dict.fromkeys(
        messages.answers_to(
            messages.TreeRequest, messages.NodeRequest, messages.BlockRequest, messages.RangeRequest
        ),
        FileRouter._take_delta,
    ),
    # These answer whole files, too.
    messages.Data: FileRouter._take_data,
    messages.FileEnd: FileRouter._take_end,
    messages.FileFailed: FileRouter._take_failure,
    messages.FileBatch: FileRouter._take_batch,
    messages.Resized: FileRouter._take_size,
    messages.Holes: FileRouter._take_holes,
    messages.RootAnswer: FileRouter._take_roots,
    messages.DigestAnswer: FileRouter._take_digest,
    messages.TraitsAnswer: FileRouter._take_traits,
}
"""Who takes an answer, by its type. Answers about bundles are sorted out before."""
