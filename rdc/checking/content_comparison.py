"""Compares the contents of files that both ends have, by the roots of their signature trees.

Both ends read at the same time: requests for the next files are on their way while this end reads its own.
"""

from __future__ import annotations

from array import array
from collections import deque

from blake3 import blake3

from rdc.errors import FileError, ProtocolError, one_line
from rdc.files.bulk.open_many import most_opened
from rdc.lean.records import Record
from rdc.limits import FILES_PER_GROUP, FILES_PER_MESSAGE
from rdc.progress import Problem
from rdc.protocol.messages import FileFailed, RootAnswer, RootRequest, TopTier
from rdc.session.destination.own_tree import next_message
from rdc.session.runtime.commands import Conversation, EventRelay, Flush, Send, TransferProgress
from rdc.session.trees.small_file_digests import small_file_digests
from rdc.signature.codec import group_references
from rdc.signature.tree import DIGEST_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rdc.catalog.signer import FileSigner
    from rdc.checking.records import Sample
    from rdc.files.root.root import Root
    from rdc.tree.manifest import Manifest


_BITS = 64


def sampled(paths: Sequence[bytes], sample: Sample) -> list[int]:
    """Return the indexes of the chosen paths. A path's choice depends on nothing but the sample and the
    path."""
    key = blake3(b"rdc 1 sample %d" % sample.seed).digest()
    bound = int(sample.share * (1 << _BITS))
    return [
        at
        for at, path in enumerate(paths)
        if int.from_bytes(blake3(path, key=key).digest(length=_BITS // 8), "big") < bound
    ]


REFERENCE_BYTES = 6
"""Bytes of a reference. Each is compared with one other reference: it misses a difference once in 2^48."""

GROUPED_BYTES = 1 << 20
"""Files up to this size share references. If one of a group differs, all are asked about again, and
the source has their roots in its cache. A larger file is never read twice for a group."""

BATCH_BYTES = 256 << 20
"""Bytes of files in one request, but at least one file: no answer takes long."""

IN_FLIGHT = 4
"""Requests on their way: enough that no end waits while it could read."""


class _Batch(Record):
    """One request on its way."""

    files: tuple[int, ...]
    group: int
    roots: dict[int, bytes] | None = None
    """Roots of this end's files; None if they were not read yet."""


class ContentComparison:
    """Compares files by rows of `wanted`, and reports each to `on_compared`, once."""

    def __init__(
        self,
        root: Root,
        wanted: Manifest,
        signer: FileSigner,
        secret: bytes,
        events: EventRelay,
        progress: TransferProgress,
        on_compared: Callable[[int, bool | None], None],
        *,
        keep: bool,
    ) -> None:
        """`on_compared`: takes a row, and whether the contents are equal; None if one end could not read it.
        `keep`: new roots go into the catalog."""
        self._root = root
        self._wanted = wanted
        self._signer = signer
        self._secret = secret
        self._events = events
        self._progress = progress
        self._on_compared = on_compared
        self._keep = keep
        self._queue: deque[_Batch] = deque()

    def run(self, files: Sequence[int], round_: int) -> Conversation[int]:
        """Compare these files, increasing rows. Returns the round to go on with."""
        batches = self._batches(files)
        following = next(batches, None)
        while following is not None or self._queue:
            while following is not None and len(self._queue) < IN_FLIGHT:
                yield from self._ask(following, round_)
                following = next(batches, None)
            batch = self._queue.popleft()
            roots = batch.roots
            if roots is None:
                yield Flush()
                roots = self._own_roots(batch.files)
            round_ = yield from self._take_answers(batch, roots, round_)
        return round_

    def _ask(self, batch: _Batch, round_: int) -> Conversation[None]:
        self._queue.append(batch)
        yield Send(RootRequest(batch.files, REFERENCE_BYTES, batch.group), round_)

    def _batches(self, files: Sequence[int]) -> Iterator[_Batch]:
        """Yield the files up to GROUPED_BYTES first, in groups, then the larger ones."""
        larger = array("I")
        for at in range(0, len(files), FILES_PER_MESSAGE):
            part = files[at : at + FILES_PER_MESSAGE]
            sizes = self._wanted.sizes_of(part)
            small = [row for row, size in zip(part, sizes, strict=True) if size <= GROUPED_BYTES]
            larger.extend([row for row, size in zip(part, sizes, strict=True) if size > GROUPED_BYTES])
            yield from self._bounded(small, FILES_PER_GROUP)
        yield from self._bounded(larger, 1)

    def _bounded(self, files: Sequence[int], group: int) -> Iterator[_Batch]:
        batch: list[int] = []
        total = 0
        for row, size in zip(files, self._wanted.sizes_of(files), strict=True) if files else ():
            if batch and (total + size > BATCH_BYTES or len(batch) == FILES_PER_MESSAGE):
                yield _Batch(tuple(batch), group)
                batch, total = [], 0
            batch.append(row)
            total += size
        if batch:
            yield _Batch(tuple(batch), group)

    def _own_roots(self, files: Sequence[int]) -> dict[int, bytes]:
        """Return the roots of this end's files, without those that cannot be read, which are reported."""
        roots: dict[int, bytes] = {}
        most = most_opened()
        for at in range(0, len(files), most):
            part = files[at : at + most]
            with small_file_digests(self._root, self._wanted, part, self._signer, keep=self._keep) as many:
                missing = set(many.missing)
                for number, file in enumerate(part):
                    if number not in missing:
                        roots[file] = many.roots[number * DIGEST_BYTES : (number + 1) * DIGEST_BYTES]
                self._progress.comparing(
                    sum([size for number, size in enumerate(many.sizes) if number not in missing]), ends=True
                )
            for number in sorted(missing):
                found = self._own_root(part[number])
                if found is not None:
                    roots[part[number]] = found
        return roots

    def _own_root(self, file: int) -> bytes | None:
        entry = self._wanted.entry(file)
        try:
            with self._root.open_read(entry.path) as source:
                work = self._signer.signing(source)
                try:
                    while True:
                        self._progress.comparing(min(next(work), entry.size))
                except StopIteration as stop:
                    root: bytes = stop.value.root
                    return root
                finally:
                    work.close()
        except FileError as error:
            self._events.report(Problem(error.code, entry.path, str(error)))
            return None
        finally:
            self._progress.comparing(entry.size, ends=True)

    def _take_answers(self, batch: _Batch, roots: dict[int, bytes], round_: int) -> Conversation[int]:
        left = set(batch.files)
        again: list[int] = []
        while left:
            received = yield from next_message(self._events)
            round_, message = max(round_, received.round + 1), received.message
            if isinstance(message, TopTier):
                continue  # it follows a manifest unasked
            files: tuple[int, ...]
            if isinstance(message, FileFailed):
                files = (message.file,)
            elif isinstance(message, RootAnswer):
                files = message.files
            else:
                raise ProtocolError(f"expected roots, found {type(message).__name__}")
            if not left.issuperset(files):
                raise ProtocolError("roots of files that were not asked for")
            left.difference_update(files)
            if isinstance(message, RootAnswer):
                again += self._compare(message, roots)
            else:
                path = self._wanted.entry(message.file).path
                self._events.report(Problem(message.code, path, one_line(message.message)))
                self._on_compared(message.file, None)
        if again:
            again.sort()
            yield from self._ask(_Batch(tuple(again), 1, {row: roots[row] for row in again}), round_)
        return round_

    def _compare(self, message: RootAnswer, roots: dict[int, bytes]) -> list[int]:
        """Compare an answer. Returns files of groups that differ, to be compared one by one."""
        files, group, width = message.files, message.group, message.width
        own = b"".join([roots.get(file, bytes(DIGEST_BYTES)) for file in files])
        local = group_references(own, self._secret, width, group)
        again: list[int] = []
        for number, at in enumerate(range(0, len(files), group)):
            part = files[at : at + group]
            here = slice(number * width, (number + 1) * width)
            equal = local[here] == message.roots[here]
            read = [file for file in part if file in roots]
            for file in part if len(read) < len(part) else ():
                if file not in roots:
                    self._on_compared(file, None)
            if len(part) > 1 and not (equal and len(read) == len(part)):
                again += read
                continue
            for file in read:
                self._on_compared(file, equal)
        return again


def chosen_files(wanted: Manifest, files: Sequence[int], sample: Sample | None) -> Sequence[int]:
    """Return the files of a sample, or all."""
    if sample is None:
        return files
    chosen = array("I")
    for at in range(0, len(files), FILES_PER_MESSAGE):
        part = files[at : at + FILES_PER_MESSAGE]
        chosen.extend([part[row] for row in sampled(wanted.paths(part), sample)])
    return chosen
