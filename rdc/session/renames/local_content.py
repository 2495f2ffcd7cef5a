"""Search for the content of new files among local files that the source no longer has.

There are three steps, the cheapest first. All files that none of them finds are fetched whole.

1. If size and mtime suggest a rename, one digest over the roots of many such pairs confirms all of them.
2. Otherwise a file's short root is compared with those of removed files of its size.
3. Otherwise its traits find local files that resemble it: they become its bases.
"""

from __future__ import annotations

from array import array
from collections import deque

from rdc.errors import ProtocolError
from rdc.files.base.known_devices import is_unchanged
from rdc.protocol.messages import DigestAnswer, DigestRequest, FileFailed, TraitsAnswer, TraitsRequest
from rdc.session.renames.removed_contents import RemovedContents
from rdc.session.renames.rename_guess import RenameGuess
from rdc.session.renames.renames import Rename, Renames
from rdc.session.renames.similar_bases import SimilarBases
from rdc.session.runtime.commands import Flush, Send
from rdc.session.transfer.transfer import FileQueue, Transfer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.model.entries import Identity
    from rdc.session.renames.removed_files import RemovedFiles
    from rdc.session.runtime.commands import Conversation
    from rdc.session.transfer.delta import DeltaFiles
    from rdc.session.transfer.destination import Destination
    from rdc.session.transfer.transfer import DeferredFiles
    from rdc.session.transfer.whole_files import WholeFiles
    from rdc.tree.manifest import Entry

__all__ = ["LocalContent"]

GUESSES_PER_DIGEST = 256
"""Files whose roots go into one digest. If one guess is wrong, each of them costs 17 bytes more."""

FILES_PER_TRAITS = 1024
"""Files in one request. The source signs the next ones while the destination compares."""

SAME_STAMP_LOOKS = 64
"""Removed files of one size and mtime that are tried for a new file; those of the same name come first."""

LIKELY, RENAMED = 1, 2
"""Marks of a removed file: it is in a guessed pair; it will be renamed, so further new files are copies."""


