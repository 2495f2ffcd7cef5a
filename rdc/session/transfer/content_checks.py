"""Content checks: files that may be equal on both sides are compared by their roots first."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from itertools import compress
from math import isqrt

from rdc.errors import FileError
from rdc.files.bulk.open_many import most_opened
from rdc.kernel import put_rows, take_rows
from rdc.lean.typed import NamedTuple
from rdc.limits import FILES_PER_GROUP, FILES_PER_MESSAGE, OPENED_FILES_LEAST
from rdc.protocol.messages import FileFailed, RootAnswer, RootRequest
from rdc.session.runtime.commands import Conversation, Send
from rdc.session.transfer.bases import sign_file
from rdc.session.transfer.destination import Destination, FileQueue, Transfer
from rdc.signature.codec import group_references
from rdc.signature.tree import DIGEST_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from rdc.model.entries import Identity
    from rdc.session.transfer.bundle import Bundles
    from rdc.session.transfer.whole import WholeFiles
    from rdc.session.trees.small_file_digests import SmallFileDigests


ALIKE_FILES = 32
"""From this many files of another mtime and the same size on, roots are compared first, by short
references: a tree's top would take 60 bytes per file. Files that differ take one or two more round trips."""

GROUP_FILES = 16
"""Files whose roots are compared as one group: one 6-byte reference per 16 files (0.4 bytes a file). Groups
that differ are compared again file by file. If 1 % of the files differ, this takes
1.3 bytes a file, not 6."""

REFERENCE_BYTES = 6
"""Bytes of a reference of a root or of a group of roots. Each is compared with one other reference. All of a
million different files are noticed with a probability of 1 - 2^-28."""

FILES_PER_CHECK = 1024
"""Files in one request by groups. The source signs the next ones while the destination compares."""

_ASKED, _TOUCHED = 1, 2
"""Marks of a file: its root was requested; only its mtime differs."""

_MARKS = range(1 << 2)
"""All combinations of marks."""

_WITH = [bytes([known | mark for known in _MARKS]).ljust(256, b"\0") for mark in _MARKS]
_WITHOUT = [bytes([known & ~mark for known in _MARKS]).ljust(256, b"\0") for mark in _MARKS]
_HAS = [bytes([known & mark > 0 for known in _MARKS]).ljust(256, b"\0") for mark in _MARKS]
"""Tables for bytes.translate, by mark: they add the mark, remove it, or tell whether it is set (1 or 0)."""


class _Root(NamedTuple):
    """The root of a local file, and its identity when it was read."""

    root: bytes
    identity: Identity


