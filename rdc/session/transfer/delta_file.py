"""One changed file, from the answer that has its tree to its commit.

`DeltaFile.bring_up_to_date` is the whole way of a file, top to bottom: compare the trees, search blocks,
fetch what is missing, rebuild, verify, commit. It is a generator. It yields what a conversation may ask for
(rdc.session.runtime.commands), and NEXT_ANSWER where it waits for the next message about its file.
rdc.session.transfer.delta_files starts it and hands it the messages.

A first attempt compares by short references and searches blocks. If it fails, a second one compares by whole
digests. If that fails too, the file comes whole.
"""

from __future__ import annotations

from contextlib import contextmanager

from rdc.errors import FileError, ProtocolError
from rdc.plan.descent import Reuse
from rdc.protocol import messages
from rdc.records import dataclass
from rdc.session.delta.bases import ChangedBaseError, FileBases, Recipe
from rdc.session.delta.file_comparison import FEW_FILES, FileComparison
from rdc.session.delta.file_fetch import FileFetch
from rdc.session.runtime.commands import Command, Send
from rdc.session.trees.errors import MismatchError
from rdc.signature.digests import DIGEST_BYTES
from rdc.typed import TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from typing import TypeAlias

    from rdc.model.entries import Metadata
    from rdc.plan.descent import Part
    from rdc.protocol.connection import Received
    from rdc.protocol.messages.content import FileMessage
    from rdc.session.delta.bases import SignedFile
    from rdc.session.delta.rebuild import Rebuild
    from rdc.session.transfer.delta_context import DeltaContext