class LocalContent(Transfer):
    """Decides for each new file whether it is renamed, copied, made from a base, or fetched whole."""

    rank = 1
    answers = (DigestAnswer, TraitsAnswer, FileFailed)

    def __init__(
        self,
        context: Destination,
        delta_files: DeltaFiles,
        wholes: WholeFiles,
        removed_files: RemovedFiles,
        *,
        rename: bool,
    ) -> None:
        """`rename`: removed files will be deleted, so each may be renamed to a new file instead."""
        self._context = context
        self._delta_files = delta_files
        self._wholes = wholes
        self._removed = removed_files
        self._rename = rename
        self._contents = RemovedContents(context, removed_files)
        self._similar_bases = SimilarBases(context, removed_files, self._contents)
        self._renames = Renames(context)
        self._likely: list[tuple[int, int]] = []
        """Guessed pairs that were not requested: a new file, and the row of a removed one."""
        self._unlikely = FileQueue()
        """New files whose traits are to be requested."""
        self._guesses: deque[RenameGuess] = deque()
        """Requested digests; the source answers them in order."""
        self._asked: deque[array[int]] = deque()
        """Files of each open request for traits; the source answers them in order."""
        self._answered: set[int] = set()
        """Answered files of the oldest request for traits."""
        self._taken = bytearray(removed_files.rows)
        """Marks of removed files, by row."""

    @property
    def idle(self) -> bool:
        return not (self._likely or self._unlikely or self._guesses or self._asked)

    @property
    def waits(self) -> bool:
        return bool(self._likely or self._unlikely)

    def seek(
        self, deferred: DeferredFiles, *, names: Callable[[int], tuple[bytes, ...]] | None = None
    ) -> None:
        """Sorts deferred files: some are requested by root or traits, all others are fetched.

        `names`: returns paths of local files that may have a new file's content.
        """
        entries, progress = self._context.manifest, self._context.progress
        for file, hints in deferred.drained():
            entry = entries.entry(file)
            row = self._likely_origin(entry)
            if row is not None:
                self._taken[row] = LIKELY
                self._likely.append((file, row))
            elif self._context.dry and not self._contents.may_have(entry):
                self._context.landing.rehearse(file)
                continue
            elif self._similar_bases.may_have(entry):
                self._similar_bases.want(file, entry, hints)
                self._unlikely.append(file)
            else:
                bases = hints or (names(file) if names is not None else ())
                self._fetch(file, bases)
                if not bases:
                    continue
            progress.count_compared(entry.size)

    def _likely_origin(self, entry: Entry) -> int | None:
        """Returns the row of a removed file with this size and mtime, the one whose path ends most alike."""
        if not entry.size:
            return None
        parts, found, longest = entry.path.split(b"/")[::-1], None, -1
        for row in self._removed.like(entry, SAME_STAMP_LOOKS):
            if not self._taken[row]:
                common = _common(parts, self._removed[row].path.split(b"/")[::-1])
                if common > longest:
                    found, longest = row, common
        return found

    def pump(self, round_: int, *, planned: bool = True) -> Conversation[None]:
        """Sends requests for all files that wait, and reads local files while the source reads its own."""
        likely, self._likely = sorted(self._likely), []
        guesses = [
            RenameGuess(likely[at : at + GUESSES_PER_DIGEST])
            for at in range(0, len(likely), GUESSES_PER_DIGEST)
        ]
        del likely
        for guess in guesses:
            yield from self._ask_digest(guess, round_)
        asked = bool(self._unlikely)
        while self._unlikely:
            files = self._unlikely.drained(FILES_PER_TRAITS)
            self._asked.append(array("I", files))
            yield Send(TraitsRequest(files), round_)
        if guesses or asked:
            yield Flush()
        for guess in guesses:
            yield from self._read(guess, round_)
        if asked:
            yield from self._similar_bases.look(self._taken, round_)

    def expects(self, message: DigestAnswer | TraitsAnswer | FileFailed) -> bool:
        if not isinstance(message, FileFailed):
            return True
        file = message.file
        return bool(self._guesses and file in self._guesses[0].files) or bool(
            self._asked and file in self._asked[0]
        )

    def take(self, message: DigestAnswer | TraitsAnswer | FileFailed, round_: int) -> Conversation[None]:
        if isinstance(message, DigestAnswer):
            yield from self._take_digest(message, round_)
        elif isinstance(message, TraitsAnswer):
            yield from self._take_traits(message, round_)
        else:
            self._take_failure(message)

    # Guessed pairs

    def _ask_digest(self, guess: RenameGuess, round_: int) -> Conversation[None]:
        """Requests one digest over the roots of a guess."""
        self._guesses.append(guess)
        yield Send(DigestRequest(tuple(guess.files)), round_)

    def _read(self, guess: RenameGuess, round_: int) -> Conversation[None]:
        """Signs the removed files of a guess."""
        for row in guess.rows:
            content = yield from self._contents.sign(row, round_)
            if content is None:
                guess.failed = True
                return
            guess.add(content)

    def _take_digest(self, message: DigestAnswer, round_: int) -> Conversation[None]:
        """Accepts the pairs of the oldest guess if the digest fits, else tries their files otherwise."""
        guess = self._guesses.popleft()
        if not guess.is_right(message.digest):
            for file, row in guess.pairs():
                self._taken[row] = 0
                if guess.last:
                    self._fetch(file)
                else:
                    self._unlikely.append(file)
            yield from self.pump(round_)
            return
        for at, (file, row) in enumerate(guess.pairs()):
            self._context.progress.compared(self._context.manifest.entry(file).size)
            yield from self._accept(file, row, guess.identity(at), round_)

    def _accept(self, file: int, row: int, identity: Identity, round_: int) -> Conversation[None]:
        """Renames or copies a removed file: its 32-byte root is that of the new file."""
        # A rename replaces nothing. If a link or a fifo is at the new path, the file is copied.
        if self._rename and self._taken[row] != RENAMED and self._context.landing.is_new(file):
            self._taken[row] = RENAMED
            self._renames.add(Rename(file, row, identity))
        else:
            yield from self._copy(file, row, identity, round_)

    def _copy(self, file: int, row: int, identity: Identity, round_: int) -> Conversation[None]:
        """Copies a removed file that had the new file's content when its identity was `identity`."""
        base = None if self._context.dry else (yield from self._contents.signed(row, round_))
        if base is None or not is_unchanged(identity, base.identity):
            self._fetch(file)
        else:
            yield from self._delta_files.copy(file, base, round_)

    def _fetch(self, file: int, bases: tuple[bytes, ...] = ()) -> None:
        """Fetches a file, by delta if it has bases, else whole."""
        if self._context.dry:
            self._context.landing.rehearse(file)
        elif bases:
            self._delta_files.add(file, bases)
        else:
            self._wholes.add(file)

    def move(self, spare: Callable[[bytes], None], round_: int) -> Conversation[None]:
        """Performs the renames; a file that cannot be renamed is copied.

        A dry run only reports them, and passes the old paths to `spare`: they count as not deleted.
        """
        if self._context.dry:
            self._renames.rehearse(self._removed, spare)
        else:
            for left in self._renames.run(self._removed):
                yield from self._copy(left.file, left.row, left.identity, round_)

    # Files of the same size, and similar files

    def _take_traits(self, message: TraitsAnswer, round_: int) -> Conversation[None]:
        """Compares short roots, then traits, with those of local files."""
        same: list[tuple[int, int]] = []
        coarse = message.coarse_traits()
        for at, file in enumerate(message.files):
            self._acknowledge(file)
            entry = self._context.manifest.entry(file)
            row = None
            if message.sizes[at] == entry.size:  # else the file changed since it was listed
                row = yield from self._contents.twin(entry.size, message.root(at), round_)
            if row is not None:
                same.append((file, row))
            else:
                bases: tuple[bytes, ...] = ()
                if not self._context.dry:
                    bases = self._similar_bases.bases(file, entry, message.traits_of(at), coarse.get(at, b""))
                if not bases:
                    self._context.progress.compared(entry.size)
                self._fetch(file, bases)
        if same:
            guess = RenameGuess(same, last=True)
            yield from self._ask_digest(guess, round_)
            yield from self._read(guess, round_)

    def _take_failure(self, message: FileFailed) -> None:
        """Notes that the source could not read a file."""
        file = message.file
        if self._guesses and file in self._guesses[0].files:
            self._fail_guess(file)
        else:
            self._acknowledge(file)
        self._context.progress.compared(self._context.manifest.entry(file).size)
        self._context.unsent(message)

    def _fail_guess(self, file: int) -> None:
        """Removes a file from the oldest guess: the digest will be over the others."""
        guess = self._guesses[0]
        guess.drop(file)
        if not guess.files:
            self._guesses.popleft()

    def _acknowledge(self, file: int) -> None:
        """Notes that traits of a file were answered. Raises ProtocolError if they were not requested."""
        if not self._asked or file not in self._asked[0]:
            raise ProtocolError(f"traits of file {file}, which were not asked for")
        self._answered.add(file)
        if len(self._answered) == len(self._asked[0]):
            self._asked.popleft()
            self._answered = set()


def _common(one: Sequence[bytes], other: Sequence[bytes]) -> int:
    """Returns how many of their first items are equal."""
    return next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
