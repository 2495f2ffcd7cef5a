"""Digests of many files' contents, or of their ends: read by threads, failures told and left out."""

from __future__ import annotations

from array import array

from blake3 import blake3

from rdc.chunking.params import SYNC_PARAMS
from rdc.errors import FileError
from rdc.files.contents import Contents, content_bytes, content_error, read_contents
from rdc.files.failure import changed
from rdc.progress import Problem, Progressed
from rdc.records import dataclass
from rdc.survey.workers import in_order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TypeAlias

    from typing_extensions import Buffer

    from rdc.catalog.signer import FileSigner
    from rdc.catalog.store import SignatureStore
    from rdc.errors import RdcError
    from rdc.files.source import SourceFile
    from rdc.progress import Reporter
    from rdc.signature.tree import SignatureTree
    from rdc.survey.file_columns import Batch, FileColumns

__all__ = [
    "BATCHED_BYTES",
    "DIGEST_BYTES",
    "END_BYTES",
    "SPAN_BYTES",
    "UNKNOWN",
    "ContentReader",
    "Keyed",
    "KeysOf",
]

DIGEST_BYTES = 32

UNKNOWN = bytes(DIGEST_BYTES)
"""No digest."""

END_BYTES = 8 << 10
"""Bytes of a file's first and of its last block. A file of up to two blocks is read whole at once: opening it
again would cost more than reading the rest. A disk reads more than this at a time anyway."""

BATCHED_BYTES = 128 << 10
"""Bytes of the largest file that is read whole as part of a batch. Above it, what Python adds for a file by
itself (some 25 microseconds) is less than reading takes."""

BATCH_FILES = 1024
BATCH_BYTES = 2 << 20
"""Of one batch: enough that its cost vanishes; a few batches are in flight."""

MANY_PIECES = 256
"""Pieces from which on loading the kernel that hashes many at once, a millisecond, is less than it saves."""

SPAN_BYTES = 256 << 10
"""Bytes of a large file read, and hashed, cut or compared, at a time: they stay in the second-level cache in
between."""


@dataclass(frozen=True, slots=True)
class Keyed:
    """Files and, row by row, what their content amounts to: files of equal content have equal keys."""

    rows: array[int]
    """Typecode 'I', without the files that could not be read."""
    keys: bytearray
    """One after the other; DIGEST_BYTES each where nothing else is said."""

    def digests(self) -> Iterator[bytes]:
        """The key of each row."""
        for at in range(0, len(self.keys), DIGEST_BYTES):
            yield bytes(self.keys[at : at + DIGEST_BYTES])


KeysOf: TypeAlias = "Callable[[bytes, Sequence[int], int, int], list[bytes]]"
"""Takes the data of several files, one after the other, their sizes, `head` and `tail`; a key for each."""


