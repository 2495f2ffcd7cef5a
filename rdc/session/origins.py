"""New files whose content may be here already, under a path that the source has no more.

Three questions, from the cheapest: where size and mtime say that a file was merely moved, one digest over the
roots of many such pairs; else a file's short root, compared with those of files of its size; else its traits,
which find the files here that resemble it. What none of them finds is fetched whole.
"""

from __future__ import annotations

import os
from array import array
from collections import deque
from typing import TYPE_CHECKING

from blake3 import blake3

from rdc.catalog.similar import SoughtFile
from rdc.errors import FileError, ProtocolError
from rdc.files.filesystem import path_of
from rdc.limits import BASES_PER_FILE, SIGNED_KIN
from rdc.protocol.messages import DigestRequest, TraitsRequest
from rdc.protocol.origins import COARSE_BELOW, COARSE_FROM
from rdc.records import dataclass
from rdc.session.commands import Flush, Send
from rdc.session.file_queue import FileQueue
from rdc.session.identities import Identities
from rdc.session.moves import Move
from rdc.session.signed_file import SignedFile
from rdc.signature.records import SHORT_REFERENCE_BYTES, root_reference
from rdc.similarity.coarse import coarse_traits
from rdc.similarity.index import SimilarityIndex
from rdc.similarity.traits import Traits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.model.entries import Identity
    from rdc.protocol.messages import DigestAnswer, TraitsAnswer
    from rdc.session.commands import Conversation
    from rdc.session.file_descents import FileDescents
    from rdc.session.moves import Moves
    from rdc.session.transfer_context import TransferContext
    from rdc.session.vanished import Vanished
    from rdc.session.whole_files import WholeFiles
    from rdc.similarity.index import Match
    from rdc.tree.manifest import Entry

__all__ = ["Origins"]

TINY_BYTES = 64
"""Below, a file's content costs about what asking for its root does."""

KIN_BYTES = 2048
"""Below, a file that only resembles one here is fetched whole: describing it costs what its content does."""

GUESSES_PER_DIGEST = 256
"""Files whose roots go into one digest: a wrong guess among them costs 17 bytes for each."""

FILES_PER_TRAITS = 1024
"""Files in one request: the far side signs the next while this one compares."""

SAME_SIZE_LOOKS = 16
"""Files of one size that are looked into for one new file."""

SAME_STAMP_LOOKS = 64
"""Files of one size and mtime, of the same name if there are any, among which one is chosen."""

BYTES_SIGNED_PER_WANTED = 4
"""Bytes of vanished files read for their traits, for each byte of the files that may resemble them."""

LIKELY, RENAMED = 1, 2
"""What a vanished file was chosen for: to be one of a likely pair; to be renamed, so that another new file
with its content is a copy."""

SPECULATIVE_BYTES = 256 << 20
"""Bytes of new files that the source is to sign because the catalog knows files here, though none has
vanished."""

MATCHES = 4
"""Of twelve traits, from which on a file is a base: 2.7e-5 of strangers have them by chance."""


@dataclass(frozen=True, slots=True)
class _Signed:
    """A vanished file as it was when it was read."""

    identity: Identity
    root: bytes
    traits: bytes


class _Guess:
    """Pairs whose roots were asked for in one digest."""

    __slots__ = ("digest", "failed", "files", "identities", "last", "rows")

    def __init__(self, pairs: Sequence[tuple[int, int]], *, last: bool = False) -> None:
        """`pairs`: files, increasing, and the row of the vanished file that each may be. `last`: what is
        wrong is fetched, without another question."""
        self.last = last
        self.files = array("I", (file for file, _ in pairs))
        self.rows = array("I", (row for _, row in pairs))
        self.identities = Identities()
        """Of the vanished files, as far as they have been read."""
        self.digest = blake3()
        """Over their roots."""
        self.failed = False
        """One of either side cannot be read: the digest says nothing."""


