"""New files whose content is here already: files that were renamed, copies of others, and similar bases."""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left
from collections import deque
from zlib import crc32

from blake3 import blake3

from rdc.catalog.similar import SimilarityQuery
from rdc.errors import FileError, ProtocolError
from rdc.files.base.directory_descriptors import is_unchanged
from rdc.files.facts.file_systems import path_of
from rdc.lean.records import Record
from rdc.limits import BASES_PER_FILE, REMOVED_FILES, SIGNED_RENAME_CANDIDATES
from rdc.model.entries import Identity, IdentityColumns, Kind, PackedListing, strings
from rdc.progress import silent
from rdc.protocol.messages import DigestAnswer, DigestRequest, FileFailed, TraitsAnswer, TraitsRequest
from rdc.protocol.messages.content import COARSE_BELOW, COARSE_FROM
from rdc.session.runtime.commands import Conversation, Flush, Send
from rdc.session.transfer.bases import SignedFile, sign_file
from rdc.session.transfer.destination import DeferredFiles, Destination, FileQueue, Transfer
from rdc.signature.codec import SHORT_REFERENCE_BYTES, root_reference
from rdc.similarity.index import Match, SimilarityIndex
from rdc.similarity.traits import Traits, coarse_traits
from rdc.tree.manifest import Entry, Manifest
from rdc.tree.walk import Walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rdc.files.root.root import Root
    from rdc.model.preserved import Preserved
    from rdc.session.transfer.commits import Extraneous
    from rdc.session.transfer.delta import DeltaFiles
    from rdc.session.transfer.whole import WholeFiles
    from rdc.session.trees.source_tree import MountBoundary
    from rdc.tree.filters import FilterList


# Removed files: local files that the source no longer has, where the content of its new files may be.
#
# They are columns with sorted indices of rows, because a whole tree may have moved.


class RemovedFiles:
    """Files that a comparison found to be extraneous, and all files in extraneous directories.

    Excluded and unreadable files are left out. A row is only a hint: its user has to open and check the file.
    """

    def __init__(
        self,
        root: Root,
        filters: FilterList,
        extra: Iterable[Extraneous],
        preserved: Preserved,
        listed: Callable[[bytes], Identity | None],
        boundary: MountBoundary | None = None,
    ) -> None:
        """`preserved`: the precision of mtimes. `listed`: what was listed at a path, of what may go.
        `boundary`: nothing beyond it counts as removed."""
        self.listed = listed
        self._enter = None if boundary is None else boundary.enters
        self._there, self._here = preserved.at_source, preserved.at_destination
        self._root = root
        self._filters = filters
        self._files = Manifest()
        alone: dict[bytes, set[bytes]] = {}
        for path, kind, _ in extra:
            try:
                if filters.excluded(path, kind == Kind.DIRECTORY):
                    continue
            except FileError:
                continue  # its rules cannot be read
            if kind == Kind.DIRECTORY:
                self._add_tree(path)
            elif kind == Kind.FILE:
                directory, name = os.path.split(path)
                alone.setdefault(directory, set()).add(name)
        for directory, names in alone.items():
            self._add_some(directory, names)
        rows = [row for row, kind in enumerate(self._files.kinds) if kind == Kind.FILE]
        sizes = memoryview(bytes(self._files.sizes)).cast("Q")
        self._by_size = _Index([sizes[row] for row in rows], rows)
        hashes = list(self._name_hashes())
        self._by_name = _Index(hashes, rows)
        mtimes = memoryview(bytes(self._here.mtimes(self._files.mtimes, self._files.kinds))).cast("q")
        stamps = [_stamp(sizes[row], mtimes[row]) for row in rows]
        self._by_stamp = _Index(stamps, rows)
        self._by_all = _Index([stamp ^ hash_ for stamp, hash_ in zip(stamps, hashes, strict=True)], rows)

    def __len__(self) -> int:
        """Return the number of files."""
        return len(self._by_size)

    def __getitem__(self, row: int) -> Entry:
        return self._files.entry(row)

    @property
    def rows(self) -> int:
        """The number of rows, directories included."""
        return len(self._files)

    def of_size(self, size: int, most: int) -> Sequence[int]:
        """Return rows of up to `most` files of `size` bytes, in the order of the walk."""
        return self._by_size.rows(size, most)

    def from_size(self, size: int) -> Iterator[int]:
        """Return rows of all files of at least `size` bytes, the smallest first."""
        return self._by_size.rows_from(size)

    def like(self, entry: Entry, most: int) -> Iterator[int]:
        """Yield rows of up to `most` files with the size and mtime of `entry`, those with its name first."""
        size, mtime = entry.size, self._there.mtime(entry.metadata.mtime_ns)
        stamp = _stamp(size, mtime)
        named = self._by_all.rows(stamp ^ crc32(os.path.basename(entry.path)), most)
        for row in (*named, *self._by_stamp.rows(stamp, most - len(named))):
            found = self[row]
            if (found.size, self._here.mtime(found.metadata.mtime_ns)) == (size, mtime):
                yield row

    def of_name(self, name: bytes, most: int) -> list[int]:
        """Return rows of up to `most` files of this name in any directory."""
        rows = self._by_name.rows(crc32(name), most)
        return [row for row in rows if os.path.basename(self[row].path) == name]

    def _name_hashes(self) -> Iterable[int]:
        for directory in range(len(self._files.directories)):
            listing = self._files.packed(directory)
            for name, kind in zip(strings(listing.names), listing.kinds, strict=True):
                if kind == Kind.FILE:
                    yield crc32(name)

    def _add_tree(self, path: bytes) -> None:
        try:
            for directory, listing, _ in Walk(
                self._root, self._filters, silent, start=path, enter=self._enter
            ):
                self._add(directory, listing)
        except FileError:
            return

    def _add_some(self, directory: bytes, names: set[bytes]) -> None:
        try:
            listing = self._root.listed(directory).listing
        except FileError:
            return
        rows = [row for row, name in enumerate(strings(listing.names)) if name in names]
        self._add(directory, listing.rows(rows))

    def _add(self, directory: bytes, listing: PackedListing) -> None:
        if len(self._files) + listing.count <= REMOVED_FILES:
            self._files.add(directory, listing)


