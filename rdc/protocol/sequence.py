"""The order of messages: what each side may send in each state, and the rules that need more than a state.

TRANSITIONS is what the messages declare, as one table, the same whichever side dialled. A message that is not
in it is illegal. TreeTotals counts what the source has announced of its tree, by whose totals its messages
are checked. Requests without an answer are in pending.py. S is the source and D the destination.
"""

from __future__ import annotations

from collections.abc import Callable

from rdc.limits import (
    FILES_PER_MESSAGE,
    FILTER_BYTES,
    FILTER_RULES,
    MOUNT_POINTS,
    OWNERS,
    SELECTED_BYTES,
    SELECTED_NAMES,
)
from rdc.model.entries import Kind
from rdc.model.preserved import EVERYTHING
from rdc.protocol import messages
from rdc.protocol.messages import Message, Role, State
from rdc.protocol.messages.field_types import AboutFile, AboutFiles
from rdc.protocol.messages.uniting import BY_DIALLER, IDLE
from rdc.protocol.wire.codec import STATES, WORKING, Illegal
from rdc.protocol.wire.options import rule_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rdc.protocol.pending import AskedRanges, PendingRequests


TRANSITIONS: dict[Role, dict[State, dict[type[Message], State]]] = {
    role: {state: {} for state in states} for role, states in STATES.items()
}
"""For each role and state, the messages that it may send, and its state after each."""

for _kind in messages.message_kinds().values():
    for _role, _state, _after in _kind.place.transitions():
        TRANSITIONS[_role][_state][_kind] = _after


class End:
    """The state of one side."""

    def __init__(self, role: Role) -> None:
        """role: a guess until Open states it. TRANSITIONS is the same for both roles up to there."""
        self.highest_round = 0
        self.enter(State.GREETING, role)

    def enter(self, state: State, role: Role | None = None) -> None:
        """Move to a state. role: the one for the turn that begins; None for the same one."""
        self.role: Role = self.role if role is None else role
        self.state = state
        self.allowed = TRANSITIONS[self.role][state]
        """Messages that this side may send, and its state after each."""


