"""New files whose content may be here already, under a path that the source has no more.

Three questions, from the cheapest: where size and mtime say that a file was merely moved, one digest over the
roots of many such pairs; else a file's short root, compared with those of files of its size; else its traits,
which find the files here that resemble it. What none of them finds is fetched whole.
"""

from __future__ import annotations

from array import array
from collections import deque

from rdc.errors import ProtocolError
from rdc.protocol.messages import DigestRequest, TraitsRequest
from rdc.session.commands import Flush, Send
from rdc.session.file_queue import FileQueue
from rdc.session.guess import Guess
from rdc.session.kin import Kin
from rdc.session.moves import Move, Moves
from rdc.session.vanished_contents import VanishedContents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.model.entries import Identity
    from rdc.protocol.messages import DigestAnswer, TraitsAnswer
    from rdc.session.commands import Conversation
    from rdc.session.file_descents import FileDescents
    from rdc.session.held_back import HeldBack
    from rdc.session.transfer_context import TransferContext
    from rdc.session.vanished import Vanished
    from rdc.session.whole_files import WholeFiles
    from rdc.tree.manifest import Entry

__all__ = ["Origins"]

GUESSES_PER_DIGEST = 256
"""Files whose roots go into one digest: a wrong guess among them costs 17 bytes for each."""

FILES_PER_TRAITS = 1024
"""Files in one request: the far side signs the next while this one compares."""

SAME_STAMP_LOOKS = 64
"""Files of one size and mtime, of the same name if there are any, among which one is chosen."""

LIKELY, RENAMED = 1, 2
"""What a vanished file was chosen for: to be one of a likely pair; to be renamed, so that another new file
with its content is a copy."""


