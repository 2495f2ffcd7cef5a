"""The states: every state with every message, and rounds that are possible."""

from __future__ import annotations

import pytest

from rdc.errors import ExitCode, ProtocolError
from rdc.model.entries import Kind
from rdc.protocol.messages.registry import (
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
    Hello,
    Holes,
    Items,
    Landed,
    ListingEnd,
    ListingPart,
    Literals,
    Manifest,
    Message,
    MountPoints,
    NodeAnswer,
    NodeRequest,
    Notice,
    Open,
    Opened,
    Owners,
    Plan,
    Progress,
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
    SourceState,
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
from rdc.protocol.rules.connection import Connection, LocalProtocolError, Received
from rdc.protocol.rules.states import NEEDS, RECALLS, TRANSITIONS, State
from tests.support.wire.dialogues import (
    BY_DIGEST,
    CLAIMS,
    END,
    LISTED,
    LOOKS,
    OFFER,
    RESULT,
    ROLES,
    START,
    WHOLE,
    move,
)
from tests.support.wire.wire_script import (
    HELLO,
    NAMED,
    PREAMBLE,
    connections,
    listing,
    opening,
    raw,
    script,
)

SAMPLES: dict[type[Message], Message] = {
    Hello: HELLO,
    Open: opening(),
    Opened: Opened(),
    Refused: Refused(ExitCode.FILE_IO, "disk full"),
    Describe: WHOLE,
    Start: START,
    Manifest: OFFER,
    MountPoints: MountPoints((b"mnt",)),
    HardLinks: HardLinks((7,), (0,)),
    EntryAttributes: EntryAttributes((7,), (0,), (b"\0",)),
    Owners: Owners((0,), (b"root",), (7,), (b"",)),
    TopTier: TopTier(0, bytes(8)),
    TierRequest: TierRequest(0, (), 7),
    TierAnswer: TierAnswer(0, (0,), (2,), bytes(28)),
    RowsRequest: RowsRequest(0, (3,), 7),
    RowsPart: RowsPart((3,), True, NAMED),
    ListingPart: LISTED[0],
    ListingEnd: END[0],
    RootRequest: RootRequest((0, 1)),
    RootAnswer: RootAnswer((1,), (5,), bytes(32)),
    DigestRequest: DigestRequest((1,)),
    DigestAnswer: DigestAnswer(bytes(32)),
    TraitsRequest: TraitsRequest((0, 1)),
    Landed: Landed((0,), bytes(16)),
    Removed: Removed(1),
    TraitsAnswer: TraitsAnswer((1,), (5,), bytes(8), bytes(9)),
    TreeRequest: TreeRequest((1,), 8),
    TreeAnswer: TreeAnswer(1, 5, bytes(32), 0, None, b""),
    BundleRequest: BundleRequest(2, (0, 1), 4, 256),
    BundleAnswer: BundleAnswer(2, (1,), bytes(32), (3,), b"four", b""),
    NodeRequest: NodeRequest(0, 1, (3, 5), 4),
    NodeAnswer: NodeAnswer(0, 1, (3,), (b"",)),
    RangeRequest: RangeRequest(1, (3,), (4,)),
    Code: Code(1, b"code"),
    Correction: Correction(1, (0,), b"right"),
    Targets: Targets(1, b"there"),
    Table: Table(1, 8, b"rows"),
    Literals: Literals(1, b"packed"),
    BlockRequest: BlockRequest(1, (3,), (40,), 16, 4),
    FileRequest: FileRequest((0, 1)),
    Holes: Holes(1, 3, (1,), (2,)),
    Resized: Resized(1, 3),
    Data: Data(1, b"abc"),
    FileBatch: FileBatch((1,), (3,), bytes(32), b"abc"),
    FileEnd: FileEnd(1, 0, bytes(32)),
    FileFailed: FileFailed(1, ExitCode.PARTIAL, "no"),
    Notice: Notice(ExitCode.OK, b"", "hm"),
    Items: Items("." * 11, (b"a",)),
    Progress: Progress("delete", 1, 2),
    Plan: Plan(0, 0, 0),
    Done: RESULT[0],
    Watch: Watch(False, bytes(16)),
    Follow: Follow(600, b""),
    Condition: Condition(SourceState.HALTED, "gone", 0),
    Turn: Turn(False),
    Renamed: Renamed(b"a", b"b", Kind.FILE, 1, START.metadata),
    Changed: Changed(b"", START.metadata, 0, b"gone\0", listing(b"a"), ()),
    TurnEnd: TurnEnd(2, 2, 0),
}
# What must be unanswered for an answer to be one.
ASKED: dict[type[Message], Message] = {
    RootAnswer: RootRequest((1,)),
    DigestAnswer: DigestRequest((0, 1)),
    TraitsAnswer: TraitsRequest((1,)),
    TreeAnswer: TreeRequest((1,), 8),
    BundleAnswer: BundleRequest(2, (0, 1), 4, 256),
    Removed: Landed((0,), bytes(16)),
    NodeAnswer: NodeRequest(0, 1, (3, 5), 4),
    Holes: FileRequest((0, 1)),
    Resized: FileRequest((0, 1)),
    Data: FileRequest((0, 1)),
    FileBatch: FileRequest((0, 1)),
    FileEnd: FileRequest((0, 1)),
    FileFailed: TreeRequest((1,), 8),
    Code: RangeRequest(1, (3,), (4,)),
    Correction: RangeRequest(1, (3,), (4,), False, CLAIMS),
    Table: RangeRequest(1, (3,), (4,)),
    Targets: RangeRequest(1, (3,), (4,), False, CLAIMS, True),
    Literals: RangeRequest(1, (3,), (4,), True),
    TierAnswer: TierRequest(0, (), 7),
    RowsPart: RowsRequest(0, (3,), 7),
}
TOLD = {Renamed, Changed, TurnEnd}
"""What belongs to a turn that tells of changes."""


LATE = {*LOOKS, BundleAnswer, Removed}
"""What nobody asks for while a listing goes on."""


def in_state(sender: Role, state: State, dials: bool, sample: type[Message]) -> Connection:
    """A connection whose far side has role `sender` and is in `state`; `dials`: the far side dialled.

    The near side is as far ahead as it can be, so that only the far side's state decides about `sample`.
    """
    end = Connection(not dials, HELLO)
    lines: list[tuple[bool, Message, int]] = []  # (from the far side, message, round)
    if state is not State.GREETING:
        lines.append((True, HELLO, 0))
    if state is State.OPENING and not dials:
        lines.append((False, opening(sender), 1))
    if state not in {State.GREETING, State.OPENING}:
        lines.append((dials, opening(sender.other if dials else sender), 1))
        lines.append((not dials, Opened(), 1))
        if sample is Condition and sender is Role.SOURCE:
            lines.append((False, SAMPLES[Follow], 1))
        far_is_source = sender is Role.SOURCE
        in_turn = far_is_source and state is State.LISTING and sample in TOLD
        if state is State.WATCHING or in_turn:
            lines.append((True, SAMPLES[Watch], 1))
        if far_is_source or sample not in {Describe, Follow} or state is not State.ASKING:
            lines += _described(far_is_source, State.SERVING if in_turn else state, sample)
        if state is State.WATCHING or in_turn:
            lines.append((False, *RESULT))
            lines += [(True, Turn(False), 0)] if in_turn else []
        elif far_is_source and sample in ASKED and not (sample in LATE and state is State.LISTING):
            lines.append((False, ASKED[sample], 1))
        elif state is State.DONE:
            lines.append((True, *RESULT))
    if state is State.CLOSED:
        lines.append((True, SAMPLES[Refused], 1))
    end.receive_data(PREAMBLE)
    for far, message, number in lines:
        if far:
            end.receive_data(raw(message, number))
            assert end.next() == Received(message, number)
        else:
            end.send(message, number)
    assert end._rules.them.state is state
    return end


def _described(far_is_source: bool, state: State, sample: type[Message]) -> list[tuple[bool, Message, int]]:
    """As much of the tree's description as `state` and `sample` leave room for."""
    listing_state = far_is_source and state is State.LISTING
    if sample is TopTier and far_is_source:
        offered: list[tuple[bool, Message, int]] = [(False, BY_DIGEST, 1), (True, START, 1), (True, OFFER, 1)]
        return [*offered, (False, WHOLE, 1)] if listing_state else offered
    digest = sample is Manifest or (sample in LOOKS and not listing_state)
    lines: list[tuple[bool, Message, int]] = [(not far_is_source, BY_DIGEST if digest else WHOLE, 1)]
    if sample in {Start, Watch} and listing_state:
        return lines
    lines.append((far_is_source, START, 1))
    if digest:
        return lines if listing_state else [*lines, (far_is_source, OFFER, 1)]
    if sample is not ListingPart or not listing_state:
        lines.append((far_is_source, *LISTED))
    if not listing_state:
        lines.append((far_is_source, *END))
    return lines


CASES = [
    (sender, state, dials, sample)
    for sender in ROLES
    for state in TRANSITIONS[sender]
    for dials in (False, True)
    for sample in SAMPLES
]


@pytest.mark.parametrize(
    ("sender", "state", "dials", "sample"),
    CASES,
    ids=[f"{c[0].name[0]}-{c[1].name}-{'dialler' if c[2] else 'answerer'}-{c[3].__name__}" for c in CASES],
)
def test_every_state_and_message_is_legal_or_refused(
    sender: Role, state: State, dials: bool, sample: type[Message]
) -> None:
    end = in_state(sender, state, dials, sample)
    message = opening(sender.other) if sample is Open else SAMPLES[sample]
    legal = sample in TRANSITIONS[sender][state]
    if sample is Open:
        legal = legal and dials
    if sample is Opened:
        legal = legal and not dials
    number = 0 if sample is Hello else 1
    end.receive_data(raw(message, number))
    if legal:
        assert end.next() == Received(message, number)
    else:
        with pytest.raises(ProtocolError, match=sample.__name__):
            end.next()
        with pytest.raises(ProtocolError):
            end.next()


def test_done_waits_for_the_description_and_ends_the_other_side() -> None:
    assert {Done: State.SERVING} == NEEDS
    assert {
        Describe: (State.SERVING, State.LISTING),
        Done: (State.SERVING, State.CLOSED),
        Turn: (State.DONE, State.ASKING),
    } == RECALLS
    early = in_state(Role.SOURCE, State.LISTING, False, Notice)
    with pytest.raises(LocalProtocolError, match="Done"):
        early.send(*RESULT)
    early.receive_data(raw(*END))
    early.next()
    early.send(*RESULT)
    early.receive_data(raw(SAMPLES[Notice], 1))
    with pytest.raises(ProtocolError, match="Notice"):
        early.next()


def test_the_roles_agree_until_open_has_named_them() -> None:
    for state in (State.GREETING, State.OPENING):
        source, destination = (set(TRANSITIONS[role][state]) for role in Role)
        assert source == destination


def test_opened_without_open_is_refused() -> None:
    near, _ = connections()
    near.receive_data(PREAMBLE + raw(HELLO) + raw(Opened(), 1))
    near.next()
    with pytest.raises(ProtocolError, match="Opened"):
        near.next()


# Rounds


def test_a_round_that_nothing_can_have_caused_is_refused() -> None:
    near, _ = connections()
    near.receive_data(PREAMBLE + raw(HELLO))
    near.next()
    near.send(opening(), 1)
    near.receive_data(raw(Opened(), 2))
    assert near.next() == Received(Opened(), 2)
    assert near.max_round == 2
    near.receive_data(raw(SAMPLES[Notice], 3))
    with pytest.raises(ProtocolError, match="round 3"):
        near.next()


@pytest.mark.parametrize("dialler", ROLES)
def test_a_refusal_may_cross_a_turn(dialler: Role) -> None:
    """Rounds begin anew with a Turn, and the far side may stop before it hears of one."""
    near, far = connections()
    move(near, far)
    move(far, near)
    for line in script(dialler):
        sender, other = (near, far) if line.by_dialler else (far, near)
        sender.send(line.message, line.round)
        if isinstance(line.message, Turn):
            break
        move(sender, other)
    other.send(SAMPLES[Refused], 0)
    assert move(other, sender) == [Received(SAMPLES[Refused], 0)]


def test_our_own_rounds_are_held_to_the_same() -> None:
    near, _ = connections()
    with pytest.raises(LocalProtocolError, match="round 2"):
        near.send(opening(), 2)
    with pytest.raises(LocalProtocolError, match="round -1"):
        near.send(opening(), -1)