class SequenceRules:
    """All rules on the order of messages in one session. The session is over after Illegal."""

    def __init__(self, dialler: bool) -> None:
        """dialler: this side opened the connection."""
        self._dialler = dialler
        self.us = End(Role.SOURCE if dialler else Role.DESTINATION)
        self.them = End(self.us.role.other)
        self._opened = False
        """Open stated the roles."""
        self._pending: PendingRequests | None = None
        self._totals = TreeTotals()
        self._lists = False
        """Open asks for a list that the answerer has: it selects, not the dialler."""
        self._rules_due = False
        """Open announced filter rules, and the last of them did not come yet."""
        self._watches = False
        """The source watches its tree: the session continues after Done."""
        self._meets = False
        """The trees are brought together: the dialler begins each turn, by an Exchange."""
        self._follows = False
        """The destination asked the source to watch, and receives its condition."""

    @property
    def role(self) -> Role | None:
        """This side's role in the current turn; None until Open states it."""
        return self.us.role if self._opened else None

    @property
    def outstanding(self) -> int:
        """Requests without a complete answer."""
        return 0 if self._pending is None else len(self._pending)

    @property
    def ranges(self) -> AskedRanges | None:
        """Return the ranges of PendingRequests."""
        return None if self._pending is None else self._pending.ranges

    def _requests(self) -> PendingRequests:
        """Return the pending requests. Their module is loaded for the first request; equal trees need
        none."""
        if self._pending is None:
            from rdc.protocol.pending import PendingRequests

            self._pending = PendingRequests()
        return self._pending

    def say(self, message: Message) -> None:
        """Record that this side sends `message`. Raises Illegal."""
        self._step(self.us, self.them, message)

    def hear(self, message: Message) -> None:
        """Record that the remote side sends `message`. Raises Illegal."""
        self._step(self.them, self.us, message)

    def _step(self, sender: End, other: End, message: Message) -> None:
        kind = type(message)
        after = sender.allowed.get(kind)
        if after is None:
            raise Illegal("not allowed now")
        if (
            self._rules_due
            and not isinstance(message, (messages.Rules, messages.Refused))
            and (sender is self.us) == self._dialler
        ):
            raise Illegal("rules follow Open, before anything else")
        # Most messages of a session are requests and answers, which change no state, so they come first.
        exchange = _EXCHANGES.get(kind)
        if exchange is not None:
            exchange(self, message)
            return
        place = kind.place
        if place.needs is not None and other.state is not place.needs:
            raise Illegal(f"the other side is not yet in state {place.needs.value}")
        count = _COUNTS.get(kind)
        if count is not None:
            count(self._totals, message)
        step = _STEPS.get(kind)
        changed = None if step is None else step(self, message, sender, other)
        sender.enter(changed or after)
        self._move(message, other)

    def _move(self, message: Message, other: End) -> None:
        """Move the side that did not send `message`, if it declares so. Done closes S without a further round
        trip, but after Watch, S is WATCHING instead."""
        if isinstance(message, messages.Describe) and self._totals.offered:
            other.enter(State.SERVING)
        elif message.place.moves is not None:
            before, moved = message.place.moves
            if other.state is before:
                other.enter(State.WATCHING if self._watches and moved is State.CLOSED else moved)

    def _begin_turn(self, source: End, destination: End, totals: TreeTotals) -> None:
        """Give both sides their roles for a turn, and let its description begin."""
        source.enter(source.state, Role.SOURCE)
        destination.enter(destination.state, Role.DESTINATION)
        self._totals = totals

    # Requests and answers

    def _answer(self, message: Message) -> None:
        self._requests().answer(message)

    def _ask_file(self, message: messages.BlockRequest | messages.RangeRequest) -> None:
        if not self._totals.is_bundle(message.file):
            self._listed(message.file)
        self._requests().ask(message)

    def _ask_nodes(self, message: messages.NodeRequest) -> None:
        self._listed(message.file)
        self._requests().ask(message)

    def _ask_files(self, message: Any) -> None:
        self._listed(message.files[-1])
        self._requests().ask(message)

    def _ask_likely(self, message: messages.LikelyRequest) -> None:
        self._totals.ask_likely()
        self._requests().ask(message)

    def _likely(self, message: messages.LikelyAnswer | messages.LikelyBlocks) -> None:
        if message.files:
            self._listed(message.files[-1])
        self._requests().answer(message)

    def _ask_bundle(self, message: messages.BundleRequest) -> None:
        self._listed(message.files[-1])
        if State.LISTING in (self.us.state, self.them.state):
            raise Illegal("there may be more entries, whose ordinals a bundle must not have")
        self._totals.bundle(message.bundle)
        self._requests().ask(message)

    def _landed(self, message: messages.Landed) -> None:
        self._listed(message.files[-1])
        if State.LISTING in (self.us.state, self.them.state):
            raise Illegal("the source still describes its tree")
        self._requests().ask(message)

    def _look(self, message: Message) -> None:
        self._totals.look()
        self._requests().ask(message)

    def _listed(self, file: int) -> None:
        if file >= self._totals.known:
            raise Illegal(f"file {file} was not listed, only {self._totals.known} entries were")

    # The steps of _STEPS. Each returns the sender's next state, or None for the one in TRANSITIONS.

    def _open(self, message: messages.Open | messages.Opened, sender: End, other: End) -> State:
        if isinstance(message, messages.Open) != ((sender is self.us) == self._dialler):
            raise Illegal("the dialler sends Open, the answerer Opened")
        if isinstance(message, messages.Open):
            source, destination = (other, sender) if message.role is Role.SOURCE else (sender, other)
            self._begin_turn(source, destination, TreeTotals(may_offer=source is sender))
            self._opened = True
            self._rules_due = message.rules_follow
            self._lists = message.added is not None and "files_from" in dict(message.added.items)
        elif not self._opened:
            raise Illegal("there was no Open")
        elif self._lists and not self._totals.all_selected:
            raise Illegal("the list is not whole, which Open asks for")
        return WORKING[sender.role]

    def _rule(self, message: messages.Rules, sender: End, _other: End) -> None:
        if not self._rules_due or (sender is self.us) != self._dialler:
            raise Illegal("the dialler sends rules, behind an Open that announces them")
        self._totals.rule(message)
        self._rules_due = not message.last

    def _select(self, message: messages.Selected, sender: End, _other: End) -> None:
        by_dialler = (sender is self.us) == self._dialler
        if by_dialler in {self._lists, sender.state is State.OPENING}:
            raise Illegal(
                "the dialler selects, behind Open; or the answerer before Opened if Open asks for that"
            )
        self._totals.select(message, ahead=not by_dialler)

    def _describe(self, message: messages.Describe, _sender: End, _other: End) -> None:
        self._need_no_outstanding()
        if self._meets:
            raise Illegal("nobody describes a whole tree after Meet")
        self._totals.describe(message)

    def _follow(self, _message: messages.Follow, _sender: End, _other: End) -> None:
        if self._follows or self._totals.described:
            raise Illegal("it came already, or after Describe")
        self._follows = True

    def _watch(self, _message: messages.Watch, _sender: End, _other: End) -> None:
        if self._watches or self._totals.started:
            raise Illegal("it came already, or after Start")
        self._watches = True

    def _meet(self, _message: messages.Meet, sender: End, _other: End) -> None:
        if self._meets or self._watches or self._totals.described or sender is not self._dialling:
            raise Illegal("the dialler sends it once, before Describe")
        self._meets = self._watches = True

    def _met(self, _message: messages.Met, _sender: End, _other: End) -> None:
        if not self._meets or self._totals.started:
            raise Illegal("it came without Meet, or after Start")

    def _page(self, message: messages.Page, sender: End, _other: End) -> State:
        if not self._meets:
            raise Illegal("nobody sent Meet")
        if (message.subject in BY_DIALLER) != (sender is self._dialling):
            raise Illegal(f"{message.subject.name} is for the other side to send")
        return sender.state

    def _exchange(self, message: messages.Exchange, sender: End, other: End) -> State:
        """Begin a turn of files. Nothing of the last one is under way."""
        if not self._meets or sender is not self._dialling:
            raise Illegal("the dialler of a session that began with Meet sends it")
        if other.state not in IDLE:
            raise Illegal("the other side is not idle")
        source, destination = (other, sender) if message.role is Role.SOURCE else (sender, other)
        source.enter(State.LISTING, Role.SOURCE)
        destination.enter(State.ASKING, Role.DESTINATION)
        self._totals = TreeTotals(messages.Turn(False))
        return sender.state

    @property
    def _dialling(self) -> End:
        return self.us if self._dialler else self.them

    def _condition(self, _message: messages.Condition, _sender: End, _other: End) -> None:
        if not self._follows:
            raise Illegal("nobody said Follow")

    def _turn(self, message: messages.Turn, sender: End, other: End) -> None:
        """Start the next turn of a watch. Both sides are idle, so no message of the last turn is under
        way."""
        if self._meets:
            raise Illegal("the dialler begins each turn of this session")
        self._begin_turn(sender, other, TreeTotals(message))
        sender.highest_round = other.highest_round = 0

    def _offer(self, message: messages.Manifest, sender: End, _other: End) -> State | None:
        return None if self._totals.offer(message) else sender.state

    def _done(self, _message: messages.Done, _sender: End, _other: End) -> None:
        self._need_no_outstanding()

    def _need_no_outstanding(self) -> None:
        if self.outstanding:
            raise Illegal(f"{self.outstanding} requests are unanswered")