def _stamp(size: int, mtime_ns: int) -> int:
    """Return a 64-bit hash of size and mtime."""
    return hash((size, mtime_ns)) & 0xFFFF_FFFF_FFFF_FFFF


class _Index:
    """Rows by a key that several rows may share."""

    def __init__(self, keys: Sequence[int], rows: Sequence[int]) -> None:
        order = sorted(range(len(rows)), key=keys.__getitem__)
        self._keys = array("Q", (keys[i] for i in order))
        self._rows = array("I", (rows[i] for i in order))

    def __len__(self) -> int:
        return len(self._rows)

    def rows(self, key: int, most: int) -> array[int]:
        """Return up to `most` rows with this key."""
        first = stop = bisect_left(self._keys, key)
        end = min(first + most, len(self._keys))
        while stop < end and self._keys[stop] == key:
            stop += 1
        return self._rows[first:stop]

    def rows_from(self, key: int) -> Iterator[int]:
        """Return the rows with this key or a greater one, by increasing keys."""
        return (self._rows[at] for at in range(bisect_left(self._keys, key), len(self._rows)))


# Contents of removed files: each is signed at its first use, and cached within bounds.

TINY_BYTES = 64
"""Requesting the root of a smaller file costs about as much as its content."""

SAME_SIZE_LOOKS = 16
"""Removed files of one size that are signed for one new file."""


class RemovedContent(Record):
    """Root and traits of a removed file, and its identity when it was read."""

    identity: Identity
    root: bytes
    traits: bytes


