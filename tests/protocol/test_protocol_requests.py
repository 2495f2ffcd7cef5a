"""Requests and answers: counted, in order, and no answer without a request."""

from __future__ import annotations

import pytest

from rdc.errors import ExitCode, ProtocolError
from rdc.limits.wire import OUTSTANDING_REQUESTS
from rdc.protocol.messages.claims import CHECK_BLOCK_BYTES
from rdc.protocol.messages.registry import (
    BlockAnswer,
    BlockRequest,
    BundleAnswer,
    BundleRequest,
    Code,
    Correction,
    Data,
    DigestAnswer,
    DigestRequest,
    FileBatch,
    FileEnd,
    FileFailed,
    FileRequest,
    Holes,
    Landed,
    Literals,
    Message,
    NodeAnswer,
    NodeRequest,
    RangeRequest,
    Removed,
    Resized,
    RootAnswer,
    RootRequest,
    RowsPart,
    RowsRequest,
    Table,
    Targets,
    TierAnswer,
    TierRequest,
    TraitsAnswer,
    TraitsRequest,
    TreeAnswer,
    TreeRequest,
)
from rdc.protocol.rules.connection import LocalProtocolError, Received
from rdc.protocol.rules.pending_requests import PendingRequests
from rdc.protocol.rules.states import Illegal
from tests.support.wire.dialogues import (
    BY_DIGEST,
    CLAIMS,
    LOOKS,
    RESULT,
    asked,
    serving,
)
from tests.support.wire.wire_script import (
    TIMES,
    raw,
)

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
    ("entries that may go", Landed((1, 3), bytes(16)), [Removed(2)]),
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
            Targets(3, bytes(3 * CHECK_BLOCK_BYTES - 4)),
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
        "a file announced anew",
        FileRequest((1, 4)),
        [Resized(4, 1), Data(4, b"a"), FileEnd(4, 1, ROOT), Resized(1, 1), FileEnd(1, 1, ROOT, None, 4)],
    ),
    (
        "files with holes",
        FileRequest((1, 3, 4)),
        [
            *(Holes(4, 3, (0, 2), (1 << 62, 5)), Data(4, b"ab"), Holes(4, 3, (1,), (9,)), Data(4, b"cd")),
            FileEnd(4, (1 << 62) + 18, ROOT),
            *(Holes(3, 0, (0,), (7,)), FileEnd(3, 7, ROOT), FileEnd(1, 7, ROOT, None, 3)),
        ],
    ),
    (
        "trees of files with holes",
        TreeRequest((1, 4), 8),
        [Holes(4, 3), TreeAnswer(4, 9, ROOT, 0, None, b""), Holes(1, 3), FileFailed(1, LOST, "")],
    ),
    ("a file announced anew that fails", FileRequest((1,)), [Resized(1, 9), FileFailed(1, LOST, "")]),
    ("an empty file announced anew", FileRequest((1,)), [Resized(1, 0), FileEnd(1, 0, ROOT)]),
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
    (TraitsRequest((1,)), [Removed(1)]),
    (Landed((1,), bytes(16)), [Removed(2)]),
    (Landed((1,), bytes(16)), [FileFailed(1, LOST, "")]),
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
        [Targets(1, bytes(2 * CHECK_BLOCK_BYTES)), Targets(1, bytes(CHECK_BLOCK_BYTES + 1))],
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
    (FileRequest((1, 2)), [Holes(3, 1, (0,), (1,))]),
    (FileRequest((1, 2)), [Holes(1, 1)]),
    (FileRequest((1, 2)), [Data(1, b"x"), Holes(1, 1, (0,), (1,))]),
    (FileRequest((1, 2)), [Holes(1, 1, (2,), (1,)), Data(1, b"x"), Holes(1, 1, (0,), (1,))]),
    (FileRequest((1, 2)), [Holes(1, 1, (2,), (1,)), Data(1, b"x"), FileEnd(1, 2, ROOT)]),
    (FileRequest((1, 2)), [Holes(1, 1, (0,), (3,)), FileEnd(1, 2, ROOT)]),
    (FileRequest((1, 2)), [Holes(1, 1, (0,), (3,)), FileEnd(1, 3, ROOT, None, 2)]),
    (FileRequest((1, 2)), [Holes(1, 1, (0,), (3,)), FileEnd(2, 0, ROOT)]),
    (FileRequest((1, 2)), [Holes(1, 1, (0,), (3,)), Resized(1, 3)]),
    (FileRequest((1, 2)), [Resized(1, 2), Holes(1, 1, (0,), (3,))]),
    (TreeRequest((1, 2), 8), [Holes(3, 1)]),
    (TreeRequest((1, 2), 8), [Holes(1, 1, (0,), (3,))]),
    (TreeRequest((1, 2), 8), [Holes(1, 1), Holes(1, 1)]),
    (TreeRequest((1, 2), 8), [Holes(1, 1), Holes(2, 1)]),
    (TreeRequest((1, 2), 8), [Holes(1, 1), TreeAnswer(2, 9, ROOT, 0, None, b"")]),
    (RootRequest((1, 2)), [Holes(1, 1)]),
    (RangeRequest(1, (0,), (3,)), [Holes(1, 3, (0,), (1,))]),
    (FileRequest((1, 2)), [Resized(3, 1)]),
    (FileRequest((1, 2)), [Resized(1, 1), Resized(1, 1)]),
    (FileRequest((1, 2)), [Resized(1, 1), Resized(2, 1)]),
    (FileRequest((1, 2)), [Resized(1, 1), Data(2, b"x")]),
    (FileRequest((1, 2)), [Resized(1, 1), FileBatch((1, 2), (0, 0), ROOT, b"")]),
    (FileRequest((1, 2)), [Data(1, b"x"), Resized(1, 2)]),
    (FileRequest((1, 2)), [Resized(1, 2), Data(1, b"x"), Data(1, b"yz")]),
    (FileRequest((1, 2)), [Resized(1, 2), Data(1, b"x"), FileEnd(1, 1, ROOT)]),
    (FileRequest((1, 2)), [Resized(1, 2), FileEnd(1, 1, ROOT, None, 2)]),
    (RangeRequest(1, (0,), (3,)), [Resized(1, 3)]),
    (TreeRequest((1,), 8), [Resized(1, 3)]),
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
    ledger = PendingRequests()
    for _ in range(OUTSTANDING_REQUESTS):
        ledger.ask(TreeRequest((0,), 8))
    with pytest.raises(Illegal, match="65536 requests"):
        ledger.ask(TreeRequest((0,), 8))
    ledger.answer(TreeAnswer(0, 0, ROOT, 0, None, b""))
    ledger.ask(TreeRequest((0,), 8))
    ledger = PendingRequests()
    many = RootRequest(tuple(range(16_384)))
    for _ in range(256):
        ledger.ask(many)
    with pytest.raises(Illegal, match="4194304"):
        ledger.ask(TreeRequest((0,), 8))
