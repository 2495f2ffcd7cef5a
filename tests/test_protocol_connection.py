"""Connections: whole sessions between two, every state against every message, peers that lie."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.errors import ExitCode, IncompatiblePeerError, ProtocolError, StreamError
from rdc.limits import OUTSTANDING_REQUESTS
from rdc.model.entries import Kind, Metadata
from rdc.model.kept import Kept
from rdc.protocol.claims import CELL_BYTES, Claims
from rdc.protocol.connection import Connection, LocalProtocolError, Received
from rdc.protocol.ledger import Ledger
from rdc.protocol.messages import (
    PROTOCOL_VERSION,
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
    FileBatch,
    FileEnd,
    FileFailed,
    FileRequest,
    Follow,
    HardLinks,
    Hello,
    Items,
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
    Plan,
    Progress,
    RangeRequest,
    Refused,
    Renamed,
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
    message_kinds,
)
from rdc.protocol.states import NEEDS, RECALLS, TRANSITIONS, Illegal, State
from tests.wire_script import (
    HELLO,
    NAMED,
    PREAMBLE,
    TIMES,
    connections,
    frame,
    listing,
    opening,
    raw,
    raw_block,
    script,
)

ROLES = list(Role)


def everything(connection: Connection) -> list[Received]:
    found = []
    while (received := connection.next()) is not None:
        found.append(received)
    return found


def move(near: Connection, far: Connection, step: int | None = None) -> list[Received]:
    """All of near's bytes to far, in parts of `step`; what far made of them."""
    near.flush()
    data = near.data_to_send()
    found = []
    for start in range(0, len(data), step or len(data) or 1):
        far.receive_data(data[start : start + (step or len(data))])
        found += everything(far)
    return found


@pytest.mark.parametrize("dialler", ROLES)
@pytest.mark.parametrize("compress", [True, False])
@pytest.mark.parametrize("step", [None, 1, 7])
def test_a_session_arrives_as_it_was_said(dialler: Role, compress: bool, step: int | None) -> None:
    near, far = connections(compress)
    assert move(near, far, step) == move(far, near, step) == [Received(HELLO, 0)]
    for line in script(dialler):
        sender, receiver = (near, far) if line.by_dialler else (far, near)
        sender.send(line.message, line.round)
        assert move(sender, receiver, step) == [Received(line.message, line.round)]
    assert (near.role, far.role) == (dialler, dialler.other)
    assert near.peer == far.peer == HELLO
    assert near.finished
    assert far.finished
    assert near.max_round == far.max_round == 3  # of the last turn: each begins anew
    assert near.bytes_sent == far.bytes_received > 0
    assert far.bytes_sent == near.bytes_received > 0
    assert near.pending == far.pending == near.buffered == far.buffered == 0
    assert near.outstanding == far.outstanding == 0
    for end in (near, far):
        end.receive_eof()
        assert end.next() is None


def test_the_script_has_every_message() -> None:
    said = {type(line.message) for line in script(Role.SOURCE)} | {Hello, Refused}
    assert said == set(message_kinds().values())


def test_costs_count_every_frame() -> None:
    near, far = connections()
    move(near, far)
    move(far, near)
    expected: dict[str, list[int]] = {"Hello": [len(frame(HELLO, 0))] * 2}
    for line in script(Role.DESTINATION):
        sender, receiver = (near, far) if line.by_dialler else (far, near)
        sender.send(line.message, line.round)
        move(sender, receiver)
        expected.setdefault(line.message.name, []).append(len(frame(line.message, line.round)))
    for end in (near, far):
        framing = {"Preamble": (2, 8)}
        assert {cost.name: (cost.count, cost.plain) for cost in end.costs} == framing | {
            name: (len(sizes), sum(sizes)) for name, sizes in expected.items()
        }
        assert sum(cost.bytes for cost in end.costs) == end.bytes_sent + end.bytes_received
        assert [cost.bytes for cost in end.costs] == sorted((cost.bytes for cost in end.costs), reverse=True)


def test_an_opening_is_small() -> None:
    near, far = (
        Connection(True, Hello(PROTOCOL_VERSION, "rdc 0.1.0", b"p" * 32)),
        Connection(False, Hello(PROTOCOL_VERSION, "rdc 0.1.0", b"q" * 32)),
    )
    far = Connection(False, Hello(PROTOCOL_VERSION, "rdc 0.1.0", b"p" * 32))
    near.send(Open(Role.SOURCE, b"/srv/backup/home", b"s" * 16, opening().options), 1)
    move(near, far)
    far.send(Opened(), 1)
    move(far, near)
    assert near.bytes_sent + near.bytes_received < 200


def test_nothing_leaves_before_a_flush_or_a_full_piece() -> None:
    near, _ = connections(compress=False)
    near.data_to_send()
    near.send(opening(), 1)
    assert near.data_to_send() == b""
    assert near.pending == len(frame(opening(), 1))
    near.flush()
    assert near.pending == len(near.data_to_send())
    assert near.pending == 0


# Greetings