class TreeTotals:
    """Everything announced of one tree in one turn. Each method checks one message and counts it, or raises
    Illegal."""

    def __init__(self, turn: messages.Turn | None = None, *, may_offer: bool = False) -> None:
        """turn: the Turn that begins a later description of a watched tree; None for the first one.
        may_offer: S dialled, so it may offer one manifest before D asks for a description."""
        self._changes = turn is not None and not turn.whole
        """S announces only changes, and D asks for no description."""
        self.directories = 0
        """Directories whose listing has begun."""
        self.entries = 0
        self.files = 0
        self.bytes = 0
        self._may_offer = may_offer
        self._unasked: messages.Manifest | None = None
        self._asked: messages.Describe | None = None
        self._started = False
        self._preserved = EVERYTHING
        """The metadata that the source preserves, from Start."""
        self._offered: int | None = None
        """Entries of the manifest that replaces a listing; None without one."""
        self._bundles = 0
        """Bundles that D asked for."""
        self._likely_asked = False
        """D asked for likely files since its last Describe."""
        self._top_due = False
        """A manifest came, and its top tier may follow, even after D asked for a listing instead."""
        self._rules = self._rules_bytes = 0
        """Filter rules that came after Open, and their bytes."""
        self._selected = self._selected_bytes = 0
        """Selected names, and their bytes."""
        self.all_selected = False
        """True if the last of the selected names came."""
        self._mount_points = 0
        self._linked = self._linked_to = 0
        """Number of announced hard links, and the ordinal after the last of them."""
        self._attributed = self._attributed_to = 0
        """Number of entries with announced attributes, and the number after the last of them. Number 0 is the
        root, and entry n has number n + 1."""
        self._users = self._groups = 0
        """Number of owners whose names were announced."""
        self._unfinished: messages.ListingPart | None = None
        """The last listing part, if its directory is not complete."""

    @property
    def known(self) -> int:
        """Number of entries that D may ask for."""
        return self.entries if self._offered is None else self._offered

    def bundle(self, number: int) -> None:
        """Count a bundle that D asks for. Bundles are numbered on from the last entry."""
        if number != self.known + self._bundles:
            raise Illegal(f"a bundle named {number}, expected {self.known + self._bundles}")
        self._bundles += 1

    def is_bundle(self, number: int) -> bool:
        """Return whether `number` names a bundle that D asked for."""
        return self.known <= number < self.known + self._bundles

    @property
    def described(self) -> bool:
        """Return whether D asked for a description."""
        return self._asked is not None

    @property
    def offered(self) -> bool:
        """Return whether a manifest stands in for the listing."""
        return self._offered is not None

    @property
    def started(self) -> bool:
        """Return whether S sent Start."""
        return self._started

    def describe(self, message: messages.Describe) -> None:
        """D asks for a description, once; it may ask for a listing after a manifest, which the listing
        replaces. A suitable manifest that S sent unasked is accepted."""
        if self._changes:
            raise Illegal("only what changed is told")
        if self._asked is not None and (self._offered is None or not message.whole):
            raise Illegal("the tree is being described already")
        self._asked = message
        self._likely_asked = False
        self._offered = None
        self._mount_points = 0
        if self._unasked is not None:
            self._accept(self._unasked)

    def _accept(self, manifest: messages.Manifest) -> bool:
        asked = self._asked
        if asked is None or asked.whole or asked.kept.both(self._preserved) != manifest.kept:
            return False
        self._offered = manifest.entries
        self._unasked = None
        return True

    def rule(self, message: messages.Rules) -> None:
        """Filter rules come within the limits of a run."""
        if not message.rules:
            raise Illegal("there are no rules in it")
        self._rules += len(message.rules)
        self._rules_bytes += sum(map(rule_bytes, message.rules))
        if self._rules > FILTER_RULES or self._rules_bytes > FILTER_BYTES + 4 * FILTER_RULES:
            raise Illegal(f"{self._rules} filter rules of {self._rules_bytes} bytes are too many")

    def select(self, message: messages.Selected, *, ahead: bool = False) -> None:
        """Check that paths are selected before anything is described, within the limits of a run. `ahead`: by
        the answerer, to whom D may have said Describe meanwhile."""
        if self.all_selected or self._started or (self._asked is not None and not ahead):
            raise Illegal("everything is selected, or the tree is being described already")
        self._selected += len(message.names)
        self._selected_bytes += len(message.origin) + sum(map(len, message.names))
        if self._selected > SELECTED_NAMES or self._selected_bytes > SELECTED_BYTES:
            raise Illegal(f"{self._selected} names of {self._selected_bytes} bytes are too many")
        self.all_selected = message.last

    def start(self, message: messages.Start) -> None:
        """S starts its description, once. An S that did not dial needs a Describe first."""
        unasked = self._asked is None and not self._may_offer
        if unasked or self._started:
            raise Illegal("nobody asked for it" if unasked else "it came already")
        self._started = True
        self._preserved = message.kept

    def offer(self, manifest: messages.Manifest) -> bool:
        """S sends a manifest that D asked for or that S may offer. True: the manifest is accepted."""
        if not self._started or self._offered is not None or self.directories:
            raise Illegal("its Start is missing, or the tree is being described already")
        if not self._accept(manifest):
            if not self._may_offer:
                raise Illegal("no such manifest was asked for")
            self._unasked = manifest
        self._may_offer = False
        self._top_due = True
        return self._unasked is None

    def top(self, _message: messages.TopTier) -> None:
        """S sends the top tier of a manifest, once."""
        if not self._top_due:
            raise Illegal("there is no manifest that it is of")
        self._top_due = False

    def leave_out(self, message: messages.MountPoints) -> None:
        """S names mount points after Start, at most MOUNT_POINTS."""
        self._mount_points += len(message.paths)
        if not self._started or self._mount_points > MOUNT_POINTS:
            raise Illegal("its Start is missing, or they are more than " + str(MOUNT_POINTS))

    def link(self, message: messages.HardLinks) -> None:
        """S names hard links among the entries that come next in its listing. At most FILES_PER_MESSAGE more
        links than entries are accepted, so the number of entries bounds the memory for links."""
        if self._asked is None or not self._asked.whole or not self._started:
            raise Illegal("no listing was asked for, or its Start is missing")
        self._linked += len(message.files)
        if message.files[0] < max(self.entries, self._linked_to):
            raise Illegal(f"entry {message.files[0]} was listed, or told of, already")
        if self._linked > self.entries + FILES_PER_MESSAGE:
            raise Illegal(f"{self._linked} of them before more than {self.entries} entries were listed")
        self._linked_to = message.files[-1] + 1

    def attribute(self, message: messages.EntryAttributes) -> None:
        """S names attributes of the root or of entries that come next, bounded as hard links are."""
        if self._asked is None or not self._asked.whole or not self._started:
            raise Illegal("no listing was asked for, or its Start is missing")
        self._attributed += len(message.entries)
        if message.entries[0] < max(self.entries + bool(self.directories), self._attributed_to):
            raise Illegal(f"entry {message.entries[0]} was listed, or told of, already")
        if self._attributed > self.entries + 1 + FILES_PER_MESSAGE:
            raise Illegal(f"{self._attributed} of them before more than {self.entries} entries were listed")
        self._attributed_to = message.entries[-1] + 1

    def own(self, message: messages.Owners) -> None:
        """S names owners after Start, at most OWNERS of each kind in a description."""
        self._users += len(message.users)
        self._groups += len(message.groups)
        if not self._started or max(self._users, self._groups) > OWNERS:
            raise Illegal(f"its Start is missing, or they are more than {OWNERS}")

    def ask_likely(self) -> None:
        """D asks for likely files, once after each Describe: S looks through all that it announced."""
        if self._asked is None or self._likely_asked:
            raise Illegal("it came already, or no tree is being described")
        self._likely_asked = True

    def look(self) -> None:
        """D asks for a part of the manifest, which must have been offered."""
        if self._offered is None:
            raise Illegal("no manifest was offered")

    def add(self, part: messages.ListingPart) -> None:
        """S sends the next part of a listing that D asked for."""
        if self._asked is None or not self._asked.whole or not self._started:
            raise Illegal("no listing was asked for, or its Start is missing")
        if part.first != self.entries:
            raise Illegal(f"a listing's first entry is {part.first}, expected {self.entries}")
        before = self._unfinished
        if before is None:
            if part.directory != self.directories:
                raise Illegal(f"a listing of directory {part.directory}, expected {self.directories}")
            self.directories += 1
        elif (part.directory, part.path) != (before.directory, before.path):
            raise Illegal(f"the listing of directory {before.directory} is not complete")
        elif part.listing and part.listing.names[0] <= before.listing.names[-1]:
            raise Illegal(f"names of directory {part.directory} do not increase from part to part")
        self.entries += len(part.listing)
        self.files += part.listing.kinds.count(Kind.FILE)
        self.bytes += part.listing.total_size
        self._unfinished = None if part.last else part

    def change(self, part: messages.Changed | messages.Renamed | messages.TurnEnd) -> None:
        """S announces a change in a turn of changes. The entries of a Changed continue the numbering."""
        if not self._changes:
            raise Illegal("no turn that tells of changes has begun")
        if isinstance(part, messages.Changed):
            if part.first != self.entries:
                raise Illegal(f"the first entry is {part.first}, expected {self.entries}")
            self.entries += len(part.listing)

    def end(self, totals: messages.ListingEnd) -> None:
        """S ends its listing with totals, which must equal those counted."""
        if self._asked is None or not self._asked.whole or not self.directories:
            raise Illegal("the root was not listed")
        if self._unfinished is not None:
            raise Illegal(f"the listing of directory {self._unfinished.directory} is not complete")
        stated = (totals.directories, totals.entries, totals.files, totals.bytes)
        counted = (self.directories, self.entries, self.files, self.bytes)
        if stated != counted:
            raise Illegal(f"(directories, entries, files, bytes) stated {stated}, listed {counted}")