class Origins:
    """Holds new files back until the comparison is through, then finds them a base, or none."""

    def __init__(
        self, context: TransferContext, descents: FileDescents, wholes: WholeFiles, moves: Moves
    ) -> None:
        self._context = context
        self._descents = descents
        self._wholes = wholes
        self._moves = moves
        self._held_back = FileQueue()
        self._hints: dict[int, tuple[bytes, ...]] = {}
        """Files that new ones may be made from where nothing better is found."""
        self._vanished: Vanished | None = None
        self._rename = False
        self._likely: list[tuple[int, int]] = []
        self._unlikely = FileQueue()
        self._guesses: deque[_Guess] = deque()
        self._asked: deque[array[int]] = deque()
        """Files whose traits were asked for, a request each; the far side answers them in turn."""
        self._answered: set[int] = set()
        """Of the oldest of these requests."""
        self._taken = bytearray()
        """By row of the vanished files."""
        self._signed: dict[int, _Signed] = {}
        place = path_of(context.root.fileno())
        self._known = context.signer.catalog.similar(place, context.signer.params)
        self._kin: SimilarityIndex | None = None
        self._small_kin = SimilarityIndex()
        """By coarse traits: those that larger files may be made from."""
        self._kin_bytes = 0
        self._large_sought = False
        """Some of the files that kin is sought for are large."""

    @property
    def idle(self) -> bool:
        return not (self._held_back or self._likely or self._unlikely or self._guesses or self._asked)

    @property
    def waiting(self) -> bool:
        """Files are held back."""
        return bool(self._held_back)

    def seek(self, file: int, bases: tuple[bytes, ...] = ()) -> None:
        """A file that nothing is at the path of. `bases`: files that stay, and may have its content."""
        self._held_back.append(file)
        if bases:
            self._hints[file] = bases

    def plan(
        self,
        vanished: Vanished,
        *,
        rename: bool,
        names: Callable[[int], tuple[bytes, ...]] | None = None,
    ) -> None:
        """Everything is listed: sorts what was held back. `rename`: vanished files will be deleted, so that
        each may become another instead. `names`: paths here at which a new file may be already."""
        self._vanished, self._rename = vanished, rename
        self._taken = bytearray(vanished.rows)
        entries, tally = self._context.entries, self._context.tally
        while self._held_back:
            file = self._held_back.popleft()
            entry = entries.entry(file)
            row = self._likely_origin(vanished, entry)
            if row is not None:
                self._taken[row] = LIKELY
                self._likely.append((file, row))
            elif self._context.dry and not self._has_twin(vanished, entry):
                self._context.landing.rehearse(file)
                continue
            elif self._may_have_kin(vanished, entry):
                self._kin_bytes += entry.size
                self._large_sought |= entry.size >= COARSE_BELOW
                self._unlikely.append(file)
            else:
                bases = self._hints.get(file, ()) or (names(file) if names is not None else ())
                self._fetch(file, bases)
                if not bases:
                    continue
            tally.compare_bytes += entry.size

    def _likely_origin(self, vanished: Vanished, entry: Entry) -> int | None:
        """The vanished file that has this size and mtime, of several the one whose path ends alike."""
        if not entry.size:
            return None
        parts, found, longest = entry.path.split(b"/")[::-1], None, -1
        for row in vanished.like(entry, SAME_STAMP_LOOKS):
            if not self._taken[row]:
                common = _common(parts, vanished[row].path.split(b"/")[::-1])
                if common > longest:
                    found, longest = row, common
        return found

    def _has_twin(self, vanished: Vanished, entry: Entry) -> bool:
        return entry.size >= TINY_BYTES and bool(vanished.of_size(entry.size, 1))

    def _may_have_kin(self, vanished: Vanished, entry: Entry) -> bool:
        if entry.size < KIN_BYTES:
            return self._has_twin(vanished, entry)
        if len(vanished):
            return True
        # Nothing says that this one has kin here, so only as much is read at the source as takes a moment.
        return self._kin_bytes + entry.size <= SPECULATIVE_BYTES and len(self._known) > 0

    def pump(self, round_: int) -> Conversation[None]:
        """Asks about all that wait, and reads the files here while the far side reads its own."""
        likely, self._likely = sorted(self._likely), []
        guesses = [
            _Guess(likely[at : at + GUESSES_PER_DIGEST]) for at in range(0, len(likely), GUESSES_PER_DIGEST)
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
        if asked and self._kin is None:
            yield from self._find_kin(round_)

    # Pairs that are likely to be one file

    def _ask_digest(self, guess: _Guess, round_: int) -> Conversation[None]:
        self._guesses.append(guess)
        yield Send(DigestRequest(tuple(guess.files)), round_)

    def _read(self, guess: _Guess, round_: int) -> Conversation[None]:
        for row in guess.rows:
            signed = yield from self._sign(row, round_)
            if signed is None:
                guess.failed = True
                return
            guess.identities.append(signed.identity)
            guess.digest.update(signed.root)

    def take_digest(self, message: DigestAnswer, round_: int) -> Conversation[None]:
        guess = self._guesses.popleft()
        if guess.failed or guess.digest.digest() != message.digest:
            for file, row in zip(guess.files, guess.rows, strict=True):
                self._taken[row] = 0
                if guess.last:
                    self._fetch(file)
                else:
                    self._unlikely.append(file)
            yield from self.pump(round_)
            return
        for at, (file, row) in enumerate(zip(guess.files, guess.rows, strict=True)):
            self._context.tally.compared(self._context.entries.entry(file).size)
            yield from self._adopt(file, row, guess.identities[at], round_)

    def _adopt(self, file: int, row: int, identity: Identity, round_: int) -> Conversation[None]:
        """The new file's content is that of a vanished one, all 32 bytes of its root say so."""
        if self._rename and self._taken[row] != RENAMED:
            self._taken[row] = RENAMED
            self._moves.add(Move(file, row, identity))
        else:
            yield from self._copy(file, row, identity, round_)

    def _copy(self, file: int, row: int, identity: Identity, round_: int) -> Conversation[None]:
        """Makes a new file from a vanished one that had its content when it was `identity`."""
        held = None if self._context.dry else (yield from self._held(row, round_))
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
        if self._vanished is None:
            return
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
            row = yield from self._twin(message.sizes[at], message.root(at), round_)
            if row is not None:
                same.append((file, row))
            else:
                bases: tuple[bytes, ...] = ()
                if not self._context.dry:
                    bases = self._bases(file, entry, message.traits_of(at), coarse.get(at, b""))
                if not bases:
                    self._context.tally.compared(entry.size)
                self._fetch(file, bases)
        if same:
            guess = _Guess(same, last=True)
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
        guess.failed = True
        at = guess.files.index(file)
        del guess.files[at], guess.rows[at]
        if not guess.files:
            self._guesses.popleft()

    def _strike(self, file: int) -> None:
        if not self._asked or file not in self._asked[0]:
            raise ProtocolError(f"traits of file {file}, which were not asked for")
        self._answered.add(file)
        if len(self._answered) == len(self._asked[0]):
            self._asked.popleft()
            self._answered = set()

    def _twin(self, size: int, reference: bytes, round_: int) -> Conversation[int | None]:
        """The row of a vanished file with this size and short root."""
        vanished, secret = self._vanished, self._context.secret
        if vanished is None:
            return None
        for row in vanished.of_size(size, SAME_SIZE_LOOKS):
            signed = yield from self._sign(row, round_)
            if signed and root_reference(signed.root, secret, SHORT_REFERENCE_BYTES) == reference:
                return row
        return None

    def _bases(self, file: int, entry: Entry, traits: bytes, coarse: bytes) -> tuple[bytes, ...]:
        """Paths of files that a new one may be made from, best first: vanished ones, others that the catalog
        knows, then guesses. `coarse`: as if it were larger, where it is hardly too small for that."""
        vanished = self._vanished
        if vanished is None or entry.size < KIN_BYTES:
            return ()
        rows = dict.fromkeys(self._kin_of(entry.size, traits, coarse))
        for row in vanished.of_name(os.path.basename(entry.path), BASES_PER_FILE):
            if row in self._signed or vanished[row].size <= BYTES_SIGNED_PER_WANTED * entry.size:
                rows[row] = None
        paths = dict.fromkeys(vanished[row].path for row in list(rows)[:BASES_PER_FILE])
        for sought in filter(None, (traits, coarse)):
            if len(paths) < BASES_PER_FILE:
                known = self._known.query(
                    SoughtFile(sought, entry.size, entry.path), BASES_PER_FILE - len(paths), MATCHES
                )
                paths.update(dict.fromkeys(kin.path for kin in known))
        paths.update(dict.fromkeys(self._hints.get(file, ())[: BASES_PER_FILE - len(paths)]))
        return tuple(paths)

    def _kin_of(self, size: int, traits: bytes, coarse: bytes) -> list[int]:
        """Rows of the vanished files that are most like one of this size, to either side of the border."""
        if self._kin is None:
            return []
        found: list[Match] = []
        for index, sought in (
            (self._kin, traits),
            (self._kin, coarse),
            (self._small_kin, traits if size >= COARSE_BELOW else b""),
        ):
            if sought:
                found += index.query(Traits(sought), BASES_PER_FILE, MATCHES, size=size)
        found.sort(key=lambda match: -match.matches)
        return [match.key for match in found]

    def _find_kin(self, round_: int) -> Conversation[None]:
        """Reads vanished files for their traits, as many as what is wanted is worth."""
        self._kin = SimilarityIndex()
        vanished, left = self._vanished, BYTES_SIGNED_PER_WANTED * self._kin_bytes
        if vanished is None:
            return
        for row in vanished.from_size(KIN_BYTES):
            size = vanished[row].size
            if self._taken[row] or size > left:
                continue
            signed = yield from self._sign(row, round_)
            left -= size
            if signed is not None and signed.traits:
                self._kin.add(row, Traits(signed.traits), size)
                if self._large_sought and COARSE_FROM <= size < COARSE_BELOW:
                    self._add_small_kin(row)

    def _add_small_kin(self, row: int) -> None:
        found = self._vanished[row] if self._vanished is not None else None
        if found is None:
            return
        try:
            with self._context.root.open_read(found.path) as source:
                traits = coarse_traits(source.pread(0, min(source.size, COARSE_BELOW - 1)))
        except FileError:
            return
        if traits:
            self._small_kin.add(row, Traits(traits), found.size)

    # Vanished files

    def _sign(self, row: int, round_: int) -> Conversation[_Signed | None]:
        signed = self._signed.get(row)
        if signed is None:
            held = yield from self._held(row, round_)
            if held is None:
                return None
            signed = _Signed(held.identity, held.tree.root, held.tree.traits)
            if len(self._signed) < SIGNED_KIN:
                self._signed[row] = signed
        return signed

    def _held(self, row: int, round_: int) -> Conversation[SignedFile | None]:
        """None: it cannot be read any more."""
        if self._vanished is None:
            return None
        path = self._vanished[row].path
        try:
            with self._context.root.open_read(path) as source:
                tree = yield from self._context.sign(source, 0, round_)
                return SignedFile(path, source.identity, tree)
        except FileError:
            return None


def _common(one: Sequence[bytes], other: Sequence[bytes]) -> int:
    """How many of their first items are equal."""
    return next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