@pytest.mark.parametrize(
    "banner",
    [
        b"Welcome to host!\nLast login: today\n",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"RDX\1",
        b"\x1b[31mred",
        b"\0",
        b"x" * 100_000,
    ],
)
@pytest.mark.parametrize("step", [None, 1])
def test_another_program_is_quoted(banner: bytes, step: int | None) -> None:
    _, end = connections()
    with pytest.raises(IncompatiblePeerError) as caught:
        for start in range(0, len(banner), step or len(banner)):
            end.receive_data(banner[start : start + (step or len(banner))])
    assert caught.value.code == ExitCode.INCOMPATIBLE
    text = str(caught.value)
    assert text.isprintable()
    assert len(text) < 400
    if step is None:
        quoted = banner[:16].decode("latin-1")
        assert quoted in text or not quoted.isprintable()
    with pytest.raises(IncompatiblePeerError):
        end.next()


@pytest.mark.parametrize("version", [0, 1, PROTOCOL_VERSION + 1, 255])
@pytest.mark.parametrize("step", [1, 4])
def test_another_version_is_named(version: int, step: int) -> None:
    _, end = connections()
    data = b"RDC" + bytes((version,))
    with pytest.raises(
        IncompatiblePeerError, match=rf"version {version}\b.*version {PROTOCOL_VERSION}\b"
    ) as caught:
        for start in range(0, 4, step):
            end.receive_data(data[start : start + step])
    assert caught.value.code == 2


def test_other_parameters_are_incompatible() -> None:
    _, end = connections()
    end.receive_data(PREAMBLE + raw(Hello(PROTOCOL_VERSION, "rdc 9.9", b"q" * 32)))
    with pytest.raises(IncompatiblePeerError, match=r"rdc 9\.9.*other parameters"):
        end.next()


def test_a_hello_against_its_preamble_is_refused() -> None:
    _, end = connections()
    end.receive_data(PREAMBLE + raw(Hello(PROTOCOL_VERSION + 1, "rdc", b"p" * 32)))
    with pytest.raises(ProtocolError, match=f"version {PROTOCOL_VERSION + 1}"):
        end.next()


def test_the_end_before_a_word_is_marked() -> None:
    for data, before in ((b"", True), (PREAMBLE, True), (PREAMBLE + raw(HELLO), False)):
        _, end = connections()
        end.receive_data(data)
        end.receive_eof()
        if not before:
            assert end.next() == Received(HELLO, 0)
        for _ in range(2):  # and again on every later call
            with pytest.raises(StreamError) as caught:
                end.next()
            assert caught.value.before_hello is before
            assert type(caught.value) is StreamError
            assert caught.value.code == 12


# States

WHOLE = Describe(True, Kept(False))
BY_DIGEST = Describe(False, Kept(False))
START = Start(b"only", Kind.FILE, Metadata(0, 0, 0, 0))
OFFER = Manifest(bytes(32), 2, 2, 2000, 0, Kept(False))
LISTED = (ListingPart(0, b"", 0, True, listing(b"a", b"b")), 1)
END = (ListingEnd(1, 2, 2, 2000, 0), 1)
RESULT = (Done(0, 0, 0, 0, 0, ExitCode.OK), 1)

CLAIMS = Claims((0, 2, 9), b"aabbcc")
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
    NodeAnswer: NodeRequest(0, 1, (3, 5), 4),
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
LOOKS = {TierRequest, RowsRequest, TierAnswer, RowsPart}
"""What belongs to a manifest; the other requests and answers to a listing."""
LATE = {*LOOKS, BundleAnswer}
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
    assert end._dialogue.them.state is state
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


# Listings and requests


def serving(entries: int = 5) -> Connection:
    """A destination that dialled, with `entries` files listed."""
    near, _ = connections()
    near.send(opening(), 0)
    near.send(WHOLE, 0)
    names = [b"%03d" % row for row in range(entries)]
    near.receive_data(
        PREAMBLE
        + raw(HELLO)
        + raw(Opened(), 1)
        + raw(START, 1)
        + raw(ListingPart(0, b"", 0, True, listing(*names)), 1)
        + raw(ListingEnd(1, entries, entries, 1000 * entries, 0), 1)
    )
    everything(near)
    return near


@pytest.mark.parametrize(
    "parts",
    [
        [ListingPart(1, b"", 0, True, listing(b"a"))],
        [ListingPart(0, b"", 1, True, listing(b"a"))],
        [ListingPart(0, b"", 0, True, listing(b"a")), ListingPart(1, b"x", 0, True, listing(b"a"))],
        [ListingPart(0, b"", 0, True, listing(b"a")), ListingPart(0, b"", 1, True, listing(b"b"))],
        [ListingPart(0, b"", 0, False, listing(b"a")), ListingPart(1, b"x", 1, True, listing(b"b"))],
        [ListingPart(0, b"", 0, False, listing(b"a")), ListingPart(0, b"x", 1, True, listing(b"b"))],
        [ListingPart(0, b"", 0, False, listing(b"b")), ListingPart(0, b"", 1, True, listing(b"b"))],
        [ListingPart(0, b"", 0, False, listing(b"a")), ListingEnd(1, 1, 1, 1000, 0)],
        [ListingPart(0, b"", 0, True, listing(b"a")), ListingEnd(1, 2, 1, 1000, 0)],
        [ListingPart(0, b"", 0, True, listing(b"a")), ListingEnd(1, 1, 1, 1001, 0)],
        [ListingPart(0, b"", 0, True, listing(b"a")), ListingEnd(2, 1, 1, 1000, 0)],
        [ListingPart(0, b"", 0, True, listing(b"a", kind=Kind.SYMLINK)), ListingEnd(1, 1, 1, 0, 0)],
        [ListingEnd(0, 0, 0, 0, 0)],
        [ListingPart(0, b"", 0, True, listing(b"a")), START],
        [OFFER],
    ],
)
def test_a_listing_out_of_step_is_refused(parts: list[Message]) -> None:
    near, _ = connections()
    near.send(opening(), 0)
    near.send(WHOLE, 0)
    near.receive_data(PREAMBLE + raw(HELLO) + raw(Opened(), 1) + raw(START, 1))
    near.receive_data(b"".join(raw(part, 1) for part in parts))
    with pytest.raises(ProtocolError, match=parts[-1].name):
        everything(near)