class RemovedContents:
    """Contents by row in RemovedFiles. At most SIGNED_RENAME_CANDIDATES are
    cached; others are signed again each time."""

    def __init__(self, context: Destination, removed_files: RemovedFiles) -> None:
        self._context = context
        self._removed = removed_files
        self._signed: dict[int, RemovedContent] = {}

    def __contains__(self, row: int) -> bool:
        """Tell whether a content is cached."""
        return row in self._signed

    def sign(self, row: int, round_: int) -> Conversation[RemovedContent | None]:
        """Return the content of a removed file, or None if it cannot be read."""
        signed = self._signed.get(row)
        if signed is None:
            file = yield from self.signed(row, round_)
            if file is None:
                return None
            signed = RemovedContent(file.identity, file.tree.root, file.tree.traits)
            if len(self._signed) < SIGNED_RENAME_CANDIDATES:
                self._signed[row] = signed
        return signed

    def signed(self, row: int, round_: int) -> Conversation[SignedFile | None]:
        """Sign the current version of a removed file. Returns None if it cannot be read."""
        path = self._removed[row].path
        try:
            with self._context.root.open_read(path) as source:
                tree = yield from sign_file(self._context, source, 0, round_)
                return SignedFile(path, source.identity, tree)
        except FileError:
            return None

    def may_have(self, entry: Entry) -> bool:
        """Tell whether a removed file has the size of this new one, and requesting a root pays."""
        return entry.size >= TINY_BYTES and bool(self._removed.of_size(entry.size, 1))

    def twin(self, size: int, reference: bytes, round_: int) -> Conversation[int | None]:
        """Return the row of a removed file with this size in bytes and this short root, or None."""
        for row in self._removed.of_size(size, SAME_SIZE_LOOKS):
            signed = yield from self.sign(row, round_)
            if (
                signed
                and root_reference(signed.root, self._context.secret, SHORT_REFERENCE_BYTES) == reference
            ):
                return row
        return None


# A guess that some new files are renamed removed files; one digest over all their roots confirms it.


class RenameGuess:
    """Pairs of a new and a removed file. One digest tells whether all pairs are right."""

    __slots__ = ("_digest", "_identities", "failed", "files", "last", "rows")

    def __init__(self, pairs: Sequence[tuple[int, int]], *, last: bool = False) -> None:
        """`pairs`: new files, increasing, and the row of a removed file for each. `last`: if the guess is
        wrong, its files are fetched without another request."""
        self.last = last
        self.files = array("I", (file for file, _ in pairs))
        self.rows = array("I", (row for _, row in pairs))
        self._identities = IdentityColumns()
        """Identities of the removed files that were read so far."""
        self._digest = blake3()
        """The digest over their roots."""
        self.failed = False
        """A file of either side cannot be read, so the digest cannot confirm the guess."""

    def add(self, content: RemovedContent) -> None:
        """Add the content of the next removed file."""
        self._identities.append(content.identity)
        self._digest.update(content.root)

    def drop(self, file: int) -> None:
        """Remove a file that the source cannot read: its digest will be over the others."""
        self.failed = True
        at = self.files.index(file)
        del self.files[at], self.rows[at]

    def is_right(self, digest: bytes) -> bool:
        """Tell whether the source's digest equals the one over the added contents."""
        return not self.failed and self._digest.digest() == digest

    def pairs(self) -> Iterator[tuple[int, int]]:
        return zip(self.files, self.rows, strict=True)

    def identity(self, at: int) -> Identity:
        """Return the identity of the removed file in pair `at` when it was read."""
        return self._identities[at]


# Similar bases: local files that resemble new ones, found by traits, names and hints.

SIMILAR_BYTES = 2048
"""A smaller file is fetched whole even if a local one resembles it: a signature costs as much as content."""

BYTES_SIGNED_PER_WANTED = 4
"""Bytes of removed files read for their traits, per byte of the new files that may resemble them."""

SPECULATIVE_BYTES = 256 << 20
"""Bytes of new files that the source signs if no file was removed, but the catalog knows local files."""

MATCHES = 4
"""A file is a base if at least 4 of 12 traits are equal. Unrelated files are with a probability of 2.7e-5."""


