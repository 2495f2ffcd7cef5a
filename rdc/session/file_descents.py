"""Files by descent: top records of signature trees, nodes below what differs, ranges of unknown chunks.

What goes wrong on this short way is repeated once with whole digests, then once with the whole content.
"""

from __future__ import annotations

from itertools import chain

from rdc.errors import FileError, ProtocolError
from rdc.limits import FILES_PER_MESSAGE, TREES_IN_FLIGHT, TREES_IN_FLIGHT_BYTES
from rdc.plan.descent import Reuse
from rdc.protocol.messages import TreeRequest
from rdc.session.bases import Bases
from rdc.session.commands import Flush, Send
from rdc.session.descending_file import DescendingFile, Stage
from rdc.session.equals import Equals
from rdc.session.file_comparison import LEAF_BLOCK
from rdc.session.file_queue import FileQueue
from rdc.session.mismatch import MismatchError
from rdc.session.rounds import FEW_FILES
from rdc.session.signed_file import ChangedBaseError
from rdc.session.stale_answers import StaleAnswers
from rdc.signature.records import reference_width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.protocol.messages import (
        BlockAnswer,
        Code,
        Correction,
        Data,
        Literals,
        NodeAnswer,
        RangeRequest,
        Table,
        Targets,
        TreeAnswer,
    )
    from rdc.session.commands import Conversation
    from rdc.session.file_comparison import FileComparison
    from rdc.session.signed_file import SignedFile
    from rdc.session.transfer_context import TransferContext
    from rdc.session.whole_files import WholeFiles

__all__ = ["FileDescents"]


