"""Files whose contents are compared by their roots before anything else is done about them."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from itertools import compress
from math import isqrt

from rdc.errors import FileError
from rdc.files.opened import most_opened
from rdc.kernel import put_rows, take_rows
from rdc.limits import FILES_PER_GROUP, FILES_PER_MESSAGE, OPENED_FILES_LEAST
from rdc.protocol.messages import RootRequest
from rdc.session.commands import Send
from rdc.session.file_queue import FileQueue
from rdc.signature.digests import DIGEST_BYTES
from rdc.signature.records import group_references
from rdc.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rdc.model.entries import Identity
    from rdc.protocol.messages import RootAnswer
    from rdc.session.bundles import Bundles
    from rdc.session.commands import Conversation
    from rdc.session.many_roots import ManyRoots
    from rdc.session.transfer_context import TransferContext

__all__ = ["ContentChecks"]

ALIKE_FILES = 32
"""Files with another mtime and the same size from which on short references of roots are compared first,
where a tree's top has 60 bytes: a round trip or two more for those that differ."""

GROUP_FILES = 16
"""Of so many files at least at first by one reference: 0.4 bytes a file, and 6 bytes for those of groups that
differ. Where one in a hundred differs, 1.3 bytes a file in place of 6."""

REFERENCE_BYTES = 6
"""Of a root, or of a group of them. Each is compared with one other: that a million files which differ all
show is certain but for 2^-28."""

FILES_PER_CHECK = 1024
"""Files in one such request: the far side signs the next while this one compares."""


_ASKED, _TOUCHED = 1, 2
"""Marks of a file: its root was asked for; only its mtime says that it differs."""

_MARKS = range(1 << 2)
"""All there can be of a file."""

_WITH = [bytes([known | mark for known in _MARKS]).ljust(256, b"\0") for mark in _MARKS]
_WITHOUT = [bytes([known & ~mark for known in _MARKS]).ljust(256, b"\0") for mark in _MARKS]
_HAS = [bytes([known & mark > 0 for known in _MARKS]).ljust(256, b"\0") for mark in _MARKS]
"""By mark: what it makes of all those of a file, and its absence; whether it is among them. For
bytes.translate."""


class _Root(NamedTuple):
    """Of a file here, and what that was when it was read."""

    root: bytes
    held: Identity