def asked(*messages: Message) -> Connection:
    """A destination that dialled and said `messages`, each answered by what an honest source answers."""
    answers: dict[Message, list[Message]] = {
        BY_DIGEST: [START, OFFER],
        WHOLE: [LISTED[0], END[0]] if BY_DIGEST in messages else [START, LISTED[0], END[0]],
        TierRequest(0, (), 7): [TierAnswer(0, (0,), (2,), bytes(28))],
    }
    near, _ = connections()
    near.send(opening(), 0)
    near.receive_data(PREAMBLE + raw(HELLO) + raw(Opened(), 1))
    for message in messages:
        near.send(message, 1)
        near.receive_data(b"".join(raw(answer, 1) for answer in answers[message]))
        everything(near)
    return near


@pytest.mark.parametrize(
    ("said", "then"),
    [
        ([], TierRequest(0, (), 7)),
        ([WHOLE], WHOLE),
        ([WHOLE], BY_DIGEST),
        ([WHOLE], TierRequest(0, (), 7)),
        ([WHOLE], RowsRequest(0, (0,), 7)),
        ([BY_DIGEST], BY_DIGEST),
        ([BY_DIGEST], RootRequest((2,))),
        ([BY_DIGEST, WHOLE], WHOLE),
        ([BY_DIGEST, WHOLE], BY_DIGEST),
        ([BY_DIGEST, WHOLE], TierRequest(0, (), 7)),
        ([BY_DIGEST, WHOLE], RowsRequest(0, (0,), 7)),
        ([BY_DIGEST, TierRequest(0, (), 7), WHOLE], WHOLE),
    ],
)
def test_a_destination_asks_for_one_description_and_looks_only_into_a_manifest(
    said: list[Message], then: Message
) -> None:
    with pytest.raises(LocalProtocolError, match=then.name):
        asked(*said).send(then, 1)


def test_a_listing_replaces_a_manifest_once_its_questions_are_answered() -> None:
    near = asked(BY_DIGEST)
    near.send(RootRequest((1,)), 1)
    with pytest.raises(LocalProtocolError, match="1 requests are unanswered"):
        near.send(WHOLE, 1)
    near = asked(BY_DIGEST)
    near.send(WHOLE, 1)
    with pytest.raises(LocalProtocolError, match="not yet in state serving"):
        near.send(*RESULT)
    with pytest.raises(LocalProtocolError, match="file 1 was not listed"):
        near.send(RootRequest((1,)), 1)
    near = asked(BY_DIGEST, TierRequest(0, (), 7), WHOLE)
    near.send(RootRequest((0, 1)), 1)
    assert near.outstanding == 1


@pytest.mark.parametrize(
    ("said", "unasked"),
    [
        ([], START),
        ([], LISTED[0]),
        ([], OFFER),
        ([BY_DIGEST], OFFER),
        ([BY_DIGEST], START),
        ([BY_DIGEST], LISTED[0]),
        ([BY_DIGEST], END[0]),
        ([BY_DIGEST], TierAnswer(0, (0,), (2,), bytes(28))),
        ([WHOLE], LISTED[0]),
        ([WHOLE], OFFER),
        ([BY_DIGEST, WHOLE], OFFER),
        ([BY_DIGEST, WHOLE], START),
        ([BY_DIGEST, WHOLE], LISTED[0]),
    ],
)
def test_a_source_describes_no_more_than_it_was_asked_to(said: list[Message], unasked: Message) -> None:
    near = asked(*said)
    near.receive_data(raw(unasked, 1))
    with pytest.raises(ProtocolError, match=unasked.name):
        everything(near)


@pytest.mark.parametrize("describe", [WHOLE, BY_DIGEST])
@pytest.mark.parametrize("first", [LISTED[0], END[0], OFFER])
def test_a_description_begins_with_its_start(describe: Describe, first: Message) -> None:
    near, _ = connections()
    near.send(opening(), 0)
    near.send(describe, 0)
    near.receive_data(PREAMBLE + raw(HELLO) + raw(Opened(), 1) + raw(first, 1))
    with pytest.raises(ProtocolError, match=first.name):
        everything(near)


def test_only_listed_files_can_be_asked_for() -> None:
    for request in (
        RootRequest((0, 5)),
        DigestRequest((0, 5)),
        TraitsRequest((0, 5)),
        FileRequest((5,)),
        BundleRequest(5, (0, 5), 4, 256),
        NodeRequest(5, 0, (0,), 4),
        BlockRequest(5, (0,), (1,), 16, 2),
        RangeRequest(5, (0,), (1,)),
    ):
        with pytest.raises(LocalProtocolError, match="file 5 was not listed"):
            serving().send(request, 2)
        far = in_state(Role.DESTINATION, State.ASKING, True, Notice)
        far.receive_data(raw(request, 2))
        with pytest.raises(ProtocolError, match="file 5 was not listed"):
            far.next()


