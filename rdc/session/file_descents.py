"""Files by descent: top records of signature trees, nodes below what differs, ranges of unknown chunks.

What goes wrong on this short way is repeated once with whole digests, then once with the whole content.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from rdc.errors import FileError, ProtocolError
from rdc.files.replace import Replacement
from rdc.files.source import HeldContent
from rdc.files.spool import Spool
from rdc.kernel import short_references
from rdc.limits import (
    FILES_PER_MESSAGE,
    HELD_CONTENT_BYTES,
    HELD_FILE_BYTES,
    KEPT_BASES,
    NODES_PER_MESSAGE,
    TREES_IN_FLIGHT,
    TREES_IN_FLIGHT_BYTES,
)
from rdc.plan.descent import Descent, Fetch, Reuse, literal_ranges
from rdc.protocol.comparison import LEAF_WIDTH
from rdc.protocol.messages import NodeRequest, TreeRequest
from rdc.session.descending_file import DescendingFile, HeldFile, Stage
from rdc.session.driver import Flush, Send
from rdc.session.equals import Equals
from rdc.session.file_queue import FileQueue
from rdc.session.gaps import FileGaps
from rdc.session.literal_requests import literal_requests, range_requests, unpacked
from rdc.session.literals import literals_of
from rdc.session.rebuild import Base, MismatchError, Rebuild
from rdc.signature.digests import DIGEST_BYTES
from rdc.signature.records import SHORT_REFERENCE_BYTES, decode_records, reference_width

if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.model.entries import Identity
    from rdc.protocol.messages import (
        BlockAnswer,
        Code,
        Correction,
        Data,
        Literals,
        NodeAnswer,
        Table,
        Targets,
        TreeAnswer,
    )
    from rdc.session.driver import Conversation
    from rdc.session.transfer_context import TransferContext
    from rdc.session.whole_files import WholeFiles

__all__ = ["LEAF_BLOCK", "FileDescents", "rounds_left"]

ROUND_TRIPS = 10
"""Round trips that a session should take at most, whatever it has to do."""

ROUND_TRIPS_FOR_FEW = 8
FEW_FILES = 4
FEW_BYTES = 64 << 10
"""With so many files, and unknown bytes in one of them, there is little that a round trip could save."""

LEAF_BLOCK = 1024
"""Bytes of the first blocks asked for, together with a file's tree."""

READ_WHOLE_BYTES = 1 << 20
"""A base up to this size is in memory while the new version is made from it."""

LEAF_REQUEST = TreeRequest((0,), SHORT_REFERENCE_BYTES, LEAF_BLOCK)