class SimilarBases:
    """Finds bases among removed files, some of which it reads for that, and among files in the catalog."""

    def __init__(self, context: Destination, removed_files: RemovedFiles, contents: RemovedContents) -> None:
        self._context = context
        self._removed = removed_files
        self._contents = contents
        self._hints: dict[int, tuple[bytes, ...]] = {}
        """Paths of further bases, by new file, used if there are too few better ones."""
        root_path = path_of(context.root.fileno())
        self._known = context.signer.catalog.similar(root_path, context.signer.params)
        self._index: SimilarityIndex | None = None
        """Removed files by their traits, once they were read."""
        self._small = SimilarityIndex()
        """Small removed files by coarse traits: bases for larger files."""
        self._wanted_bytes = 0
        """Bytes of the new files whose traits are requested."""
        self._large_wanted = False
        """Some of these files are large."""

    def may_have(self, entry: Entry) -> bool:
        """Tell whether it pays to request root and traits of this new file."""
        if entry.size < SIMILAR_BYTES:
            return self._contents.may_have(entry)
        if len(self._removed):
            return True
        # No file was removed, so a similar file is unlikely: the source signs only a limited amount.
        return self._wanted_bytes + entry.size <= SPECULATIVE_BYTES and len(self._known) > 0

    def want(self, file: int, entry: Entry, hints: tuple[bytes, ...]) -> None:
        """Note a new file whose traits will be requested. `hints`: paths of further bases."""
        self._wanted_bytes += entry.size
        self._large_wanted |= entry.size >= COARSE_BELOW
        if hints:
            self._hints[file] = hints

    def look(self, taken: bytearray, round_: int) -> Conversation[None]:
        """Read removed files for their traits, in proportion to the requested files. Does this only once.

        `taken`: marks by row; marked files are not read.
        """
        if self._index is not None:
            return
        self._index = SimilarityIndex()
        removed_files, left = self._removed, BYTES_SIGNED_PER_WANTED * self._wanted_bytes
        for row in removed_files.from_size(SIMILAR_BYTES):
            size = removed_files[row].size
            if taken[row] or size > left:
                continue
            signed = yield from self._contents.sign(row, round_)
            left -= size
            if signed is not None and signed.traits:
                self._index.add(row, Traits(signed.traits), size)
                if self._large_wanted and COARSE_FROM <= size < COARSE_BELOW:
                    self._add_small(row)

    def _add_small(self, row: int) -> None:
        """Add coarse traits of a removed file."""
        found = self._removed[row]
        try:
            with self._context.root.open_read(found.path) as source:
                traits = coarse_traits(source.pread(0, min(source.size, COARSE_BELOW - 1)))
        except FileError:
            return
        if traits:
            self._small.add(row, Traits(traits), found.size)

    def bases(self, file: int, entry: Entry, traits: bytes, coarse: bytes) -> tuple[bytes, ...]:
        """Return paths of bases for a new file, best first: removed files, files in the catalog, then hints.

        `coarse`: the traits that the file would have if it were larger; empty unless it is nearly large.
        """
        removed_files = self._removed
        if entry.size < SIMILAR_BYTES:
            return ()
        rows = dict.fromkeys(self._rows(entry.size, traits, coarse))
        for row in removed_files.of_name(os.path.basename(entry.path), BASES_PER_FILE):
            if row in self._contents or removed_files[row].size <= BYTES_SIGNED_PER_WANTED * entry.size:
                rows[row] = None
        paths = dict.fromkeys(removed_files[row].path for row in list(rows)[:BASES_PER_FILE])
        for query in filter(None, (traits, coarse)):
            if len(paths) < BASES_PER_FILE:
                known = self._known.query(
                    SimilarityQuery(query, entry.size, entry.path), BASES_PER_FILE - len(paths), MATCHES
                )
                paths.update(dict.fromkeys(similar.path for similar in known))
        paths.update(dict.fromkeys(self._hints.get(file, ())[: BASES_PER_FILE - len(paths)]))
        return tuple(paths)

    def _rows(self, size: int, traits: bytes, coarse: bytes) -> list[int]:
        """Return rows of removed files with traits like these, the most similar first.

        Files are compared by full and by coarse traits, because a similar file may be large or small.
        """
        if self._index is None:
            return []
        found: list[Match] = []
        for index, query in (
            (self._index, traits),
            (self._index, coarse),
            (self._small, traits if size >= COARSE_BELOW else b""),
        ):
            if query:
                found += index.query(Traits(query), BASES_PER_FILE, MATCHES, size=size)
        found.sort(key=lambda match: -match.matches)
        return [match.key for match in found]