class ContentChecks(Transfer):
    """Compares roots. Files that differ go to `differing`; equal ones only get their metadata. Files too few
    to compare roots first go to `unknown`."""

    rank = 0
    answers = (RootAnswer, FileFailed)

    def __init__(
        self, context: Destination, unknown: Bundles | WholeFiles, differing: Callable[[int, int], None]
    ) -> None:
        """`differing`: takes a file and the size of its new version in bytes."""
        self._context = context
        self._unknown = unknown
        self._take_differing = differing
        self._demanded = FileQueue()
        self._alike = FileQueue()
        self._marks = bytearray()
        """The marks of each file, one byte per file: there may be a million files."""
        self._asked = 0
        """The number of files that are _ASKED."""
        self._candidates = FileQueue()
        """Files of groups that differ, to be compared one by one."""
        self._roots: dict[int, _Root] = {}
        """Local roots of `_candidates`, as far as they are known."""
        self._changed_while_read: set[int] = set()
        """Files that changed after they were read in bulk: they are read again, one by one."""

    @property
    def idle(self) -> bool:
        return not (self._demanded or self._alike or self._candidates or self._asked)

    def demand(self, files: Sequence[int]) -> None:
        """Add files to be compared by their whole roots, as the user asked for."""
        self._context.progress.compare_bytes += sum(self._context.manifest.sizes_of(files))
        self._demanded.extend(files)

    def touched(self, files: Sequence[int]) -> None:
        """Add files with another mtime and the same size. The progress counts them as to be fetched."""
        self._alike.extend(files)

    def release(self, files: AbstractSet[int]) -> list[int]:
        """Take back those of `files` that wait because only their mtime differs."""
        released = [file for file in self._alike if file in files]
        kept = [file for file in self._alike if file not in files]
        self._alike.clear()
        self._alike.extend(kept)
        return released

    def pump(self, round_: int, *, planned: bool) -> Conversation[None]:
        """Request the roots of all files that wait. `planned`: the number of files to compare is known."""
        while self._demanded and planned:
            files = self._demanded.drained(FILES_PER_MESSAGE)
            self._ask(files, _ASKED)
            yield Send(RootRequest(files), round_)
        if planned and len(self._alike) < ALIKE_FILES:
            for file, size in zip(self._alike, self._context.manifest.sizes_of(self._alike), strict=True):
                self._unknown.add(file, size)
            self._alike.clear()
        group = self._group() if planned else 0
        while self._alike and planned:
            files = self._alike.drained(FILES_PER_CHECK)
            self._ask(files, _ASKED | _TOUCHED)
            yield Send(RootRequest(files, REFERENCE_BYTES, group), round_)
        while self._candidates:
            files = self._candidates.drained(FILES_PER_MESSAGE)
            self._ask(files, _ASKED)
            yield Send(RootRequest(files, REFERENCE_BYTES), round_)

    def _ask(self, files: Sequence[int], marks: int) -> None:
        """Set marks of files that are about to be requested."""
        if files[-1] >= len(self._marks):
            self._marks += bytes(files[-1] + 1 - len(self._marks))
        rows = array("Q", files)
        known = take_rows(self._marks, 1, rows)
        put_rows(self._marks, 1, rows, known.translate(_WITH[marks]))
        self._asked += len(files)

    def _answered(self, files: Sequence[int]) -> None:
        """Remove _ASKED from these files."""
        self._asked -= sum(self._unmarked(files, _ASKED))

    def _unmarked(self, files: Sequence[int], mark: int) -> bytes:
        """Remove a mark from files. Returns one byte per file: 1 if it had the mark, else 0."""
        rows = array("Q", files)
        marks = take_rows(self._marks, 1, rows)
        put_rows(self._marks, 1, rows, marks.translate(_WITHOUT[mark]))
        return marks.translate(_HAS[mark])

    def _take_mark(self, file: int, mark: int) -> bool:
        """Remove a mark from one file and tell whether the file had it."""
        if file >= len(self._marks) or not self._marks[file] & mark:
            return False
        self._marks[file] &= ~mark
        self._asked -= mark == _ASKED
        return True

    def _group(self) -> int:
        """Return the number of files per group.

        It assumes that half as many files differ only in content as differ in size. The first request and the
        second, file by file, then cost the same.
        """
        alike = len(self._alike)
        differing = max(0, self._context.landing.planned - alike) // 2 + 1
        return max(GROUP_FILES, min(isqrt(alike // differing), FILES_PER_GROUP))

    def expects(self, message: RootAnswer | FileFailed) -> bool:
        if isinstance(message, RootAnswer):
            return True
        return message.file < len(self._marks) and bool(self._marks[message.file] & _ASKED)

    def take(self, message: RootAnswer | FileFailed, round_: int) -> Conversation[None]:
        """Compare the source's roots with those of the local files."""
        if isinstance(message, FileFailed):
            self._take_failure(message)
            return
        files, group = message.files, message.group
        whole_groups = max(1, most_opened() // group) * group
        for at in range(0, len(files), whole_groups):
            yield from self._take_part(message, at, files[at : at + whole_groups], round_)

    def _take_part(
        self, message: RootAnswer, first: int, files: Sequence[int], round_: int
    ) -> Conversation[None]:
        """Compare some files of an answer, from row `first` on, in whole groups."""
        context, group = self._context, message.group
        self._answered(files)
        with self._many_roots(files) as many:
            roots, singly, without = bytearray(many.roots), dict[int, _Root](), set[int]()
            sizes = message.sizes[first : first + len(files)]
            missing = many.missing
            if sizes and sizes != tuple(many.sizes):
                others = [row for row, size in enumerate(sizes) if size != many.sizes[row]]
                missing = sorted({*missing, *others})
            for row in missing:
                file, size = files[row], sizes[row] if sizes else None
                found = self._roots.pop(file, None) or (yield from self._root(file, size, round_))
                if found is None:
                    without.add(row)
                else:
                    singly[row] = found
                    roots[row * DIGEST_BYTES : (row + 1) * DIGEST_BYTES] = found.root
            width, begin = message.width, first // group * message.width
            local = group_references(roots, context.secret, width, group)
            received = message.roots[begin : begin + len(local)]
            if local == received and not without:
                self._same(files, range(len(files)), many, singly)
                return
            same: list[int] = []
            for number, at in enumerate(range(0, len(files), group)):
                rows, here = (
                    range(at, min(at + group, len(files))),
                    slice(number * width, (number + 1) * width),
                )
                if local[here] == received[here] and without.isdisjoint(rows):
                    same += rows
                elif group > 1:
                    self._compare_singly(files, rows, many, singly)
                else:
                    self._differs(files[at])
            self._same(files, same, many, singly)

    def _many_roots(self, files: Sequence[int]) -> SmallFileDigests:
        """Read and sign small files in bulk; others are `missing` in the result."""
        from rdc.session.trees.small_file_digests import SmallFileDigests, small_file_digests

        context = self._context
        known = any(
            singly and not singly.isdisjoint(files)
            for singly in (self._roots.keys(), self._changed_while_read)
        )
        if known or not OPENED_FILES_LEAST <= len(files) <= most_opened():
            return SmallFileDigests.none(len(files), [0] * len(files))
        # If a touched file is equal, setting its mtime changes its ctime: a catalog row would be stale.
        keep = not self._marks[files[0]] & _TOUCHED
        return small_file_digests(context.root, context.manifest, files, context.signer, keep=keep)

    def _compare_singly(
        self, files: Sequence[int], rows: Sequence[int], many: SmallFileDigests, singly: Mapping[int, _Root]
    ) -> None:
        """Queue a group that differs, these rows of `files`, to be compared file by file."""
        self._candidates.extend(files[rows[0] : rows[-1] + 1])
        missing = set(many.missing)
        for row in rows:
            found = singly.get(row)
            if found is None and many.small is not None and row not in missing:
                root = many.roots[row * DIGEST_BYTES : (row + 1) * DIGEST_BYTES]
                found = _Root(root, many.small.opened.identity(bisect_left(many.rows, row)))
            if found is not None:
                self._roots[files[row]] = found

    def _differs(self, file: int) -> None:
        """Hand over a file whose content differs."""
        context = self._context
        (size,) = context.manifest.sizes_of((file,))
        if self._take_mark(file, _TOUCHED):
            self._take_differing(file, size)
            return
        context.progress.comparing(size, ends=True)
        if context.landing.differs(file):
            context.progress.count_total(size, compared=True)
            self._take_differing(file, size)

    def _root(self, file: int, size: int | None, round_: int) -> Conversation[_Root | None]:
        """Return the root of a local file. None: its size differs or it cannot be read; it is replaced."""
        context = self._context
        entry = context.manifest.entry(file)
        # An equal file gets another ctime, as in `_many_roots`.
        passing = bool(self._marks[file] & _TOUCHED)
        try:
            with context.root.open_read(entry.path) as source:
                if size is not None and source.size != size:
                    return None
                root = context.signer.catalog.root(source, context.signer.params)
                if root is None:
                    root = (yield from sign_file(context, source, entry.size, round_, passing=passing)).root
                return _Root(root, source.identity)
        except FileError:
            return None

    def _same(
        self, files: Sequence[int], same: Sequence[int], many: SmallFileDigests, singly: Mapping[int, _Root]
    ) -> None:
        """Set the metadata of equal files, these rows of `files`.

        `many`: files that are still open. `singly`: roots of the others, by row.
        """
        # long because it handles many files at once, and a call for each would cost more than the work
        context = self._context
        changed_meanwhile: Sequence[int] = ()
        if many.small is not None:
            rows = same if not singly else [row for row in same if row not in singly]
            numbers = rows
            if len(many.rows) < len(files):
                number_of = {row: number for number, row in enumerate(many.rows)}
                numbers = [number_of[row] for row in rows]
            chosen = files if len(rows) == len(files) else [files[row] for row in rows]
            changed_meanwhile = context.landing.set_metadata_many(chosen, many.small.opened, numbers)
            self._changed_while_read.update(changed_meanwhile)
            self._candidates.extend(changed_meanwhile)
        for row in singly.keys() & same if singly else ():
            context.landing.same(files[row], None, singly[row].identity)
        sizes = many.sizes if many.small is not None else context.manifest.sizes_of(files)
        if changed_meanwhile or len(same) < len(files):
            excluded = set(changed_meanwhile)
            same = [row for row in same if files[row] not in excluded]
            files, sizes = [files[row] for row in same], [sizes[row] for row in same]
        if self._changed_while_read:
            self._changed_while_read.difference_update(files)
        context.progress.comparing(sum(sizes), ends=True)
        context.progress.arriving(sum(compress(sizes, self._unmarked(files, _TOUCHED))), ends=True)

    def _take_failure(self, message: FileFailed) -> None:
        """Note that the source could not read a file."""
        file = message.file
        self._take_mark(file, _ASKED)
        self._take_mark(file, _TOUCHED)
        self._roots.pop(file, None)
        self._changed_while_read.discard(file)
        self._context.progress.comparing(self._context.manifest.entry(file).size, ends=True)
        self._context.unsent(message)