def rounds_left(round_: int, trips: int = ROUND_TRIPS) -> int:
    """How many questions there may be from this round on, before the literals."""
    # A message and its answer are two rounds; the literals take two more, and Done the last.
    return max(0, (2 * trips - 2 - round_) // 2)


class FileDescents:
    """At most TREES_IN_FLIGHT files at a time; their trees take at most TREES_IN_FLIGHT_BYTES, or are one."""

    def __init__(self, context: TransferContext, wholes: WholeFiles) -> None:
        self._context = context
        self._wholes = wholes
        self._waiting = FileQueue()
        self._descending: dict[int, DescendingFile] = {}
        self._estimates = 0
        self._kept = 0
        """Bases that are kept open."""
        self._contents_bytes = 0
        """Of bases that are kept in memory."""
        self._bases: dict[int, tuple[bytes, ...]] = {}
        self._equals = Equals(context)
        self._stale: dict[int, int] = {}  # answers to range requests still to come for files given up

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
            self._bases[file] = bases
        self._waiting.append(file)

    def copy(
        self, file: int, held: HeldFile, round_: int, *, mtime_ns: int | None = None
    ) -> Conversation[None]:
        """Makes a file from one here that has its content, its whole root says so. `mtime_ns`: in place of
        the listed one."""
        state = DescendingFile(file, self._context.entries.entry(file).path, 0)
        self._descending[file] = state
        state.held = [held]
        state.parts = (Reuse(0, 0, held.tree.levels[0].records, held.tree.size, 1),)
        state.root, state.size = held.tree.root, held.tree.size
        state.metadata = self._context.metadata(file, mtime_ns)
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
                yield from self._sign_bases(state, round_)
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

    def take_data(self, message: Data | Code | Table) -> bool:
        """Takes literals; False when this file does not come by descent."""
        state = self._descending.get(message.file)
        if state is None:
            return message.file in self._stale
        if not state.failed:
            try:
                rebuild = self._build(state)
                if state.corrections is not None:
                    state.corrections.settle()
                rebuild.push(literals_of(message, state.places))
                self._outgrow(state, rebuild.temporary.size)
                self._context.tally.arriving(rebuild.temporary.size)
            except MismatchError:
                state.failed = True
            except FileError as error:
                self._context.problem(state.path, error)
                self._finish(state)
        return True

    def take_end(self, file: int, round_: int) -> Conversation[bool]:
        """All literals of one request are here; False when this file does not come by descent."""
        state = self._descending.get(file)
        if state is None:
            return False
        state.open_requests -= 1
        if state.corrections is not None and not state.failed:
            try:
                # Where nothing is missing, nothing but this says that what was found is right.
                rebuild = self._build(state) if state.blank else state.rebuild
                state.corrections.end(rebuild.temporary.size if rebuild is not None else 0)
                if state.blank and rebuild is not None:
                    rebuild.push(b"")
            except MismatchError:
                state.failed = True
            except FileError as error:
                self._context.problem(state.path, error)
                self._finish(state)
                return True
        if not state.open_requests:
            yield from self._conclude(state, round_)
        return True

    def take_failure(self, file: int) -> bool:
        """The source could not answer for this file; False when that concerns a request already given up."""
        state = self._descending.get(file)
        if state is None:
            return False
        state.open_requests = max(0, state.open_requests - 1)
        self._finish(state)
        return True

    def expire(self, file: int) -> bool:
        """An answer came for a file that was given up; False when none was to come."""
        left = self._stale.pop(file, 0) - 1
        if left > 0:
            self._stale[file] = left
        return left >= 0

    def close(self) -> None:
        """Gives everything back. What came of unfinished files stays for the next run to go on from."""
        for state in self._descending.values():
            # A file has one temporary: the one that holds more of it.
            if state.rebuild is not None and (state.outgrown or state.leftover is None):
                state.rebuild.temporary.keep()
            state.release()
            self._drop_bases(state)

    def take_tree(self, message: TreeAnswer, round_: int) -> Conversation[None]:
        state = self._descending.get(message.file)
        if state is None:
            raise ProtocolError(f"a tree of file {message.file} that was not asked for")
        state.root, state.size = message.root, message.size
        state.metadata = state.listed
        if message.mtime_ns is not None or state.listed is None:
            state.metadata = self._context.metadata(message.file, message.mtime_ns)
        if not state.held:
            yield from self._sign_bases(state, round_)
        if not state.held:
            # Gone, or not to be read: no reason not to have the new version.
            self._fetch_whole(state)
            return
        first = state.held[0]
        if first.path == state.path and first.tree.root == message.root:
            self._finish(state)
            self._context.landing.same(message.file, state.metadata)
            self._context.tally.advance(message.size)
            return
        if state.stage is Stage.SHORT and self._equals.waits(
            message.file, message.size, message.root, message.mtime_ns
        ):
            self._finish(state)
            return
        if message.fingerprints and not message.records:
            if message.height or message.size > self._context.signer.params.max_size:
                raise ProtocolError(
                    f"a tree of file {message.file}, of {message.size} bytes, without records"
                )
            # One chunk, without a reference to compare.
            state.parts = (Fetch(b"", message.size, 1),)
            yield from self._search(state, round_, message.fingerprints)
            return
        trees = [held.tree for held in state.held]
        state.descent = Descent(trees, self._context.secret, state.width, message.size)
        state.descent.start(message.height, decode_records(message.records, state.width))
        yield from self._ask(state, round_, message.fingerprints)

    def _sign_bases(self, state: DescendingFile, round_: int) -> Conversation[None]:
        """The old version first, then what an interrupted run left of the new one, then other files."""
        size = state.listed_size
        leftover = self._context.leftovers.of(state.path)
        state.leftover = None
        for path in (state.path, leftover, *self._bases.get(state.file, ())):
            if path is None:
                continue
            try:
                with self._context.root.open_read(path) as source:
                    spans: list[bytes] = []
                    if (
                        source.size <= HELD_FILE_BYTES
                        and self._contents_bytes + source.size <= HELD_CONTENT_BYTES
                    ):
                        source.on_span = spans.append
                    # One of another size is no version that could stay.
                    passing = path == state.path and source.size != size
                    tree = yield from self._context.sign(source, size, round_, passing=passing)
                    content = b"".join(spans)  # nothing of a file that the catalog knew
                    keeps = not content and path not in (state.path, leftover) and self._will_go(path)
                    kept = source.again() if keeps else None
            except FileError:
                continue  # one base fewer
            state.held.append(HeldFile(path, source.identity, tree, kept, content))
            self._contents_bytes += len(content)
            self._kept += kept is not None
            if path == leftover:
                state.leftover = state.held[-1]

    def _will_go(self, path: bytes) -> bool:
        """Whether this base of another file is to be kept open, because its own new version may replace it
        before it is used. Vanished files stay until everything else is done."""
        row = self._context.entries.row(path) if self._kept < KEPT_BASES else None
        return row is not None and not self._context.landing.is_new(row)

    def take_nodes(self, message: NodeAnswer, round_: int) -> Conversation[None]:
        state = self._descending.get(message.file)
        if state is None or state.descent is None:
            raise ProtocolError(f"nodes of file {message.file} that were not asked for")
        records = [decode_records(data, state.width) for data in message.records]
        if state.descent.answer(message.level, message.nodes, records):
            yield from self._ask(state, round_)

    def _ask(self, state: DescendingFile, round_: int, fingerprints: bytes = b"") -> Conversation[None]:
        """The next level's nodes, or the ranges of unknown chunks, or nothing more. `fingerprints`: of the
        blocks of the whole file, of which no chunk is known."""
        descent = state.descent
        if descent is None:
            return
        asking = descent.asking
        if asking:
            for i in range(0, len(asking), NODES_PER_MESSAGE):
                nodes = tuple(asking[i : i + NODES_PER_MESSAGE])
                yield Send(NodeRequest(state.file, descent.level, nodes, state.width), round_)
            return
        state.parts, state.descent = descent.recipe(), None
        yield from self._search(state, round_, fingerprints)

    def _search(self, state: DescendingFile, round_: int, fingerprints: bytes) -> Conversation[None]:
        """What is below the chunks that no base has."""
        if state.stage is not Stage.SHORT:
            yield from self._ask_ranges(state, round_)
            return
        few = (
            len(self._descending) <= FEW_FILES
            and sum(found.length for found in literal_ranges(state.parts)) <= FEW_BYTES
        )
        rounds = rounds_left(round_, ROUND_TRIPS_FOR_FEW if few else ROUND_TRIPS)
        context = self._context
        state.gaps = FileGaps(state.file, context.root, context.secret, state.parts, state.held, rounds)
        known = state.parts[0] if len(state.parts) == 1 else None
        if fingerprints and isinstance(known, Fetch) and known.count == 1:
            self._begin_below(state, state.gaps, fingerprints)
        if state.failed:
            yield from self._escalate(state, round_)
        else:
            yield from self._ask_below(state, state.gaps, round_)

    def _begin_below(self, state: DescendingFile, gaps: FileGaps, fingerprints: bytes) -> None:
        block = LEAF_REQUEST.block_of(state.size)
        if len(fingerprints) != -(-state.size // block) * LEAF_WIDTH:
            raise ProtocolError(f"{len(fingerprints)} bytes of fingerprints for a file of {state.size}")
        try:
            gaps.begin(block, fingerprints)
        except FileError:
            self._drop_bases(state)
            state.failed = True

    def _ask_below(self, state: DescendingFile, gaps: FileGaps, round_: int) -> Conversation[None]:
        """Smaller blocks of what is still unknown; where none pay, its bytes."""
        state.open_requests = yield from gaps.ask(round_)
        if not state.open_requests:
            state.parts, state.blank, state.gaps = gaps.parts(), gaps.blank, None
            yield from self._ask_ranges(state, round_)

    def take_blocks(self, message: BlockAnswer, round_: int) -> Conversation[None]:
        state = self._descending.get(message.file)
        if state is None:
            self.expire(message.file)
            return
        if state.gaps is None:
            raise ProtocolError(f"blocks of file {message.file} that were not asked for")
        state.open_requests -= 1
        try:
            if not state.failed:
                state.gaps.take(message.fingerprints)
        except FileError:
            # The base has changed or gone: the next stage signs it anew, or does without.
            self._drop_bases(state)
            state.failed = True
        if state.open_requests:
            return
        if state.failed:
            yield from self._escalate(state, round_)
        else:
            yield from self._ask_below(state, state.gaps, round_)

    def _ask_ranges(self, state: DescendingFile, round_: int) -> Conversation[None]:
        """The ranges that no base has, or nothing more."""
        ranges = [(found.offset, found.length) for found in literal_ranges(state.parts)]
        if not ranges and not state.blank:
            yield from self._conclude(state, round_)
            return
        yield from self._ask_claiming(state, ranges, round_)

    def _ask_claiming(
        self, state: DescendingFile, ranges: list[tuple[int, int]], round_: int
    ) -> Conversation[None]:
        """These ranges, and whether what blocks were found for is right."""
        estimate = state.estimate
        try:
            requests = literal_requests(state, ranges, self._context, TREES_IN_FLIGHT_BYTES - self._estimates)
        except FileError:
            self._drop_bases(state)
            yield from self._escalate(state, round_)
            return
        self._estimates += state.estimate - estimate
        for request in requests:
            state.open_requests += 1
            yield Send(request, round_)
        if not state.open_requests:
            yield from self._conclude(state, round_)

    def take_correction(self, message: Correction) -> None:
        """What blocks of a file were wrong about, before its literals come."""
        state = self._descending.get(message.file)
        if state is not None and state.corrections is not None and not state.failed:
            state.corrections.take(message)

    def take_targets(self, message: Targets) -> None:
        """The targets of blocks that were found without, before what is missing."""
        state = self._descending.get(message.file)
        if state is not None and state.corrections is not None and not state.failed:
            state.corrections.take_targets(message)

    def take_literals(self, message: Literals, round_: int) -> Conversation[None]:
        """All literals of a file, packed with what this side has around them."""
        state = self._descending.get(message.file)
        if state is None:
            self.expire(message.file)
            return
        state.open_requests -= 1
        try:
            if not state.failed:
                rebuild = self._build(state)
                literals = unpacked(state, message.packed)
                if state.corrections is not None:
                    state.corrections.settle()
                rebuild.push(literals)
                self._context.tally.arriving(rebuild.temporary.size)
        except MismatchError:
            state.failed = True
        except FileError as error:
            self._context.problem(state.path, error)
            self._finish(state)
            return
        yield from self._conclude(state, round_)

    def _build(self, state: DescendingFile) -> Rebuild:
        """Starts writing, now that literals come: only a file at work has descriptors open."""
        if state.rebuild is None:
            bases = []
            for held in state.held:
                try:
                    if held.path == state.path:
                        held.check(self._context.root)
                    source = held.open(self._context.root)
                except MismatchError:
                    self._drop_bases(state)
                    raise
                if HELD_FILE_BYTES < source.size <= READ_WHOLE_BYTES and len(state.held) == 1:
                    # Most of it is going to be copied, in pieces.
                    with source:
                        content = source.pread(0, source.size)
                    source = HeldContent(self._context.root, held.path, held.identity, content)
                state.sources.append(source)
                bases.append(Base(source, held.tree))
            temporary = Replacement(self._context.root, state.path, expected_size=state.size)
            state.rebuild = Rebuild(
                state.path,
                self._context.signer.params,
                temporary,
                state.parts,
                bases,
                self._reference(state.width),
                Spool,
                state.corrections,
            )
            state.rebuild.start()
        return state.rebuild

    def _drop_bases(self, state: DescendingFile) -> None:
        for held in state.held:
            self._contents_bytes -= len(held.content)
            if held.kept is not None:
                held.kept.close()
                self._kept -= 1
        state.held = []

    def _outgrow(self, state: DescendingFile, size: int) -> None:
        """Removes the leftover once as much is written as it has: files are written front to back, so it
        holds nothing more, and its content stays open as a base. A kill then leaves one temporary."""
        leftover = None if state.outgrown else state.leftover
        if leftover is not None and size >= leftover.tree.size:
            state.outgrown = True
            self._context.leftovers.remove(leftover.path)

    def _reference(self, width: int) -> Callable[[bytes], bytes]:
        if width < DIGEST_BYTES:
            return lambda digest: short_references(self._context.secret, digest, DIGEST_BYTES, width)
        return lambda digest: digest

    def _conclude(self, state: DescendingFile, round_: int) -> Conversation[None]:
        """All literals came: verify and hand over, or try the next stage."""
        if not state.failed:
            try:
                rebuild = self._build(state)
                if state.corrections is None and rebuild.deceived(state.root):
                    # Every block was found, so that nothing was asked for.
                    state.restart()
                    yield from self._ask_claiming(state, [], round_)
                    return
                if wrong := rebuild.mend():
                    for request in range_requests(state, [(found.offset, found.length) for found in wrong]):
                        state.open_requests += 1
                        yield Send(request, round_)
                    return
                rebuild.finish(state.root)
            except MismatchError:
                state.failed = True
            except FileError as error:
                self._context.problem(state.path, error)
                self._finish(state)
                return
        if state.failed:
            yield from self._escalate(state, round_)
            return
        self._context.tally.literal_bytes += rebuild.literal_bytes
        self._context.tally.reused_bytes += rebuild.reused_bytes
        state.rebuild = None  # the commit group owns the temporary now
        identity, metadata = self._replaced(state), state.metadata
        self._finish(state)
        if metadata is not None:
            self._context.landing.commit(state.file, state.path, rebuild.temporary, metadata, identity)
        self._context.tally.advance(state.size)

    def _replaced(self, state: DescendingFile) -> Identity | None:
        """What the new version is going to replace: the old one as it was signed, or nothing."""
        first = state.held[0]
        return first.identity if first.path == state.path else self._context.expected(state.file, state.path)

    def _escalate(self, state: DescendingFile, round_: int) -> Conversation[None]:
        state.release()
        if state.outgrown:
            self._contents_bytes -= len(state.leftover.content) if state.leftover is not None else 0
            state.held = [held for held in state.held if held is not state.leftover]
        if state.stage is Stage.SHORT:
            state.escalate()
            yield Send(TreeRequest((state.file,), state.width), round_)
        else:
            self._fetch_whole(state)

    def _fetch_whole(self, state: DescendingFile) -> None:
        self._finish(state)
        self._wholes.add(state.file)

    def _finish(self, state: DescendingFile) -> None:
        if state.open_requests:
            self._stale[state.file] = state.open_requests
        state.release()
        self._drop_bases(state)
        del self._descending[state.file]
        self._bases.pop(state.file, None)
        self._estimates -= state.estimate