# Renames of removed files to new paths, at the end of a run. Their content is already verified.
#
# If the run deletes extraneous files, a moved file is renamed, because its old path would be deleted anyway.
# Otherwise, and if a rename is impossible, it is copied.


class Rename(Record):
    """A new file, the row of the removed file with its content, and that one's identity when it was read."""

    file: int
    row: int
    identity: Identity


class Renames:
    """The renames to perform at the end, as columns, because a whole tree may have moved."""

    def __init__(self, context: Destination) -> None:
        self._context = context
        self._files = array("I")
        self._rows = array("I")
        self._identities = IdentityColumns()

    def __len__(self) -> int:
        return len(self._files)

    def add(self, move: Rename) -> None:
        self._files.append(move.file)
        self._rows.append(move.row)
        self._identities.append(move.identity)

    def rehearse(self, removed_files: RemovedFiles, spare: Callable[[bytes], None]) -> None:
        """Report what `run` would do, and pass the old paths to `spare`."""
        for at, (file, row) in enumerate(zip(self._files, self._rows, strict=True)):
            path = removed_files[row].path
            if self._is_shared(path):
                self._context.landing.rehearse(file)
                continue
            spare(path)
            self._context.landing.moved(file, path, self._identities[at])

    def _is_shared(self, path: bytes) -> bool:
        """Return whether a file has other names, too: a run then copies it."""
        try:
            return self._context.root.link_count(path) > 1
        except FileError:
            return False

    def run(self, removed_files: RemovedFiles) -> list[Rename]:
        """Rename each file atomically. Returns the renames that were not possible.

        Metadata are set after the rename. A kill between the two leaves a file with the right content; the
        next run sets its metadata.
        """
        if not self._files:
            return []
        from rdc.files.names.entry_names import Moved, make_durable, move_file

        files, self._files = self._files, array("I")
        rows, self._rows = self._rows, array("I")
        identities, self._identities = self._identities, IdentityColumns()
        renamed_directories: dict[int, bytes] = {}
        left = []
        for at, (file, row) in enumerate(zip(files, rows, strict=True)):
            expected = identities[at]
            entry, old = self._context.manifest.entry(file), removed_files[row].path
            listed = removed_files.listed(old)
            if listed is None or not self._context.root.check.is_still(listed, expected):
                left.append(Rename(file, row, expected))
                continue
            try:
                outcome = move_file(
                    self._context.root,
                    old,
                    entry.path,
                    expected,
                    entry.metadata,
                    owner=self._context.landing.owner,
                )
            except FileError as error:
                self._context.problem(entry.path, error)
                continue
            if outcome is not Moved.DONE:
                left.append(Rename(file, row, expected))
                continue
            renamed_directories.setdefault(expected.device, os.path.dirname(entry.path))
            self._context.landing.moved(file, old, expected)
            self._context.progress.reused_bytes += entry.size
            self._context.progress.arriving(entry.size, ends=True)
        if self._context.options.is_durable:
            try:
                make_durable(self._context.root, renamed_directories.values())
            except FileError as error:
                self._context.problem(error.path_bytes, error)
        return left


