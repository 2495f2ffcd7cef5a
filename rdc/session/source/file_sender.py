"""Sender of whole files: small ones share messages, large ones come in pieces, both with a digest."""

from __future__ import annotations

from contextlib import nullcontext

from blake3 import blake3

from rdc.errors import FileError
from rdc.files.bulk.small_files import ListedFiles, read_together
from rdc.lean.records import Record, replace
from rdc.limits import DATA_BYTES, EQUAL_FILES, FILES_PER_BATCH, SMALL_FILE_BYTES
from rdc.model.entries import Kind
from rdc.protocol.messages import Data, FileBatch, FileEnd, FileFailed, Resized
from rdc.session.runtime.commands import Content, Conversation, Send, SetCompression
from rdc.session.source.range_answers import SentContent, digest_of, has_holes
from rdc.session.source.tree_description import Demand, Description, no_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.files.replace.staged_clones import StagedClones
    from rdc.files.root.root import Root
    from rdc.files.root.source_file import SourceFile


# Contents that the source sent whole: a later file with equal content refers to the first one.

EQUAL_BYTES = 64 << 10
"""Smaller files are sent again: the compressed stream remembers much of the first transfer."""

SAMPLE_BYTES = 4096
"""Bytes of a sample at a file's head, middle and tail. Files of one size with equal samples are nearly always
equal, so hardly any is read twice in vain."""

SAMPLE_DIGEST_BYTES = 16

EQUAL_SAMPLES = 4
"""The number of files remembered per sample, all with different content."""


class SentFile(Record):
    """A file that was sent."""

    file: int
    digest: bytes
    """BLAKE3 of its content, its HollowDigest, or its content_name, 32 bytes."""
    hollow: bool
    """It was sent with Holes."""


class SentContents:
    """The first EQUAL_FILES files that were sent in messages of their own."""

    def __init__(self) -> None:
        self._sent: dict[bytes, list[SentFile]] = {}
        self._ended = 0
        self._named: set[int] = set()
        """Files that were answered by a reference. If one is requested again, the copy failed: it is sent."""

    def find(
        self, file: int, source: SourceFile, sample: bytes, name: bytes | None = None
    ) -> SentFile | None:
        """Return a sent file with the content of this one, and their digest, or None. Reads all of this one
        if samples agree. `name`: its content_name, by which equal files are known without that.

        Raises FileError if the file cannot be read.
        """
        known = self._sent.get(sample, []) if sample and file not in self._named else []
        if not known or len(self._named) >= EQUAL_FILES:
            return None
        hollow = has_holes(source)
        known = [one for one in known if one.hollow == hollow]
        if not known:
            return None
        digest = digest_of(source, hollow=hollow)
        like = digest if name is None else name
        found = next((one for one in known if one.digest == like and one.file != file), None)
        if found is None:
            return None
        self._named.add(file)
        return replace(found, digest=digest)

    def add(self, sample: bytes, sent: SentFile) -> None:
        """Note that a file's end was sent. The destination counts the same ends, up to the same number."""
        self._ended += 1
        if self._ended <= EQUAL_FILES and sample:
            known = self._sent.setdefault(sample, [])
            if len(known) < EQUAL_SAMPLES:
                known.append(sent)


