"""Sends whole files: small ones together, large ones piece by piece, each with a digest of what was sent."""

from __future__ import annotations

from blake3 import blake3

from rdc.errors import FileError
from rdc.files.small import read_small
from rdc.limits import DATA_BYTES, FILES_PER_BATCH, SMALL_FILE_BYTES
from rdc.model.entries import Kind
from rdc.protocol.messages import Data, FileBatch, FileEnd, FileFailed
from rdc.session.commands import Press, Send
from rdc.session.description import no_file
from rdc.session.pressure import Content
from rdc.session.sent_contents import SentContents, SentFile, sample_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.files.confined import Root
    from rdc.session.commands import Conversation
    from rdc.session.description import Description

__all__ = ["FileSender"]


class _Batch:
    """Small files on their way into one message."""

    def __init__(self) -> None:
        self.files: list[int] = []
        self.sizes: list[int] = []
        self.bytes = 0
        self._parts: list[bytes] = []

    def add(self, files: list[int], sizes: list[int], content: bytes) -> None:
        self.files += files
        self.sizes += sizes
        self.bytes += len(content)
        self._parts.append(content)

    def message(self) -> FileBatch:
        payload = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        return FileBatch(tuple(self.files), tuple(self.sizes), blake3(payload).digest(), payload)


class FileSender:
    """`listen`: lets the user see what the destination tells while a long file is sent.

    What is sent is not cut and not put into the catalog: the chunks of a file that is nowhere else help
    nobody, and naming them costs several times what the digest of the whole does.
    """

    def __init__(
        self, root: Root, description: Description, listen: Callable[[], Conversation[None]]
    ) -> None:
        self._root = root
        self._description = description
        self._listen = listen
        self._batch = _Batch()
        self._sent = SentContents()

    def send(self, files: tuple[int, ...], round_: int) -> Conversation[None]:
        """Answers a FileRequest."""
        yield Press(Content.NEW)
        manifest = self._description.manifest
        for directory, rows in self._runs(files):
            listing, first = manifest.listing(directory), manifest.firsts[directory]
            small: list[int] = []
            sizes: list[int] = []
            total, room = 0, DATA_BYTES - self._batch.bytes
            others = []
            for file in rows:
                if listing.kinds[file - first] != Kind.FILE:
                    raise no_file(file)
                size = listing.sizes[file - first]
                if size > SMALL_FILE_BYTES:
                    others.append(file)
                    continue
                if total + size > room or len(small) == FILES_PER_BATCH - len(self._batch.files):
                    others += self._gather(directory, small, sizes)
                    yield from self._flush(round_)
                    small, sizes, total, room = [], [], 0, DATA_BYTES
                small.append(file)
                sizes.append(size)
                total += size
            others += self._gather(directory, small, sizes)
            if others:
                yield from self._flush(round_)
            for file in others:
                try:
                    yield from self._send_one(file, round_)
                except FileError as error:
                    yield Send(FileFailed(file, error.code, str(error)), round_)
        yield from self._flush(round_)

    def _runs(self, files: tuple[int, ...]) -> list[tuple[int, Sequence[int]]]:
        try:
            return list(self._description.manifest.runs(files))
        except IndexError:
            raise no_file(files[-1]) from None

    def _gather(self, directory: int, files: list[int], sizes: list[int]) -> list[int]:
        """Reads small files into the batch; those that are not as they were listed, or cannot be read, are
        returned: each has to come by itself, with its new size and mtime, or with the reason."""
        if not files:
            return []
        manifest = self._description.manifest
        listing = manifest.chosen(directory, files)
        content, good = read_small(self._root, manifest.directories[directory], listing)
        left: list[int] = []
        if 0 in good:
            left = [file for file, fine in zip(files, good, strict=True) if not fine]
            sizes = [size for size, fine in zip(sizes, good, strict=True) if fine]
            files = [file for file, fine in zip(files, good, strict=True) if fine]
        if files:
            self._batch.add(files, sizes, content)
        return left

    def _flush(self, round_: int) -> Conversation[None]:
        if self._batch.files:
            batch, self._batch = self._batch, _Batch()
            yield Send(batch.message(), round_)
            yield from self._listen()

    def _send_one(self, file: int, round_: int) -> Conversation[None]:
        """Content at once, its digest as trailer: the file is read once, but for one whose samples say that
        its content was sent before."""
        entry = self._description.manifest.entry(file)
        hasher = blake3()
        with self._root.open_read(entry.path) as source:
            sample = sample_of(source)
            like = self._sent.find(file, source, sample)
            if like is None:
                for span in source.spans(DATA_BYTES):
                    hasher.update(span)
                    yield Send(Data(file, span), round_)
                    yield from self._listen()
            source.check_unchanged()
            size, mtime_ns = source.size, source.identity.mtime_ns
        news = None if mtime_ns == entry.metadata.mtime_ns else mtime_ns
        if like is not None:
            yield Send(FileEnd(file, size, like.digest, news, like.file), round_)
            return
        digest = hasher.digest()
        self._sent.add(sample, SentFile(file, digest))
        yield Send(FileEnd(file, size, digest, news), round_)