def refused_here_and_there(request: Message, why: str, *before: Message) -> None:
    near, far = serving(2), in_state(Role.DESTINATION, State.ASKING, True, Notice)
    for message in before:
        near.send(message, 2)
        far.receive_data(raw(message, 2))
        far.next()
    with pytest.raises(LocalProtocolError, match=why):
        near.send(request, 2)
    far.receive_data(raw(request, 2))
    with pytest.raises(ProtocolError, match=why):
        far.next()


def test_bundles_are_numbered_from_where_entries_end() -> None:
    first, second = BundleRequest(2, (0, 1), 4, 256), BundleRequest(3, (0,), 4, 256)
    for wrong in (BundleRequest(1, (1,), 4, 256), second):
        refused_here_and_there(wrong, f"a bundle named {wrong.bundle}, expected 2")
    refused_here_and_there(first, "a bundle named 2, expected 3", first)
    refused_here_and_there(BlockRequest(3, (0,), (9,), 16, 2), "file 3 was not listed", first)
    refused_here_and_there(NodeRequest(3, 0, (0,), 4), "file 3 was not listed", first, second)
    near = serving(2)
    for message in (first, second, BlockRequest(3, (0,), (9,), 16, 2), RangeRequest(2, (0,), (9,))):
        near.send(message, 2)


def test_a_bundle_waits_for_the_last_entry() -> None:
    near, _ = connections()
    near.send(opening(), 0)
    near.send(WHOLE, 0)
    described = raw(HELLO) + raw(Opened(), 1) + raw(START, 1) + raw(*LISTED)
    near.receive_data(PREAMBLE + described)
    everything(near)
    with pytest.raises(LocalProtocolError, match="there may be more entries"):
        near.send(BundleRequest(2, (0,), 4, 256), 2)


ROOT = bytes(32)
LOST = ExitCode.VANISHED
EXCHANGES: list[tuple[str, Message, list[Message]]] = [
    (
        "roots in parts, in any order",
        RootRequest((1, 2, 4)),
        [RootAnswer((2,), (0,), ROOT), FileFailed(4, LOST, ""), RootAnswer((1,), (0,), ROOT)],
    ),
    ("a digest", DigestRequest((1, 2)), [DigestAnswer(ROOT)]),
    ("a bundle", BundleRequest(5, (1, 2), 4, 256), [BundleAnswer(5, (1,), ROOT, (9,), bytes(4), b"")]),
    ("a bundle that fails", BundleRequest(5, (1, 2), 4, 256), [FileFailed(5, LOST, "")]),
    (
        "a digest of those that do not fail",
        DigestRequest((1, 2, 4)),
        [FileFailed(4, LOST, ""), FileFailed(1, LOST, ""), DigestAnswer(ROOT)],
    ),
    ("a digest of nothing", DigestRequest((1,)), [FileFailed(1, LOST, "")]),
    (
        "traits in parts",
        TraitsRequest((0, 1, 3)),
        [
            TraitsAnswer((1,), (0,), ROOT[:8], bytes(9)),
            FileFailed(0, LOST, ""),
            TraitsAnswer((3,), (0,), ROOT[:8], bytes(9)),
        ],
    ),
    (
        "trees in any order",
        TreeRequest((0, 3), 8),
        [TreeAnswer(3, 0, ROOT, 0, None, b""), TreeAnswer(0, 0, ROOT, 0, None, b"")],
    ),
    (
        "nodes in parts",
        NodeRequest(2, 1, (1, 5, 9), 4),
        [NodeAnswer(2, 1, (1, 5), (b"", b"")), NodeAnswer(2, 1, (9,), (b"",))],
    ),
    (
        "nodes that fail half-way",
        NodeRequest(2, 1, (1, 5), 4),
        [NodeAnswer(2, 1, (1,), (b"",)), FileFailed(2, LOST, "")],
    ),
    (
        "small files among others",
        FileRequest((0, 1, 2, 3, 4)),
        [
            FileBatch((1, 4), (2, 0), ROOT, b"ab"),
            Data(2, b"z"),
            FileEnd(2, 1, ROOT),
            FileFailed(3, LOST, ""),
            FileBatch((0,), (1,), ROOT, b"c"),
        ],
    ),
    ("a whole tier", TierRequest(3, (), 7), [TierAnswer(1, (0,), (20,), bytes(280))]),
    ("tiers of nodes", TierRequest(1, (3, 8), 4), [TierAnswer(1, (40, 130), (16, 9), bytes(100))]),
    (
        "rows in parts",
        RowsRequest(2, (1, 7), 4),
        [RowsPart((2,), False, TIMES), RowsPart((1, 1), False, TIMES), RowsPart((2,), True, TIMES)],
    ),
    ("ranges", RangeRequest(3, (1, 1), (2, 3)), [Data(3, b"abc"), Data(3, b"de"), FileEnd(3, 5)]),
    ("code", RangeRequest(3, (1, 1), (2, 3)), [Code(3, b"abc"), Data(3, b"d"), Code(3, b"e"), FileEnd(3, 5)]),
    ("tables", RangeRequest(3, (1, 1), (2, 3)), [Table(3, 8, b"abc"), Data(3, b"de"), FileEnd(3, 5)]),
    ("blocks", BlockRequest(3, (1, 1), (40, 16), 16, 5), [BlockAnswer(3, bytes(20))]),
    ("blocks that fail", BlockRequest(3, (1,), (2,), 16, 5), [FileFailed(3, LOST, "")]),
    ("packed ranges", RangeRequest(3, (1, 1), (2, 3), True), [Literals(3, b"packed")]),
    (
        "ranges with claims",
        RangeRequest(3, (1,), (2,), False, CLAIMS),
        [Correction(3, (0, 2), b"right"), Correction(3, (9,), b""), Data(3, b"ab"), FileEnd(3, 2)],
    ),
    (
        "ranges with claims about blanks",
        RangeRequest(3, (1,), (2,), False, CLAIMS, True),
        [
            Targets(3, b"some"),
            Correction(3, (2,), b"right"),
            Targets(3, bytes(3 * CELL_BYTES - 4)),
            Data(3, b"ab"),
            FileEnd(3, 2),
        ],
    ),
    (
        "targets alone",
        RangeRequest(3, (), (), False, CLAIMS, True),
        [Targets(3, b"there"), FileEnd(3, 0)],
    ),
    (
        "claims alone",
        RangeRequest(3, (), (), False, CLAIMS),
        [Correction(3, (2,), b"right"), FileEnd(3, 0)],
    ),
    ("claims that are right", RangeRequest(3, (), (), False, CLAIMS), [FileEnd(3, 0)]),
    (
        "packed ranges with claims",
        RangeRequest(3, (1,), (2,), True, CLAIMS),
        [Correction(3, (2,), b"right"), Literals(3, b"packed")],
    ),
    (
        "ranges that fail after a correction",
        RangeRequest(3, (1,), (2,), False, CLAIMS),
        [Correction(3, (2,), b"right"), FileFailed(3, LOST, "")],
    ),
    ("ranges that may be packed", RangeRequest(3, (1,), (2,), True), [Data(3, b"ab"), FileEnd(3, 2)]),
    ("ranges that fail", RangeRequest(3, (1,), (2,)), [FileFailed(3, LOST, "")]),
    ("an empty file", FileRequest((4,)), [FileEnd(4, 0, ROOT)]),
    (
        "a file like another",
        FileRequest((1, 4)),
        [Data(4, b"a"), FileEnd(4, 1, ROOT), FileEnd(1, 1, ROOT, None, 4)],
    ),
    (
        "files in any order",
        FileRequest((1, 4)),
        [Data(4, b"xy"), FileEnd(4, 2, ROOT), Data(1, b"z"), FileFailed(1, LOST, "")],
    ),
]


