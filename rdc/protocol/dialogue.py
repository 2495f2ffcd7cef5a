"""Which messages may follow which, by whom they are said: where both sides stand, and what is unanswered."""

from __future__ import annotations

from rdc.protocol.census import Census
from rdc.protocol.messages import (
    BlockAnswer,
    BlockRequest,
    BundleAnswer,
    BundleRequest,
    Changed,
    Code,
    Condition,
    Correction,
    Data,
    Describe,
    DigestAnswer,
    DigestRequest,
    Done,
    EntryAttributes,
    FileBatch,
    FileEnd,
    FileFailed,
    FileRequest,
    Follow,
    HardLinks,
    ListingEnd,
    ListingPart,
    Literals,
    Manifest,
    Message,
    MountPoints,
    NodeAnswer,
    NodeRequest,
    Open,
    Opened,
    RangeRequest,
    Renamed,
    Role,
    RootAnswer,
    RootRequest,
    RowsPart,
    RowsRequest,
    Start,
    Table,
    Targets,
    TierAnswer,
    TierRequest,
    TopTier,
    TraitsAnswer,
    TraitsRequest,
    TreeAnswer,
    TreeRequest,
    Turn,
    TurnEnd,
    Watch,
)
from rdc.protocol.states import NEEDS, RECALLS, TRANSITIONS, Illegal, State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.protocol.ledger import Ledger

__all__ = ["Dialogue", "End"]

_ANSWERS = (
    BlockAnswer, BundleAnswer, Literals, TreeAnswer, RootAnswer, DigestAnswer, TraitsAnswer, NodeAnswer, Data,
    FileBatch, FileEnd, FileFailed, Code, Correction, Targets, Table,
)  # fmt: skip
_FILE_REQUESTS = (BlockRequest, RangeRequest, NodeRequest)
_FILES_REQUESTS = (RootRequest, DigestRequest, TraitsRequest, TreeRequest, BundleRequest, FileRequest)


class End:
    """Where one of the two sides stands."""

    def __init__(self, role: Role) -> None:
        # Until Open has said it, the role is a guess that changes nothing: the tables agree up to there.
        self.role = role
        self.state = State.GREETING
        self.highest_round = 0
        self.allowed = TRANSITIONS[role][self.state]

    def enter(self, state: State, role: Role | None = None) -> None:
        self.role = self.role if role is None else role
        self.state = state
        self.allowed = TRANSITIONS[self.role][state]
        """What it may say, and the states it is in then."""


class Dialogue:
    """Every rule on order, of one session. After Illegal, the session is over."""

    def __init__(self, dialler: bool) -> None:
        """`dialler`: this side opened the connection."""
        self._dialler = dialler
        self.role: Role | None = None
        """Ours, once Open said it."""
        self.us = End(Role.SOURCE if dialler else Role.DESTINATION)
        self.them = End(self.us.role.other)
        self._ledger: Ledger | None = None
        self._census = Census()
        self._stays = False
        """S watches: the session goes on after Done."""
        self._follows = False
        """D asked S to watch, and hears how that goes."""

    @property
    def outstanding(self) -> int:
        """Requests not wholly answered."""
        return 0 if self._ledger is None else len(self._ledger)

    def _requests(self) -> Ledger:
        """Loaded with the first of them: of trees that are equal nothing is asked."""
        if self._ledger is None:
            from rdc.protocol.ledger import Ledger

            self._ledger = Ledger()
        return self._ledger

    def say(self, message: Message) -> None:
        """This side says it. Raises Illegal."""
        self._step(self.us, self.them, message)

    def hear(self, message: Message) -> None:
        """The far side says it. Raises Illegal."""
        self._step(self.them, self.us, message)

    def _step(self, sender: End, other: End, message: Message) -> None:
        after = sender.allowed.get(type(message))
        if after is None:
            raise Illegal("not allowed now")
        if after is sender.state and self._passed(message):
            return
        need = NEEDS.get(type(message))
        if need is not None and other.state is not need:
            raise Illegal(f"the other side is not yet in state {need.value}")
        match message:
            case Describe() if self.outstanding:
                raise Illegal(f"{self.outstanding} requests are unanswered")
            case Describe():
                if self._census.describe(message):
                    other.enter(State.SERVING)
                    sender.enter(after)
                    return
            case Follow() if self._follows or self._census.described:
                raise Illegal("it came already, or after Describe")
            case Follow():
                self._follows = True
            case Watch() if self._stays or self._census.started:
                raise Illegal("it came already, or after Start")
            case Watch():
                self._stays = True
            case Condition() if not self._follows:
                raise Illegal("nobody said Follow")
            case Turn():
                # Both sides are between messages: nothing of the last turn can still be under way.
                self._census = Census(message)
                sender.highest_round = other.highest_round = 0
            case Changed():
                self._census.change(message)
            case Renamed() | TurnEnd():
                self._census.change(None)
            case Start():
                self._census.start(message)
            case ListingPart():
                self._census.add(message)
            case Manifest() if not self._census.offer(message):
                after = sender.state
            case TierRequest() | RowsRequest():
                self._census.look()
                self._requests().ask(message)
            case TierAnswer() | RowsPart():
                self._requests().answer(message)
            case TopTier():
                self._census.top()
            case MountPoints():
                self._census.leave_out(message)
            case HardLinks():
                self._census.link(message)
            case EntryAttributes():
                self._census.attribute(message)
            case ListingEnd():
                self._census.end(message)
            case Done() if self.outstanding:
                raise Illegal(f"{self.outstanding} requests are unanswered")
            case Open() | Opened():
                after = self._open(sender, other, message)
        sender.enter(after)
        before, recalled = RECALLS.get(type(message), (None, None))
        if recalled is not None and other.state is before:
            stays = self._stays and recalled is State.CLOSED
            other.enter(State.WATCHING if stays else recalled)

    def _passed(self, message: Message) -> bool:
        """Takes what is said about files, which most messages are, and changes nobody's state."""
        if isinstance(message, _FILE_REQUESTS):
            if isinstance(message, NodeRequest) or not self._census.is_bundle(message.file):
                self._listed(message.file)
            self._requests().ask(message)
        elif isinstance(message, _ANSWERS):
            self._requests().answer(message)
        elif isinstance(message, _FILES_REQUESTS):
            self._listed(message.files[-1])
            if isinstance(message, BundleRequest):
                if State.LISTING in (self.us.state, self.them.state):
                    raise Illegal("there may be more entries, whose ordinals a bundle must not have")
                self._census.bundle(message.bundle)
            self._requests().ask(message)
        else:
            return False
        return True

    def _open(self, sender: End, other: End, message: Open | Opened) -> State:
        if isinstance(message, Open) != ((sender is self.us) == self._dialler):
            raise Illegal("the dialler sends Open, the answerer Opened")
        if isinstance(message, Open):
            sender.enter(sender.state, message.role.other)
            other.enter(other.state, message.role)
            self._census.may_offer = sender.role is Role.SOURCE
            self.role = self.us.role
        elif self.role is None:
            raise Illegal("there was no Open")
        return sender.allowed[type(message)]

    def _listed(self, file: int) -> None:
        if file >= self._census.known:
            raise Illegal(f"file {file} was not listed, only {self._census.known} entries were")
