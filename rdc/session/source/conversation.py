"""The source's conversation: it describes its tree, then answers requests until the destination is done."""

from __future__ import annotations

from collections import deque

from rdc.errors import ProtocolError
from rdc.lean.records import replace
from rdc.limits import HEARD_NUMBERS
from rdc.model.preserved import AttributeKinds, Preserved
from rdc.protocol.connection import SPECIALS, Received, knows
from rdc.protocol.messages import (
    Describe,
    Done,
    FileRequest,
    Hello,
    Landed,
    LikelyAnswer,
    LikelyRequest,
    Opened,
    RangeRequest,
    Removed,
    RowsRequest,
    TierRequest,
)
from rdc.session.runtime.commands import Conversation, EventRelay, Flush, Receive, Send, agreed_features
from rdc.session.source.tree_description import Demand, Description, OwnerNames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.catalog.signer import FileSigner
    from rdc.files.replace.staged_clones import StagedClones
    from rdc.protocol.messages import Start
    from rdc.session.source.answers import FileAnswers
    from rdc.session.source.file_sender import FileSender
    from rdc.session.trees.source_options import SourceRemoval
    from rdc.session.trees.source_tree import MountBoundary, SourceTree
    from rdc.tree.filters import FilterList


class Source:
    """The source's side of one sync."""

    def __init__(
        self,
        tree: SourceTree,
        filters: FilterList,
        secret: bytes,
        signer: FileSigner,
        events: EventRelay,
        *,
        offer: Preserved | None = None,
        pack: bool = True,
        boundary: MountBoundary | None = None,
        hard_links: bool = False,
        kinds: AttributeKinds = AttributeKinds.NONE,
        clones: StagedClones | None = None,
        names_owners: bool = False,
        removal: SourceRemoval | None = None,
    ) -> None:
        """`secret`: the session's 16-byte key for short references. `offer`: not None if this side dialled.
        It then sends its manifest unasked. `offer` guesses what the destination preserves, but for extended
        attributes, and saves a round trip if the guess is right. `pack`: literals may be compressed. `kinds`:
        the extended attributes that the user asked for. `clones`: as in FileSender. `names_owners`: users and
        groups are announced by their names, too. `removal`: removes what the destination has; None: nothing
        is removed."""
        self._owners: OwnerNames | None = None
        if names_owners:
            self._owners = OwnerNames()
        self._kinds = kinds
        self._offer = offer
        self._tree = tree
        self._events = events
        self._description = Description(
            tree,
            filters,
            secret,
            events,
            boundary,
            hard_links=hard_links,
            owners=self._owners,
            removal=removal,
        )
        self._removal = removal
        self._heard: deque[Received] = deque()
        """Messages that wait for their turn."""
        self._heard_numbers = 0
        """The numbers in these messages, at most HEARD_NUMBERS and one message."""
        self._signer = signer
        self._clones = clones
        self._secret = secret
        self._pack = pack
        self._answers: FileAnswers | None = None
        self._sender: FileSender | None = None
        self._demand: Demand | None = None

    def run(self, heard: Received | None = None) -> Conversation[Done]:
        """Describe the tree, answer requests, and return the destination's final message.

        `heard`: a message that came already. Raises ProtocolError for messages that do not belong here.
        """
        if heard is not None:
            self._heard.append(heard)
        offered = None
        if self._offer is not None:
            start = yield from self._start(0)
            yield Flush()
            attributes = start.kept.attributes
            if not self._offer.owner:
                attributes &= ~AttributeKinds.ROOT  # only root can preserve these
            guess = replace(self._offer, attributes=attributes).both(start.kept)
            if (yield from self._description.offer(guess, 0, self._declined)):
                offered = guess
        describe, round_ = yield from self._described()
        if self._offer is None:
            start = yield from self._start(round_)
        preserved = describe.kept.both(start.kept)
        self._description.keep(preserved)
        if not describe.whole and preserved == offered:
            pass  # the destination already compares the offered manifest
        elif describe.whole:
            yield from self._description.send_listing(round_, self._poll, again=self._offer is not None)
        else:
            yield Flush()
            yield from self._description.offer(preserved, round_, again=offered is not None)
        while True:
            received = self._next_heard() if self._heard else (yield Receive())
            if received is None:
                continue
            if isinstance(received.message, Done):
                return received.message
            yield from self._serve(received)

    def _start(self, round_: int) -> Conversation[Start]:
        """Send Start and return it."""
        start = self._tree.start(self._kinds, catalog=self._signer.catalog)
        yield Send(start, round_)
        if self._owners is not None:
            yield Send(self._owners.first(start.metadata.uid, start.metadata.gid), round_)
        return start

    def _described(self) -> Conversation[tuple[Describe, int]]:
        """Wait for Describe. Returns it and the round of the answer."""
        while True:
            received = self._next_heard() if self._heard else (yield Receive())
            if received is None or isinstance(received.message, Opened):
                continue
            if isinstance(received.message, Hello):
                if not knows(received.message, SPECIALS):
                    self._tree = self._tree.showing(frozenset())
                    self._description.take(self._tree)
                continue
            if self._events.take(received.message):
                continue
            if not isinstance(received.message, Describe):
                raise ProtocolError(f"expected Describe, found {type(received.message).__name__}")
            return received.message, received.round + 1

    def _declined(self) -> Conversation[bool]:
        """Tell whether the destination has asked for the whole listing by now."""
        while self._heard_numbers < HEARD_NUMBERS and (received := (yield Receive(wait=False))) is not None:
            self._heard.append(received)
            self._heard_numbers += _numbers(received)
        messages = [received.message for received in self._heard]
        return any(isinstance(message, Describe) and message.whole for message in messages)

    def _next_heard(self) -> Received:
        """Take the oldest waiting message."""
        received = self._heard.popleft()
        self._heard_numbers -= _numbers(received)
        return received

    @property
    def files(self) -> int:
        """The number of regular files in the tree, after filters."""
        return self._description.files

    @property
    def total_bytes(self) -> int:
        """The total size of these files, in bytes."""
        return self._description.total_bytes

    @property
    def entries(self) -> int:
        """The number of entries of all kinds in the tree, after filters."""
        return len(self._description.manifest)

    def _poll(self) -> Conversation[None]:
        """Answer all messages that have come by now, up to one that needs the whole listing."""
        while (received := self._next_heard() if self._heard else (yield Receive(wait=False))) is not None:
            if isinstance(received.message, LikelyRequest):
                self._heard.appendleft(received)
                self._heard_numbers += _numbers(received)
                return
            yield from self._serve(received)

    def _listen(self) -> Conversation[None]:
        """Show the destination's events to the user; requests wait for their turn.

        Requests with up to HEARD_NUMBERS numbers are decoded. The rest stays with the connection, which then
        reads no more.
        """
        if self._events.shown:
            while (
                self._heard_numbers < HEARD_NUMBERS and (received := (yield Receive(wait=False))) is not None
            ):
                if not self._events.take(received.message):
                    self._heard.append(received)
                    self._heard_numbers += _numbers(received)

    def _serve(self, received: Received) -> Conversation[None]:
        """Answer one message."""
        message, round_ = received.message, received.round + 1
        if self._events.take(message):
            return
        if isinstance(message, TierRequest):
            yield from self._description.send_tier(message, round_)
        elif isinstance(message, RowsRequest):
            yield from self._description.send_rows(message, round_)
        elif isinstance(message, Describe) and message.whole:
            if self._answers is not None:
                self._answers.forget_told()
            yield from self._description.send_listing(round_, self._poll)
        elif isinstance(message, Landed):
            yield from self._remove(message, round_)
        elif isinstance(message, LikelyRequest):
            yield from self._send_likely(message, round_)
        elif isinstance(message, FileRequest):
            self._asked().take(message)
            if self._answers is not None:
                yield Flush()  # fingerprints spoil the compression of contents in the same block
            yield from self._whole_files().send(message.files, round_, message.packing)
        else:
            self._asked().take(message)
            yield from self._about_files().answer(message, round_)

    def _send_likely(self, message: LikelyRequest, round_: int) -> Conversation[None]:
        """Tell which files are likely changed, and describe them.

        The destination already gets what came before, so that it compares, and signs its versions of these
        files, while this side works.
        """
        features = yield from agreed_features()
        likely = self._description.likely(message.newest, blocks="blocks" in features)
        answer = LikelyAnswer(likely.trees if likely is not None else ())
        if likely is not None and likely.blocks:
            yield Flush()
            yield from self._about_files().tell_blocks(likely.blocks, message.block, round_)
        yield Send(answer, round_)
        asked = answer.asked(message)
        if asked is not None:
            yield Flush()
            self._asked().take(asked)
            yield from self._about_files().answer(asked, round_)
        elif likely is None:
            yield Flush()
            self._about_files()  # imported now: so many files are asked for in bundles

    def _remove(self, message: Landed, round_: int) -> Conversation[None]:
        """Remove what the destination has, and tell it of what stays."""
        if self._removal is None:
            raise ProtocolError("the remote side tells what may go, and nothing was to be removed")
        count = self._removal.take(message, self._description.manifest, self._events.report)
        yield from self._events.send_waiting(round_)
        yield Send(Removed(count), round_)

    # The following parts are imported and made at the first request: equal trees need none of them.

    def _asked(self) -> Demand:
        if self._demand is None:
            self._demand = Demand(self._description.manifest)
        return self._demand

    def _whole_files(self) -> FileSender:
        if self._sender is None:
            from rdc.session.source.file_sender import FileSender

            self._sender = FileSender(
                self._tree.root, self._description, self._listen, self._asked(), self._clones
            )
        return self._sender

    def _about_files(self) -> FileAnswers:
        if self._answers is None:
            from rdc.session.source.answers import FileAnswers

            self._answers = FileAnswers(
                self._tree.root,
                self._description,
                self._secret,
                self._signer,
                self._listen,
                self._asked(),
                pack=self._pack,
            )
        return self._answers


def _numbers(received: Received) -> int:
    """Return how many of HEARD_NUMBERS a message takes."""
    message = received.message
    columns = [getattr(message, name, ()) for name in ("files", "nodes", "gaps", "lengths")]
    if isinstance(message, RangeRequest):
        columns.append(message.claims.cells)
    return 1 + sum(map(len, columns))