@pytest.mark.parametrize("case", EXCHANGES, ids=[case[0] for case in EXCHANGES])
def test_a_request_is_over_with_its_last_answer(case: tuple[str, Message, list[Message]]) -> None:
    _, request, answers = case
    near = asked(BY_DIGEST) if type(request) in LOOKS else serving()
    near.send(request, 2)
    for answer in answers:
        assert near.outstanding == 1
        with pytest.raises(LocalProtocolError):
            near.send(RESULT[0], 2)
        near.receive_data(raw(answer, 2))
        assert near.next() == Received(answer, 2)
    assert near.outstanding == 0
    near.receive_data(raw(answers[-1], 2))
    with pytest.raises(ProtocolError, match="no request"):
        near.next()


WRONG: list[tuple[Message, list[Message]]] = [
    (RootRequest((1,)), [TreeAnswer(1, 0, ROOT, 0, None, b"")]),
    (RootRequest((1,)), [RootAnswer((2,), (0,), ROOT)]),
    (RootRequest((1,)), [RootAnswer((1,), (), ROOT[:8])]),
    (RootRequest((1,), 8), [RootAnswer((1,), (0,), ROOT)]),
    (RootRequest((1, 2), 8, 2), [RootAnswer((1, 2), (), bytes(16))]),
    (RootRequest((1, 2), 8, 3), [RootAnswer((1, 2), (), bytes(8), 2)]),
    (RootRequest((1, 2, 3), 8), [RootAnswer((1, 2, 3), (), bytes(16), 2)]),
    (RootRequest((1, 2)), [RootAnswer((1,), (0,), ROOT), RootAnswer((1,), (0,), ROOT)]),
    (RootRequest((1, 2)), [RootAnswer((1,), (0,), ROOT), FileFailed(1, ExitCode.PARTIAL, "")]),
    (DigestRequest((1,)), [RootAnswer((1,), (0,), ROOT)]),
    (DigestRequest((1, 2)), [FileFailed(3, LOST, "")]),
    (DigestRequest((1, 2)), [FileFailed(1, LOST, ""), FileFailed(1, LOST, "")]),
    (TraitsRequest((1,)), [DigestAnswer(ROOT)]),
    (TraitsRequest((1,)), [RootAnswer((1,), (), ROOT[:8])]),
    (TraitsRequest((1,)), [TraitsAnswer((2,), (0,), ROOT[:8], bytes(9))]),
    (
        TraitsRequest((1, 2)),
        [TraitsAnswer((1,), (0,), ROOT[:8], bytes(9)), TraitsAnswer((1,), (0,), ROOT[:8], bytes(9))],
    ),
    (BundleRequest(5, (1, 2), 4, 256), [BundleAnswer(6, (), ROOT, (), b"", b"")]),
    (BundleRequest(5, (1, 2), 4, 256), [BundleAnswer(5, (2,), ROOT, (), b"", b"")]),
    (BundleRequest(5, (1, 2), 4, 256), [BundleAnswer(5, (), ROOT, (9,), bytes(5), b"")]),
    (BundleRequest(5, (1, 2), 4, 256), [BundleAnswer(5, (), ROOT, (9, 9), bytes(4), b"")]),
    (BundleRequest(5, (1, 2), 4, 256), [FileFailed(1, LOST, "")]),
    (BundleRequest(5, (1, 2), 4, 256), [TreeAnswer(1, 5, ROOT, 0, None, b"")]),
    (TreeRequest((1,), 8), [BundleAnswer(1, (), ROOT, (), b"", b"")]),
    (TreeRequest((1,), 8), [RootAnswer((1,), (0,), ROOT)]),
    (TreeRequest((1,), 8), [FileFailed(0, ExitCode.PARTIAL, "")]),
    (TreeRequest((1,), 8), [Data(1, b"x")]),
    (NodeRequest(1, 2, (3, 4), 4), [NodeAnswer(1, 1, (3,), (b"",))]),
    (NodeRequest(1, 2, (3, 4), 4), [NodeAnswer(2, 2, (3,), (b"",))]),
    (NodeRequest(1, 2, (3, 4), 4), [NodeAnswer(1, 2, (4,), (b"",))]),
    (NodeRequest(1, 2, (3, 4), 4), [NodeAnswer(1, 2, (3, 4, 5), (b"", b"", b""))]),
    (NodeRequest(1, 2, (3, 4), 4), [FileFailed(2, ExitCode.PARTIAL, "")]),
    (RangeRequest(1, (0,), (3,)), [Data(1, b"abcd")]),
    (RangeRequest(1, (0,), (3,)), [Code(1, b"ab"), Code(1, b"cd")]),
    (RangeRequest(1, (0,), (3,)), [Code(2, b"abc")]),
    (RangeRequest(1, (0,), (3,)), [Code(1, b"ab"), FileEnd(1, 2)]),
    (FileRequest((1, 2)), [Code(1, b"x")]),
    (FileRequest((1, 2)), [Targets(1, b"x")]),
    (FileRequest((1, 2)), [Table(1, 8, b"x")]),
    (RangeRequest(1, (0,), (3,)), [Table(1, 8, b"ab"), Table(1, 8, b"cd")]),
    (RangeRequest(1, (0,), (3,)), [Table(2, 8, b"abc")]),
    (RangeRequest(1, (0,), (3,), False, CLAIMS), [Table(1, 8, b"a"), Correction(1, (0,), b"right")]),
    (RangeRequest(1, (0,), (3,), False, CLAIMS), [Targets(1, b"x")]),
    (RangeRequest(1, (0,), (3,), False, CLAIMS, True), [Targets(2, b"x")]),
    (RangeRequest(1, (0,), (3,), False, CLAIMS, True), [Data(1, b"a"), Targets(1, b"x")]),
    (
        RangeRequest(1, (0,), (3,), False, CLAIMS, True),
        [Targets(1, bytes(2 * CELL_BYTES)), Targets(1, bytes(CELL_BYTES + 1))],
    ),
    (RangeRequest(1, (0,), (3,)), [Literals(1, b"abc")]),
    (RangeRequest(1, (0,), (3,), True), [Literals(2, b"abc")]),
    (RangeRequest(1, (0,), (3,), True), [Data(1, b"a"), Literals(1, b"bc")]),
    (RangeRequest(1, (0,), (3,)), [Correction(1, (0,), b"right")]),
    (RangeRequest(1, (0,), (3,), False, CLAIMS), [Correction(2, (2,), b"right")]),
    (RangeRequest(1, (0,), (3,), False, CLAIMS), [Correction(1, (1,), b"right")]),
    (RangeRequest(1, (0,), (3,), False, CLAIMS), [Correction(1, (2, 3), b"right")]),
    (RangeRequest(1, (0,), (3,), False, CLAIMS), [Correction(1, (2,), b"r"), Correction(1, (2,), b"r")]),
    (RangeRequest(1, (0,), (3,), False, CLAIMS), [Correction(1, (2,), b"r"), Correction(1, (0,), b"r")]),
    (RangeRequest(1, (0,), (3,), False, CLAIMS), [Data(1, b"a"), Correction(1, (0,), b"right")]),
    (RangeRequest(1, (0,), (3,), False, CLAIMS), [Code(1, b"a"), Correction(1, (0,), b"right")]),
    (RangeRequest(1, (), (), False, CLAIMS), [Data(1, b"a")]),
    (RangeRequest(1, (), (), False, CLAIMS), [FileEnd(1, 1)]),
    (BlockRequest(1, (0,), (40,), 16, 4), [BlockAnswer(1, bytes(8))]),
    (BlockRequest(1, (0,), (40,), 16, 4), [BlockAnswer(1, bytes(16))]),
    (BlockRequest(1, (0,), (40,), 16, 4), [BlockAnswer(2, bytes(12))]),
    (BlockRequest(1, (0,), (40,), 16, 4), [Data(1, bytes(12))]),
    (RangeRequest(1, (0,), (3,)), [BlockAnswer(1, b"1234")]),
    (RangeRequest(1, (0,), (3,)), [Data(2, b"abc")]),
    (RangeRequest(1, (0,), (3,)), [Data(1, b"ab"), FileEnd(1, 2)]),
    (RangeRequest(1, (0,), (3,)), [Data(1, b"abc"), FileEnd(1, 2)]),
    (RangeRequest(1, (0,), (3,)), [Data(1, b"abc"), FileEnd(1, 3, ROOT)]),
    (FileRequest((1, 2)), [Data(3, b"x")]),
    (FileRequest((1, 2)), [Data(1, b"x"), Data(2, b"x")]),
    (FileRequest((1, 2)), [Data(1, b"x"), FileEnd(2, 0, ROOT)]),
    (FileRequest((1, 2)), [Data(1, b"x"), FileEnd(1, 2, ROOT)]),
    (FileRequest((1, 2)), [Data(1, b"x"), FileEnd(1, 1, ROOT, None, 2)]),
    (FileRequest((1, 2)), [Data(1, b"x"), FileEnd(1, 1)]),
    (FileRequest((1, 2)), [FileEnd(1, 0, ROOT), Data(1, b"x")]),
    (FileRequest((1, 2)), [RootAnswer((1,), (0,), ROOT)]),
    (FileRequest((1, 2)), [FileBatch((1, 3), (0, 0), ROOT, b"")]),
    (FileRequest((1, 2)), [Data(1, b"x"), FileBatch((1, 2), (0, 0), ROOT, b"")]),
    (FileRequest((1, 2)), [FileBatch((1,), (0,), ROOT, b""), FileBatch((1,), (0,), ROOT, b"")]),
    (RootRequest((1, 2)), [FileBatch((1, 2), (0, 0), ROOT, b"")]),
    (TierRequest(2, (), 7), [TierAnswer(3, (0,), (2,), bytes(28))]),
    (TierRequest(2, (), 7), [TierAnswer(2, (0, 2), (2, 2), bytes(28))]),
    (TierRequest(2, (), 7), [RowsPart((2,), True, TIMES)]),
    (TierRequest(2, (1, 3), 7), [TierAnswer(1, (0, 9), (2, 2), bytes(28))]),
    (TierRequest(2, (1, 3), 7), [TierAnswer(2, (0,), (2,), bytes(28))]),
    (TierRequest(2, (1, 3), 7), [TierAnswer(2, (0, 9, 11), (2, 2, 2), bytes(28))]),
    (RowsRequest(2, (1,), 7), [RowsPart((1, 1), False, TIMES)]),
    (RowsRequest(2, (1, 3), 7), [RowsPart((1, 1), False, TIMES), RowsPart((1, 1), True, TIMES)]),
    (RowsRequest(2, (1, 3), 7), [RowsPart((2,), True, TIMES), RowsPart((1, 1), True, TIMES)]),
    (RowsRequest(2, (1, 3), 7), [TierAnswer(2, (0, 9), (2, 2), bytes(28))]),
    (RowsRequest(2, (1, 3), 7), [FileFailed(1, ExitCode.PARTIAL, "")]),
]