class FileDescents:
    """At most TREES_IN_FLIGHT files at a time; their trees take at most TREES_IN_FLIGHT_BYTES, or are one.

    Each is compared (`FileComparison`), then fetched (`FileFetch`). Here is what files share: the room, the
    answers, and what becomes of a file where one of the two fails.
    """

    def __init__(self, context: TransferContext, wholes: WholeFiles) -> None:
        self._context = context
        self._wholes = wholes
        self._bases = Bases(context)
        self._waiting = FileQueue()
        self._descending: dict[int, DescendingFile] = {}
        self._estimates = 0
        self._equals = Equals(context)
        self._stale = StaleAnswers()

    @property
    def idle(self) -> bool:
        return not (self._waiting or self._descending or self._stale or self._equals)

    @property
    def waits(self) -> bool:
        """There may be something for `pump` to do."""
        return bool(self._waiting or self._equals)

    def add(self, file: int, bases: tuple[bytes, ...] = ()) -> None:
        """Have this file brought up to date, from the version at its path and from the files at `bases`."""
        if bases:
            self._bases.name(file, bases)
        self._waiting.append(file)

    def copy(
        self, file: int, held: SignedFile, round_: int, *, mtime_ns: int | None = None
    ) -> Conversation[None]:
        """Makes a file from one here that has its content, its whole root says so. `mtime_ns`: in place of
        the listed one."""
        state = DescendingFile(file, self._context.entries.entry(file).path, 0)
        self._descending[file] = state
        state.held = [held]
        state.root, state.size = held.tree.root, held.tree.size
        state.metadata = self._context.metadata(file, mtime_ns)
        state.begin_fetch(self._context, (Reuse(0, 0, held.tree.levels[0].records, held.tree.size, 1),))
        yield from self._conclude(state, round_)

    def pump(self, round_: int) -> Conversation[None]:
        """Begins as many of those that wait as there is room for."""
        context = self._context
        starting: dict[int, list[int]] = {}
        mean = context.signer.params.mean
        while self._waiting and (
            not self._descending
            or (len(self._descending) < TREES_IN_FLIGHT and self._estimates < TREES_IN_FLIGHT_BYTES)
        ):
            file = self._waiting.popleft()
            entry = context.entries.entry(file)
            # About 50 bytes a chunk on each side, and as much again for the lookup.
            estimate = 4096 + entry.size // int(mean) * 100
            width = reference_width(entry.size, mean)
            state = self._descending[file] = DescendingFile(file, entry.path, estimate, width)
            state.listed, state.listed_size = entry.metadata, entry.size
            self._estimates += estimate
            starting.setdefault(width, []).append(file)
        if starting:
            for width, wanted in starting.items():
                for first in range(0, len(wanted), FILES_PER_MESSAGE):
                    files = tuple(sorted(wanted[first : first + FILES_PER_MESSAGE]))
                    yield Send(TreeRequest(files, width, LEAF_BLOCK), round_)
            # The source signs its versions now, so ours are signed at the same time.
            yield Flush()
            for file in chain(*starting.values()):
                state = self._descending[file]
                yield from self._bases.sign(state, round_)
                context.tally.compared(state.listed_size)

        elif self._equals and not self._descending and self._wholes.idle:
            yield from self._copy_equals(round_)

    def _copy_equals(self, round_: int) -> Conversation[None]:
        """What was fetched for another path."""
        for copied in self._equals.drained():
            held = yield from self._equals.held(copied, round_)
            if held is None:
                self._wholes.add(copied.file)
            else:
                yield from self.copy(copied.file, held, round_, mtime_ns=copied.mtime_ns)

    def close(self) -> None:
        """Gives everything back. What came of unfinished files stays for the next run to go on from."""
        for state in self._descending.values():
            # A file has one temporary: the one that holds more of it.
            if state.fetch is not None and (state.outgrown or state.leftover is None):
                state.fetch.keep()
            state.release()
            self._bases.drop(state)

    # Comparing: the answers to TreeRequest, NodeRequest, BlockRequest.

    def take_tree(self, message: TreeAnswer, round_: int) -> Conversation[None]:
        state = self._descending.get(message.file)
        if state is None:
            raise ProtocolError(f"a tree of file {message.file} that was not asked for")
        state.root, state.size = message.root, message.size
        state.metadata = state.listed
        if message.mtime_ns is not None or state.listed is None:
            state.metadata = self._context.metadata(message.file, message.mtime_ns)
        if not state.held:
            yield from self._bases.sign(state, round_)
        if not state.held:
            # Gone, or not to be read: no reason not to have the new version.
            self._fetch_whole(state)
            return
        first = state.held[0]
        if first.path == state.path and first.tree.root == message.root:
            self._finish(state)
            self._context.landing.same(message.file, state.metadata, first.identity)
            self._context.tally.advance(message.size)
            return
        if state.stage is Stage.SHORT and self._equals.waits(
            message.file, message.size, message.root, message.mtime_ns
        ):
            self._finish(state)
            return
        yield from self._descend(state, state.compare(self._context, message), round_)

    def take_nodes(self, message: NodeAnswer, round_: int) -> Conversation[None]:
        state = self._descending.get(message.file)
        if state is None and self._stale.expire_nodes(message.file, message.nodes[-1]):
            return
        if state is None or state.comparison is None:
            raise ProtocolError(f"nodes of file {message.file} that were not asked for")
        if state.comparison.take_nodes(message):
            yield from self._descend(state, state.comparison, round_)

    def _descend(self, state: DescendingFile, comparison: FileComparison, round_: int) -> Conversation[None]:
        """Asks for the next level's nodes, or for what is below the chunks that no base has."""
        if (yield from comparison.ask_nodes(round_)):
            return
        if state.stage is not Stage.SHORT:
            yield from self._fetch(state, comparison, round_)
            return
        try:
            comparison.begin_blocks(round_, few_files=len(self._descending) <= FEW_FILES)
        except FileError:
            self._bases.drop(state)
            yield from self._escalate(state, round_)
            return
        yield from self._ask_blocks(state, comparison, round_)

    def take_blocks(self, message: BlockAnswer, round_: int) -> Conversation[None]:
        state = self._descending.get(message.file)
        if state is None:
            self.expire(message.file)
            return
        if state.comparison is None:
            raise ProtocolError(f"blocks of file {message.file} that were not asked for")
        state.open_requests -= 1
        try:
            if not state.failed:
                state.comparison.take_blocks(message.fingerprints)
        except FileError:
            # The base has changed or gone: the next stage signs it anew, or does without.
            self._bases.drop(state)
            state.failed = True
        if state.open_requests:
            return
        if state.failed:
            yield from self._escalate(state, round_)
        else:
            yield from self._ask_blocks(state, state.comparison, round_)

    def _ask_blocks(
        self, state: DescendingFile, comparison: FileComparison, round_: int
    ) -> Conversation[None]:
        """Smaller blocks of what is still unknown; where none pay, its bytes."""
        state.open_requests = yield from comparison.ask_blocks(round_)
        if not state.open_requests:
            yield from self._fetch(state, comparison, round_)

    # Fetching: the answers to RangeRequest.

    def _fetch(self, state: DescendingFile, comparison: FileComparison, round_: int) -> Conversation[None]:
        """What no base has, and then all of it."""
        state.begin_fetch(self._context, comparison.parts, blank=comparison.blank)
        yield from self._ask_ranges(state, round_)

    def _ask_ranges(self, state: DescendingFile, round_: int, *, doubted: bool = False) -> Conversation[None]:
        """The ranges that no base has, or nothing more. `doubted`: what was found is wrong somewhere."""
        fetch = state.fetching()
        try:
            requests = fetch.requests(TREES_IN_FLIGHT_BYTES - self._estimates, doubted=doubted)
        except FileError:
            self._bases.drop(state)
            yield from self._escalate(state, round_)
            return
        state.estimate += fetch.mask_bytes
        self._estimates += fetch.mask_bytes
        yield from self._send(state, requests, round_)
        if not state.open_requests:
            yield from self._conclude(state, round_)

    def _send(
        self, state: DescendingFile, requests: Sequence[RangeRequest], round_: int
    ) -> Conversation[None]:
        for request in requests:
            state.open_requests += 1
            yield Send(request, round_)

    def take_correction(self, message: Correction) -> None:
        """What blocks of a file were wrong about, before its literals come."""
        state = self._descending.get(message.file)
        if state is not None and not state.failed:
            state.fetching().take_correction(message)

    def take_targets(self, message: Targets) -> None:
        """The targets of blocks that were found without, before what is missing."""
        state = self._descending.get(message.file)
        if state is not None and not state.failed:
            state.fetching().take_targets(message)

    def take_data(self, message: Data | Code | Table) -> bool:
        """Takes literals; False when this file does not come by descent."""
        state = self._descending.get(message.file)
        if state is None:
            return message.file in self._stale
        if not state.failed:
            try:
                fetch = state.fetching()
                fetch.take_data(message)
                self._bases.outgrow(state, fetch.written)
                self._context.tally.arriving(fetch.written)
            except FileError as error:
                self._fail(state, error)
        return True

    def take_end(self, file: int, round_: int) -> Conversation[bool]:
        """All literals of one request are here; False when this file does not come by descent."""
        state = self._descending.get(file)
        if state is None:
            return False
        state.open_requests -= 1
        if not state.failed:
            try:
                state.fetching().take_end()
            except FileError as error:
                self._fail(state, error)
                if not state.failed:
                    return True
        if not state.open_requests:
            yield from self._conclude(state, round_)
        return True

    def take_literals(self, message: Literals, round_: int) -> Conversation[None]:
        """All literals of a file, packed with what this side has around them."""
        state = self._descending.get(message.file)
        if state is None:
            self.expire(message.file)
            return
        state.open_requests -= 1
        if not state.failed:
            try:
                fetch = state.fetching()
                fetch.take_literals(message)
                self._context.tally.arriving(fetch.written)
            except FileError as error:
                self._fail(state, error)
                if not state.failed:
                    return
        yield from self._conclude(state, round_)

    def _conclude(self, state: DescendingFile, round_: int) -> Conversation[None]:
        """All literals came: verify and hand over, or try the next stage."""
        if state.failed:
            yield from self._escalate(state, round_)
            return
        fetch = state.fetching()
        try:
            if fetch.deceived():
                yield from self._ask_ranges(state, round_, doubted=True)
                return
            if wrong := fetch.mending():
                yield from self._send(state, wrong, round_)
                return
            rebuild = fetch.finish()
        except FileError as error:
            self._fail(state, error)
            if state.failed:
                yield from self._escalate(state, round_)
            return
        self._context.tally.literal_bytes += rebuild.literal_bytes
        self._context.tally.reused_bytes += rebuild.reused_bytes
        identity, metadata = state.replaced(self._context), state.metadata
        self._finish(state)
        if metadata is not None:
            self._context.landing.commit(state.file, state.path, rebuild.temporary, metadata, identity)
        self._context.tally.advance(state.size)

    # Giving up: an attempt, a file, what is still to come for it.

    def _fail(self, state: DescendingFile, error: FileError) -> None:
        """This attempt is lost to the next stage, or the file if it cannot be written."""
        if isinstance(error, ChangedBaseError):
            self._bases.drop(state)
        if isinstance(error, MismatchError):
            state.failed = True
        else:
            self._context.problem(state.path, error)
            self._finish(state)

    def _escalate(self, state: DescendingFile, round_: int) -> Conversation[None]:
        state.release()
        self._bases.drop_outgrown(state)
        if state.stage is Stage.SHORT:
            state.escalate()
            yield Send(TreeRequest((state.file,), state.width), round_)
        else:
            self._fetch_whole(state)

    def _fetch_whole(self, state: DescendingFile) -> None:
        self._finish(state)
        self._wholes.add(state.file)

    def _finish(self, state: DescendingFile, *, failed: bool = False) -> None:
        """`failed`: the oldest of its requests, which are answered in turn."""
        self._stale.expect(state.file, state.unanswered()[int(failed) :])
        state.release()
        self._bases.drop(state)
        self._bases.forget(state.file)
        del self._descending[state.file]
        self._estimates -= state.estimate

    def take_failure(self, file: int) -> bool:
        """The source could not answer for this file; False when that concerns a request already given up."""
        state = self._descending.get(file)
        if state is None:
            return False
        self._finish(state, failed=True)
        return True

    def expire(self, file: int) -> bool:
        """An answer came for a file that was given up; False when none was to come."""
        return self._stale.expire(file)
