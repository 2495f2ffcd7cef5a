"""Requests without a complete answer, oldest first; an answer without a request or out of order is refused.

Both sides keep this list: the source of requests received, the destination of requests sent. Requests are
answered in the order in which they were sent. The files of one request are answered in any order. Which
messages answer a request is declared at them; here is what they must say.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from bisect import bisect_right
from collections import deque

from rdc.lean.records import Record
from rdc.limits import OUTSTANDING_ORDINALS, OUTSTANDING_REQUESTS
from rdc.protocol import messages
from rdc.protocol.messages import FileFailed, Message
from rdc.protocol.messages.field_types import CHECK_BLOCK_BYTES, AboutFiles
from rdc.protocol.wire.codec import Illegal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class AskedRanges(Record):
    """The content that a RangeRequest asks for."""

    bytes: int
    blank: bool
    """True if it is machine code with masked operands around the ranges."""


class PendingRequests:
    """The requests without a complete answer, oldest first."""

    def __init__(self) -> None:
        self._pending: deque[_Pending] = deque()
        self._ordinals = 0

    def __len__(self) -> int:
        """Return the number of requests that still need an answer."""
        return len(self._pending)

    @property
    def ranges(self) -> AskedRanges | None:
        """Return what the oldest request asks for, if that is ranges; the same object until it is
        answered."""
        oldest = self._pending[0] if self._pending else None
        return oldest.asked if isinstance(oldest, _Ranges) else None

    def ask(self, request: Message) -> None:
        """Add a request. Illegal if too many are outstanding; a destination then waits for answers first."""
        if len(self._pending) >= OUTSTANDING_REQUESTS:
            raise Illegal(f"more than {OUTSTANDING_REQUESTS} requests are unanswered")
        pending = _PENDING[type(request)](request)
        if self._ordinals + pending.ordinals > OUTSTANDING_ORDINALS:
            raise Illegal(f"more than {OUTSTANDING_ORDINALS} requested files and nodes are unanswered")
        self._ordinals += pending.ordinals
        self._pending.append(pending)

    def answer(self, answer: Message) -> None:
        """Record an answer. Illegal unless it belongs to the oldest request."""
        if not self._pending:
            raise Illegal("no request is unanswered")
        oldest = self._pending[0]
        if oldest.kind not in answer.place.answers:
            raise oldest.refusal()
        if oldest.accept(answer):
            self._pending.popleft()
            self._ordinals -= oldest.ordinals
            if isinstance(oldest, _Likely) and oldest.asked is not None:
                # S sends these trees right after its answer: before those to later requests.
                trees = _Trees(oldest.asked)
                self._pending.appendleft(trees)
                self._ordinals += trees.ordinals


def _ordinals(request: Message) -> int:
    """Return the number of files or nodes that a request names; a whole tier is one."""
    named = getattr(request, request.place.asks or "", ())
    return len(named) or 1 if isinstance(named, tuple) else 1


class _Pending(ABC):
    """A request, and how much of its answer came."""

    __slots__ = ("kind", "ordinals")

    def __init__(self, request: Any) -> None:
        self.kind: type[Message] = type(request)
        self.ordinals = _ordinals(request)

    @abstractmethod
    def accept(self, answer: Any) -> bool:
        """Record an answer of a kind that the request may have. True: the request is now complete."""

    @abstractmethod
    def wanted(self) -> str:
        """Return the content that the request asks for, as text for messages."""

    def refusal(self) -> Illegal:
        """Return the refusal of an answer to anything else."""
        return Illegal(f"the oldest request asks for {self.wanted()}")


class _Files(_Pending):
    """A request that names several files. The first answer turns its names into the set `_remaining`."""

    __slots__ = ("_names", "_remaining")

    def __init__(self, request: AboutFiles) -> None:
        super().__init__(request)
        self._names = array("I", request.files)
        self._remaining: set[int] | None = None

    def has(self, file: int) -> bool:
        return file in self._open()

    def acknowledge(self, *files: int) -> bool:
        """Remove answered files. True: all are answered."""
        remaining = self._open()
        if not remaining.issuperset(files):
            raise Illegal(f"file {min(set(files) - remaining)} is not what the oldest request asks for")
        remaining.difference_update(files)
        return not remaining

    def _open(self) -> set[int]:
        if self._remaining is None:
            self._remaining = set(self._names)
            self._names = array("I")
        return self._remaining


class _Roots(_Files):
    """A RootRequest: each file is answered once, in any number of answers."""

    __slots__ = ("_group", "_width")

    def __init__(self, request: messages.RootRequest) -> None:
        super().__init__(request)
        self._width, self._group = request.width, request.group

    def wanted(self) -> str:
        return "RootAnswer"

    def accept(self, answer: messages.RootAnswer | FileFailed) -> bool:
        if isinstance(answer, FileFailed):
            return self.acknowledge(answer.file)
        if (answer.width, answer.group) != (self._width, self._group):
            raise Illegal(f"roots of {answer.width} bytes, {self._width} were asked for, or of other groups")
        return self.acknowledge(*answer.files)


class _Trees(_Files):
    """A TreeRequest. The TreeAnswer of a file with holes comes right after its Holes."""

    __slots__ = ("_holes",)

    def __init__(self, request: messages.TreeRequest) -> None:
        super().__init__(request)
        self._holes: int | None = None
        """The file whose Holes were the last answer."""

    def wanted(self) -> str:
        return "TreeAnswer"

    def accept(self, answer: messages.TreeAnswer | messages.Holes | FileFailed) -> bool:
        holes, self._holes = self._holes, None
        if holes not in {None, answer.file}:
            raise Illegal(f"file {answer.file} after the holes of file {holes}")
        if isinstance(answer, messages.Holes):
            if holes is not None or answer.lengths or not self.has(answer.file):
                raise Illegal(f"holes of file {answer.file} that were not asked for, or twice")
            self._holes = answer.file
            return False
        return self.acknowledge(answer.file)


class _Likely(_Pending):
    """A LikelyRequest: at most one LikelyBlocks, then one LikelyAnswer, after which a TreeRequest for the
    files in it is pending."""

    __slots__ = ("_has_blocks", "_request", "asked")

    def __init__(self, request: messages.LikelyRequest) -> None:
        super().__init__(request)
        self._request = request
        self._has_blocks = False
        self.asked: messages.TreeRequest | None = None

    def wanted(self) -> str:
        return "files that are likely changed"

    def accept(self, answer: messages.LikelyAnswer | messages.LikelyBlocks) -> bool:
        if isinstance(answer, messages.LikelyBlocks):
            if self._has_blocks:
                raise Illegal("the blocks of likely files came already")
            self._has_blocks = True
            return False
        self.asked = answer.asked(self._request)
        return True


class _Traits(_Files):
    """A TraitsRequest: each file is answered once, in any number of answers."""

    __slots__ = ()

    def wanted(self) -> str:
        return "traits"

    def accept(self, answer: messages.TraitsAnswer | FileFailed) -> bool:
        if isinstance(answer, FileFailed):
            return self.acknowledge(answer.file)
        return self.acknowledge(*answer.files)


class _Digest(_Files):
    """A DigestRequest: failures of single files, then one digest of all other files unless all failed."""

    __slots__ = ()

    def wanted(self) -> str:
        return "a digest"

    def accept(self, answer: messages.DigestAnswer | FileFailed) -> bool:
        return self.acknowledge(answer.file) if isinstance(answer, FileFailed) else True


class _Whole(_Files):
    """A FileRequest: for each file Data until FileEnd or FileFailed, one file after another.

    Resized may precede the Data of a file; they must then keep to its size. This class does not know the
    listed size, so its users check that. Holes may precede the Data, too, and come again once the last of
    them was reached.
    """

    __slots__ = ("_announced", "_current", "_hollow", "_size", "_until_hole")

    def __init__(self, request: messages.FileRequest) -> None:
        super().__init__(request)
        self._current: int | None = None
        self._size = 0
        self._announced: int | None = None
        self._hollow = False
        self._until_hole = 0
        """Bytes of Data that come before the last of the announced holes."""

    def wanted(self) -> str:
        return "whole files"

    def accept(
        self,
        answer: messages.FileBatch
        | messages.Data
        | messages.FileEnd
        | messages.Resized
        | messages.Holes
        | FileFailed,
    ) -> bool:
        if isinstance(answer, messages.FileBatch):
            if self._current is not None:
                raise self.refusal()
            return self.acknowledge(*answer.files)
        begins = self._current is None
        if begins:
            self._begin(answer.file)
        elif self._current != answer.file:
            raise Illegal(f"file {self._current} has not ended")
        if isinstance(answer, messages.Resized):
            if not begins:
                raise Illegal(f"a size of file {answer.file} after its content began, or twice")
            self._announced = answer.size
            return False
        if isinstance(answer, (messages.Data, messages.Holes)):
            if isinstance(answer, messages.Holes):
                self._take_holes(answer)
            else:
                self._size += len(answer.payload)
                self._until_hole = max(0, self._until_hole - len(answer.payload))
            if self._announced is not None and self._size > self._announced:
                raise Illegal(f"file {answer.file} has {self._announced} bytes, and more came")
            return False
        if isinstance(answer, messages.FileEnd):
            self._check_end(answer)
        self._current = None
        return self.acknowledge(answer.file)

    def _begin(self, file: int) -> None:
        if not self.has(file):
            raise Illegal(f"file {file} is not what the oldest request asks for")
        self._current = file
        self._size, self._announced = 0, None
        self._hollow, self._until_hole = False, 0

    def _take_holes(self, answer: messages.Holes) -> None:
        if not answer.lengths or self._until_hole or (self._size and not self._hollow):
            raise Illegal(f"holes of file {answer.file} after its content began, or before the last ones")
        self._hollow = True
        self._size += sum(answer.lengths)
        self._until_hole = sum(answer.gaps)

    def _check_end(self, answer: messages.FileEnd) -> None:
        """Illegal unless the content of the file agrees with its end."""
        if self._announced not in {None, answer.size}:
            raise Illegal(f"file {answer.file} has {self._announced} bytes, and ends at {answer.size}")
        if self._until_hole:
            raise Illegal(f"file {answer.file} ends before its last hole")
        if answer.like is not None and self._size:
            raise Illegal(f"file {answer.file} is like another one, and {self._size} bytes came")
        if answer.like is None and answer.size != self._size:
            raise Illegal(f"file {answer.file} ends at {answer.size}, {self._size} bytes came")
        if not answer.digest:
            raise Illegal("FileEnd of a whole file needs its digest")


class _Ranges(_Pending):
    """A RangeRequest: first Corrections of the claimed check blocks, and Targets of others; then Data of
    exactly the requested length; then FileEnd."""

    __slots__ = ("_check_blocks", "_displacements", "_file", "_left", "_pack", "_total", "asked")

    def __init__(self, request: messages.RangeRequest) -> None:
        super().__init__(request)
        self._pack = request.pack
        self._file = request.file
        self._left = self._total = sum(request.lengths)
        self._check_blocks = array("Q", request.claims.cells)
        """Check blocks that may still be corrected."""
        self._displacements = CHECK_BLOCK_BYTES * len(self._check_blocks) if request.blank else 0
        """Bytes of masked operands that may still arrive."""
        self.asked = AskedRanges(self._total, request.blank)

    def wanted(self) -> str:
        return f"ranges of file {self._file}"

    def accept(
        self,
        answer: messages.Literals
        | messages.Data
        | messages.Code
        | messages.Table
        | messages.FileEnd
        | messages.Correction
        | messages.Targets
        | FileFailed,
    ) -> bool:
        if answer.file != self._file:
            raise self.refusal()
        if isinstance(answer, messages.Correction):
            self._correct(answer)
            return False
        if isinstance(answer, messages.Targets):
            self._count_displacements(answer)
            return False
        if isinstance(answer, messages.Literals) and not (self._pack and self._left == self._total):
            raise Illegal("packed literals that were not asked for, or after others")
        if isinstance(answer, (messages.Data, messages.Code, messages.Table)):
            if len(answer.payload) > self._left:
                raise Illegal(f"more than the {self._total} bytes asked for")
            self._left -= len(answer.payload)
            return False
        if isinstance(answer, messages.FileEnd) and (
            self._left or answer.size != self._total or answer.digest
        ):
            raise Illegal(f"the ranges of file {self._file} end {self._left} bytes early, or with a digest")
        return True

    def _count_displacements(self, answer: messages.Targets) -> None:
        if self._left != self._total or len(answer.payload) > self._displacements:
            raise Illegal(f"targets in file {self._file} that were not asked for, or after data")
        self._displacements -= len(answer.payload)

    def _correct(self, answer: messages.Correction) -> None:
        if self._left != self._total:
            raise Illegal(f"a correction of file {self._file} that comes after data")
        if not set(self._check_blocks).issuperset(answer.cells):
            raise Illegal(f"a correction of file {self._file} where nothing was claimed, or twice")
        del self._check_blocks[: bisect_right(self._check_blocks, answer.cells[-1])]


class _Bundle(_Pending):
    """A BundleRequest: one answer, or one failure for all."""

    __slots__ = ("_bundle",)

    def __init__(self, request: messages.BundleRequest) -> None:
        super().__init__(request)
        self._bundle = request.bundle

    def wanted(self) -> str:
        return f"bundle {self._bundle}"

    def accept(self, answer: messages.BundleAnswer | FileFailed) -> bool:
        if (answer.file if isinstance(answer, FileFailed) else answer.bundle) != self._bundle:
            raise self.refusal()
        if isinstance(answer, FileFailed):
            return True
        if answer.without and answer.without[-1] >= self.ordinals:
            raise Illegal(f"bundle {self._bundle} without file {answer.without[-1]} of {self.ordinals}")
        return True


class _Landed(_Pending):
    """A Landed: one answer, about at most as many entries."""

    __slots__ = ()

    def wanted(self) -> str:
        return f"{self.ordinals} entries that may go"

    def refusal(self) -> Illegal:
        return Illegal(f"the oldest request is about {self.wanted()}")

    def accept(self, answer: messages.Removed) -> bool:
        if answer.count > self.ordinals:
            raise self.refusal()
        return True


class _Blocks(_Pending):
    """A BlockRequest: one answer with a fingerprint per block."""

    __slots__ = ("_bytes", "_file")

    def __init__(self, request: messages.BlockRequest) -> None:
        super().__init__(request)
        self._file = request.file
        self._bytes = request.blocks * request.width

    def wanted(self) -> str:
        return f"blocks of file {self._file}"

    def accept(self, answer: messages.BlockAnswer | FileFailed) -> bool:
        if answer.file != self._file:
            raise self.refusal()
        if isinstance(answer, messages.BlockAnswer) and len(answer.fingerprints) != self._bytes:
            raise Illegal(f"{len(answer.fingerprints)} bytes of fingerprints, {self._bytes} were asked for")
        return True


class _Nodes(_Pending):
    """A NodeRequest: the answers take its nodes in order."""

    __slots__ = ("_done", "_file", "_level", "_nodes")

    def __init__(self, request: messages.NodeRequest) -> None:
        super().__init__(request)
        self._file = request.file
        self._level = request.level
        self._nodes = array("I", request.nodes)
        self._done = 0

    def wanted(self) -> str:
        return f"nodes of file {self._file}, level {self._level}"

    def accept(self, answer: messages.NodeAnswer | FileFailed) -> bool:
        if answer.file != self._file:
            raise self.refusal()
        if isinstance(answer, FileFailed):
            return True
        if (
            answer.level != self._level
            or array("I", answer.nodes) != self._nodes[self._done : self._done + len(answer.nodes)]
        ):
            raise self.refusal()
        self._done += len(answer.nodes)
        return self._done == len(self._nodes)


class _Tier(_Pending):
    """A TierRequest: one answer with an entry per node, or one answer for the whole tier."""

    __slots__ = ("_level", "_whole")

    def __init__(self, request: messages.TierRequest) -> None:
        super().__init__(request)
        self._level = request.level
        self._whole = not request.nodes

    def wanted(self) -> str:
        return f"nodes of tier {self._level}"

    def accept(self, answer: messages.TierAnswer) -> bool:
        if answer.level > self._level or (answer.level < self._level and not self._whole):
            raise self.refusal()
        if len(answer.counts) != self.ordinals:
            raise Illegal(f"{len(answer.counts)} entries for {self.ordinals} nodes")
        return True


class _Rows(_Pending):
    """A RowsRequest: node after node, until the last one is complete."""

    __slots__ = ("_left",)

    def __init__(self, request: messages.RowsRequest) -> None:
        super().__init__(request)
        self._left = self.ordinals

    def wanted(self) -> str:
        return "rows"

    def accept(self, answer: messages.RowsPart) -> bool:
        if len(answer.counts) > self._left:
            raise Illegal(f"rows of {len(answer.counts)} nodes, {self._left} are left")
        self._left -= len(answer.counts) - (not answer.last)
        return not self._left


_PENDING: dict[type[Message], Callable[[Any], _Pending]] = {
    messages.BlockRequest: _Blocks,
    messages.BundleRequest: _Bundle,
    messages.RangeRequest: _Ranges,
    messages.NodeRequest: _Nodes,
    messages.RootRequest: _Roots,
    messages.TreeRequest: _Trees,
    messages.LikelyRequest: _Likely,
    messages.TraitsRequest: _Traits,
    messages.DigestRequest: _Digest,
    messages.FileRequest: _Whole,
    messages.Landed: _Landed,
    messages.TierRequest: _Tier,
    messages.RowsRequest: _Rows,
}