@pytest.mark.parametrize("case", range(len(WRONG)))
def test_an_answer_that_nobody_asked_for_is_refused(case: int) -> None:
    request, answers = WRONG[case]
    near = asked(BY_DIGEST) if type(request) in LOOKS else serving()
    near.send(request, 2)
    for answer in answers[:-1]:
        near.receive_data(raw(answer, 2))
        near.next()
    near.receive_data(raw(answers[-1], 2))
    with pytest.raises(ProtocolError, match=answers[-1].name):
        near.next()


def test_requests_are_answered_in_their_order() -> None:
    near = serving()
    near.send(TreeRequest((0,), 8), 2)
    near.send(TreeRequest((1,), 8), 2)
    near.receive_data(raw(TreeAnswer(1, 0, ROOT, 0, None, b""), 2))
    with pytest.raises(ProtocolError, match="file 1 is not what the oldest"):
        near.next()


def test_what_is_outstanding_is_bounded() -> None:
    ledger = Ledger()
    for _ in range(OUTSTANDING_REQUESTS):
        ledger.ask(TreeRequest((0,), 8))
    with pytest.raises(Illegal, match="65536 requests"):
        ledger.ask(TreeRequest((0,), 8))
    ledger.answer(TreeAnswer(0, 0, ROOT, 0, None, b""))
    ledger.ask(TreeRequest((0,), 8))
    ledger = Ledger()
    many = RootRequest(tuple(range(16_384)))
    for _ in range(256):
        ledger.ask(many)
    with pytest.raises(Illegal, match="4194304"):
        ledger.ask(TreeRequest((0,), 8))


