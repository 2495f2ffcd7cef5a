"""Bases: local files that new versions are made from.

`Bases` signs those of each file in work, within bounds. A `SignedFile` is a base with its signature. An
`OpenBase` reads its chunks for a rebuild and compares each with the signature. A `Recipe` says how a new
version is put together from them. All content that leaves this module fits its signature, or an error says
that the base has changed.
"""

from __future__ import annotations

from array import array
from functools import partial

from blake3 import blake3

from rdc.errors import FileError, printable
from rdc.files.base.directory_descriptors import is_unchanged
from rdc.files.base.syscalls import share_of_descriptors
from rdc.files.bulk.open_many import MemoryFile
from rdc.kernel.blake3_many import name_parts
from rdc.lean.records import Record
from rdc.lean.typed import NamedTuple
from rdc.limits import CACHED_CONTENT_BYTES, CACHED_FILE_BYTES, OPEN_BASES
from rdc.session.runtime.commands import Conversation, Flush
from rdc.session.trees.sites import MismatchError
from rdc.signature.tree import DIGEST_BYTES, SignatureTree, chunk_offsets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeAlias

    from rdc.files.root.root import Root
    from rdc.files.root.source_file import SourceFile
    from rdc.model.entries import Identity
    from rdc.plan.descent import Part
    from rdc.session.transfer.destination import Destination

    Reader: TypeAlias = Callable[[int, int], bytes]


QUIET_BYTES = 1 << 20
"""Files up to this size, in bytes, are signed without progress events."""


CACHED_BASE_BYTES = 1 << 20
"""Bytes of the largest base that is kept in memory. It is read in pieces for each step of its comparison and
for the new version; opening it and checking that it is unchanged would cost more than each of these reads."""


class ChangedBaseError(MismatchError):
    """A file changed after it was signed. The caller has to sign it again."""


class SignedFile(Record):
    """A base of new versions, or a file with the content of one."""

    path: bytes
    identity: Identity
    tree: SignatureTree
    opened: SourceFile | None = None
    """The file, open since it was signed, because another file will take its path."""
    content: bytes = b""
    """The whole content, if it has at most CACHED_BASE_BYTES and there was memory for it; else b""."""
    reopen: Callable[[], SourceFile] | None = None
    """Opens a file of another directory. `path` is then no path of the destination."""

    def open(self, root: Root, *, on_disk: bool = False) -> SourceFile:
        """Open the file. Raises ChangedBaseError if it changed after it was signed.

        Content in memory is not checked here; see `check`. `on_disk`: with a descriptor, even so.
        """
        if self.content and not on_disk:
            return MemoryFile(root, self.path, self.identity, self.content)
        if self.opened is not None:
            return self.opened.again()
        source = root.open_read(self.path) if self.reopen is None else self.reopen()
        if not is_unchanged(self.identity, source.identity):
            source.close()
            raise self._changed()
        return source

    def check(self, root: Root) -> None:
        """Raise ChangedBaseError if the content in memory is no longer the content at the path.

        A new version must be made from the file that it replaces.
        """
        if not self.content or self.reopen is not None:
            return
        if not is_unchanged(self.identity, root.identity(self.path)):
            raise self._changed()

    def _changed(self) -> ChangedBaseError:
        return ChangedBaseError(self.path, f"{printable(self.path)}: the old file changed while it was used")


READ_BYTES = 1 << 20
"""Bytes of a base read, hashed and written at a time."""


class Chunks(NamedTuple):
    """Consecutive chunks, or one repeated chunk."""

    content: bytes
    lengths: array[int]
    """Bytes of each chunk."""
    digests: bytes
    """32 bytes per chunk."""
    times: int
    """The number of times that the content occurs in a row."""