__all__ = ["NEXT_ANSWER", "Answer", "DeltaFile", "NextAnswer", "Steps"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answer:
    """A message about the file, and the round in which requests that follow from it are sent."""

    message: FileMessage
    round: int


@dataclass(frozen=True, slots=True)
class NextAnswer:
    """What a file yields to wait for its next Answer."""


NEXT_ANSWER = NextAnswer()

Steps: TypeAlias = "Generator[Command | NextAnswer, Answer | Received | None, T]"
"""A part of a file's way: NEXT_ANSWER is answered by an Answer, a command as in a conversation."""


class DeltaFile:
    """One file between its TreeRequest and its end."""

    __slots__ = (
        "_listed",
        "_round",
        "_shared",
        "allocated",
        "bases",
        "comparison",
        "estimate",
        "fetch",
        "file",
        "listed_size",
        "metadata",
        "open_requests",
        "path",
        "root",
        "size",
        "width",
    )

    def __init__(
        self,
        shared: DeltaContext,
        file: int,
        path: bytes,
        *,
        width: int,
        listed: Metadata | None = None,
        listed_size: int = 0,
        estimate: int = 0,
    ) -> None:
        """`width`: bytes of a reference in the first attempt. `listed`, `listed_size`: of the new version.
        `estimate`: bytes that its trees take in memory."""
        self._shared = shared
        self._round = 0
        self._listed = listed
        self.file = file
        self.path = path
        self.width = width
        self.listed_size = listed_size
        self.estimate = estimate
        self.bases = FileBases(file, path, listed_size)
        self.comparison: FileComparison | None = None
        self.fetch: FileFetch | None = None
        """An attempt is a comparison, then a fetch, never both."""
        self.open_requests = 0
        """Requests for blocks or ranges that are not answered yet."""
        self.allocated: int | None = None
        """Bytes that the new version takes at the source, if it has holes there."""
        self.root = b""
        self.size = 0
        self.metadata: Metadata | None = None
        """Root, size and metadata of the new version, as the source signed it."""
        shared.room.enter(estimate)

    def bring_up_to_date(self, round_: int) -> Steps[None]:
        """The whole way. The request for the tree was sent with those of other files."""
        self._round = round_
        yield from self._shared.bases.sign(self.bases, round_)  # while the source signs its own version
        self._shared.transfer.progress.compared(self.listed_size)
        if not (yield from self._attempt(self._compare_and_fetch())):
            yield from self._try_with_digests()

    def copy(self, base: SignedFile, metadata: Metadata, round_: int) -> Steps[None]:
        """The way of a file whose content `base` has: its root says so."""
        self._round = round_
        self.bases.signed = [base]
        self.root, self.size, self.metadata = base.tree.root, base.tree.size, metadata
        whole = Reuse(0, 0, base.tree.levels[0].records, base.tree.size, 1)
        if not (yield from self._attempt(self._fetch_and_rebuild((whole,)))):
            yield from self._try_with_digests()

    def _try_with_digests(self) -> Steps[None]:
        """The second attempt; after that the file comes whole."""
        self.width = DIGEST_BYTES
        yield Send(messages.TreeRequest((self.file,), self.width), self._round)
        if not (yield from self._attempt(self._compare_and_fetch())):
            self._fetch_whole()

    def _attempt(self, steps: Steps[Rebuild | None]) -> Steps[bool]:
        """Runs one attempt and commits what it rebuilt. False: the next attempt may do better."""
        shared = self._shared
        try:
            rebuild = yield from steps
        except MismatchError as error:
            if isinstance(error, ChangedBaseError):
                shared.bases.drop(self.bases)  # the next attempt signs them anew, or does without
            else:
                shared.transfer.guesses.failed([base.path for base in self.bases.signed])
            yield from self._drop_answers()
            self._release()
            shared.bases.drop_outgrown(self.bases)
            return False
        except FileError as error:
            shared.transfer.problem(self.path, error)
            self.leave()
            return True
        if rebuild is not None:
            self._commit(rebuild)
        return True

    def _compare_and_fetch(self) -> Steps[Rebuild | None]:
        """One attempt, from the tree to the verified new version. None: there is nothing to rebuild."""
        tree = yield from self._take_tree()
        if not self._may_have(tree.size):
            return None
        if not self.bases.signed:
            yield from self._shared.bases.sign(self.bases, self._round)
        if not self.bases.signed or self._shared.transfer.guesses.spent:
            self._fetch_whole()  # there is no old version that can be read, or that may be compared
            return None
        if self._is_equal() or self._is_made_elsewhere() or self._waits_for_duplicate(tree):
            return None
        if self._shared.transfer.dry:
            self.leave()
            self._shared.transfer.landing.rehearse(self.file)
            return None
        comparison = FileComparison(self._shared.transfer, tree, self.width, self.bases.signed)
        self.comparison = comparison
        yield from self._compare_nodes(comparison)
        if self.width < DIGEST_BYTES:
            yield from self._search_blocks(comparison)
        return (yield from self._fetch_and_rebuild(comparison.parts, masked=comparison.masked))

    def _take_tree(self) -> Steps[messages.TreeAnswer]:
        tree = yield from self._next()
        if isinstance(tree, messages.Holes):
            self.allocated = tree.data
            tree = yield from self._next()
        if not isinstance(tree, messages.TreeAnswer):
            raise ProtocolError(f"expected the tree of file {self.file}, found {type(tree).__name__}")
        self.root, self.size = tree.root, tree.size
        self.metadata = self._listed
        if tree.mtime_ns is not None or self.metadata is None:
            self.metadata = self._shared.transfer.metadata(self.file, tree.mtime_ns)
        return tree

    def _may_have(self, size: int) -> bool:
        """Whether the new version may have `size` bytes, which may differ from what was listed."""
        if size == self.listed_size or self._shared.transfer.may_come(self.file, size):
            return True
        self.leave()
        return False

    def _is_equal(self) -> bool:
        """Whether the old version has the content of the new one; then only its metadata are set."""
        first, transfer = self.bases.signed[0], self._shared.transfer
        if first.path != self.path or first.tree.root != self.root or self.metadata is None:
            return False
        self.leave()
        transfer.landing.same(self.file, self.metadata, first.identity)
        transfer.progress.advance(self.size)
        return True

    def _is_made_elsewhere(self) -> bool:
        """Whether an alternate directory has the content, and the file is made from that (--checksum)."""
        alternates = self._shared.transfer.alternates
        if alternates is None or alternates.make_equal is None:
            return False
        base = next((one for one in self.bases.signed if one.reopen is not None), None)
        if base is None or base.tree.root != self.root or self.metadata != self._listed:
            return False
        if not alternates.make_equal(self.file):
            return False
        self.leave()
        self._shared.transfer.progress.advance(self.size)
        return True

    def _waits_for_duplicate(self, tree: messages.TreeAnswer) -> bool:
        """Whether another file with this content is on its way; then this one is copied from it later."""
        duplicates = self._shared.duplicates
        if self.width == DIGEST_BYTES or not duplicates.waits(self.file, tree.size, tree.root, tree.mtime_ns):
            return False
        self.leave()
        return True

    def _compare_nodes(self, comparison: FileComparison) -> Steps[None]:
        """Compares trees level by level, until it is known which chunks the bases have."""
        while (yield from comparison.ask_nodes(self._round)):
            complete = False
            while not complete:
                nodes = yield from self._next()
                if not isinstance(nodes, messages.NodeAnswer):
                    raise ProtocolError(f"expected nodes of file {self.file}, found {type(nodes).__name__}")
                complete = comparison.take_nodes(nodes)

    def _search_blocks(self, comparison: FileComparison) -> Steps[None]:
        """Searches for smaller and smaller blocks below the chunk, as long as a round trip pays."""
        with self._reading_bases():
            comparison.begin_blocks(self._round, few_files=self._shared.room.files <= FEW_FILES)
        while asked := (yield from comparison.ask_blocks(self._round)):
            self.open_requests = asked
            while self.open_requests:
                blocks = yield from self._next()
                if not isinstance(blocks, messages.BlockAnswer):
                    raise ProtocolError(f"expected blocks of file {self.file}, found {type(blocks).__name__}")
                self.open_requests -= 1
                with self._reading_bases():
                    comparison.take_blocks(blocks.fingerprints)

    def _fetch_and_rebuild(self, parts: Sequence[Part], *, masked: bool = False) -> Steps[Rebuild]:
        """Requests what no base has, writes the new version into a temporary, and verifies it.

        `masked`: `parts` were matched with masked x86 displacements, which the source corrects.
        """
        self.comparison = None
        recipe = Recipe(self.file, self.path, parts, self.bases.signed, self.size, masked, self.allocated)
        fetch = FileFetch(self._shared.transfer, recipe, root=self.root, width=self.width)
        self.fetch = fetch
        yield from self._request_ranges(fetch)
        while True:
            while self.open_requests:
                yield from self._take_literals(fetch)
            if fetch.mismatched():
                yield from self._request_ranges(fetch, unverified=True)
            elif wrong := fetch.repair_requests():
                yield from self._send(wrong)
            else:
                return fetch.finish()

    def _request_ranges(self, fetch: FileFetch, *, unverified: bool = False) -> Steps[None]:
        """Requests literals and verifies blocks. `unverified`: some block is known to be wrong."""
        room = self._shared.room
        with self._reading_bases():
            requests = fetch.requests(room.left, unverified=unverified)
        self.estimate += fetch.mask_bytes
        room.grow(fetch.mask_bytes)
        yield from self._send(requests)

    def _send(self, requests: Sequence[messages.RangeRequest]) -> Steps[None]:
        for request in requests:
            self.open_requests += 1
            yield Send(request, self._round)

    def _take_literals(self, fetch: FileFetch) -> Steps[None]:
        """One message of the answer to the oldest request."""
        message = yield from self._next()
        progress = self._shared.transfer.progress
        if isinstance(message, messages.Data | messages.Code | messages.Table):
            fetch.take_data(message)
            self._shared.bases.outgrow(self.bases, fetch.written)
            progress.arriving(fetch.written)
        elif isinstance(message, messages.FileEnd):
            self.open_requests -= 1
            fetch.take_end()
        elif isinstance(message, messages.Literals):
            self.open_requests -= 1
            fetch.take_literals(message)
            progress.arriving(fetch.written)
        elif isinstance(message, messages.Correction):
            fetch.take_correction(message)
        elif isinstance(message, messages.Targets):
            fetch.take_displacements(message)
        else:
            raise ProtocolError(f"expected literals of file {self.file}, found {type(message).__name__}")

    def _commit(self, rebuild: Rebuild) -> None:
        """The new version is written and verified: it replaces the old one."""
        transfer = self._shared.transfer
        transfer.progress.count_literal(rebuild.literal_bytes)
        transfer.progress.count_reused(rebuild.reused_bytes)
        replaced = transfer.landing.listed.of(self.file)
        self.leave()
        if self.metadata is not None:
            transfer.landing.commit(self.file, self.path, rebuild.temporary, self.metadata, replaced)
        transfer.progress.advance(self.size)

    # How it ends.

    def _fetch_whole(self) -> None:
        self.leave()
        self._shared.wholes().add(self.file)

    def leave(self, *, failed: bool = False) -> None:
        """Releases everything; open answers are dropped as they come. `failed`: the source could not answer
        the oldest request."""
        self._shared.stale.expect(self.file, self._unanswered()[int(failed) :])
        self._release()
        self._shared.bases.drop(self.bases)
        self._shared.bases.forget(self.file)
        self._shared.room.leave(self.estimate)

    def interrupt(self) -> None:
        """Ends the session. What is written stays for the next run, unless the partial file holds more."""
        if self.fetch is not None and (self.bases.outgrown or self.bases.leftover is None):
            self.fetch.keep()
        self._release()
        self._shared.bases.drop(self.bases)

    def _unanswered(self) -> list[int | None]:
        """Requests that were sent, as StaleAnswers has them."""
        nodes = () if self.comparison is None else self.comparison.asked_nodes
        return [*nodes, *[None] * self.open_requests]

    def _release(self) -> None:
        """Releases what the current attempt holds open."""
        if self.fetch is not None:
            self.fetch.restart()
        self.comparison = self.fetch = None

    def _drop_answers(self) -> Steps[None]:
        """Drops the answers to the requests of a failed attempt."""
        while self.open_requests:
            message = yield from self._next()
            self.open_requests -= isinstance(
                message, messages.BlockAnswer | messages.Literals | messages.FileEnd
            )

    def _next(self) -> Steps[FileMessage]:
        answer = yield NEXT_ANSWER
        if not isinstance(answer, Answer):
            raise TypeError(f"expected an answer about file {self.file}, found {type(answer).__name__}")
        self._round = answer.round
        return answer.message

    @contextmanager
    def _reading_bases(self) -> Iterator[None]:
        """Turns an error while reading a base into ChangedBaseError: it has changed or is gone."""
        try:
            yield
        except FileError as error:
            raise ChangedBaseError(self.path, str(error)) from error