class Origins:
    """Finds each new file a base among the files that vanished, or one that stays, or none."""

    def __init__(
        self,
        context: TransferContext,
        descents: FileDescents,
        wholes: WholeFiles,
        vanished: Vanished,
        *,
        rename: bool,
    ) -> None:
        """`rename`: vanished files will be deleted, so that each may become another instead."""
        self._context = context
        self._descents = descents
        self._wholes = wholes
        self._vanished = vanished
        self._rename = rename
        self._contents = VanishedContents(context, vanished)
        self._kin = Kin(context, vanished, self._contents)
        self._moves = Moves(context)
        self._likely: list[tuple[int, int]] = []
        self._unlikely = FileQueue()
        self._guesses: deque[Guess] = deque()
        self._asked: deque[array[int]] = deque()
        """Files whose traits were asked for, a request each; the far side answers them in turn."""
        self._answered: set[int] = set()
        """Of the oldest of these requests."""
        self._taken = bytearray(vanished.rows)
        """By row of the vanished files."""

    @property
    def idle(self) -> bool:
        return not (self._likely or self._unlikely or self._guesses or self._asked)

    def seek(self, held_back: HeldBack, *, names: Callable[[int], tuple[bytes, ...]] | None = None) -> None:
        """Sorts what was held back: what may be here is going to be asked about, all else fetched. `names`:
        paths here at which a new file may be already."""
        entries, tally = self._context.entries, self._context.tally
        for file, hints in held_back.drained():
            entry = entries.entry(file)
            row = self._likely_origin(entry)
            if row is not None:
                self._taken[row] = LIKELY
                self._likely.append((file, row))
            elif self._context.dry and not self._contents.may_have(entry):
                self._context.landing.rehearse(file)
                continue
            elif self._kin.may_have(entry):
                self._kin.want(file, entry, hints)
                self._unlikely.append(file)
            else:
                bases = hints or (names(file) if names is not None else ())
                self._fetch(file, bases)
                if not bases:
                    continue
            tally.compare_bytes += entry.size

    def _likely_origin(self, entry: Entry) -> int | None:
        """The vanished file that has this size and mtime, of several the one whose path ends alike."""
        if not entry.size:
            return None
        parts, found, longest = entry.path.split(b"/")[::-1], None, -1
        for row in self._vanished.like(entry, SAME_STAMP_LOOKS):
            if not self._taken[row]:
                common = _common(parts, self._vanished[row].path.split(b"/")[::-1])
                if common > longest:
                    found, longest = row, common
        return found

    def pump(self, round_: int) -> Conversation[None]:
        """Asks about all that wait, and reads the files here while the far side reads its own."""
        likely, self._likely = sorted(self._likely), []
        guesses = [
            Guess(likely[at : at + GUESSES_PER_DIGEST]) for at in range(0, len(likely), GUESSES_PER_DIGEST)
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
            yield from self._kin.look(self._taken, round_)

    # Pairs that are likely to be one file

    def _ask_digest(self, guess: Guess, round_: int) -> Conversation[None]:
        self._guesses.append(guess)
        yield Send(DigestRequest(tuple(guess.files)), round_)

    def _read(self, guess: Guess, round_: int) -> Conversation[None]:
        for row in guess.rows:
            content = yield from self._contents.sign(row, round_)
            if content is None:
                guess.failed = True
                return
            guess.add(content)

    def take_digest(self, message: DigestAnswer, round_: int) -> Conversation[None]:
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
            self._context.tally.compared(self._context.entries.entry(file).size)
            yield from self._adopt(file, row, guess.identity(at), round_)

    def _adopt(self, file: int, row: int, identity: Identity, round_: int) -> Conversation[None]:
        """The new file's content is that of a vanished one, all 32 bytes of its root say so."""
        # A rename replaces nothing: where a link or a fifo gives way to a file, the file is a copy.
        if self._rename and self._taken[row] != RENAMED and self._context.landing.is_new(file):
            self._taken[row] = RENAMED
            self._moves.add(Move(file, row, identity))
        else:
            yield from self._copy(file, row, identity, round_)

    def _copy(self, file: int, row: int, identity: Identity, round_: int) -> Conversation[None]:
        """Makes a new file from a vanished one that had its content when it was `identity`."""
        held = None if self._context.dry else (yield from self._contents.held(row, round_))
        if held is None or held.identity != identity:
            self._fetch(file)
        else:
            yield from self._descents.copy(file, held, round_)

    def _fetch(self, file: int, bases: tuple[bytes, ...] = ()) -> None:
        """A file that is nowhere here as a whole."""
        if self._context.dry:
            self._context.landing.rehearse(file)
        elif bases:
            self._descents.add(file, bases)
        else:
            self._wholes.add(file)

    def move(self, spare: Callable[[bytes], None], round_: int) -> Conversation[None]:
        """Renames what was only moved; what cannot be renamed is copied. In a dry run tells `spare` what
        would be renamed."""
        if self._context.dry:
            self._moves.rehearse(self._vanished, spare)
        else:
            for left in self._moves.run(self._vanished):
                yield from self._copy(left.file, left.row, left.identity, round_)

    # Files of the same size, and files that resemble each other

    def take_traits(self, message: TraitsAnswer, round_: int) -> Conversation[None]:
        same: list[tuple[int, int]] = []
        coarse = message.coarse_traits()
        for at, file in enumerate(message.files):
            self._strike(file)
            entry = self._context.entries.entry(file)
            row = yield from self._contents.twin(message.sizes[at], message.root(at), round_)
            if row is not None:
                same.append((file, row))
            else:
                bases: tuple[bytes, ...] = ()
                if not self._context.dry:
                    bases = self._kin.bases(file, entry, message.traits_of(at), coarse.get(at, b""))
                if not bases:
                    self._context.tally.compared(entry.size)
                self._fetch(file, bases)
        if same:
            guess = Guess(same, last=True)
            yield from self._ask_digest(guess, round_)
            yield from self._read(guess, round_)

    def take_failure(self, file: int) -> bool:
        """The source could not read this file; False when it was not asked for here."""
        if self._guesses and file in self._guesses[0].files:
            self._fail_guess(file)
        elif self._asked and file in self._asked[0]:
            self._strike(file)
        else:
            return False
        self._context.tally.compared(self._context.entries.entry(file).size)
        return True

    def _fail_guess(self, file: int) -> None:
        """One file less in the oldest guess, whose digest is then of the others."""
        guess = self._guesses[0]
        guess.drop(file)
        if not guess.files:
            self._guesses.popleft()

    def _strike(self, file: int) -> None:
        if not self._asked or file not in self._asked[0]:
            raise ProtocolError(f"traits of file {file}, which were not asked for")
        self._answered.add(file)
        if len(self._answered) == len(self._asked[0]):
            self._asked.popleft()
            self._answered = set()


def _common(one: Sequence[bytes], other: Sequence[bytes]) -> int:
    """How many of their first items are equal."""
    return next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