class OpenBase:
    """A base with its signature. All content it returns was hashed in memory and fits the signature.

    Every method that reads raises MismatchError if the content changed, FileError if it cannot be read.
    """

    __slots__ = ("offsets", "source", "tree")

    def __init__(self, source: SourceFile, tree: SignatureTree) -> None:
        self.source = source
        self.tree = tree
        self.offsets = chunk_offsets(tree)
        """The position at which the chunk of each record begins."""

    def chunk(self, row: int, length: int, read: Reader | None = None) -> Chunks:
        """Return the chunk of one record, of `length` bytes."""
        content = (read or self.source.pread)(self.offsets[row], length)
        return Chunks(content, array("Q", (length,)), self._checked(content, row), 1)

    def chunks(self, first: int, stop: int, read: Reader | None = None) -> Iterator[Chunks]:
        """Yield the chunks of records [first, stop), about 1 MiB at a time. Repeated chunks come alone.

        `read`: returns bytes of the base (offset, length), from wherever it has them.
        """
        level = self.tree.levels[0]
        at, row = self.offsets[first], first
        read = read or self.source.pread
        while row < stop:
            count = level.counts[row]
            if count > 1:
                length = level.lengths[row]
                content = read(at, length)
                yield Chunks(content, array("Q", (length,)), self._checked(content, row), count)
                at += length * count
                row += 1
                continue
            end, size = row, 0
            while end < stop and level.counts[end] == 1 and (size == 0 or size < READ_BYTES):
                size += level.lengths[end]
                end += 1
            content = read(at, size)
            lengths = array("Q", level.lengths[row:end])
            digests = name_parts(content, lengths)
            if digests != level.digests[row * DIGEST_BYTES : end * DIGEST_BYTES]:
                raise self._changed()
            yield Chunks(content, lengths, digests, 1)
            at += size
            row = end

    def runs(self, first: int, stop: int) -> Iterator[tuple[int, int]]:
        """Yield the runs of equal chunks of records [first, stop): the length of one in bytes, and their
        number."""
        level = self.tree.levels[0]
        for row in range(first, stop):
            yield level.lengths[row], level.counts[row]

    def _checked(self, chunk: bytes, row: int) -> bytes:
        """Return the digest of a chunk, which has to be the signed one."""
        digest = blake3(chunk).digest()
        if digest != self.tree.levels[0].digest(row):
            raise self._changed()
        return digest

    def _changed(self) -> MismatchError:
        path = self.source.path
        return MismatchError(path, f"{printable(path)}: the old file changed while it was used")


class Recipe(Record):
    """The result of a comparison."""

    file: int
    """Its row in the source's manifest."""
    path: bytes
    parts: Sequence[Part]
    """In file order; together they fill the new version."""
    bases: Sequence[SignedFile]
    trees: Sequence[SignatureTree]
    """The signature trees of the bases."""
    size: int
    """Bytes of the new version."""
    masked: bool
    """Blocks were matched with masked x86 displacements, which the source corrects."""
    allocated: int | None = None
    """Bytes that the new version takes at the source, if it has holes there."""


def base_of(
    bases: Sequence[SignedFile], root: Root, opened: dict[int, SourceFile], number: int
) -> SourceFile:
    """Return a base by its number, opened at its first use. The caller closes what is `opened`.

    Raises ChangedBaseError if it changed after it was signed."""
    source = opened.get(number)
    if source is None:
        source = opened[number] = bases[number].open(root)
    return source


class FileBases(Record, frozen=False, eq=False):
    """The bases of one new version."""

    file: int
    path: bytes
    size: int
    """Bytes of the new version, as listed."""
    signed: list[SignedFile]
    """The signed bases; the old version at `path` comes first, if there is one."""
    leftover: SignedFile | None = None
    """The base that is a partial file, left by an interrupted run."""
    outgrown: bool = False
    """The partial file was removed: as much is written by now."""


