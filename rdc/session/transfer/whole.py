"""Files that come whole: requested in any number at once, written aside, and verified by their digests."""

from __future__ import annotations

from collections import deque
from contextlib import ExitStack, nullcontext, suppress
from itertools import accumulate, takewhile

from blake3 import blake3

from rdc.errors import FileError, ProtocolError, RdcError, printable
from rdc.files.bulk.small_files import ListedFiles
from rdc.files.replace.staged_clones import CLONED_FILE_BYTES
from rdc.limits import BUNDLE_FILES, DATA_BYTES, EQUAL_FILES, FILES_PER_BATCH, FILES_PER_MESSAGE
from rdc.plan.ways import Packing
from rdc.protocol.messages import Data, FileBatch, FileEnd, FileFailed, FileRequest, Holes, Resized
from rdc.session.runtime.commands import Conversation, Send
from rdc.session.transfer.destination import Destination, FileQueue, Transfer
from rdc.session.trees.sites import MismatchError
from rdc.signature.tree import HollowDigest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.files.replace.replacement import Replacement
    from rdc.lean.threads import Task, Threads
    from rdc.model.entries import Identity


WRITES_BEHIND = 2
"""Messages that wait to be written. Two keep both threads busy, and a kill loses at most this megabyte."""


class WholeFileWriter:
    """Writes `temporary` from the content of a whole file. The digest comes after the content."""

    def __init__(
        self,
        file: int,
        path: bytes,
        temporary: Replacement,
        expected: Identity | None,
        writer: Threads | None = None,
        *,
        cloned: bool = False,
        shared: bool = False,
    ) -> None:
        """`writer`: a thread that writes while the caller receives and hashes the next message. `cloned`: the
        temporary has the content already, as a clone of the very file that the source reads. `shared`: the
        content is the very memory that the source has hashed, in this process."""
        self.file = file
        self.path = path
        self.temporary = temporary
        self.expected = expected
        """The file that was at `path` when the content began to arrive; None if there was none."""
        self._hasher: HollowDigest | blake3 | None = None if shared else blake3()
        """None: nothing that was hashed can have changed on its way here."""
        self._holes: deque[tuple[int, int]] = deque()
        """Holes to come: bytes of data before each, and its own."""
        self._writer = writer
        self._cloned = cloned
        self._writing: deque[Task[None]] = deque()
        self.size = 0
        """Bytes received."""

    def expect(self, gaps: Sequence[int], lengths: Sequence[int]) -> None:
        """Take the holes of the next bytes. The first ones come before any content."""
        if not self.size and self._hasher is not None:
            self._hasher = HollowDigest()
        self._holes.extend(zip(gaps, lengths, strict=True))
        if not gaps[0]:
            self.push(b"")  # what begins with a hole, and may be nothing else

    def push(self, payload: bytes | memoryview) -> None:
        """Take the next bytes, which must not change afterwards.

        They may be written later. Raises FileError if these or earlier bytes cannot be written.
        """
        parts = self._split(payload) if self._holes else [(payload, 0)]
        if self._writer is None:
            self._write(parts)
        else:
            while len(self._writing) >= WRITES_BEHIND:
                self._writing.popleft().result()
            self._writing.append(self._writer.submit(self._write, parts))
        for content, hole in parts:
            self.size += len(content) + hole
            if self._hasher is not None:
                self._hasher.update(content)
            if hole and isinstance(self._hasher, HollowDigest):
                self._hasher.skip(hole)

    def _split(self, payload: bytes | memoryview) -> list[tuple[bytes | memoryview, int]]:
        """Return parts of the payload, each with the bytes of the hole after it; 0 for none."""
        parts, view, at = list[tuple[bytes | memoryview, int]](), memoryview(payload), 0
        while self._holes and at + self._holes[0][0] <= len(view):
            gap, hole = self._holes.popleft()
            parts.append((view[at : at + gap], hole))
            at += gap
        if self._holes:
            gap, hole = self._holes[0]
            self._holes[0] = gap - (len(view) - at), hole
        return [*parts, (view[at:], 0)]

    def _write(self, parts: Sequence[tuple[bytes | memoryview, int]]) -> None:
        for content, hole in parts:
            if self._cloned:
                self.temporary.take_clone(len(content))
                self.temporary.take_clone(hole, hole=True)
                continue
            self.temporary.write(content)
            if hole:
                self.temporary.write_zeros(hole)

    def keep(self) -> None:
        """Leave what was received for the next run to resume from."""
        self._stop_writing()
        self.temporary.keep()

    def abandon(self) -> None:
        """Remove what was received."""
        self._stop_writing()
        self.temporary.abandon()

    def _stop_writing(self) -> None:
        """Wait until the thread writes nothing more: until then only it may touch the temporary."""
        while self._writing:
            with suppress(RdcError):
                self._writing[0].result()
            self._writing.popleft()

    def finish(self, digest: bytes) -> None:
        """Wait until everything is written. Raises MismatchError unless `digest` is that of the content,
        FileError if it could not be written."""
        while self._writing:
            self._writing.popleft().result()
        if self._holes or (self._hasher is not None and self._hasher.digest() != digest):
            raise MismatchError(
                self.path,
                f"{printable(self.path)}: the content that arrived does not have the announced digest",
            )