class ContentChecks:
    """Compares roots, and hands what differs to `changed`."""

    def __init__(self, context: TransferContext, changed: Bundles) -> None:
        self._context = context
        self._changed = changed
        self._demanded = FileQueue()
        self._alike = FileQueue()
        self._marks = bytearray()
        """Of each file what is known of it here, _ASKED and _TOUCHED: they may be a million."""
        self._asked = 0
        """How many are _ASKED."""
        self._suspects = FileQueue()
        """Of groups that differ."""
        self._roots: dict[int, _Root] = {}
        """Of the files here that have to be asked about once more."""
        self._restless: set[int] = set()
        """Files that changed between their reading and what was to be done then: these go singly."""

    @property
    def idle(self) -> bool:
        return not (self._demanded or self._alike or self._suspects or self._asked)

    def demand(self, files: Sequence[int]) -> None:
        """The user wants the contents of these files compared; their whole roots are."""
        self._context.tally.compare_bytes += sum(self._context.entries.sizes_of(files))
        self._demanded.extend(files)

    def touched(self, files: Sequence[int]) -> None:
        """These files have another mtime and the same size; they are counted as to be fetched already."""
        self._alike.extend(files)

    def pump(self, round_: int, *, planned: bool) -> Conversation[None]:
        """Asks for the roots of all that wait; `planned`: how much there is to compare is known."""
        while self._demanded and planned:
            files = self._demanded.drained(FILES_PER_MESSAGE)
            self._ask(files, _ASKED)
            yield Send(RootRequest(files), round_)
        if planned and len(self._alike) < ALIKE_FILES:
            for file, size in zip(self._alike, self._context.entries.sizes_of(self._alike), strict=True):
                self._changed.add(file, size)
            self._alike.clear()
        group = self._group() if planned else 0
        while self._alike and planned:
            files = self._alike.drained(FILES_PER_CHECK)
            self._ask(files, _ASKED | _TOUCHED)
            yield Send(RootRequest(files, REFERENCE_BYTES, group), round_)
        while self._suspects:
            files = self._suspects.drained(FILES_PER_MESSAGE)
            self._ask(files, _ASKED)
            yield Send(RootRequest(files, REFERENCE_BYTES), round_)

    def _ask(self, files: Sequence[int], marks: int) -> None:
        if files[-1] >= len(self._marks):
            self._marks += bytes(files[-1] + 1 - len(self._marks))
        rows = array("Q", files)
        known = take_rows(self._marks, 1, rows)
        put_rows(self._marks, 1, rows, known.translate(_WITH[marks]))
        self._asked += len(files)

    def _answered(self, files: Sequence[int]) -> None:
        """Takes _ASKED from all of these."""
        self._asked -= sum(self._unmarked(files, _ASKED))

    def _unmarked(self, files: Sequence[int], mark: int) -> bytes:
        """A byte for each of these: 1 where it had the mark, which it has no more."""
        rows = array("Q", files)
        marks = take_rows(self._marks, 1, rows)
        put_rows(self._marks, 1, rows, marks.translate(_WITHOUT[mark]))
        return marks.translate(_HAS[mark])

    def _take_mark(self, file: int, mark: int) -> bool:
        """Whether the file had it; then it has it no more."""
        if file >= len(self._marks) or not self._marks[file] & mark:
            return False
        self._marks[file] &= ~mark
        self._asked -= mark == _ASKED
        return True

    def _group(self) -> int:
        """Files to a reference where half as many differ in content alone as differ in size: both questions
        then cost the same."""
        alike = len(self._alike)
        differing = max(0, self._context.landing.planned - alike) // 2 + 1
        return max(GROUP_FILES, min(isqrt(alike // differing), FILES_PER_GROUP))

    def take(self, message: RootAnswer, round_: int) -> Conversation[None]:
        files, group = message.files, message.group
        whole_groups = max(1, most_opened() // group) * group
        for at in range(0, len(files), whole_groups):
            yield from self._take_part(message, at, files[at : at + whole_groups], round_)

    def _take_part(
        self, message: RootAnswer, first: int, files: Sequence[int], round_: int
    ) -> Conversation[None]:
        """Some of the files of an answer, from row `first` on: whole groups."""
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
            held = group_references(roots, context.secret, width, group)
            told = message.roots[begin : begin + len(held)]
            if held == told and not without:
                self._same(files, range(len(files)), many, singly)
                return
            same: list[int] = []
            for number, at in enumerate(range(0, len(files), group)):
                rows, here = (
                    range(at, min(at + group, len(files))),
                    slice(number * width, (number + 1) * width),
                )
                if held[here] == told[here] and without.isdisjoint(rows):
                    same += rows
                elif group > 1:
                    self._suspect(files, rows, many, singly)
                else:
                    self._differs(files[at])
            self._same(files, same, many, singly)

    def _many_roots(self, files: Sequence[int]) -> ManyRoots:
        """Those of the files that go together."""
        from rdc.session.many_roots import ManyRoots, many_roots

        context = self._context
        known = any(
            singly and not singly.isdisjoint(files) for singly in (self._roots.keys(), self._restless)
        )
        if known or not OPENED_FILES_LEAST <= len(files) <= most_opened():
            return ManyRoots.none(len(files), [0] * len(files))
        # A file that turns out to be the same gets another ctime with its mtime: what the catalog was told of
        # it would be worth nothing.
        keep = not self._marks[files[0]] & _TOUCHED
        return many_roots(context.root, context.entries, files, context.signer, keep=keep)

    def _suspect(
        self, files: Sequence[int], rows: Sequence[int], many: ManyRoots, singly: Mapping[int, _Root]
    ) -> None:
        """The files of a group that differs, these rows of `files`, are asked about one by one."""
        self._suspects.extend(files[rows[0] : rows[-1] + 1])
        missing = set(many.missing)
        for row in rows:
            found = singly.get(row)
            if found is None and many.small is not None and row not in missing:
                root = many.roots[row * DIGEST_BYTES : (row + 1) * DIGEST_BYTES]
                found = _Root(root, many.small.opened.identity(bisect_left(many.rows, row)))
            if found is not None:
                self._roots[files[row]] = found

    def _differs(self, file: int) -> None:
        context = self._context
        (size,) = context.entries.sizes_of((file,))
        if self._take_mark(file, _TOUCHED):
            self._changed.add(file, size)
            return
        context.tally.compared(size)
        if context.landing.differs(file):
            context.tally.total_bytes += size
            context.tally.compare_bytes += size
            self._changed.add(file, size)

    def _root(self, file: int, size: int | None, round_: int) -> Conversation[_Root | None]:
        """The root of what is held, if it has the right `size`; what cannot be compared is replaced."""
        context = self._context
        entry = context.entries.entry(file)
        # The same as for many: it will have another ctime.
        passing = bool(self._marks[file] & _TOUCHED)
        try:
            with context.root.open_read(entry.path) as held:
                if size is not None and held.size != size:
                    return None
                root = context.signer.catalog.root(held, context.signer.params)
                if root is None:
                    root = (yield from context.sign(held, entry.size, round_, passing=passing)).root
                return _Root(root, held.identity)
        except FileError:
            return None

    def _same(
        self, files: Sequence[int], same: Sequence[int], many: ManyRoots, singly: Mapping[int, _Root]
    ) -> None:
        """These rows of `files` have the source's content. Those still open get their metadata so, the others
        are `singly` known."""
        context = self._context
        restless: Sequence[int] = ()
        if many.small is not None:
            rows = same if not singly else [row for row in same if row not in singly]
            numbers = rows
            if len(many.rows) < len(files):
                number_of = {row: number for number, row in enumerate(many.rows)}
                numbers = [number_of[row] for row in rows]
            chosen = files if len(rows) == len(files) else [files[row] for row in rows]
            restless = context.landing.settle_many(chosen, many.small.opened, numbers)
            self._restless.update(restless)
            self._suspects.extend(restless)
        for row in singly.keys() & same if singly else ():
            context.landing.same(files[row], None, singly[row].held)
        sizes = many.sizes if many.small is not None else context.entries.sizes_of(files)
        if restless or len(same) < len(files):
            unsettled = set(restless)
            same = [row for row in same if files[row] not in unsettled]
            files, sizes = [files[row] for row in same], [sizes[row] for row in same]
        if self._restless:
            self._restless.difference_update(files)
        context.tally.compared(sum(sizes))
        context.tally.advance(sum(compress(sizes, self._unmarked(files, _TOUCHED))))

    def take_failure(self, file: int) -> bool:
        """The source could not read this file; False when its root was not asked for."""
        if not self._take_mark(file, _ASKED):
            return False
        self._take_mark(file, _TOUCHED)
        self._roots.pop(file, None)
        self._restless.discard(file)
        self._context.tally.compared(self._context.entries.entry(file).size)
        return True