def _exchanges() -> dict[type[Message], Callable[[SequenceRules, Any], None]]:
    """Return the rule for each kind of answer and request; a request names listed files or nodes of a
    manifest."""
    found: dict[type[Message], Callable[[SequenceRules, Any], None]] = {}
    for kind in messages.message_kinds().values():
        if kind.place.answers:
            found[kind] = SequenceRules._answer
        elif kind.place.asks is not None:
            if issubclass(kind, AboutFile):
                found[kind] = SequenceRules._ask_file
            elif issubclass(kind, AboutFiles):
                found[kind] = SequenceRules._ask_files
            else:
                found[kind] = SequenceRules._look
    found[messages.NodeRequest] = SequenceRules._ask_nodes
    found[messages.BundleRequest] = SequenceRules._ask_bundle
    found[messages.LikelyRequest] = SequenceRules._ask_likely
    found[messages.LikelyAnswer] = SequenceRules._likely
    found[messages.LikelyBlocks] = SequenceRules._likely
    found[messages.Landed] = SequenceRules._landed
    return found


_EXCHANGES = _exchanges()

_COUNTS: dict[type[Message], Callable[[TreeTotals, Any], None]] = {
    messages.Start: TreeTotals.start,
    messages.ListingPart: TreeTotals.add,
    messages.ListingEnd: TreeTotals.end,
    messages.TopTier: TreeTotals.top,
    messages.MountPoints: TreeTotals.leave_out,
    messages.HardLinks: TreeTotals.link,
    messages.EntryAttributes: TreeTotals.attribute,
    messages.Owners: TreeTotals.own,
    messages.Changed: TreeTotals.change,
    messages.Renamed: TreeTotals.change,
    messages.TurnEnd: TreeTotals.change,
}
"""Messages about the tree, which its totals check and count."""

_STEPS: dict[type[Message], Callable[[SequenceRules, Any, End, End], State | None]] = {
    messages.Open: SequenceRules._open,
    messages.Opened: SequenceRules._open,
    messages.Rules: SequenceRules._rule,
    messages.Selected: SequenceRules._select,
    messages.Describe: SequenceRules._describe,
    messages.Follow: SequenceRules._follow,
    messages.Watch: SequenceRules._watch,
    messages.Condition: SequenceRules._condition,
    messages.Turn: SequenceRules._turn,
    messages.Meet: SequenceRules._meet,
    messages.Met: SequenceRules._met,
    messages.Page: SequenceRules._page,
    messages.Exchange: SequenceRules._exchange,
    messages.Manifest: SequenceRules._offer,
    messages.Done: SequenceRules._done,
}
"""Messages with a rule besides what they declare."""