class ContentReader:
    """Reads rows of `files`. Each file that is not what was listed, before or after reading, is reported."""

    def __init__(self, files: FileColumns, reporter: Reporter, workers: int) -> None:
        self._files = files
        self._report = reporter
        self._workers = workers
        self._stopped = False
        self._total: int | None = None
        self.bytes_read = 0

    @property
    def stopped(self) -> bool:
        """The search is over: whoever reads a large file in a thread leaves it."""
        return self._stopped

    def expect(self, more: int) -> None:
        """So many bytes are still to be read: progress has an end from now on."""
        self._total = self.bytes_read + more

    def ends(self, rows: Sequence[int]) -> Keyed:
        """Keys of size and ends, or of all of a file of at most two ends. `rows` increases."""
        return self.batched(rows, END_BYTES, END_BYTES, _digests)

    def whole(self, rows: Sequence[int]) -> Keyed:
        """Keys of whole contents; `rows` increases, no file of them is larger than BATCHED_BYTES."""
        return self.batched(rows, BATCHED_BYTES, 0, _digests)

    def large(self, rows: Sequence[int]) -> Keyed:
        """Keys of whole contents, of files of any size."""
        return self.each(self.disk_order(rows), self._digest)

    def each(self, rows: Iterable[int], key: Callable[[SourceFile], bytes]) -> Keyed:
        """Keys as `key` makes them of each file, opened and found as it was listed; unchanged afterwards."""

        def work(row: int) -> tuple[int, bytes | FileError]:
            try:
                return row, self._opened(row, key)
            except FileError as error:
                return row, error

        found = Keyed(array("I"), bytearray())
        try:
            for row, result in in_order(work, rows, self._workers):
                if isinstance(result, FileError):
                    self._tell(row, result)
                    continue
                found.rows.append(row)
                found.keys.extend(result)
                self._advance(0)
        except BaseException:
            self._stopped = True
            raise
        return found

    def _opened(self, row: int, key: Callable[[SourceFile], bytes]) -> bytes:
        files = self._files
        with files.open(row) as source:
            found, path, shown = source.identity, files.path(row), files.shown(row)
            if (found.device, found.inode) != (files.devices[row], files.inodes[row]):
                raise changed(path, shown, "the file that was listed", "another one in its place")
            if found.size != files.sizes[row]:
                raise changed(path, shown, f"{files.sizes[row]} bytes", f"{found.size}")
            result = key(source)
            source.check_unchanged()
        return result

    def known(self, rows: Sequence[int], store: SignatureStore) -> Keyed:
        """Signature roots that `store` has, UNKNOWN for files it does not know; nothing is read."""

        def root(source: SourceFile) -> bytes:
            return store.root(source, SYNC_PARAMS) or UNKNOWN

        return self.each(self.disk_order(rows), root)

    def signed(self, rows: Sequence[int], signer: FileSigner) -> Keyed:
        """Signature roots of files of any size: read, and remembered by the signer's catalog."""

        def root(source: SourceFile) -> bytes:
            tree = self.sign(source, signer)
            return UNKNOWN if tree is None else tree.root

        return self.each(self.disk_order(rows), root)

    def sign(self, source: SourceFile, signer: FileSigner) -> SignatureTree | None:
        """Its signature, from the signer's catalog or read; None when the search is over."""
        work = signer.signing(source)
        before = 0
        while not self._stopped:
            try:
                done = next(work)
            except StopIteration as stop:
                tree: SignatureTree = stop.value
                return tree
            self.bytes_read, before = self.bytes_read + done - before, done
        return None

    def _digest(self, source: SourceFile) -> bytes:
        hasher = blake3()
        for span in source.spans(SPAN_BYTES):
            if self._stopped:
                break
            hasher.update(span)
            # Threads may lose a count between reading and writing it; it is shown, never decided upon.
            self.bytes_read += len(span)
        return hasher.digest()

    def disk_order(self, rows: Sequence[int]) -> list[int]:
        """By inode: on most file systems near the order in which files lie on the disk."""
        files = self._files
        return sorted(rows, key=lambda row: (files.devices[row], files.inodes[row]))

    def batched(self, rows: Sequence[int], head: int, tail: int, keys: KeysOf) -> Keyed:
        """Keys that `keys` makes of the first `head` and last `tail` bytes, or of all of shorter files.

        Threads read; this one hashes. Short pieces are hashed while the interpreter's lock is held, which
        threads would only take from each other."""

        def work(batch: Batch) -> tuple[Batch, Contents]:
            return batch, read_contents(batch.root.fileno(), batch.paths, batch.wanted, head, tail)

        found = Keyed(array("I"), bytearray())
        batches = self._files.batches(rows, BATCH_FILES, BATCH_BYTES, head + tail)
        for batch, contents in in_order(work, batches, self._workers):
            sizes, outcomes = batch.wanted[2::3], contents.outcomes
            digests = keys(contents.data, sizes, head, tail)
            if any(outcomes):
                for row, outcome in zip(batch.rows, outcomes, strict=True):
                    if outcome:
                        path, shown = self._files.path(row), self._files.shown(row)
                        self._tell(row, content_error(outcome, path, shown))
                read = [place for place, outcome in enumerate(outcomes) if not outcome]
                sizes = array("Q", [sizes[place] for place in read])
                digests = [digests[place] for place in read]
                found.rows.extend([batch.rows[place] for place in read])
            else:
                found.rows.extend(batch.rows)
            found.keys.extend(b"".join(digests))
            self._advance(sum([content_bytes(size, head, tail) for size in sizes]))
        return found

    def _advance(self, more: int) -> None:
        self.bytes_read += more
        total = None if self._total is None else max(self._total, self.bytes_read)
        self._report(Progressed("compare", self.bytes_read, total))

    def _tell(self, row: int, error: RdcError) -> None:
        self._report(Problem(error.code, self._files.shown(row), str(error)))


def _digests(data: bytes, sizes: Sequence[int], head: int, tail: int) -> list[bytes]:
    """Of each file's part of `data`.

    Of a file read whole it is BLAKE3 of its content. Where the middle is missing the size stands in for it,
    under another key: no whole file can have the digest of another one's ends.
    """
    view = memoryview(data)
    wholes: list[Buffer] = []
    ends: list[tuple[int, bytes]] = []
    at, most = 0, head + tail
    for number, size in enumerate(sizes):
        end = at + min(size, most)  # content_bytes(), a million times
        if end - at == size:
            wholes.append(view[at:end])
        else:
            hasher = blake3(view[at:end], key=_ENDS_KEY)
            ends.append((number, hasher.update(size.to_bytes(8, "little")).digest()))
        at = end
    digests = _named(wholes)
    # In increasing order, so that each stands where it belongs when the next one comes.
    for number, digest in ends:
        digests.insert(number, digest)
    return digests


def _named(pieces: list[Buffer]) -> list[bytes]:
    """BLAKE3 of each."""
    if len(pieces) < MANY_PIECES:
        return [blake3(piece).digest() for piece in pieces]
    from rdc.kernel.naming import name_many

    names = name_many(pieces)
    return [names[at : at + DIGEST_BYTES] for at in range(0, len(names), DIGEST_BYTES)]


_ENDS_KEY = blake3(b"rdc survey: ends of a file").digest()
