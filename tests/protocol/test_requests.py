"""Requests and answers: counted, in order, and no answer without a request."""

from __future__ import annotations

import pytest

from rdc.errors import ExitCode, ProtocolError
from rdc.limits import OUTSTANDING_REQUESTS
from rdc.protocol import messages
from rdc.protocol.connection import LocalProtocolError, Received
from rdc.protocol.messages.field_types import CHECK_BLOCK_BYTES
from rdc.protocol.pending import PendingRequests
from rdc.protocol.wire.codec import Illegal
from tests.support.wire.dialogues import BY_DIGEST, CLAIMS, LOOKS, RESULT, asked, serving
from tests.support.wire.wire_script import TIMES, raw

ROOT = bytes(32)
LOST = ExitCode.VANISHED
EXCHANGES: list[tuple[str, messages.Message, list[messages.Message]]] = [
    (
        "roots in parts, in any order",
        messages.RootRequest((1, 2, 4)),
        [
            messages.RootAnswer((2,), (0,), ROOT),
            messages.FileFailed(4, LOST, ""),
            messages.RootAnswer((1,), (0,), ROOT),
        ],
    ),
    ("a digest", messages.DigestRequest((1, 2)), [messages.DigestAnswer(ROOT)]),
    (
        "a bundle",
        messages.BundleRequest(5, (1, 2), 256),
        [messages.BundleAnswer(5, (1,), ROOT, b"")],
    ),
    ("a bundle that fails", messages.BundleRequest(5, (1, 2), 256), [messages.FileFailed(5, LOST, "")]),
    (
        "a digest of those that do not fail",
        messages.DigestRequest((1, 2, 4)),
        [messages.FileFailed(4, LOST, ""), messages.FileFailed(1, LOST, ""), messages.DigestAnswer(ROOT)],
    ),
    ("entries that may go", messages.Landed((1, 3), bytes(16)), [messages.Removed(2)]),
    ("a digest of nothing", messages.DigestRequest((1,)), [messages.FileFailed(1, LOST, "")]),
    (
        "traits in parts",
        messages.TraitsRequest((0, 1, 3)),
        [
            messages.TraitsAnswer((1,), (0,), ROOT[:8], bytes(9)),
            messages.FileFailed(0, LOST, ""),
            messages.TraitsAnswer((3,), (0,), ROOT[:8], bytes(9)),
        ],
    ),
    (
        "trees in any order",
        messages.TreeRequest((0, 3), 8),
        [messages.TreeAnswer(3, 0, ROOT, 0, None, b""), messages.TreeAnswer(0, 0, ROOT, 0, None, b"")],
    ),
    ("no likely files", messages.LikelyRequest(5, 8, 1024), [messages.LikelyAnswer(())]),
    (
        "likely files and their trees",
        messages.LikelyRequest(5, 8, 1024),
        [
            messages.LikelyAnswer((0, 3)),
            messages.TreeAnswer(3, 0, ROOT, 0, None, b""),
            messages.FileFailed(0, LOST, ""),
        ],
    ),
    (
        "likely files, the blocks of others first",
        messages.LikelyRequest(5, 8, 1024),
        [
            messages.LikelyBlocks((0, 3), bytes(12)),
            messages.LikelyAnswer((1,)),
            messages.TreeAnswer(1, 0, ROOT, 0, None, b""),
        ],
    ),
    (
        "nodes in parts",
        messages.NodeRequest(2, 1, (1, 5, 9), 4),
        [messages.NodeAnswer(2, 1, (1, 5), (b"", b"")), messages.NodeAnswer(2, 1, (9,), (b"",))],
    ),
    (
        "nodes that fail half-way",
        messages.NodeRequest(2, 1, (1, 5), 4),
        [messages.NodeAnswer(2, 1, (1,), (b"",)), messages.FileFailed(2, LOST, "")],
    ),
    (
        "small files among others",
        messages.FileRequest((0, 1, 2, 3, 4)),
        [
            messages.FileBatch((1, 4), (2, 0), ROOT, b"ab"),
            messages.Data(2, b"z"),
            messages.FileEnd(2, 1, ROOT),
            messages.FileFailed(3, LOST, ""),
            messages.FileBatch((0,), (1,), ROOT, b"c"),
        ],
    ),
    ("a whole tier", messages.TierRequest(3, (), 7), [messages.TierAnswer(1, (0,), (20,), bytes(280))]),
    (
        "tiers of nodes",
        messages.TierRequest(1, (3, 8), 4),
        [messages.TierAnswer(1, (40, 130), (16, 9), bytes(100))],
    ),
    (
        "rows in parts",
        messages.RowsRequest(2, (1, 7), 4),
        [
            messages.RowsPart((2,), False, TIMES),
            messages.RowsPart((1, 1), False, TIMES),
            messages.RowsPart((2,), True, TIMES),
        ],
    ),
    (
        "ranges",
        messages.RangeRequest(3, (1, 1), (2, 3)),
        [messages.Data(3, b"abc"), messages.Data(3, b"de"), messages.FileEnd(3, 5)],
    ),
    (
        "code",
        messages.RangeRequest(3, (1, 1), (2, 3)),
        [messages.Code(3, b"abc"), messages.Data(3, b"d"), messages.Code(3, b"e"), messages.FileEnd(3, 5)],
    ),
    (
        "tables",
        messages.RangeRequest(3, (1, 1), (2, 3)),
        [messages.Table(3, 8, b"abc"), messages.Data(3, b"de"), messages.FileEnd(3, 5)],
    ),
    ("blocks", messages.BlockRequest(3, (1, 1), (40, 16), 16, 5), [messages.BlockAnswer(3, bytes(20))]),
    ("blocks that fail", messages.BlockRequest(3, (1,), (2,), 16, 5), [messages.FileFailed(3, LOST, "")]),
    ("packed ranges", messages.RangeRequest(3, (1, 1), (2, 3), True), [messages.Literals(3, b"packed")]),
    (
        "ranges with claims",
        messages.RangeRequest(3, (1,), (2,), False, CLAIMS),
        [
            messages.Correction(3, (0, 2), b"right"),
            messages.Correction(3, (9,), b""),
            messages.Data(3, b"ab"),
            messages.FileEnd(3, 2),
        ],
    ),
    (
        "ranges with claims about blanks",
        messages.RangeRequest(3, (1,), (2,), False, CLAIMS, True),
        [
            messages.Targets(3, b"some"),
            messages.Correction(3, (2,), b"right"),
            messages.Targets(3, bytes(3 * CHECK_BLOCK_BYTES - 4)),
            messages.Data(3, b"ab"),
            messages.FileEnd(3, 2),
        ],
    ),
    (
        "targets alone",
        messages.RangeRequest(3, (), (), False, CLAIMS, True),
        [messages.Targets(3, b"there"), messages.FileEnd(3, 0)],
    ),
    (
        "claims alone",
        messages.RangeRequest(3, (), (), False, CLAIMS),
        [messages.Correction(3, (2,), b"right"), messages.FileEnd(3, 0)],
    ),
    ("claims that are right", messages.RangeRequest(3, (), (), False, CLAIMS), [messages.FileEnd(3, 0)]),
    (
        "packed ranges with claims",
        messages.RangeRequest(3, (1,), (2,), True, CLAIMS),
        [messages.Correction(3, (2,), b"right"), messages.Literals(3, b"packed")],
    ),
    (
        "ranges that fail after a correction",
        messages.RangeRequest(3, (1,), (2,), False, CLAIMS),
        [messages.Correction(3, (2,), b"right"), messages.FileFailed(3, LOST, "")],
    ),
    (
        "ranges that may be packed",
        messages.RangeRequest(3, (1,), (2,), True),
        [messages.Data(3, b"ab"), messages.FileEnd(3, 2)],
    ),
    ("ranges that fail", messages.RangeRequest(3, (1,), (2,)), [messages.FileFailed(3, LOST, "")]),
    ("an empty file", messages.FileRequest((4,)), [messages.FileEnd(4, 0, ROOT)]),
    (
        "a file like another",
        messages.FileRequest((1, 4)),
        [messages.Data(4, b"a"), messages.FileEnd(4, 1, ROOT), messages.FileEnd(1, 1, ROOT, None, 4)],
    ),
    (
        "a file announced anew",
        messages.FileRequest((1, 4)),
        [
            messages.Resized(4, 1),
            messages.Data(4, b"a"),
            messages.FileEnd(4, 1, ROOT),
            messages.Resized(1, 1),
            messages.FileEnd(1, 1, ROOT, None, 4),
        ],
    ),
    (
        "files with holes",
        messages.FileRequest((1, 3, 4)),
        [
            *(
                messages.Holes(4, 3, (0, 2), (1 << 62, 5)),
                messages.Data(4, b"ab"),
                messages.Holes(4, 3, (1,), (9,)),
                messages.Data(4, b"cd"),
            ),
            messages.FileEnd(4, (1 << 62) + 18, ROOT),
            *(
                messages.Holes(3, 0, (0,), (7,)),
                messages.FileEnd(3, 7, ROOT),
                messages.FileEnd(1, 7, ROOT, None, 3),
            ),
        ],
    ),
    (
        "trees of files with holes",
        messages.TreeRequest((1, 4), 8),
        [
            messages.Holes(4, 3),
            messages.TreeAnswer(4, 9, ROOT, 0, None, b""),
            messages.Holes(1, 3),
            messages.FileFailed(1, LOST, ""),
        ],
    ),
    (
        "a file announced anew that fails",
        messages.FileRequest((1,)),
        [messages.Resized(1, 9), messages.FileFailed(1, LOST, "")],
    ),
    (
        "an empty file announced anew",
        messages.FileRequest((1,)),
        [messages.Resized(1, 0), messages.FileEnd(1, 0, ROOT)],
    ),
    (
        "files in any order",
        messages.FileRequest((1, 4)),
        [
            messages.Data(4, b"xy"),
            messages.FileEnd(4, 2, ROOT),
            messages.Data(1, b"z"),
            messages.FileFailed(1, LOST, ""),
        ],
    ),
]


