"""Files on their way to the destination: from the decision that one differs to its hand-over for commit.

A file that the destination lacks comes whole. One that it has in another version moves by descent over both
signature trees: top records, then nodes below what differs, then the byte ranges of unknown chunks. What goes
wrong on the short way is repeated once with whole digests, then once with the whole content, then the file
fails by name. Nothing is handed over before its 32-byte root was compared.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING

from blake3 import blake3

from rdc.errors import ExitCode, FileError, ProtocolError, printable
from rdc.files.replace import Replacement
from rdc.files.replacement import KEEP_BYTES
from rdc.files.spool import Spool
from rdc.kernel import short_references
from rdc.limits import (
    FILES_PER_MESSAGE,
    NODES_PER_MESSAGE,
    RANGES_PER_MESSAGE,
    TREES_IN_FLIGHT,
    TREES_IN_FLIGHT_BYTES,
)
from rdc.plan.descent import Descent, literal_ranges
from rdc.progress import Problem, Progressed
from rdc.protocol.messages import (
    BlockAnswer,
    Data,
    FileBatch,
    FileEnd,
    FileFailed,
    FileRequest,
    NodeAnswer,
    NodeRequest,
    RangeRequest,
    RootAnswer,
    RootRequest,
    TreeAnswer,
    TreeRequest,
)
from rdc.session.driver import Flush, Send
from rdc.session.gaps import Gaps, open_base
from rdc.session.rebuild import Arrival, Base, MismatchError, Rebuild
from rdc.signature.build import chunk_root
from rdc.signature.digests import DIGEST_BYTES
from rdc.signature.records import SHORT_REFERENCE_BYTES, decode_records, root_reference

if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.catalog.signer import FileSigner
    from rdc.files.confined import Root
    from rdc.files.source import SourceFile
    from rdc.model.entries import Identity, Metadata
    from rdc.plan.descent import Part
    from rdc.protocol.connection import Received
    from rdc.session.driver import Conversation
    from rdc.session.landing import Landing
    from rdc.session.leftovers import Leftovers
    from rdc.session.news import News
    from rdc.signature.tree import SignatureTree
    from rdc.tree.manifest import Manifest

__all__ = ["Transfers"]

ROUND_TRIPS = 10
"""Round trips that a session should take at most, whatever it has to do."""

ALIKE_FILES = 32
"""Files with another mtime and the same size from which on short references of all roots are compared first:
8 bytes a file, where a tree's top has 60, and a round trip more for those that differ."""

FILES_PER_CHECK = 1024
"""Files in one such request: the far side signs the next while this one compares."""

PROGRESS_BYTES = 1 << 20
"""Content bytes between two progress events: some tens a second on a fast disk."""


class _Stage(IntEnum):
    """How a file with a base is fetched; each stage runs once."""

    SHORT = 0
    FULL = 1
    WHOLE = 2

    @property
    def width(self) -> int:
        return SHORT_REFERENCE_BYTES if self is _Stage.SHORT else DIGEST_BYTES


@dataclass(frozen=True, slots=True)
class _Held:
    """A base as it was when it was signed."""

    path: bytes
    identity: Identity
    tree: SignatureTree


class _Descending:
    """One file between its TreeRequest and its end."""

    __slots__ = (
        "descent",
        "estimate",
        "failed",
        "file",
        "gaps",
        "held",
        "metadata",
        "open_requests",
        "outgrown",
        "parts",
        "path",
        "rebuild",
        "root",
        "size",
        "sources",
        "stage",
    )

    def __init__(self, file: int, path: bytes, estimate: int) -> None:
        self.file = file
        self.path = path
        self.estimate = estimate
        self.stage = _Stage.SHORT
        self.held: list[_Held] = []
        self.descent: Descent | None = None
        self.parts: tuple[Part, ...] = ()
        self.gaps: Gaps | None = None
        self.open_requests = 0
        """Answers to come: of blocks, then of ranges."""
        self.rebuild: Rebuild | None = None
        self.sources: list[SourceFile] = []
        self.failed = False
        self.outgrown = False
        """The leftover is gone: what is written holds more by now."""
        self.root = b""
        self.size = 0
        self.metadata: Metadata | None = None

    @property
    def leftover(self) -> _Held | None:
        """The base that an interrupted run left."""
        return next((held for held in self.held if held.path != self.path), None)

    def release(self) -> None:
        """Gives back what the present attempt holds open."""
        if self.rebuild is not None:
            self.rebuild.temporary.abandon()
        for source in self.sources:
            source.close()
        self.sources = []
        self.rebuild = self.descent = self.gaps = None
        self.parts = ()
        self.failed = False


