"""The rules on the order of messages: the state of both sides, and the requests without an answer."""

from __future__ import annotations

from collections.abc import Callable

from rdc.protocol.messages.registry import (
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
    Holes,
    Landed,
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
    Owners,
    RangeRequest,
    Refused,
    Removed,
    Renamed,
    Resized,
    Role,
    RootAnswer,
    RootRequest,
    RowsPart,
    RowsRequest,
    Rules,
    Selected,
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
from rdc.protocol.rules.states import NEEDS, RECALLS, TRANSITIONS, Illegal, State
from rdc.protocol.rules.tree_totals import TreeTotals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rdc.protocol.rules.pending_requests import AskedRanges, PendingRequests

__all__ = ["SequenceRules", "End"]

_ANSWERS = (
    BlockAnswer, BundleAnswer, Literals, TreeAnswer, RootAnswer, DigestAnswer, TraitsAnswer, NodeAnswer, Data,
    FileBatch, FileEnd, FileFailed, Code, Correction, Targets, Table, Resized, Holes, Removed,
)  # fmt: skip
_FILE_REQUESTS = (BlockRequest, RangeRequest, NodeRequest)
_FILES_REQUESTS = (
    RootRequest, DigestRequest, TraitsRequest, TreeRequest, BundleRequest, FileRequest, Landed,
)  # fmt: skip


class End:
    """The state of one side."""

    def __init__(self, role: Role) -> None:
        # The role is a guess until Open states it. TRANSITIONS is the same for both roles up to there.
        self.role = role
        self.state = State.GREETING
        self.highest_round = 0
        self.allowed = TRANSITIONS[role][self.state]

    def enter(self, state: State, role: Role | None = None) -> None:
        self.role = self.role if role is None else role
        self.state = state
        self.allowed = TRANSITIONS[self.role][state]
        """Messages that this side may send, and its state after each."""


class SequenceRules:
    """All rules on the order of messages in one session. The session is over after Illegal."""

    def __init__(self, dialler: bool) -> None:
        """dialler: this side opened the connection."""
        self._dialler = dialler
        self.role: Role | None = None
        """This side's role; None until Open states it."""
        self.us = End(Role.SOURCE if dialler else Role.DESTINATION)
        self.them = End(self.us.role.other)
        self._pending: PendingRequests | None = None
        self._totals = TreeTotals()
        self._lists = False
        """Open asks for a list that the answerer has: it selects, not the dialler."""
        self._rules_due = False
        """Open announced filter rules, and the last of them did not come yet."""
        self._watches = False
        """The source watches its tree: the session continues after Done."""
        self._follows = False
        """The destination asked the source to watch, and receives its condition."""

    @property
    def outstanding(self) -> int:
        """Requests without a complete answer."""
        return 0 if self._pending is None else len(self._pending)

    @property
    def ranges(self) -> AskedRanges | None:
        """As in PendingRequests."""
        return None if self._pending is None else self._pending.ranges

    def _requests(self) -> PendingRequests:
        """The pending requests. Their module is loaded for the first request; equal trees need none."""
        if self._pending is None:
            from rdc.protocol.rules.pending_requests import PendingRequests

            self._pending = PendingRequests()
        return self._pending

    def say(self, message: Message) -> None:
        """Record that this side sends `message`. Raises Illegal."""
        self._step(self.us, self.them, message)

    def hear(self, message: Message) -> None:
        """Record that the far side sends `message`. Raises Illegal."""
        self._step(self.them, self.us, message)

    def _step(self, sender: End, other: End, message: Message) -> None:
        after = sender.allowed.get(type(message))
        if after is None:
            raise Illegal("not allowed now")
        if (
            self._rules_due
            and not isinstance(message, Rules | Refused)
            and (sender is self.us) == self._dialler
        ):
            raise Illegal("rules follow Open, before anything else")
        if after is sender.state and self._passed(message):
            return
        need = NEEDS.get(type(message))
        if need is not None and other.state is not need:
            raise Illegal(f"the other side is not yet in state {need.value}")
        count = _COUNTS.get(type(message))
        if count is not None:
            count(self._totals, message)
        step = _STEPS.get(type(message))
        changed = None if step is None else step(self, message, sender, other)
        sender.enter(changed or after)
        self._recall(message, other)

    def _recall(self, message: Message, other: End) -> None:
        """Move the side that did not send `message` to the state that RECALLS gives."""
        if isinstance(message, Describe) and self._totals.offered:
            other.enter(State.SERVING)
            return
        before, recalled = RECALLS.get(type(message), (None, None))
        if recalled is not None and other.state is before:
            stays = self._watches and recalled is State.CLOSED
            other.enter(State.WATCHING if stays else recalled)

    # The steps of _STEPS. Each returns the sender's next state, or None for the one in TRANSITIONS.

    def _rule(self, message: Rules, sender: End, _other: End) -> None:
        if not self._rules_due or (sender is self.us) != self._dialler:
            raise Illegal("the dialler sends rules, behind an Open that announces them")
        self._totals.rule(message)
        self._rules_due = not message.last

    def _select(self, message: Selected, sender: End, _other: End) -> None:
        by_dialler = (sender is self.us) == self._dialler
        if by_dialler in {self._lists, sender.state is State.OPENING}:
            raise Illegal(
                "the dialler selects, behind Open; or the answerer before Opened if Open asks for that"
            )
        self._totals.select(message, ahead=not by_dialler)

    def _describe(self, message: Describe, _sender: End, _other: End) -> None:
        self._need_no_outstanding()
        self._totals.describe(message)

    def _follow(self, _message: Follow, _sender: End, _other: End) -> None:
        if self._follows or self._totals.described:
            raise Illegal("it came already, or after Describe")
        self._follows = True

    def _watch(self, _message: Watch, _sender: End, _other: End) -> None:
        if self._watches or self._totals.started:
            raise Illegal("it came already, or after Start")
        self._watches = True

    def _condition(self, _message: Condition, _sender: End, _other: End) -> None:
        if not self._follows:
            raise Illegal("nobody said Follow")

    def _turn(self, message: Turn, sender: End, other: End) -> None:
        """Start the next turn of a watch. Both sides are idle, so no message of the last turn is under
        way."""
        self._totals = TreeTotals(message)
        sender.highest_round = other.highest_round = 0

    def _offer(self, message: Manifest, sender: End, _other: End) -> State | None:
        return None if self._totals.offer(message) else sender.state

    def _look(self, message: TierRequest | RowsRequest, _sender: End, _other: End) -> None:
        self._totals.look()
        self._requests().ask(message)

    def _view(self, message: TierAnswer | RowsPart, _sender: End, _other: End) -> None:
        self._requests().answer(message)

    def _done(self, _message: Done, _sender: End, _other: End) -> None:
        self._need_no_outstanding()

    def _need_no_outstanding(self) -> None:
        if self.outstanding:
            raise Illegal(f"{self.outstanding} requests are unanswered")

    def _passed(self, message: Message) -> bool:
        """Record a message about files, which changes no state. False: `message` is of another kind.

        Most messages of a session are of this kind, so it is tested first."""
        if isinstance(message, _FILE_REQUESTS):
            if isinstance(message, NodeRequest) or not self._totals.is_bundle(message.file):
                self._listed(message.file)
            self._requests().ask(message)
        elif isinstance(message, _ANSWERS):
            self._requests().answer(message)
        elif isinstance(message, _FILES_REQUESTS):
            self._listed(message.files[-1])
            if isinstance(message, BundleRequest):
                if State.LISTING in (self.us.state, self.them.state):
                    raise Illegal("there may be more entries, whose ordinals a bundle must not have")
                self._totals.bundle(message.bundle)
            elif isinstance(message, Landed) and State.LISTING in (self.us.state, self.them.state):
                raise Illegal("the source still describes its tree")
            self._requests().ask(message)
        else:
            return False
        return True

    def _open(self, message: Open | Opened, sender: End, other: End) -> State:
        if isinstance(message, Open) != ((sender is self.us) == self._dialler):
            raise Illegal("the dialler sends Open, the answerer Opened")
        if isinstance(message, Open):
            sender.enter(sender.state, message.role.other)
            other.enter(other.state, message.role)
            self._totals.may_offer = sender.role is Role.SOURCE
            self.role = self.us.role
            self._rules_due = message.rules_follow
            self._lists = message.added is not None and "files_from" in dict(message.added.items)
        elif self.role is None:
            raise Illegal("there was no Open")
        elif self._lists and not self._totals.all_selected:
            raise Illegal("the list is not whole, which Open asks for")
        return sender.allowed[type(message)]

    def _listed(self, file: int) -> None:
        if file >= self._totals.known:
            raise Illegal(f"file {file} was not listed, only {self._totals.known} entries were")


_COUNTS: dict[type[Message], Callable[[TreeTotals, Any], None]] = {
    Start: TreeTotals.start,
    ListingPart: TreeTotals.add,
    ListingEnd: TreeTotals.end,
    TopTier: TreeTotals.top,
    MountPoints: TreeTotals.leave_out,
    HardLinks: TreeTotals.link,
    EntryAttributes: TreeTotals.attribute,
    Owners: TreeTotals.own,
    Changed: TreeTotals.change,
    Renamed: TreeTotals.change,
    TurnEnd: TreeTotals.change,
}
"""Messages about the tree, which its totals check and count."""

_STEPS: dict[type[Message], Callable[[SequenceRules, Any, End, End], State | None]] = {
    Open: SequenceRules._open,
    Opened: SequenceRules._open,
    Rules: SequenceRules._rule,
    Selected: SequenceRules._select,
    Describe: SequenceRules._describe,
    Follow: SequenceRules._follow,
    Watch: SequenceRules._watch,
    Condition: SequenceRules._condition,
    Turn: SequenceRules._turn,
    Manifest: SequenceRules._offer,
    TierRequest: SequenceRules._look,
    RowsRequest: SequenceRules._look,
    TierAnswer: SequenceRules._view,
    RowsPart: SequenceRules._view,
    Done: SequenceRules._done,
}
"""Messages with a rule besides TRANSITIONS, NEEDS and RECALLS."""