# Whole streams


@given(st.binary(max_size=300))
def test_any_stream_parses_or_is_refused(data: bytes) -> None:
    _, end = connections()
    end.receive_data(PREAMBLE + raw(HELLO) + data)
    end.receive_eof()
    with pytest.raises(StreamError):
        everything(end)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 3), st.binary(max_size=40)), max_size=5))
def test_any_frames_parse_or_are_refused(items: list[tuple[int, int, bytes]]) -> None:
    _, end = connections()
    stream = b"".join(bytes((len(payload), kind, number)) + payload for kind, number, payload in items)
    end.receive_data(PREAMBLE + raw(HELLO) + raw(opening(), 1) + (raw_block(stream) if stream else b""))
    end.receive_eof()
    with pytest.raises(StreamError):
        everything(end)


def sessions_bytes(dialler: Role, compress: bool) -> Iterator[tuple[bool, bytes]]:
    """A session's bytes, message by message, with who said them."""
    near, far = connections(compress)
    yield True, near.data_to_send()
    yield False, far.data_to_send()
    near, far = connections(compress)
    move(near, far)
    move(far, near)
    for line in script(dialler):
        sender, receiver = (near, far) if line.by_dialler else (far, near)
        sender.send(line.message, line.round)
        sender.flush()
        data = sender.data_to_send()
        receiver.receive_data(data)
        everything(receiver)
        yield line.by_dialler, data