class Transfers:
    """All files in flight. Requests go out in `pump`, answers come in by `take`.

    In flight are at most TREES_IN_FLIGHT files by descent, whose trees take at most TREES_IN_FLIGHT_BYTES (or
    one file); whole files need no state here until they arrive, so all of them may be asked for at once.
    """

    def __init__(
        self,
        root: Root,
        entries: Manifest,
        landing: Landing,
        leftovers: Leftovers,
        secret: bytes,
        signer: FileSigner,
        news: News,
    ) -> None:
        self._root = root
        self._entries = entries
        self._landing = landing
        self._leftovers = leftovers
        self._secret = secret
        self._signer = signer
        self._news = news
        self._checks: deque[int] = deque()
        self._alike: deque[int] = deque()
        self._touched: set[int] = (
            set()
        )  # of those being checked: not because the user wants contents compared
        self._descents: deque[int] = deque()
        self._wholes: deque[int] = deque()
        self._checking: set[int] = set()
        self._descending: dict[int, _Descending] = {}
        self._estimates = 0
        self._asked_whole = 0
        self._retried: set[int] = set()
        self._stale: dict[int, int] = {}  # answers to range requests still to come for files given up
        self._arrival: Arrival | None = None
        self._skipping: int | None = None
        self._shown = 0
        self._compared = 0
        self._compare_shown = 0
        self.compare_bytes = 0
        """Bytes of files held here that are read to learn what differs, by the size of their new versions."""
        self._compare_total: int | None = None
        self._planned = False
        self.literal_bytes = 0
        self.reused_bytes = 0
        self.total_bytes = 0
        self.done_bytes = 0

    @property
    def idle(self) -> bool:
        return not (
            self._checks
            or self._alike
            or self._descents
            or self._wholes
            or self._checking
            or self._descending
            or self._stale
            or self._asked_whole
        )

    def check(self, file: int) -> None:
        """Compare the content of a file that both sides have, then go on as needed."""
        self.compare_bytes += self._entries.entry(file).size
        self._checks.append(file)

    def update(self, file: int, *, same_size: bool = False) -> None:
        """Bring the content of a file up to date from the version at its path; `same_size`: as listed."""
        size = self._entries.entry(file).size
        self.total_bytes += size
        self.compare_bytes += size
        (self._alike if same_size else self._descents).append(file)

    def create(self, file: int) -> None:
        """Fetch a file whole, or what an interrupted run did not get of it."""
        entry = self._entries.entry(file)
        self.total_bytes += entry.size
        if entry.size > KEEP_BYTES and self._leftovers.of(entry.path) is not None:
            self.compare_bytes += entry.size
            self._descents.append(file)
        else:
            self._wholes.append(file)

    def plan_known(self) -> None:
        """Everything is listed: how much there is to compare is known, and told before it begins."""
        self._planned = True
        if self.compare_bytes:
            self._compare_total = self.compare_bytes
            self._news.report(Progressed("compare", self._compared, self._compare_total))

    def pump(self, round_: int) -> Conversation[None]:
        """Sends what may be asked for now. Whole files come while the rest is still listed."""
        while self._checks and self._planned:
            files = _drain(self._checks, FILES_PER_MESSAGE)
            self._checking.update(files)
            yield Send(RootRequest(files), round_)
        if len(self._alike) < ALIKE_FILES:
            self._descents.extend(self._alike)
            self._alike.clear()
        while self._alike:
            files = _drain(self._alike, FILES_PER_CHECK)
            self._checking.update(files)
            self._touched.update(files)
            yield Send(RootRequest(files, SHORT_REFERENCE_BYTES), round_)
        starting = []
        while (
            self._descents
            and self._planned
            and (
                not self._descending
                or (len(self._descending) < TREES_IN_FLIGHT and self._estimates < TREES_IN_FLIGHT_BYTES)
            )
        ):
            file = self._descents.popleft()
            entry = self._entries.entry(file)
            # About 50 bytes a chunk on each side, and as much again for the lookup.
            state = _Descending(file, entry.path, 4096 + entry.size // int(self._signer.params.mean) * 100)
            self._descending[file] = state
            self._estimates += state.estimate
            starting.append(file)
        if starting:
            yield Send(TreeRequest(tuple(sorted(starting)), _Stage.SHORT.width), round_)
            # The source signs its versions now, so ours are signed at the same time.
            yield Flush()
            for file in starting:
                yield from self._sign_bases(self._descending[file], round_)
                self._count_compared(self._entries.entry(file).size)
        while self._wholes:
            files = _drain(self._wholes, FILES_PER_MESSAGE)
            self._asked_whole += len(files)
            yield Send(FileRequest(files), round_)

    def take(self, received: Received) -> Conversation[None]:
        """Takes one answer."""
        message, round_ = received.message, received.round + 1
        if isinstance(message, Data):
            self._take_data(message)
        elif isinstance(message, FileBatch):
            self._take_batch(message)
        elif isinstance(message, FileEnd):
            yield from self._take_end(message, round_)
        elif isinstance(message, TreeAnswer):
            yield from self._take_tree(message, round_)
        elif isinstance(message, NodeAnswer):
            yield from self._take_nodes(message, round_)
        elif isinstance(message, BlockAnswer):
            yield from self._take_blocks(message, round_)
        elif isinstance(message, RootAnswer):
            yield from self._take_roots(message, round_)
        elif isinstance(message, FileFailed):
            self._take_failure(message)
        else:
            raise ProtocolError(f"a destination was sent {type(message).__name__}")

    def close(self) -> None:
        """Gives everything back. What came of unfinished files stays for the next run to go on from."""
        for state in self._descending.values():
            # A file has one temporary: the one that holds more of it.
            if state.rebuild is not None and (state.outgrown or state.leftover is None):
                state.rebuild.temporary.keep()
            state.release()
        if self._arrival is not None:
            self._arrival.temporary.keep()
            self._arrival = None

    # Content checks

    def _take_roots(self, message: RootAnswer, round_: int) -> Conversation[None]:
        for row, file in enumerate(message.files):
            self._checking.discard(file)
            entry, root = self._entries.entry(file), None
            try:
                with self._root.open_read(entry.path) as held:
                    if held.size == message.sizes[row]:
                        root = self._signer.catalog.root(held, self._signer.params)
                        root = root or (yield from self._sign(held, entry.size, round_)).root
            except FileError:
                root = None  # what cannot be compared is replaced
            if root is not None:
                root = root_reference(root, self._secret, message.width)
            touched = file in self._touched
            self._touched.discard(file)
            if touched and root != message.root(row):
                self._descents.append(file)
                continue
            self._count_compared(entry.size)
            if root == message.root(row):
                self._landing.same(file, None)
                if touched:
                    self._advance(message.sizes[row])
            elif self._landing.differs(file):
                self.update(file)

    # Files by descent

    def _take_tree(self, message: TreeAnswer, round_: int) -> Conversation[None]:
        state = self._descending.get(message.file)
        if state is None:
            raise ProtocolError(f"a tree of file {message.file} that was not asked for")
        state.root, state.size = message.root, message.size
        state.metadata = self._metadata(message.file, message.mtime_ns)
        if not state.held:
            yield from self._sign_bases(state, round_)
        if not state.held:
            # Gone, or not to be read: no reason not to have the new version.
            self._fetch_whole(state)
            return
        first = state.held[0]
        if first.path == state.path and first.tree.root == message.root:
            self._finish(state)
            self._landing.same(message.file, state.metadata)
            self._advance(message.size)
            return
        width = state.stage.width
        trees = [held.tree for held in state.held]
        state.descent = Descent(trees, self._secret, width, message.size)
        state.descent.start(message.height, decode_records(message.records, width))
        yield from self._ask(state, round_)

    def _sign_bases(self, state: _Descending, round_: int) -> Conversation[None]:
        """The old version first, then what an interrupted run left of the new one."""
        size = self._entries.entry(state.file).size
        for path in (state.path, self._leftovers.of(state.path)):
            if path is None:
                continue
            try:
                with self._root.open_read(path) as source:
                    tree = yield from self._sign(source, size, round_)
                    state.held.append(_Held(path, source.identity, tree))
            except FileError:
                continue  # one base fewer

    def _sign(self, source: SourceFile, size: int, round_: int) -> Conversation[SignatureTree]:
        """Its signature; while it is read, the user is told how far that is."""
        work = self._signer.signing(source)
        try:
            while True:
                done = next(work)
                self._show_compared(self._compared + min(done, size))
                if self._news.waits:
                    yield from self._news.tell(round_)
                    yield Flush()
        except StopIteration as stop:
            tree: SignatureTree = stop.value
            return tree
        finally:
            work.close()

    def _count_compared(self, size: int) -> None:
        self._compared += size
        self._show_compared(self._compared)

    def _show_compared(self, done: int) -> None:
        if done - self._compare_shown >= PROGRESS_BYTES or done == self._compare_total:
            self._compare_shown = done
            self._news.report(Progressed("compare", done, self._compare_total))

    def _take_nodes(self, message: NodeAnswer, round_: int) -> Conversation[None]:
        state = self._descending.get(message.file)
        if state is None or state.descent is None:
            raise ProtocolError(f"nodes of file {message.file} that were not asked for")
        records = [decode_records(data, state.stage.width) for data in message.records]
        if state.descent.answer(message.level, message.nodes, records):
            yield from self._ask(state, round_)

    def _ask(self, state: _Descending, round_: int) -> Conversation[None]:
        """The next level's nodes, or the ranges of unknown chunks, or nothing more."""
        descent = state.descent
        if descent is None:
            return
        asking = descent.asking
        if asking:
            for i in range(0, len(asking), NODES_PER_MESSAGE):
                nodes = tuple(asking[i : i + NODES_PER_MESSAGE])
                yield Send(NodeRequest(state.file, descent.level, nodes, state.stage.width), round_)
            return
        state.parts, state.descent = descent.recipe(), None
        if state.stage is _Stage.SHORT:
            bases = [(held.path, held.identity) for held in state.held]
            trees = [held.tree for held in state.held]
            # A message and its answer are two rounds; literals and the end of the session take one trip each.
            rounds = max(1, (2 * ROUND_TRIPS - 3 - round_) // 2)
            state.gaps = Gaps(state.file, self._root, self._secret, state.parts, bases, trees, rounds)
            yield from self._ask_below(state, state.gaps, round_)
        else:
            yield from self._ask_ranges(state, round_)

    def _ask_below(self, state: _Descending, gaps: Gaps, round_: int) -> Conversation[None]:
        """Smaller blocks of what is still unknown; where none pay, its bytes."""
        state.open_requests = yield from gaps.ask(round_)
        if not state.open_requests:
            state.parts, state.gaps = gaps.parts(), None
            yield from self._ask_ranges(state, round_)

    def _take_blocks(self, message: BlockAnswer, round_: int) -> Conversation[None]:
        state = self._descending.get(message.file)
        if state is None:
            self._expire(message.file)
            return
        if state.gaps is None:
            raise ProtocolError(f"blocks of file {message.file} that were not asked for")
        state.open_requests -= 1
        try:
            if not state.failed:
                state.gaps.take(message.fingerprints)
        except FileError:
            # The base has changed or gone: the next stage signs it anew, or does without.
            state.held = []
            state.failed = True
        if state.open_requests:
            return
        if state.failed:
            yield from self._escalate(state, round_)
        else:
            yield from self._ask_below(state, state.gaps, round_)

    def _ask_ranges(self, state: _Descending, round_: int) -> Conversation[None]:
        """The ranges that no base has, or nothing more."""
        ranges = [(found.offset, found.length) for found in literal_ranges(state.parts)]
        for i in range(0, len(ranges), RANGES_PER_MESSAGE):
            state.open_requests += 1
            yield Send(RangeRequest.of(state.file, tuple(ranges[i : i + RANGES_PER_MESSAGE])), round_)
        if not ranges:
            yield from self._conclude(state, round_)

    def _build(self, state: _Descending) -> Rebuild:
        """Starts writing, now that literals come: only a file at work has descriptors open."""
        if state.rebuild is None:
            bases = []
            for held in state.held:
                try:
                    source = open_base(self._root, held.path, held.identity)
                except MismatchError:
                    state.held = []
                    raise
                state.sources.append(source)
                bases.append(Base(source, held.tree))
            temporary = Replacement(self._root, state.path, expected_size=state.size)
            state.rebuild = Rebuild(
                state.path,
                self._signer.params,
                temporary,
                state.parts,
                bases,
                self._reference(state.stage),
                Spool,
            )
            state.rebuild.start()
        return state.rebuild

    def _outgrow(self, state: _Descending, size: int) -> None:
        """Removes the leftover once as much is written as it has: files are written front to back, so it
        holds nothing more, and its content stays open as a base. A kill then leaves one temporary."""
        leftover = None if state.outgrown else state.leftover
        if leftover is not None and size >= leftover.tree.size:
            state.outgrown = True
            self._leftovers.remove(leftover.path)

    def _reference(self, stage: _Stage) -> Callable[[bytes], bytes]:
        if stage is _Stage.SHORT:
            return lambda digest: short_references(self._secret, digest, DIGEST_BYTES, SHORT_REFERENCE_BYTES)
        return lambda digest: digest

    def _conclude(self, state: _Descending, round_: int) -> Conversation[None]:
        """All literals came: verify and hand over, or try the next stage."""
        if not state.failed:
            try:
                rebuild = self._build(state)
                rebuild.finish(state.root)
            except MismatchError:
                state.failed = True
            except FileError as error:
                self._problem(state.path, error)
                self._finish(state)
                return
        if state.failed:
            yield from self._escalate(state, round_)
            return
        self.literal_bytes += rebuild.literal_bytes
        self.reused_bytes += rebuild.reused_bytes
        state.rebuild = None  # the commit group owns the temporary now
        identity, metadata = self._replaced(state), state.metadata
        self._finish(state)
        if metadata is not None:
            self._landing.commit(state.file, state.path, rebuild.temporary, metadata, identity)
        self._advance(state.size)

    def _replaced(self, state: _Descending) -> Identity | None:
        """What the new version is going to replace: the old one as it was signed, or nothing."""
        first = state.held[0]
        return first.identity if first.path == state.path else self._expected(state.file, state.path)

    def _escalate(self, state: _Descending, round_: int) -> Conversation[None]:
        state.release()
        if state.outgrown:
            state.held = [held for held in state.held if held.path == state.path]
        if state.stage is _Stage.SHORT:
            state.stage = _Stage.FULL
            yield Send(TreeRequest((state.file,), state.stage.width), round_)
        else:
            self._fetch_whole(state)

    def _fetch_whole(self, state: _Descending) -> None:
        self._finish(state)
        self._wholes.append(state.file)

    def _finish(self, state: _Descending) -> None:
        if state.open_requests:
            self._stale[state.file] = state.open_requests
        state.release()
        del self._descending[state.file]
        self._estimates -= state.estimate

    # Whole files, and the bytes of both kinds

    def _take_data(self, message: Data) -> None:
        state = self._descending.get(message.file)
        if state is not None:
            if not state.failed:
                try:
                    rebuild = self._build(state)
                    rebuild.push(message.payload)
                    self._outgrow(state, rebuild.temporary.size)
                    self._show(self.done_bytes + rebuild.temporary.size)
                except MismatchError:
                    state.failed = True
                except FileError as error:
                    self._problem(state.path, error)
                    self._finish(state)
            return
        if message.file in (self._skipping, *self._stale):
            return
        try:
            arrival = self._arriving(message.file)
            arrival.push(message.payload, message.chunks)
            self._show(self.done_bytes + arrival.temporary.size)
        except FileError as error:
            self._problem(self._entries.entry(message.file).path, error)
            self._skip(message.file)

    def _take_batch(self, message: FileBatch) -> None:
        """Small files: nothing of them is written before all their roots were compared."""
        self._asked_whole -= len(message.files)
        params = self._signer.params
        with memoryview(message.payload) as view:
            contents = []
            at = 0
            for size in message.sizes:
                contents.append(view[at : at + size])
                at += size
            if (
                blake3(b"".join(chunk_root(content, params) for content in contents)).digest()
                != message.digest
            ):
                for file in message.files:
                    self._retry(file, "the contents that arrived do not have the announced roots")
                return
            for file, content in zip(message.files, contents, strict=True):
                entry = self._entries.entry(file)
                try:
                    expected = self._expected(file, entry.path)
                    temporary = Replacement(self._root, entry.path)
                    temporary.write(content)
                    self._landing.commit(file, entry.path, temporary, entry.metadata, expected)
                except FileError as error:
                    self._problem(entry.path, error)
                self.literal_bytes += len(content)
                self._advance(len(content))

    def _expected(self, file: int, path: bytes) -> Identity | None:
        """What a whole file is going to replace."""
        if self._landing.is_new(file) or self._root.kind(path) is None:
            return None
        return self._root.identity(path)

    def _retry(self, file: int, why: str) -> None:
        path = self._entries.entry(file).path
        if file in self._retried:
            self._problem(path, MismatchError(path, f"{printable(path)}: {why}"))
        else:
            self._retried.add(file)
            self._wholes.append(file)

    def _take_end(self, message: FileEnd, round_: int) -> Conversation[None]:
        state = self._descending.get(message.file)
        if state is not None:
            state.open_requests -= 1
            if not state.open_requests:
                yield from self._conclude(state, round_)
            return
        if not message.root:
            self._expire(message.file)
            return
        self._asked_whole -= 1
        if self._skipping == message.file:
            self._skipping = None
            return
        path = self._entries.entry(message.file).path
        try:
            arrival, self._arrival = self._arriving(message.file), None
            arrival.finish(message.root)
        except MismatchError:
            arrival.temporary.abandon()
            self._retry(message.file, "the content that arrived does not have the announced root")
            return
        except FileError as error:
            self._problem(path, error)
            return
        self.literal_bytes += message.size
        metadata = self._metadata(message.file, message.mtime_ns)
        self._landing.commit(message.file, path, arrival.temporary, metadata, arrival.expected)
        self._advance(message.size)

    def _arriving(self, file: int) -> Arrival:
        if self._arrival is None:
            entry = self._entries.entry(file)
            path = entry.path
            expected = self._expected(file, path)
            temporary = Replacement(self._root, path, expected_size=entry.size)
            self._arrival = Arrival(file, path, self._signer.params, temporary, expected, Spool)
        if self._arrival.file != file:
            raise ProtocolError(f"content of file {file} before file {self._arrival.file} ended")
        return self._arrival

    def _skip(self, file: int) -> None:
        if self._arrival is not None:
            self._arrival.temporary.abandon()
        self._arrival = None
        self._skipping = file

    def _take_failure(self, message: FileFailed) -> None:
        state = self._descending.get(message.file)
        if state is not None:
            state.open_requests = max(0, state.open_requests - 1)
            self._finish(state)
        elif message.file in self._stale:
            self._expire(message.file)
            return
        elif message.file in self._checking:
            self._checking.discard(message.file)
            self._touched.discard(message.file)
            self._count_compared(self._entries.entry(message.file).size)
        elif self._asked_whole:
            self._asked_whole -= 1
            if self._arrival is not None and self._arrival.file == message.file:
                self._skip(message.file)
            self._skipping = None
        path = self._entries.entry(message.file).path
        self._news.report(Problem(message.code, path, printable(message.message)))

    def _expire(self, file: int) -> None:
        left = self._stale.pop(file, 0) - 1
        if left > 0:
            self._stale[file] = left

    def _metadata(self, file: int, mtime_ns: int | None) -> Metadata:
        """As listed, but for the mtime of a file that was changed between its listing and its reading."""
        metadata = self._entries.entry(file).metadata
        return metadata if mtime_ns is None else replace(metadata, mtime_ns=mtime_ns)

    def _problem(self, path: bytes, error: FileError) -> None:
        code = ExitCode.PARTIAL if error.code is ExitCode.VANISHED else error.code
        self._news.report(Problem(code, path, str(error)))

    def _advance(self, size: int) -> None:
        self.done_bytes += size
        self._show(self.done_bytes)

    def _show(self, done: int) -> None:
        if done - self._shown >= PROGRESS_BYTES:
            self._shown = done
            self._news.report(Progressed("transfer", min(done, self.total_bytes), self.total_bytes))


def _drain(queue: deque[int], most: int) -> tuple[int, ...]:
    """Up to `most` ordinals from the front of `queue`, increasing: requests name files so."""
    return tuple(sorted(queue.popleft() for _ in range(min(most, len(queue)))))