@pytest.mark.parametrize("case", EXCHANGES, ids=[case[0] for case in EXCHANGES])
def test_a_request_is_over_with_its_last_answer(
    case: tuple[str, messages.Message, list[messages.Message]],
) -> None:
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


WRONG: list[tuple[messages.Message, list[messages.Message]]] = [
    (messages.RootRequest((1,)), [messages.TreeAnswer(1, 0, ROOT, 0, None, b"")]),
    (messages.RootRequest((1,)), [messages.RootAnswer((2,), (0,), ROOT)]),
    (messages.RootRequest((1,)), [messages.RootAnswer((1,), (), ROOT[:8])]),
    (messages.RootRequest((1,), 8), [messages.RootAnswer((1,), (0,), ROOT)]),
    (messages.RootRequest((1, 2), 8, 2), [messages.RootAnswer((1, 2), (), bytes(16))]),
    (messages.RootRequest((1, 2), 8, 3), [messages.RootAnswer((1, 2), (), bytes(8), 2)]),
    (messages.RootRequest((1, 2, 3), 8), [messages.RootAnswer((1, 2, 3), (), bytes(16), 2)]),
    (
        messages.RootRequest((1, 2)),
        [messages.RootAnswer((1,), (0,), ROOT), messages.RootAnswer((1,), (0,), ROOT)],
    ),
    (
        messages.RootRequest((1, 2)),
        [messages.RootAnswer((1,), (0,), ROOT), messages.FileFailed(1, ExitCode.PARTIAL, "")],
    ),
    (messages.DigestRequest((1,)), [messages.RootAnswer((1,), (0,), ROOT)]),
    (messages.DigestRequest((1, 2)), [messages.FileFailed(3, LOST, "")]),
    (messages.DigestRequest((1, 2)), [messages.FileFailed(1, LOST, ""), messages.FileFailed(1, LOST, "")]),
    (messages.TraitsRequest((1,)), [messages.DigestAnswer(ROOT)]),
    (messages.TraitsRequest((1,)), [messages.Removed(1)]),
    (messages.Landed((1,), bytes(16)), [messages.Removed(2)]),
    (messages.Landed((1,), bytes(16)), [messages.FileFailed(1, LOST, "")]),
    (messages.TraitsRequest((1,)), [messages.RootAnswer((1,), (), ROOT[:8])]),
    (messages.TraitsRequest((1,)), [messages.TraitsAnswer((2,), (0,), ROOT[:8], bytes(9))]),
    (
        messages.TraitsRequest((1, 2)),
        [
            messages.TraitsAnswer((1,), (0,), ROOT[:8], bytes(9)),
            messages.TraitsAnswer((1,), (0,), ROOT[:8], bytes(9)),
        ],
    ),
    (messages.BundleRequest(5, (1, 2), 256), [messages.BundleAnswer(6, (), ROOT, b"")]),
    (messages.BundleRequest(5, (1, 2), 256), [messages.BundleAnswer(5, (2,), ROOT, b"")]),
    (messages.BundleRequest(5, (1, 2), 256), [messages.FileFailed(1, LOST, "")]),
    (messages.BundleRequest(5, (1, 2), 256), [messages.TreeAnswer(1, 5, ROOT, 0, None, b"")]),
    (messages.LikelyRequest(5, 8, 1024), [messages.TreeAnswer(1, 0, ROOT, 0, None, b"")]),
    (messages.LikelyRequest(5, 8, 1024), [messages.LikelyAnswer((9,))]),
    (messages.LikelyRequest(5, 8, 1024), [messages.LikelyAnswer((1,)), messages.LikelyAnswer((1,))]),
    (
        messages.LikelyRequest(5, 8, 1024),
        [messages.LikelyAnswer((1,)), messages.TreeAnswer(2, 0, ROOT, 0, None, b"")],
    ),
    (messages.LikelyRequest(5, 8, 1024), [messages.LikelyBlocks((9,), b"")]),
    (
        messages.LikelyRequest(5, 8, 1024),
        [messages.LikelyBlocks((1,), b""), messages.LikelyBlocks((2,), b"")],
    ),
    (
        messages.LikelyRequest(5, 8, 1024),
        [messages.LikelyAnswer(()), messages.LikelyBlocks((1,), b"")],
    ),
    (messages.TreeRequest((1,), 8), [messages.BundleAnswer(1, (), ROOT, b"")]),
    (messages.TreeRequest((1,), 8), [messages.RootAnswer((1,), (0,), ROOT)]),
    (messages.TreeRequest((1,), 8), [messages.FileFailed(0, ExitCode.PARTIAL, "")]),
    (messages.TreeRequest((1,), 8), [messages.Data(1, b"x")]),
    (messages.NodeRequest(1, 2, (3, 4), 4), [messages.NodeAnswer(1, 1, (3,), (b"",))]),
    (messages.NodeRequest(1, 2, (3, 4), 4), [messages.NodeAnswer(2, 2, (3,), (b"",))]),
    (messages.NodeRequest(1, 2, (3, 4), 4), [messages.NodeAnswer(1, 2, (4,), (b"",))]),
    (messages.NodeRequest(1, 2, (3, 4), 4), [messages.NodeAnswer(1, 2, (3, 4, 5), (b"", b"", b""))]),
    (messages.NodeRequest(1, 2, (3, 4), 4), [messages.FileFailed(2, ExitCode.PARTIAL, "")]),
    (messages.RangeRequest(1, (0,), (3,)), [messages.Data(1, b"abcd")]),
    (messages.RangeRequest(1, (0,), (3,)), [messages.Code(1, b"ab"), messages.Code(1, b"cd")]),
    (messages.RangeRequest(1, (0,), (3,)), [messages.Code(2, b"abc")]),
    (messages.RangeRequest(1, (0,), (3,)), [messages.Code(1, b"ab"), messages.FileEnd(1, 2)]),
    (messages.FileRequest((1, 2)), [messages.Code(1, b"x")]),
    (messages.FileRequest((1, 2)), [messages.Targets(1, b"x")]),
    (messages.FileRequest((1, 2)), [messages.Table(1, 8, b"x")]),
    (messages.RangeRequest(1, (0,), (3,)), [messages.Table(1, 8, b"ab"), messages.Table(1, 8, b"cd")]),
    (messages.RangeRequest(1, (0,), (3,)), [messages.Table(2, 8, b"abc")]),
    (
        messages.RangeRequest(1, (0,), (3,), False, CLAIMS),
        [messages.Table(1, 8, b"a"), messages.Correction(1, (0,), b"right")],
    ),
    (messages.RangeRequest(1, (0,), (3,), False, CLAIMS), [messages.Targets(1, b"x")]),
    (messages.RangeRequest(1, (0,), (3,), False, CLAIMS, True), [messages.Targets(2, b"x")]),
    (
        messages.RangeRequest(1, (0,), (3,), False, CLAIMS, True),
        [messages.Data(1, b"a"), messages.Targets(1, b"x")],
    ),
    (
        messages.RangeRequest(1, (0,), (3,), False, CLAIMS, True),
        [
            messages.Targets(1, bytes(2 * CHECK_BLOCK_BYTES)),
            messages.Targets(1, bytes(CHECK_BLOCK_BYTES + 1)),
        ],
    ),
    (messages.RangeRequest(1, (0,), (3,)), [messages.Literals(1, b"abc")]),
    (messages.RangeRequest(1, (0,), (3,), True), [messages.Literals(2, b"abc")]),
    (messages.RangeRequest(1, (0,), (3,), True), [messages.Data(1, b"a"), messages.Literals(1, b"bc")]),
    (messages.RangeRequest(1, (0,), (3,)), [messages.Correction(1, (0,), b"right")]),
    (messages.RangeRequest(1, (0,), (3,), False, CLAIMS), [messages.Correction(2, (2,), b"right")]),
    (messages.RangeRequest(1, (0,), (3,), False, CLAIMS), [messages.Correction(1, (1,), b"right")]),
    (messages.RangeRequest(1, (0,), (3,), False, CLAIMS), [messages.Correction(1, (2, 3), b"right")]),
    (
        messages.RangeRequest(1, (0,), (3,), False, CLAIMS),
        [messages.Correction(1, (2,), b"r"), messages.Correction(1, (2,), b"r")],
    ),
    (
        messages.RangeRequest(1, (0,), (3,), False, CLAIMS),
        [messages.Correction(1, (2,), b"r"), messages.Correction(1, (0,), b"r")],
    ),
    (
        messages.RangeRequest(1, (0,), (3,), False, CLAIMS),
        [messages.Data(1, b"a"), messages.Correction(1, (0,), b"right")],
    ),
    (
        messages.RangeRequest(1, (0,), (3,), False, CLAIMS),
        [messages.Code(1, b"a"), messages.Correction(1, (0,), b"right")],
    ),
    (messages.RangeRequest(1, (), (), False, CLAIMS), [messages.Data(1, b"a")]),
    (messages.RangeRequest(1, (), (), False, CLAIMS), [messages.FileEnd(1, 1)]),
    (messages.BlockRequest(1, (0,), (40,), 16, 4), [messages.BlockAnswer(1, bytes(8))]),
    (messages.BlockRequest(1, (0,), (40,), 16, 4), [messages.BlockAnswer(1, bytes(16))]),
    (messages.BlockRequest(1, (0,), (40,), 16, 4), [messages.BlockAnswer(2, bytes(12))]),
    (messages.BlockRequest(1, (0,), (40,), 16, 4), [messages.Data(1, bytes(12))]),
    (messages.RangeRequest(1, (0,), (3,)), [messages.BlockAnswer(1, b"1234")]),
    (messages.RangeRequest(1, (0,), (3,)), [messages.Data(2, b"abc")]),
    (messages.RangeRequest(1, (0,), (3,)), [messages.Data(1, b"ab"), messages.FileEnd(1, 2)]),
    (messages.RangeRequest(1, (0,), (3,)), [messages.Data(1, b"abc"), messages.FileEnd(1, 2)]),
    (messages.RangeRequest(1, (0,), (3,)), [messages.Data(1, b"abc"), messages.FileEnd(1, 3, ROOT)]),
    (messages.FileRequest((1, 2)), [messages.Data(3, b"x")]),
    (messages.FileRequest((1, 2)), [messages.Holes(3, 1, (0,), (1,))]),
    (messages.FileRequest((1, 2)), [messages.Holes(1, 1)]),
    (messages.FileRequest((1, 2)), [messages.Data(1, b"x"), messages.Holes(1, 1, (0,), (1,))]),
    (
        messages.FileRequest((1, 2)),
        [messages.Holes(1, 1, (2,), (1,)), messages.Data(1, b"x"), messages.Holes(1, 1, (0,), (1,))],
    ),
    (
        messages.FileRequest((1, 2)),
        [messages.Holes(1, 1, (2,), (1,)), messages.Data(1, b"x"), messages.FileEnd(1, 2, ROOT)],
    ),
    (messages.FileRequest((1, 2)), [messages.Holes(1, 1, (0,), (3,)), messages.FileEnd(1, 2, ROOT)]),
    (messages.FileRequest((1, 2)), [messages.Holes(1, 1, (0,), (3,)), messages.FileEnd(1, 3, ROOT, None, 2)]),
    (messages.FileRequest((1, 2)), [messages.Holes(1, 1, (0,), (3,)), messages.FileEnd(2, 0, ROOT)]),
    (messages.FileRequest((1, 2)), [messages.Holes(1, 1, (0,), (3,)), messages.Resized(1, 3)]),
    (messages.FileRequest((1, 2)), [messages.Resized(1, 2), messages.Holes(1, 1, (0,), (3,))]),
    (messages.TreeRequest((1, 2), 8), [messages.Holes(3, 1)]),
    (messages.TreeRequest((1, 2), 8), [messages.Holes(1, 1, (0,), (3,))]),
    (messages.TreeRequest((1, 2), 8), [messages.Holes(1, 1), messages.Holes(1, 1)]),
    (messages.TreeRequest((1, 2), 8), [messages.Holes(1, 1), messages.Holes(2, 1)]),
    (messages.TreeRequest((1, 2), 8), [messages.Holes(1, 1), messages.TreeAnswer(2, 9, ROOT, 0, None, b"")]),
    (messages.RootRequest((1, 2)), [messages.Holes(1, 1)]),
    (messages.RangeRequest(1, (0,), (3,)), [messages.Holes(1, 3, (0,), (1,))]),
    (messages.FileRequest((1, 2)), [messages.Resized(3, 1)]),
    (messages.FileRequest((1, 2)), [messages.Resized(1, 1), messages.Resized(1, 1)]),
    (messages.FileRequest((1, 2)), [messages.Resized(1, 1), messages.Resized(2, 1)]),
    (messages.FileRequest((1, 2)), [messages.Resized(1, 1), messages.Data(2, b"x")]),
    (messages.FileRequest((1, 2)), [messages.Resized(1, 1), messages.FileBatch((1, 2), (0, 0), ROOT, b"")]),
    (messages.FileRequest((1, 2)), [messages.Data(1, b"x"), messages.Resized(1, 2)]),
    (messages.FileRequest((1, 2)), [messages.Resized(1, 2), messages.Data(1, b"x"), messages.Data(1, b"yz")]),
    (
        messages.FileRequest((1, 2)),
        [messages.Resized(1, 2), messages.Data(1, b"x"), messages.FileEnd(1, 1, ROOT)],
    ),
    (messages.FileRequest((1, 2)), [messages.Resized(1, 2), messages.FileEnd(1, 1, ROOT, None, 2)]),
    (messages.RangeRequest(1, (0,), (3,)), [messages.Resized(1, 3)]),
    (messages.TreeRequest((1,), 8), [messages.Resized(1, 3)]),
    (messages.FileRequest((1, 2)), [messages.Data(1, b"x"), messages.Data(2, b"x")]),
    (messages.FileRequest((1, 2)), [messages.Data(1, b"x"), messages.FileEnd(2, 0, ROOT)]),
    (messages.FileRequest((1, 2)), [messages.Data(1, b"x"), messages.FileEnd(1, 2, ROOT)]),
    (messages.FileRequest((1, 2)), [messages.Data(1, b"x"), messages.FileEnd(1, 1, ROOT, None, 2)]),
    (messages.FileRequest((1, 2)), [messages.Data(1, b"x"), messages.FileEnd(1, 1)]),
    (messages.FileRequest((1, 2)), [messages.FileEnd(1, 0, ROOT), messages.Data(1, b"x")]),
    (messages.FileRequest((1, 2)), [messages.RootAnswer((1,), (0,), ROOT)]),
    (messages.FileRequest((1, 2)), [messages.FileBatch((1, 3), (0, 0), ROOT, b"")]),
    (messages.FileRequest((1, 2)), [messages.Data(1, b"x"), messages.FileBatch((1, 2), (0, 0), ROOT, b"")]),
    (
        messages.FileRequest((1, 2)),
        [messages.FileBatch((1,), (0,), ROOT, b""), messages.FileBatch((1,), (0,), ROOT, b"")],
    ),
    (messages.RootRequest((1, 2)), [messages.FileBatch((1, 2), (0, 0), ROOT, b"")]),
    (messages.TierRequest(2, (), 7), [messages.TierAnswer(3, (0,), (2,), bytes(28))]),
    (messages.TierRequest(2, (), 7), [messages.TierAnswer(2, (0, 2), (2, 2), bytes(28))]),
    (messages.TierRequest(2, (), 7), [messages.RowsPart((2,), True, TIMES)]),
    (messages.TierRequest(2, (1, 3), 7), [messages.TierAnswer(1, (0, 9), (2, 2), bytes(28))]),
    (messages.TierRequest(2, (1, 3), 7), [messages.TierAnswer(2, (0,), (2,), bytes(28))]),
    (messages.TierRequest(2, (1, 3), 7), [messages.TierAnswer(2, (0, 9, 11), (2, 2, 2), bytes(28))]),
    (messages.RowsRequest(2, (1,), 7), [messages.RowsPart((1, 1), False, TIMES)]),
    (
        messages.RowsRequest(2, (1, 3), 7),
        [messages.RowsPart((1, 1), False, TIMES), messages.RowsPart((1, 1), True, TIMES)],
    ),
    (
        messages.RowsRequest(2, (1, 3), 7),
        [messages.RowsPart((2,), True, TIMES), messages.RowsPart((1, 1), True, TIMES)],
    ),
    (messages.RowsRequest(2, (1, 3), 7), [messages.TierAnswer(2, (0, 9), (2, 2), bytes(28))]),
    (messages.RowsRequest(2, (1, 3), 7), [messages.FileFailed(1, ExitCode.PARTIAL, "")]),
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
    near.send(messages.TreeRequest((0,), 8), 2)
    near.send(messages.TreeRequest((1,), 8), 2)
    near.receive_data(raw(messages.TreeAnswer(1, 0, ROOT, 0, None, b""), 2))
    with pytest.raises(ProtocolError, match="file 1 is not what the oldest"):
        near.next()


def test_what_is_outstanding_is_bounded() -> None:
    ledger = PendingRequests()
    for _ in range(OUTSTANDING_REQUESTS):
        ledger.ask(messages.TreeRequest((0,), 8))
    with pytest.raises(Illegal, match="65536 requests"):
        ledger.ask(messages.TreeRequest((0,), 8))
    ledger.answer(messages.TreeAnswer(0, 0, ROOT, 0, None, b""))
    ledger.ask(messages.TreeRequest((0,), 8))
    ledger = PendingRequests()
    many = messages.RootRequest(tuple(range(16_384)))
    for _ in range(256):
        ledger.ask(many)
    with pytest.raises(Illegal, match="4194304"):
        ledger.ask(messages.TreeRequest((0,), 8))