@given(st.sampled_from(ROLES), st.booleans(), st.booleans(), st.integers(0, 4000), st.integers(0, 7))
def test_a_flipped_bit_never_does_worse_than_an_error(
    dialler: Role, compress: bool, of_dialler: bool, position: int, bit: int
) -> None:
    """One side of the session follows the script while the other's bytes have a bit flipped."""
    said = list(sessions_bytes(dialler, compress))
    total = sum(len(data) for by_dialler, data in said if by_dialler is of_dialler)
    target = position % total
    end = Connection(not of_dialler, HELLO, compress)
    own = iter([line for line in script(dialler) if line.by_dialler is not of_dialler])
    seen = 0
    try:
        for row, (by_dialler, data) in enumerate(said):
            if by_dialler is not of_dialler:
                if row > 1:
                    line = next(own)
                    end.send(line.message, line.round)
                continue
            changed = bytearray(data)
            if seen <= target < seen + len(data):
                changed[target - seen] ^= 1 << bit
            seen += len(data)
            end.receive_data(bytes(changed))
            everything(end)
    except (ProtocolError, IncompatiblePeerError, LocalProtocolError):
        # Ours too: a message that changed within the rules can leave the script out of step.
        pass


# What a source that dialled offers


def dialled_by_source(*lines: tuple[bool, Message]) -> tuple[Connection, Connection]:
    """(source, destination) after the opening and `lines`: (from the source, message), each in round 1."""
    source, destination = connections()
    said: list[tuple[bool, Message]] = [
        (True, opening(Role.DESTINATION)),
        (False, Opened()),
        *lines,
    ]
    for ours, message in said:
        sender, receiver = (source, destination) if ours else (destination, source)
        sender.send(message, 1)
        move(sender, receiver)
    return source, destination


def test_an_offer_is_the_answer_where_it_is_what_was_asked_for() -> None:
    orders: list[list[tuple[bool, Message]]] = [
        [(True, START), (True, OFFER), (False, BY_DIGEST)],
        [(False, BY_DIGEST), (True, START), (True, OFFER)],
        [(True, START), (False, BY_DIGEST), (True, OFFER)],
    ]
    for lines in orders:
        source, destination = dialled_by_source(*lines, (True, TopTier(0, bytes(4))))
        destination.send(TierRequest(0, (0,), 7), 1)
        assert move(destination, source) == [Received(TierRequest(0, (0,), 7), 1)]


@pytest.mark.parametrize("describe", [WHOLE, Describe(False, Kept(True))])
def test_another_offer_counts_for_nothing(describe: Describe) -> None:
    source, destination = dialled_by_source(
        (True, START), (True, OFFER), (False, describe), (True, TopTier(0, bytes(4)))
    )
    with pytest.raises(LocalProtocolError, match="Done"):
        destination.send(*RESULT)
    with pytest.raises(LocalProtocolError, match="TierRequest"):
        destination.send(TierRequest(0, (0,), 7), 1)
    described: list[Message] = (
        [LISTED[0], END[0]] if describe.whole else [Manifest(bytes(32), 2, 2, 2000, 0, Kept(True))]
    )
    for message in described:
        source.send(message, 1)
        move(source, destination)
    destination.send(FileRequest((1,)), 1)
    assert move(destination, source) == [Received(FileRequest((1,)), 1)]


def test_there_is_one_offer_and_it_comes_first() -> None:
    orders: list[list[tuple[bool, Message]]] = [
        [(True, START), (True, OFFER)],
        [(False, WHOLE), (True, START), (True, OFFER)],
        [(False, WHOLE), (True, START), (True, LISTED[0])],
    ]
    for lines in orders:
        source, _ = dialled_by_source(*lines)
        with pytest.raises(LocalProtocolError, match="Manifest"):
            source.send(OFFER, 1)
    _, destination = connections()
    destination.receive_data(PREAMBLE + raw(HELLO) + raw(opening(Role.DESTINATION)) + raw(OFFER, 1))
    assert [destination.next(), destination.next()][1] is not None
    with pytest.raises(ProtocolError, match="Manifest"):
        destination.next()
