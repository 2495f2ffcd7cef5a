"""The source's half of a sync: describes its tree and answers what the destination asks about its files."""

from __future__ import annotations

from collections import deque

from rdc.errors import ProtocolError
from rdc.model.attributes import AttributeKinds
from rdc.model.kept import Kept
from rdc.protocol.messages import (
    Describe,
    Done,
    FileRequest,
    Hello,
    Opened,
    RowsRequest,
    TierRequest,
)
from rdc.session.commands import Flush, Receive, Send
from rdc.session.description import Description

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.catalog.signer import FileSigner
    from rdc.protocol.connection import Received
    from rdc.session.boundary import Boundary
    from rdc.session.commands import Conversation
    from rdc.session.file_answers import FileAnswers
    from rdc.session.file_sender import FileSender
    from rdc.session.news import News
    from rdc.session.source_tree import SourceTree
    from rdc.tree.filters import FilterList

__all__ = ["Source"]


class Source:
    """One source conversation. `secret`: the session's 16-byte key for short references."""

    def __init__(
        self,
        tree: SourceTree,
        filters: FilterList,
        secret: bytes,
        signer: FileSigner,
        news: News,
        *,
        offer: bool | None = None,
        pack: bool = True,
        boundary: Boundary | None = None,
        hard_links: bool = False,
        kinds: AttributeKinds = AttributeKinds.NONE,
    ) -> None:
        """`offer`: this side dialled, and is to offer its manifest before it is asked, with owners or
        without: a guess at what the destination keeps, and a round trip less where it is right. `pack`:
        literals may be compressed. `kinds`: extended attributes that were asked for."""
        self._kinds = kinds
        self._offer = offer
        self._tree = tree
        self._news = news
        self._description = Description(tree, filters, secret, news, boundary, hard_links=hard_links)
        self._heard: deque[Received] = deque()
        self._signer = signer
        self._secret = secret
        self._pack = pack
        self._answers: FileAnswers | None = None
        self._sender: FileSender | None = None

    def run(self, heard: Received | None = None) -> Conversation[Done]:
        """Describes the tree as it is asked to, answers, and ends with the destination's account. `heard`: a
        message that came already."""
        if heard is not None:
            self._heard.append(heard)
        offered = None
        if self._offer is not None:
            start = self._tree.start(self._kinds)
            yield Send(start, 0)
            yield Flush()
            attributes = start.kept.attributes
            if not self._offer:
                attributes &= ~AttributeKinds.ROOT  # who is not root there cannot keep these
            guess = Kept(self._offer, attributes=attributes).both(start.kept)
            if (yield from self._description.offer(guess, 0, self._declined)):
                offered = guess
        describe, round_ = yield from self._described()
        if self._offer is None:
            start = self._tree.start(self._kinds)
            yield Send(start, round_)
        kept = describe.kept.both(start.kept)
        self._description.kinds = kept.attributes
        if not describe.whole and kept == offered:
            pass  # it is being looked into
        elif describe.whole:
            yield from self._description.send_listing(round_, self._poll)
        else:
            yield Flush()
            yield from self._description.offer(kept, round_, again=offered is not None)
        while True:
            received = self._heard.popleft() if self._heard else (yield Receive())
            if received is None:
                continue
            if isinstance(received.message, Done):
                return received.message
            yield from self._serve(received)

    def _described(self) -> Conversation[tuple[Describe, int]]:
        while True:
            received = self._heard.popleft() if self._heard else (yield Receive())
            if received is None or isinstance(received.message, Hello | Opened):
                continue
            if self._news.take(received.message):
                continue
            if not isinstance(received.message, Describe):
                raise ProtocolError(f"expected Describe, found {type(received.message).__name__}")
            return received.message, received.round + 1

    def _declined(self) -> Conversation[bool]:
        """Whether the destination has asked for the listing by now."""
        while (received := (yield Receive(wait=False))) is not None:
            self._heard.append(received)
        messages = [received.message for received in self._heard]
        return any(isinstance(message, Describe) and message.whole for message in messages)

    @property
    def files(self) -> int:
        """Regular files in the tree, after filters."""
        return self._description.files

    @property
    def total_bytes(self) -> int:
        """Their bytes."""
        return self._description.total_bytes

    def _poll(self) -> Conversation[None]:
        while (received := self._heard.popleft() if self._heard else (yield Receive(wait=False))) is not None:
            yield from self._serve(received)

    def _listen(self) -> Conversation[None]:
        """Shows the user what the destination tells meanwhile; what it asks has to wait for its turn. Open
        requests are bounded by the protocol, so what is heard is too."""
        if self._news.shown:
            while (received := (yield Receive(wait=False))) is not None:
                if not self._news.take(received.message):
                    self._heard.append(received)

    def _serve(self, received: Received) -> Conversation[None]:
        message, round_ = received.message, received.round + 1
        if self._news.take(message):
            return
        if isinstance(message, TierRequest):
            yield from self._description.send_tier(message, round_)
        elif isinstance(message, RowsRequest):
            yield from self._description.send_rows(message, round_)
        elif isinstance(message, Describe) and message.whole:
            yield from self._description.send_listing(round_, self._poll)
        elif isinstance(message, FileRequest):
            yield from self._whole_files().send(message.files, round_)
        else:
            yield from self._about_files().answer(message, round_)

    # Loaded and made when the destination first asks: most of what it has is the same.

    def _whole_files(self) -> FileSender:
        if self._sender is None:
            from rdc.session.file_sender import FileSender

            self._sender = FileSender(self._tree.root, self._description, self._listen)
        return self._sender

    def _about_files(self) -> FileAnswers:
        if self._answers is None:
            from rdc.session.file_answers import FileAnswers

            self._answers = FileAnswers(
                self._tree.root,
                self._description,
                self._secret,
                self._signer,
                self._listen,
                pack=self._pack,
            )
        return self._answers