def sample_of(source: SourceFile, name: bytes | None = None) -> bytes:
    """Return a digest that is equal for equal files, or b"" if the file is too small. `name`: its
    content_name, which serves without reading."""
    if source.size < EQUAL_BYTES:
        return b""
    if name is not None:
        return name[:SAMPLE_DIGEST_BYTES]
    hasher = blake3(source.size.to_bytes(8, "little"))
    for offset in (0, source.size // 2, source.size - SAMPLE_BYTES):
        hasher.update(source.pread(offset, SAMPLE_BYTES))
    return hasher.digest(SAMPLE_DIGEST_BYTES)


class _Waiting:
    """Small files that will share one message. They are read together when it is full."""

    def __init__(self) -> None:
        self.runs: list[tuple[int, list[int]]] = []
        """Directories, and files of each."""
        self.files: list[int] = []
        self.sizes: list[int] = []
        self._bytes = 0

    def has_room(self, size: int) -> bool:
        """Return whether a file of this size still fits."""
        return self._bytes + size <= DATA_BYTES and len(self.sizes) < FILES_PER_BATCH

    def count(self, size: int) -> None:
        """Count a file that `add` will add."""
        self.sizes.append(size)
        self._bytes += size

    def add(self, directory: int, files: list[int]) -> None:
        """Add counted files of one directory."""
        if files:
            self.runs.append((directory, files))
            self.files += files


PACKINGS = (Content.NEW, Content.QUICK, Content.BARE)
"""The packing of FileRequest."""


class FileSender:
    """Answers requests for whole files.

    The files are not cut into chunks and do not go into the catalog: hashing chunks costs several times what
    one digest costs, and the chunks of a new file match nothing.
    """

    def __init__(
        self,
        root: Root,
        description: Description,
        listen: Callable[[], Conversation[None]],
        demand: Demand,
        clones: StagedClones | None = None,
    ) -> None:
        """`listen`: shows the destination's events to the user while a long file is sent. `demand`: charged
        for files that grew. `clones`: takes clones of the files, if the destination is in this process."""
        self._root = root
        self._description = description
        self._listen = listen
        self._demand = demand
        self._clones = clones
        self._waiting = _Waiting()
        self._sent = SentContents()
        self._content = Content.NEW
        """The content that is being sent, for its compression."""

    def send(self, files: tuple[int, ...], round_: int, packing: int = 0) -> Conversation[None]:
        """Send these files. `packing`: as in FileRequest. Raises ProtocolError for entries that are no
        regular files."""
        self._content = PACKINGS[packing]
        yield SetCompression(self._content)
        manifest = self._description.manifest
        for directory, rows in self._runs(files):
            listing, first = manifest.listing(directory), manifest.firsts[directory]
            small: list[int] = []
            others = []
            for file in rows:
                if listing.kinds[file - first] != Kind.FILE:
                    raise no_file(file)
                size = listing.sizes[file - first]
                if size > SMALL_FILE_BYTES:
                    others.append(file)
                    continue
                if not self._waiting.has_room(size):
                    self._waiting.add(directory, small)
                    small = []
                    others += yield from self._flush(round_)
                self._waiting.count(size)
                small.append(file)
            self._waiting.add(directory, small)
            if others:
                others = [*(yield from self._flush(round_)), *others]
            yield from self._send_others(others, round_)
        yield from self._send_others((yield from self._flush(round_)), round_)

    def _part(self, size: int) -> Conversation[None]:
        """Announce the next `size` bytes of content, if it is open how they are compressed."""
        if self._content is Content.NEW:
            yield SetCompression(Content.NEW, size)

    def _runs(self, files: tuple[int, ...]) -> list[tuple[int, Sequence[int]]]:
        """Group files by directory."""
        try:
            return list(self._description.manifest.runs(files))
        except IndexError:
            raise no_file(files[-1]) from None

    def _send_others(self, files: list[int], round_: int) -> Conversation[None]:
        """Send files one by one."""
        for file in files:
            try:
                yield from self._send_one(file, round_)
            except FileError as error:
                yield Send(FileFailed(file, error.code, str(error)), round_)

    def _flush(self, round_: int) -> Conversation[list[int]]:
        """Read the small files that wait, and send them. Returns those that changed or cannot be read.

        Each of these is sent alone, with its new size and mtime, or with the error.
        """
        waiting, self._waiting = self._waiting, _Waiting()
        if not waiting.files:
            return []
        manifest = self._description.manifest
        content, good = read_together(
            self._root,
            [
                ListedFiles(manifest.directories[directory], manifest.chosen(directory, files))
                for directory, files in waiting.runs
            ],
        )
        files, sizes = waiting.files, waiting.sizes
        left: list[int] = []
        if 0 in good:
            left = [file for file, fine in zip(files, good, strict=True) if not fine]
            sizes = [size for size, fine in zip(sizes, good, strict=True) if fine]
            files = [file for file, fine in zip(files, good, strict=True) if fine]
        if files:
            yield from self._part(len(content))
            batch = FileBatch(tuple(files), tuple(sizes), blake3(content).digest(), content)
            yield Send(batch, round_)
            yield from self._listen()
        return left

    def _staged(
        self, clones: StagedClones, file: int, source: SourceFile, sample: bytes
    ) -> SourceFile | None:
        """Clone a file for the destination. Returns the clone, which is read in place of the file, or None.

        The samples of both are compared: a clone that is none is not worth a digest.
        """
        clone = clones.stage(file, source)
        if clone is None or sample_of(clone) == sample:
            return clone
        for wrong in (clone, clones.take(file)):
            if wrong is not None:
                wrong.close()
        return None

    def _send_one(self, file: int, round_: int) -> Conversation[None]:
        """Send one file, its digest last, so that it is read only once.

        A file whose samples equal those of a sent file is read in full first; if its content was sent before,
        only the other file's number is sent. A file with another size than listed is announced first.
        """
        entry = self._description.manifest.entry(file)
        with self._root.open_read(entry.path) as source:
            if source.size != entry.size:
                self._demand.grew(file, entry.size, source.size)
                yield Send(Resized(file, source.size), round_)
            # The destination of this process takes the digest of the very memory that was read as given.
            name = None if self._clones is None else source.content_name
            sample = sample_of(source, name)
            like = self._sent.find(file, source, sample, name)
            if like is None:
                clone = None if self._clones is None else self._staged(self._clones, file, source, sample)
                with clone or nullcontext(source) as read:
                    content = SentContent(file, read, read.content_name if name else None)
                    for message in content.messages():
                        if isinstance(message, Data):
                            yield from self._part(len(message.payload))
                        yield Send(message, round_)
                        yield from self._listen()
                    sent = SentFile(file, content.digest(), content.hollow)
            source.check_unchanged()
            size, mtime_ns = source.size, source.identity.mtime_ns
        new_mtime = None if mtime_ns == entry.metadata.mtime_ns else mtime_ns
        if like is not None:
            yield Send(FileEnd(file, size, like.digest, new_mtime, like.file), round_)
            return
        self._sent.add(sample, sent)
        yield Send(FileEnd(file, size, sent.digest, new_mtime), round_)