class Bases:
    """The bases of all files that come by delta.

    At most OPEN_BASES are open, and CACHED_CONTENT_BYTES in memory. A base counts toward both limits
    from `sign` until `drop`.
    """

    def __init__(self, context: Destination) -> None:
        self._context = context
        self._named: dict[int, tuple[bytes, ...]] = {}
        """Paths of further bases, by file."""
        self._most_open = share_of_descriptors(OPEN_BASES)
        self._open = 0
        """Bases that stay open."""
        self.cached_bytes = 0
        """Bytes of bases in memory."""

    def name(self, file: int, paths: tuple[bytes, ...]) -> None:
        """Make the files at `paths` further bases of `file`."""
        self._named[file] = paths

    def further(self, file: int) -> bool:
        """Return whether other files are named as bases of `file`."""
        return file in self._named

    def sign(self, one: FileBases, round_: int) -> Conversation[None]:
        """Sign the bases of one file; those that cannot be read are left out.

        The old version comes first, then a partial file of an interrupted run, then further bases.
        """
        size = one.size
        partial_files = self._context.partial_files
        leftover = partial_files.of(one.path) if partial_files.any_found else None
        one.leftover = None
        for path in filter(None, (one.path, leftover, *self._named.get(one.file, ()))):
            if self._context.guesses.is_spent(path):
                continue
            # A partial file in the directory of --temp-dir has no path of the destination.
            reopen = partial(partial_files.open, path) if path.startswith(b"/") else None
            try:
                with (reopen or partial(self._context.root.open_read, path))() as source:
                    spans: list[bytes] = []
                    if (
                        source.size <= CACHED_BASE_BYTES
                        and self.cached_bytes + source.size <= CACHED_CONTENT_BYTES
                        # the holes of an old version are kept, and memory has none
                        and (source.size <= CACHED_FILE_BYTES or source.taken is None)
                    ):
                        source.on_span = spans.append
                    # An old version of another size will be replaced: the catalog need not know it.
                    passing = path == one.path and source.size != size
                    tree = yield from sign_file(self._context, source, size, round_, passing=passing)
                    content = b"".join(spans)  # empty if the catalog knew the file: it was not read
                    wants_file = not content or (source.size > CACHED_FILE_BYTES and self._may_clone(source))
                    keeps = wants_file and path not in (one.path, leftover) and self._may_be_replaced(path)
                    opened = source.again() if keeps else None
            except FileError:
                continue  # one base fewer
            one.signed.append(SignedFile(path, source.identity, tree, opened, content, reopen))
            self.cached_bytes += len(content)
            self._open += opened is not None
            if path == leftover:
                one.leftover = one.signed[-1]
        alternates = self._context.alternates
        elsewhere = None if alternates is None else alternates.base_root(one.file)
        if elsewhere is not None and not self._context.guesses.is_spent(elsewhere.shown(one.path)):
            yield from self._sign_alternate(one, elsewhere, round_)

    def _sign_alternate(self, one: FileBases, root: Root, round_: int) -> Conversation[None]:
        """Sign the base in an alternate directory. Nothing replaces it, so it can be opened again later."""
        reopen = partial(root.open_read, one.path)
        try:
            with reopen() as source:
                tree = yield from sign_file(self._context, source, one.size, round_)
        except FileError:
            return  # one base fewer
        one.signed.append(SignedFile(root.shown(one.path), source.identity, tree, reopen=reopen))

    def _may_clone(self, source: SourceFile) -> bool:
        from rdc.files.replace.cloning import may_clone

        return may_clone(self._context.root, source.identity.device)

    def _may_be_replaced(self, path: bytes) -> bool:
        """Tell whether this base has to stay open: its own new version may replace it before it is used.

        Files that the source no longer has are not replaced: they stay until everything else is done.
        """
        row = self._context.manifest.row(path) if self._open < self._most_open else None
        return row is not None and not self._context.landing.is_new(row)

    def drop(self, one: FileBases, *, ends: bool = False) -> None:
        """Release all bases of a file; `sign` may be called again. `ends`: the file needs none any more."""
        if ends:
            self._named.pop(one.file, None)
        for base in one.signed:
            self.cached_bytes -= len(base.content)
            if base.opened is not None:
                base.opened.close()
                self._open -= 1
        one.signed = []

    def outgrow(self, one: FileBases, written: int) -> None:
        """Remove the partial file once as many bytes are written as it has.

        Files are written front to back, so the partial file then holds nothing more. Its content stays open
        as a base. A kill then leaves one temporary, not two.
        """
        leftover = None if one.outgrown else one.leftover
        if leftover is not None and written >= leftover.tree.size:
            one.outgrown = True
            self._context.partial_files.remove(leftover.path)

    def drop_outgrown(self, one: FileBases) -> None:
        """Drop the partial file from the bases if it was removed: the next attempt does without it."""
        if one.outgrown:
            self.cached_bytes -= len(one.leftover.content) if one.leftover is not None else 0
            one.signed = [base for base in one.signed if base is not one.leftover]


def sign_file(
    context: Destination, source: SourceFile, size: int, round_: int, *, passing: bool = False
) -> Conversation[SignatureTree]:
    """Sign a local file and report progress while reading it.

    `size`: bytes of the new version, which bound the progress. `passing`: the new version will replace the
    file.
    """
    if source.size <= QUIET_BYTES:
        tree = context.signer.sign(source, passing=passing and not context.dry)
        if context.events.waiting:
            yield from context.events.send_waiting(round_)
            yield Flush()
        return tree
    work = context.signer.signing(source)
    try:
        while True:
            done = next(work)
            context.progress.comparing(min(done, size))
            if context.events.waiting:
                yield from context.events.send_waiting(round_)
                yield Flush()
    except StopIteration as stop:
        signed: SignatureTree = stop.value
        return signed
    finally:
        work.close()