# Search for the content of new files among local files that the source no longer has.
#
# There are three steps, the cheapest first. All files that none of them finds are fetched whole.
#
# 1. If size and mtime suggest a rename, one digest over the roots of many such pairs confirms all of them.
# 2. Otherwise a file's short root is compared with those of removed files of its size.
# 3. Otherwise its traits find local files that resemble it: they become its bases.

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
        """Sort deferred files: some are requested by root or traits, all others are fetched.

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
            progress.compare_bytes += entry.size

    def _likely_origin(self, entry: Entry) -> int | None:
        """Return the row of a removed file with this size and mtime, the one whose path ends most alike."""
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
        """Send requests for all files that wait, and read local files while the source reads its own."""
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
        """Request one digest over the roots of a guess."""
        self._guesses.append(guess)
        yield Send(DigestRequest(tuple(guess.files)), round_)

    def _read(self, guess: RenameGuess, round_: int) -> Conversation[None]:
        """Sign the removed files of a guess."""
        for row in guess.rows:
            content = yield from self._contents.sign(row, round_)
            if content is None:
                guess.failed = True
                return
            guess.add(content)

    def _take_digest(self, message: DigestAnswer, round_: int) -> Conversation[None]:
        """Accept the pairs of the oldest guess if the digest fits, else try their files otherwise."""
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
            self._context.progress.comparing(self._context.manifest.entry(file).size, ends=True)
            yield from self._accept(file, row, guess.identity(at), round_)

    def _accept(self, file: int, row: int, identity: Identity, round_: int) -> Conversation[None]:
        """Rename or copy a removed file: its 32-byte root is that of the new file."""
        # A rename replaces nothing. If a link or a fifo is at the new path, the file is copied.
        if self._rename and self._taken[row] != RENAMED and self._context.landing.is_new(file):
            self._taken[row] = RENAMED
            self._renames.add(Rename(file, row, identity))
        else:
            yield from self._copy(file, row, identity, round_)

    def _copy(self, file: int, row: int, identity: Identity, round_: int) -> Conversation[None]:
        """Copy a removed file that had the new file's content when its identity was `identity`."""
        base = None if self._context.dry else (yield from self._contents.signed(row, round_))
        if base is None or not is_unchanged(identity, base.identity):
            self._fetch(file)
        else:
            yield from self._delta_files.copy(file, base, round_)

    def _fetch(self, file: int, bases: tuple[bytes, ...] = ()) -> None:
        """Fetch a file, by delta if it has bases, else whole."""
        if self._context.dry:
            self._context.landing.rehearse(file)
        elif bases:
            self._delta_files.add(file, bases)
        else:
            self._wholes.add(file)

    def move(self, spare: Callable[[bytes], None], round_: int) -> Conversation[None]:
        """Perform the renames; a file that cannot be renamed is copied.

        A dry run only reports them, and passes the old paths to `spare`: they count as not deleted.
        """
        if self._context.dry:
            self._renames.rehearse(self._removed, spare)
        else:
            for left in self._renames.run(self._removed):
                yield from self._copy(left.file, left.row, left.identity, round_)

    # Files of the same size, and similar files

    def _take_traits(self, message: TraitsAnswer, round_: int) -> Conversation[None]:
        """Compare short roots, then traits, with those of local files."""
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
                    self._context.progress.comparing(entry.size, ends=True)
                self._fetch(file, bases)
        if same:
            guess = RenameGuess(same, last=True)
            yield from self._ask_digest(guess, round_)
            yield from self._read(guess, round_)

    def _take_failure(self, message: FileFailed) -> None:
        """Note that the source could not read a file."""
        file = message.file
        if self._guesses and file in self._guesses[0].files:
            self._fail_guess(file)
        else:
            self._acknowledge(file)
        self._context.progress.comparing(self._context.manifest.entry(file).size, ends=True)
        self._context.unsent(message)

    def _fail_guess(self, file: int) -> None:
        """Remove a file from the oldest guess: the digest will be over the others."""
        guess = self._guesses[0]
        guess.drop(file)
        if not guess.files:
            self._guesses.popleft()

    def _acknowledge(self, file: int) -> None:
        """Note that traits of a file were answered. Raises ProtocolError if they were not requested."""
        if not self._asked or file not in self._asked[0]:
            raise ProtocolError(f"traits of file {file}, which were not asked for")
        self._answered.add(file)
        if len(self._answered) == len(self._asked[0]):
            self._asked.popleft()
            self._answered = set()


def _common(one: Sequence[bytes], other: Sequence[bytes]) -> int:
    """Return how many of their first items are equal."""
    return next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