# Files that come whole: requested in any number at once, and verified by digests as they arrive.

READ_BYTES = 1 << 20
"""Bytes of a copy read back and hashed at a time."""

BACKGROUND_BYTES = 4 << 20
"""Files of at least this size are written by a second thread. For smaller ones it costs what it saves."""


class WholeFiles(Transfer):
    """Files between their request and their commit. A requested file needs no state until it arrives."""

    rank = 4
    answers = (Data, FileEnd, FileBatch, Resized, Holes, FileFailed)

    def __init__(self, context: Destination) -> None:
        self._context = context
        self._waiting = FileQueue()
        self._waiting_bytes = 0
        self._asked = 0
        """Requested files that have not ended."""
        self._retried: set[int] = set()
        self._ended: set[int] = set()
        """Files that came in messages of their own: the first EQUAL_FILES of the session."""
        self._hollow: set[int] = set()
        """The files among them, and few others, that came with holes."""
        self._unfit: set[int] = set()
        """Files of `_ended` that did not arrive as announced. What is at their paths is no content of the
        source, and nothing may tell the source how that compares with a digest."""
        self._copies: list[FileEnd] = []
        """Files with the content of one of `_ended`, to be copied from it."""
        self._arrival: WholeFileWriter | None = None
        """The file that is arriving, unless it is skipped."""
        self._skipping: int | None = None
        """The file whose content is dropped as it arrives."""
        self._announced: tuple[int, int] = (-1, 0)
        """The arriving file, and the size in bytes that the source announced for it last."""
        self._received = 0
        """Bytes of the arriving file so far, written or skipped."""
        self._writer: Threads | None = None
        self.packing = Packing.AS_EVER
        """The compression of the next requested files."""

    @property
    def idle(self) -> bool:
        return not (self._waiting or self._asked or self._copies)

    @property
    def waits(self) -> bool:
        return bool(self._waiting or self._copies)

    def add(self, file: int, size: int = 0) -> None:
        """Add a file to be fetched, of `size` bytes."""
        self._waiting.append(file)
        self._waiting_bytes += size

    def pump(self, round_: int, *, planned: bool) -> Conversation[None]:
        """Request all files that wait. Files to be copied are copied once all others have arrived.

        Until all files are known, they wait until they fill a message: with one request per small directory,
        requests would be most of the cost of such trees.
        """
        if not planned and self._waiting_bytes < DATA_BYTES and len(self._waiting) < FILES_PER_BATCH:
            return
        self._waiting_bytes = 0
        if self._copies and not (self._waiting or self._asked):
            self._copy_equals()
        while self._waiting:
            files = self._waiting.drained(FILES_PER_MESSAGE)
            self._asked += len(files)
            yield Send(FileRequest(files, self.packing), round_)

    def take(
        self, message: Data | FileEnd | FileBatch | Resized | Holes | FileFailed, round_: int
    ) -> Conversation[None]:
        if isinstance(message, Data):
            self._take_data(message)
        elif isinstance(message, FileEnd):
            if message.digest:
                self._take_end(message)
        elif isinstance(message, FileBatch):
            self._take_batch(message)
        elif isinstance(message, Resized):
            self._take_size(message)
        elif isinstance(message, Holes):
            self._take_holes(message)
        else:
            self._take_failure(message)
        yield from ()

    def _take_size(self, message: Resized) -> None:
        """Note that the next file has another size than was listed. Skips it if it is too large."""
        self._announced = message.file, message.size
        if not self._context.may_come(message.file, message.size):
            self._skip(message.file)

    def _check_size(self, file: int, size: int, *, whole: bool) -> None:
        """Raise ProtocolError for more bytes than announced, and for fewer if the file is `whole`."""
        if self._announced[0] != file:
            self._announced = file, self._context.manifest.entry(file).size
        announced = self._announced[1]
        if size > announced or (whole and size != announced):
            path = printable(self._context.manifest.entry(file).path)
            raise ProtocolError(
                f"{path}: expected the {announced} bytes that the remote side announced, found {size};"
                " it does not keep to the protocol"
            )

    def _take_holes(self, message: Holes) -> None:
        """Take holes of the arriving file, before the data between them."""
        self._received += sum(message.lengths)
        self._check_size(message.file, self._received, whole=False)
        if message.file == self._skipping:
            return
        try:
            self._arriving(message.file, message.data).expect(message.gaps, message.lengths)
        except FileError as error:
            self._context.problem(self._context.manifest.entry(message.file).path, error)
            self._skip(message.file)
        if len(self._hollow) < EQUAL_FILES:
            self._hollow.add(message.file)

    def _take_data(self, message: Data) -> None:
        """Take the next bytes of the arriving file."""
        self._received += len(message.payload)
        self._check_size(message.file, self._received, whole=False)
        if message.file == self._skipping:
            return
        try:
            arrival = self._arriving(message.file)
            arrival.push(message.payload)
            self._context.progress.arriving(arrival.size)
        except FileError as error:
            self._context.problem(self._context.manifest.entry(message.file).path, error)
            self._skip(message.file)

    def _take_batch(self, message: FileBatch) -> None:
        """Take small files. None is written before the digest over all of them is compared."""
        self._asked -= len(message.files)
        entries = self._context.manifest
        runs = list(entries.runs(message.files))
        listed: list[int] = []
        for directory, files in runs:
            sizes, first = entries.listing(directory).sizes, entries.firsts[directory]
            listed += [sizes[file - first] for file in files]
        # The content is split at the listed sizes, so the sizes have to agree.
        if blake3(message.payload).digest() != message.digest or listed != list(message.sizes):
            for file in message.files:
                self._retry(file, "the contents that arrived do not have the announced digest and sizes")
            return
        row = at = ahead = 0
        with memoryview(message.payload) as view:
            changed = list[int]()
            for number, (directory, files) in enumerate(runs):
                if number >= ahead and self._context.root.depths.writing.now > 1:
                    ahead = number + self._stage_ahead(runs[number:], view[at:])
                lengths = listed[row : row + len(files)]
                size = sum(lengths)
                if self._context.landing.all_new(files):
                    self._commit_new(directory, files, lengths, view[at : at + size])
                else:
                    changed += range(row, row + len(files))
                row, at = row + len(files), at + size
            if changed:
                self._commit_changed(message.files, changed, listed, view)
        size = sum(listed)
        self._context.progress.literal_bytes += size
        self._context.progress.arriving(size, ends=True)

    def _stage_ahead(self, runs: Sequence[tuple[int, Sequence[int]]], content: memoryview) -> int:
        """Write new files of the next directories together. Returns the number of directories."""
        context = self._context
        new = takewhile(lambda run: context.landing.all_new(run[1]), runs)
        entries = context.manifest
        listed = [ListedFiles(entries.directories[each], entries.chosen(each, files)) for each, files in new]
        return context.landing.stage_ahead(listed, content)

    def _commit_new(
        self, directory: int, files: Sequence[int], sizes: Sequence[int], content: memoryview
    ) -> None:
        """Commit small new files of one directory."""
        landing, manifest = self._context.landing, self._context.manifest
        listing = manifest.chosen(directory, files)
        rows = landing.commit_small(manifest.directories[directory], listing, content)
        self._commit_singly(files, rows, sizes, content)

    def _commit_changed(
        self, files: Sequence[int], rows: Sequence[int], sizes: Sequence[int], content: memoryview
    ) -> None:
        """Commit small files of any directories, these rows of `files`, of which some are new."""
        landing = self._context.landing
        left = [row for row in rows if landing.is_new(files[row])]
        changed_rows = [row for row in rows if not landing.is_new(files[row])]
        starts = list(accumulate(sizes, initial=0))
        for first in range(0, len(changed_rows), BUNDLE_FILES):
            some = changed_rows[first : first + BUNDLE_FILES]
            chosen = [files[row] for row in some]
            parts = content
            if len(some) < len(files):
                parts = memoryview(b"".join([content[starts[row] : starts[row + 1]] for row in some]))
            changed, failed = landing.commit_versions(chosen, self._context.manifest.paths(chosen), parts)
            left += [some[row] for row in (*changed, *failed)]
        self._commit_singly(files, sorted(left), sizes, content)

    def _commit_singly(
        self, files: Sequence[int], rows: Sequence[int], sizes: Sequence[int], content: memoryview
    ) -> None:
        """Commit files, these rows of `files`, one by one: each replaces only what was listed, or says why
        not."""
        if not rows:
            return
        context = self._context
        starts = list(accumulate(sizes, initial=0))
        for row in rows:
            entry = context.manifest.entry(files[row])
            try:
                expected = context.expected(files[row], entry.path)
                temporary = context.new_version(entry.path, expected, entry.size)
                temporary.write(content[starts[row] : starts[row + 1]])
                context.landing.commit(files[row], entry.path, temporary, entry.metadata, expected)
            except FileError as error:
                context.problem(entry.path, error)

    def _take_end(self, message: FileEnd) -> None:
        """Verify and commit the file that ends, or note from which file to copy it."""
        self._asked -= 1
        self._check_size(message.file, message.size, whole=True)
        self._announced, self._received = (-1, 0), 0
        if message.like is not None:
            if message.like not in self._ended:
                raise ProtocolError(
                    f"file {message.file} is said to be like file {message.like}, which never came"
                )
            if self._skipping == message.file:
                self._skipping = None
            else:
                self._copies.append(message)
            return
        if len(self._ended) < EQUAL_FILES:
            self._ended.add(message.file)
        self._unfit.add(message.file)
        if self._skipping == message.file:
            self._skipping = None
            return
        context = self._context
        path = context.manifest.entry(message.file).path
        try:
            arrival, self._arrival = self._arriving(message.file), None
            arrival.finish(message.digest)
        except MismatchError:
            arrival.abandon()
            self._retry(message.file, "the content that arrived does not have the announced digest")
            return
        except FileError as error:
            context.problem(path, error)
            return
        self._unfit.discard(message.file)
        context.progress.literal_bytes += message.size
        metadata = context.metadata(message.file, message.mtime_ns)
        context.landing.commit(message.file, path, arrival.temporary, metadata, arrival.expected)
        context.progress.arriving(message.size, ends=True)

    def _copy_equals(self) -> None:
        """Copy files from others with the same content. If the other file changed, the file is fetched."""
        self._context.landing.flush()
        copies, self._copies = self._copies, []
        for end in copies:
            path = self._context.manifest.entry(end.file).path
            try:
                self._copy(end, path)
            except MismatchError as error:
                self._retry(end.file, str(error))
            except FileError as error:
                self._context.problem(path, error)

    def _copy(self, end: FileEnd, path: bytes) -> None:
        """Copy and commit one file. Raises MismatchError if its source has other content by now."""
        from rdc.files.replace.cloning import copy_whole, may_clone

        context, like = self._context, end.like or 0
        if like in self._unfit or like in context.landing.failed:
            raise MismatchError(path, f"{printable(path)}: what it was to be copied from did not arrive")
        expected = context.expected(end.file, path)
        with ExitStack() as stack:
            try:
                source = stack.enter_context(context.landing.open(context.manifest.entry(like).path))
            except FileError as error:
                raise MismatchError(path, str(error)) from error
            cloned = end.size >= CLONED_FILE_BYTES and may_clone(context.root, source.identity.device)
            temporary = stack.enter_context(
                context.new_version(path, expected, end.size, allocated=source.taken, reserved=not cloned)
            )
            copy_whole(temporary, source, end.size, cloned=cloned and not temporary.keeps_inode)
            if (temporary.size, self._digest_of_copy(end, temporary)) != (end.size, end.digest):
                raise MismatchError(path, "what it was to be copied from has changed")
            temporary.hand_over()
        context.progress.reused_bytes += end.size
        context.landing.commit(end.file, path, temporary, context.metadata(end.file, end.mtime_ns), expected)
        context.progress.arriving(end.size, ends=True)

    def _digest_of_copy(self, end: FileEnd, copy: Replacement) -> bytes:
        """Return the digest of a copy, made as that of the file that the source says it is like."""
        if end.like not in self._hollow:
            hasher = blake3()
            for offset in range(0, copy.size, READ_BYTES):
                hasher.update(copy.pread(offset, READ_BYTES))
            return hasher.digest()
        digest, at = HollowDigest(), 0
        for start, stop in copy.zero_runs(0, copy.size):
            while at < start:
                content = copy.pread(at, min(start - at, READ_BYTES))
                digest.update(content)
                at += len(content)
            digest.skip(stop - start)
            at = stop
        return digest.digest()

    def _take_failure(self, message: FileFailed) -> None:
        """Note that the source could not send this file, or the rest of it."""
        if self._asked:
            self._asked -= 1
            self._announced, self._received = (-1, 0), 0
            if self._arrival is not None and self._arrival.file == message.file:
                self._skip(message.file)
            self._skipping = None
        self._context.unsent(message)

    def close(self) -> None:
        """End the session. The part of an unfinished file stays for the next run to resume from."""
        if self._arrival is not None:
            self._arrival.keep()
            self._arrival = None
        if self._writer is not None:
            self._writer.close()

    def _arriving(self, file: int, allocated: int | None = None) -> WholeFileWriter:
        """Return the writer of the arriving file. Raises ProtocolError if another file has not ended.
        `allocated`: what it takes at the source, if it has holes there."""
        if self._arrival is None:
            context = self._context
            entry = context.manifest.entry(file)
            path = entry.path
            expected = context.expected(file, path)
            size = self._announced[1] if self._announced[0] == file else entry.size
            clones = context.clones
            clone = None if clones is None else clones.take(file)
            with clone or nullcontext():
                temporary = context.new_version(
                    path, expected, size, allocated=allocated, reserved=clone is None
                )
                cloned = False
                if clone is not None and not temporary.keeps_inode:
                    from rdc.files.replace.cloning import begin_as

                    cloned = begin_as(temporary, clone, size)
            shared = clones is not None  # the source has a thread of its own, which reads and hashes
            writer = self._background() if size >= BACKGROUND_BYTES and not (cloned or shared) else None
            self._arrival = WholeFileWriter(
                file, path, temporary, expected, writer, cloned=cloned, shared=shared
            )
        if self._arrival.file != file:
            raise ProtocolError(f"content of file {file} before file {self._arrival.file} ended")
        return self._arrival

    def _background(self) -> Threads:
        """Return the second thread, which starts at the first call."""
        if self._writer is None:
            from rdc.lean.threads import Threads

            self._writer = Threads(1, "rdc writer")
        return self._writer

    def _retry(self, file: int, why: str) -> None:
        """Request a file once more; report a problem the second time."""
        path = self._context.manifest.entry(file).path
        if file in self._retried:
            self._context.problem(path, MismatchError(path, f"{printable(path)}: {why}"))
        else:
            self._retried.add(file)
            self.add(file)

    def _skip(self, file: int) -> None:
        """Drop what was received of a file and what is still to arrive."""
        if self._arrival is not None:
            self._arrival.abandon()
        self._arrival = None
        self._skipping = file
