"""Who hears of a watch: the user here at once, the one at the remote side as messages, each in its order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rdc.errors import ExitCode
from rdc.limits import RESCAN_SECONDS, UNTOLD_EVENTS
from rdc.progress import Event, ItemChanged, PlanKnown, Problem, Progressed
from rdc.protocol.messages import (
    Condition,
    Items,
    Message,
    Notice,
    Plan,
    Progress,
    SourceState,
    decode,
    encode,
)
from rdc.session.runtime.commands import Send
from rdc.watching.listeners import FarUser, NearUser, SourceRelay
from rdc.watching.records import Disconnected, Halted, InStep, Limited, Resumed, WatchEvent

IN_STEP = InStep(True, 1, 1, 0, 10, 10, 0.1)
CODES = (ExitCode.OK, ExitCode.PARTIAL, ExitCode.VANISHED)

texts = st.text("abc /:", max_size=10)
problems = st.builds(Problem, st.sampled_from(CODES), st.sampled_from([b"", b"a", b"d/\xff\n"]), texts)
others: st.SearchStrategy[Event] = st.sampled_from(
    [ItemChanged(">f+++++++++", b"a"), Progressed("compare", 1, 2), PlanKnown(1, 2, 3)]
)
conditions: st.SearchStrategy[WatchEvent] = st.one_of(
    st.builds(Halted, texts),
    st.just(Resumed()),
    st.builds(Limited, texts, st.integers(0, RESCAN_SECONDS)),
    st.just(IN_STEP),
    st.builds(Disconnected, texts, st.just(1.0)),
)


def flushed(listener: FarUser | NearUser) -> list[Message]:
    """As the remote side reads them."""
    sent = list(listener.flush())
    assert all(isinstance(command, Send) and command.round == 0 for command in sent)
    messages = [command.message for command in sent if isinstance(command, Send)]
    return [decode(message.kind, encode(message)) for message in messages]


@given(st.lists(st.one_of(problems, others)), st.lists(conditions))
def test_the_user_here_is_called_and_nothing_waits(events: list[Event], said: list[WatchEvent]) -> None:
    heard: list[Event] = []
    told: list[WatchEvent] = []
    listener = NearUser(heard.append, told.append)
    for event in events:
        listener.report(event)
    for condition in said:
        listener.emit(condition)
    assert (heard, told) == (events, said)
    assert list(listener.flush()) == []


def as_message(event: Event | WatchEvent) -> Notice | Condition | None:
    match event:
        case Problem(code, path, message):
            return Notice(code, path, message)
        case Halted(reason):
            return Condition(SourceState.HALTED, reason, 0)
        case Limited(reason, seconds):
            return Condition(SourceState.LIMITED, reason, seconds)
        case Resumed():
            return Condition(SourceState.FOLLOWED, "", 0)
    return None


@given(st.lists(st.lists(st.one_of(problems, others, conditions), max_size=8), max_size=4))
def test_the_far_user_gets_what_only_this_side_knows_in_order(turns: list[list[Event | WatchEvent]]) -> None:
    """How turns end, and how far they are, is known there."""
    listener = FarUser()
    for turn in turns:
        for event in turn:
            if isinstance(event, (Problem, ItemChanged, Progressed, PlanKnown)):
                listener.report(event)
            else:
                listener.emit(event)
        assert flushed(listener) == [message for message in map(as_message, turn) if message is not None]
        assert flushed(listener) == []


def test_problems_that_nobody_fetches_are_bounded_and_conditions_still_told() -> None:
    listener = FarUser()
    for number in range(UNTOLD_EVENTS + 100):
        listener.report(Problem(ExitCode.PARTIAL, b"%d" % number, "unreadable"))
    listener.emit(Halted("gone"))
    found = flushed(listener)
    assert len(found) == UNTOLD_EVENTS + 1
    assert found[0] == Notice(ExitCode.PARTIAL, b"0", "unreadable")
    assert found[-1] == Condition(SourceState.HALTED, "gone", 0)
    # What was sent makes room.
    listener.report(Problem(ExitCode.PARTIAL, b"more", "unreadable"))
    assert len(flushed(listener)) == 1


def test_only_the_user_here_hears_of_the_destination_from_the_source() -> None:
    assert NearUser(lambda _: None, lambda _: None).is_near
    assert not FarUser().is_near


# News of a turn


def test_what_arises_here_and_what_the_destination_tells_have_their_own_takers() -> None:
    here: list[Event] = []
    there: list[Event] = []
    events = SourceRelay(here.append, there.append)
    own = Problem(ExitCode.PARTIAL, b"a", "here")
    events.report(own)
    assert events.take(Notice(ExitCode.VANISHED, b"b", "there"))
    assert (here, there) == ([own], [Problem(ExitCode.VANISHED, b"b", "there")])
    # The rest of what it tells is of this turn, too.
    assert events.take(Plan(1, 2, 3))
    assert events.take(Progress("compare", 1, 2))
    assert events.take(Items(".d..t......", (b"d/",)))
    assert here[1:] == [PlanKnown(1, 2, 3), Progressed("compare", 1, 2), ItemChanged(".d..t......", b"d/")]
    assert len(there) == 1
    assert not events.take(Condition(SourceState.FOLLOWED, "", 0))
    # What the destination has trouble with is no error of this side's half.
    assert (events.errors, events.codes) == (1, {ExitCode.PARTIAL})


def test_what_a_hostile_destination_says_moves_no_cursor() -> None:
    there: list[Event] = []
    events = SourceRelay(lambda _: None, there.append)
    assert events.take(Notice(ExitCode.PARTIAL, b"a", "\x1b[2J\r\nfine\x07"))
    (problem,) = there
    assert isinstance(problem, Problem)
    assert problem.message.isprintable()
    assert "fine" in problem.message
