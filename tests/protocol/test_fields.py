"""Values that fields refuse: each limit and each inconsistency by name."""

from __future__ import annotations

from array import array
from typing import Any

import msgpack
import pytest

from rdc.errors import ProtocolError
from rdc.limits import DATA_BYTES, MESSAGE_BYTES, PATH_BYTES
from rdc.protocol import messages
from tests.support.wire.wire_payloads import PART, joined
from tests.support.wire.wire_script import NAMED


def column(*items: int, width: int = 1) -> bytes:
    return bytes((width,)) + b"".join(item.to_bytes(width, "little") for item in items)


ROWS = {"names": 0, "kinds": 1, "modes": 2, "sizes": 3, "mtimes": 4, "uids": 5, "gids": 6, "targets": 7}


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("names", b"a\0a\0b\0", "increasing"),
        ("names", b"b\0a\0c\0", "increasing"),
        ("names", b"a\0b\0c", "NUL"),
        ("names", b"a\0b\0c/d\0", "'/'"),
        ("names", b".\0b\0c\0", "'.'"),
        ("names", b"..\0b\0c\0", "'.'"),
        ("names", b"\0b\0c\0", "empty"),
        ("names", b"a\0b\0" + b"c" * 256 + b"\0", "256 bytes"),
        ("names", b"a\0b\0", "length"),
        ("kinds", b"\0\2\10", "kind"),
        ("kinds", b"\0\2", "length"),
        ("modes", array("H", (1, 2, 0o10000)).tobytes(), "mode"),
        ("modes", b"\0" * 5, "whole items"),
        ("sizes", array("Q", (1 << 63, 0, 0)).tobytes(), "size"),
        ("sizes", array("Q", (1, 1, 0)).tobytes(), "no regular file"),
        ("sizes", array("Q", (1, 0, 1)).tobytes(), "no regular file"),
        ("mtimes", bytes(16), "length"),
        ("uids", bytes(16), "length"),
        ("gids", b"", "length"),
        ("targets", b"", "0 targets for 1"),
        ("targets", b"x\0y\0", "2 targets for 1"),
        ("targets", b"\0", "empty"),
        ("targets", b"x" * 65_537 + b"\0", "65537 bytes"),
        ("targets", "x", "expected"),
    ],
)
def test_a_listing_refuses(field: str, value: object, reason: str) -> None:
    fields = msgpack.unpackb(messages.encode(PART))
    fields[-1][ROWS[field]] = value
    with pytest.raises(ProtocolError, match=rf"ListingPart\.listing: .*{reason}"):
        messages.decode(messages.ListingPart.kind, msgpack.packb(fields))


ENTRIES = messages.RowsPart((2, 1), True, NAMED)
"""Three entries: a file and a link in the root, a file in "sub"."""

COLUMNS = {
    "count": 0,
    "text": 1,
    "kinds": 2,
    "targets": 3,
    "modes": 4,
    "sizes": 5,
    "uids": 6,
    "gids": 7,
    "mtimes": 8,
}


PACKED_ROWS = msgpack.unpackb(messages.encode(ENTRIES))[-1]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"count": 0}, "0 rows"),
        ({"count": -1}, "-1 rows"),
        ({"count": 4097}, "4097 rows"),
        ({"count": 2}, "of 3 bytes for 2 rows"),
        ({"count": True}, "expected"),
        ({"kinds": b"\0\2"}, "kinds of 2 bytes for 3"),
        ({"kinds": b"\0\2\10"}, "unknown kind"),
        ({"kinds": b""}, "names without kinds"),
        ({"kinds": b"", "text": b""}, "names without kinds"),
        ({"modes": b""}, "one column of a group"),
        ({"sizes": b""}, "one column of a group"),
        ({"uids": b""}, "one column of a group"),
        ({"gids": b""}, "one column of a group"),
        ({"modes": b"", "sizes": b""}, "one column of a group"),
        ({"modes": bytes(5)}, "modes of 5 bytes"),
        ({"modes": array("H", (1, 2, 0o10000)).tobytes()}, "mode has more"),
        ({"sizes": array("Q", (1 << 63, 0, 0)).tobytes()}, "size past"),
        ({"sizes": array("Q", (0, 1, 0)).tobytes()}, "no regular file"),
        ({"mtimes": bytes(16)}, "mtimes of 16 bytes"),
        ({"targets": b""}, "do not match the symlinks"),
        ({"targets": b"x\0y\0"}, "do not match the symlinks"),
        ({"targets": b"\0"}, "do not match the symlinks"),
        ({"targets": b"x"}, "do not match the symlinks"),
        ({"targets": b"x" * 65_537 + b"\0"}, "too long"),
        ({"text": b""}, "do not begin"),
        ({"text": b"a\0link\0"}, "do not begin"),
        ({"text": b"\0\0a\0link\0\0sub\0x"}, "do not begin"),
        ({"text": b"\0\0a\0link\0\0sub\0"}, "without names"),
        ({"text": b"\0\0a\0link\0\0"}, "."),
        ({"text": b"\0\0a\0b\0link\0\0sub\0x\0"}, "do not make 3 rows"),
        ({"text": b"\0\0a\0link\0"}, "do not make 3 rows"),
        ({"text": b"\0\0" + b"a\0" * 9}, "more names or targets than 3"),
        ({"targets": b"x\0" * 4}, "more names or targets than 3"),
        ({"text": b"\0\0link\0a\0\0sub\0x\0"}, "increasing"),
        ({"text": b"\0\0a\0a\0\0sub\0x\0"}, "increasing"),
        ({"text": b"\0\0a\0link\0\0sub\0" + b"x" * 256 + b"\0"}, "too long"),
        ({"text": b"\0\0a\0link\0\0sub\0..\0"}, "'..'"),
        ({"text": b"\0\0a\0link\0\0sub\0.\0"}, "'.'"),
        ({"text": b"\0\0a\0link\0\0sub\0x/y\0"}, "'/'"),
        ({"text": b"\0\0a\0link\0\0../sub\0x\0"}, "not a plain relative path"),
        ({"text": b"\0\0a\0link\0\0/sub\0x\0"}, "not a plain relative path"),
        ({"text": b"\0\0a\0link\0\0sub//a\0x\0"}, "not a plain relative path"),
        (
            {"text": b"\0\0a\0link\0\0" + b"s" * (PATH_BYTES + 1) + b"\0x\0"},
            "path has 16385 bytes, the limit is 16384",
        ),
    ],
)
def test_rows_refuse(changes: dict[str, object], reason: str) -> None:
    fields = msgpack.unpackb(messages.encode(ENTRIES))
    for column_, value in changes.items():
        fields[-1][COLUMNS[column_]] = value
    with pytest.raises(ProtocolError, match=rf"RowsPart\.rows: .*({reason})"):
        messages.decode(messages.RowsPart.kind, msgpack.packb(fields))


def raw_payload(kind: type[messages.Message], fields: list[Any]) -> bytes:
    return (
        joined(fields[:-1], fields[-1])
        if kind
        in {
            messages.Data,
            messages.Code,
            messages.FileBatch,
            messages.Correction,
            messages.Targets,
            messages.Table,
        }
        else joined(fields, None)
    )


@pytest.mark.parametrize(
    ("kind", "fields", "reason"),
    [
        (messages.ListingPart, [0, b"/etc", 0, True, None], r"path: .*relative"),
        (messages.ListingPart, [0, b"a/../b", 0, True, None], r"path: .*relative"),
        (messages.ListingPart, [0, b"a//b", 0, True, None], r"path: .*relative"),
        (messages.ListingPart, [0, b"a\0b", 0, True, None], "path: holds a NUL"),
        (messages.ListingPart, [0, b"x" * 65_537, 0, True, None], "path: 65537 bytes"),
        (messages.ListingPart, [1 << 32, b"", 0, True, None], "directory"),
        (messages.ListingPart, [True, b"", 0, True, None], "directory: expected int, found bool"),
        (messages.ListingPart, [0, b"", 0, 1, None], "last: expected bool, found int"),
        (messages.ListingPart, [0, b"", 0, False, [b""] * 8], "last: a part without entries"),
        (messages.FileRequest, [b"", 0], "files: empty"),
        (messages.FileRequest, [b"\1", 0], "files: a column of no items"),
        (messages.FileRequest, [column(7, width=1)[:0] + b"\3\0\0\0", 0], "files: unknown column width 3"),
        (messages.FileRequest, [b"\2\0", 0], "files: 1 bytes are not whole"),
        (messages.FileRequest, [column(0xFFFF_FFFF, 0, width=4), 0], "files: ordinal 4294967296 past"),
        (messages.FileRequest, [column(*[0] * 16_385), 0], "files: more than 16384"),
        (messages.FileRequest, [column(*[(1 << 64) - 1] * 2, width=8), 0], "files: ordinal"),
        (messages.RootAnswer, [column(0), column(1, 2), bytes(32), 1], "sizes: 2 for 1"),
        (messages.RootAnswer, [column(0), column(1), bytes(33), 1], "roots: 33 bytes for 1"),
        (messages.RootAnswer, [column(2, 0), column(1, 1), bytes(9), 1], "roots: 9 bytes for 2"),
        (messages.RootAnswer, [column(2, 0), column(1, 1), bytes(6), 1], "roots: 6 bytes for 2"),
        (
            messages.TraitsAnswer,
            [column(0), column(1), bytes(8), bytes(18), b""],
            "columns: they are not of 1",
        ),
        (
            messages.TraitsAnswer,
            [column(0), column(1, 2), bytes(8), bytes(9), b""],
            "columns: they are not of 1",
        ),
        (
            messages.TraitsAnswer,
            [column(0), column(1), bytes(16), bytes(9), b""],
            "columns: they are not of 1",
        ),
        (
            messages.TraitsAnswer,
            [column(0), column(24_575, width=2), bytes(8), bytes(9), bytes(9)],
            "coarse: 9 bytes for 0",
        ),
        (
            messages.TraitsAnswer,
            [column(0), column(24_576, width=2), bytes(8), bytes(9), b""],
            "coarse: 0 bytes for 1",
        ),
        (
            messages.TraitsAnswer,
            [column(0), column(65_535, width=2), bytes(8), bytes(9), bytes(8)],
            "coarse: 8 bytes",
        ),
        (messages.RootAnswer, [column(0), column(1 << 63, width=8), bytes(32), 1], "sizes: an item"),
        (messages.NodeAnswer, [0, 0, column(0), [column(1, 1), b"ab"]], "records: 2 for 1"),
        (messages.FileEnd, [1, 3, b"", None, 2], "like: file 2, without a digest"),
        (messages.FileEnd, [2, 3, bytes(32), None, 2], "like: file 2, without a digest or itself"),
        (messages.NodeAnswer, [0, 0, column(0), [column(3), b"ab"]], "records: lengths add up to 3, 2"),
        (messages.NodeAnswer, [0, 0, column(0), [b"ab"]], "records: expected"),
        (messages.NodeAnswer, [0, 25, column(0), [b"", b""]], "level"),
        (messages.TreeRequest, [column(0), 3, 0], "width"),
        (messages.TreeRequest, [column(0), 8, 63], "block: 63"),
        (messages.TreeRequest, [column(0), 8, 65_537], "block"),
        (messages.TreeRequest, [column(0), 9, 0], "width: 9 is neither in 4..8 nor 32"),
        (messages.RootRequest, [column(0), 9, 1], "width: 9 is neither in 4..8 nor 32"),
        (messages.RootRequest, [column(0), 31, 2], "width: 31 is neither"),
        (messages.NodeRequest, [0, 0, column(0), 31], "width: 31 is neither"),
        (messages.RangeRequest, [0, b"", b"", False, b"", False], "lengths: none"),
        (messages.RangeRequest, [0, b"", b"", True, column(1) + b"ab", False], "lengths: none"),
        (
            messages.RangeRequest,
            [0, column(1), column(1), False, column(1), False],
            "claims: 2 bytes are not",
        ),
        (
            messages.RangeRequest,
            [0, column(1), column(1), False, column(1, 2) + b"abc", False],
            "claims: 6 bytes are not",
        ),
        (
            messages.RangeRequest,
            [0, column(1), column(1), False, b"\3abcde", False],
            "claims: unknown column width 3",
        ),
        (
            messages.RangeRequest,
            [0, column(1), column(1), False, b"\0" + b"ab" * 9, False],
            "claims: unknown column width 0",
        ),
        (messages.RangeRequest, [0, column(1), column(1), False, 7, False], "claims: expected bytes"),
        (
            messages.RangeRequest,
            [0, column(1), column(1), False, column(*range(1025), width=2) + bytes(2050), False],
            "claims: 4101 bytes are not at most 1024 cells",
        ),
        (
            messages.RangeRequest,
            [0, column(1), column(1), False, column(1 << 51, width=8) + b"ab", False],
            "claims: ordinal",
        ),
        (messages.Correction, [0, b"", b""], "cells: empty"),
        (messages.Correction, [0, column(*[0] * 65), b""], "cells: more than 64"),
        (messages.Correction, [0, column(3), bytes(8193)], "payload: 8193 bytes of 1 cells"),
        (messages.Correction, [0, column(*[0] * 64), bytes(64 * 8192 + 1)], "payload: 524289 bytes"),
        (messages.LikelyRequest, [5, 9, 1024], "width: 9 is neither"),
        (messages.LikelyRequest, [5, 8, 63], "block: 63 is not in"),
        (messages.LikelyAnswer, [column(*[0] * 17)], "files: more than 16"),
        (messages.LikelyBlocks, [b"", b""], "files: "),
        (messages.LikelyBlocks, [column(*[0] * 257), b""], "files: more than 256"),
        (messages.LikelyBlocks, [column(0), bytes(99_841)], "fingerprints: 99841 bytes"),
        (messages.BundleRequest, [0, b"", 256], "files: "),
        (messages.BundleRequest, [0, column(*[0] * 257), 256], "files: more than 256"),
        (messages.BundleRequest, [0, column(0), 255], "block: 255 is not in"),
        (
            messages.BundleAnswer,
            [0, column(256, width=2), bytes(32), b""],
            "without: ordinal 256 past",
        ),
        (messages.BundleAnswer, [0, b"", bytes(31), b""], "digest: 31 bytes"),
        (messages.BundleAnswer, [0, b"", bytes(32), bytes(99_841)], "fingerprints: 99841 bytes"),
        (
            messages.RangeRequest,
            [0, column(1), column(131_073, width=4), True, b"", False],
            "pack: 131073 bytes",
        ),
        (messages.BlockRequest, [0, b"", b"", 64, 4, False], "lengths: none"),
        (messages.BlockRequest, [0, column(1), column(0), 64, 4, False], "lengths: an item"),
        (messages.BlockRequest, [0, column(1), column(9), 15, 4, False], "size: 15 is not in"),
        (messages.BlockRequest, [0, column(1), column(9), 64, 1, False], "width: 1 is not in"),
        (messages.BlockRequest, [0, column(1), column(9), 64, 9, False], "width: 9 is not in"),
        (
            messages.BlockRequest,
            [0, column(1), column(65_536 * 64 + 1, width=4), 64, 4, False],
            "lengths: 65537 blocks",
        ),
        (messages.RangeRequest, [0, column(1, 2), column(1), False, b"", False], "lengths: 1 for 2"),
        (messages.RangeRequest, [0, column(1), column(0), False, b"", False], "lengths: an item"),
        (
            messages.RangeRequest,
            [0, column((1 << 63) - 1, width=8), column(1), False, b"", False],
            "lengths: the last range",
        ),
        (messages.RangeRequest, [0, column(1), column(1), False, b"", True], "blank: without claims"),
        (
            messages.RangeRequest,
            [0, column(1), column(1), True, column(1) + b"ab", True],
            "blank: .* or to be packed",
        ),
        (messages.RangeRequest, [0, column(1), column(1), False, b"", 1], "blank: expected"),
        (messages.BlockRequest, [0, column(1), column(9), 64, 4, 0], "blank: expected"),
        (messages.Holes, [0, 1, column(1), column(1, 2)], "lengths: 2 for 1 holes"),
        (messages.Holes, [0, 1, column(1), column(0)], "lengths: an item is not in 1"),
        (
            messages.Holes,
            [0, 1, column(1 << 62, width=8), column(1 << 62, width=8)],
            "the last hole ends past",
        ),
        (messages.Holes, [0, 1, column(1 << 63, width=8), column(1)], "gaps: an item is not in 0"),
        (messages.Plan, [0, 1 << 63, 0], "bytes: 9223372036854775808 is not in 0"),
        (messages.Plan, [0, -1, 0], "bytes: -1 is not in 0"),
        (messages.Plan, [0, (1 << 63).to_bytes(9, "little"), 0], "bytes: 9 bytes are not the shortest form"),
        (
            messages.Plan,
            [0, ((1 << 63) - 1).to_bytes(8, "little"), 0],
            "bytes: 8 bytes are not the shortest form",
        ),
        (messages.Plan, [0, bytes([1] * 13), 0], "bytes: 13 bytes are not the shortest form"),
        (messages.Plan, [0, None, 0], "bytes: expected int, found NoneType"),
        (messages.Targets, [0, b""], "payload: 0 bytes"),
        (messages.Table, [0, 8, b""], "payload: 0 bytes"),
        (messages.Table, [0, 8, bytes(DATA_BYTES + 1)], f"payload: {DATA_BYTES + 1} bytes"),
        (messages.Table, [0, 0, b"x"], "stride"),
        (messages.Table, [0, 68, b"x"], "stride"),
        (messages.Table, [0, 10, b"x"], "stride: 10 bytes"),
        (messages.Targets, [0, bytes(DATA_BYTES + 1)], f"payload: {DATA_BYTES + 1} bytes"),
        (messages.Data, [0, b""], "payload: 0 bytes"),
        (messages.Code, [0, b""], "payload: 0 bytes"),
        (messages.Code, [0, bytes(DATA_BYTES + 1)], f"payload: {DATA_BYTES + 1} bytes"),
        (messages.Data, [0, bytes(DATA_BYTES + 1)], f"payload: {DATA_BYTES + 1} bytes"),
        (messages.FileBatch, [column(0), column(1, 2), bytes(32), b"abc"], "sizes: 2 for 1"),
        (messages.FileBatch, [column(0), column(2), bytes(32), b"abc"], "payload: 3 bytes for files of 2"),
        (messages.FileBatch, [column(0), column(3), bytes(31), b"abc"], "digest: 31 bytes"),
        (messages.Manifest, [bytes(31), 0, 0, 0, 0, 0, b""], "root: 31 bytes"),
        (messages.Manifest, [bytes(32), 0, 0, 0, 0, 0, bytes(7)], "further: 7 bytes"),
        (messages.Manifest, [bytes(32), 1 << 32, 0, 0, 0, 0, b""], "entries"),
        (messages.Describe, [1, 1], "whole: expected bool"),
        (messages.Describe, [True, True], "kept: expected int"),
        (messages.Describe, [True, 15 << 5], "kept: 480 stands for no granularity"),
        (messages.Describe, [True, 1 << 47], "kept: 140737488355328 stands for nothing that is kept"),
        (messages.Start, [b"", 1, [0, 0, 0, 0], -1], "kept: -1 stands for nothing that is kept"),
        (messages.TierRequest, [25, b"", 7], "level"),
        (messages.TierRequest, [0, column(*[0] * 1025, width=2), 7], "nodes: more than 1024"),
        (messages.TierRequest, [0, b"", 0], "groups"),
        (messages.TierRequest, [0, b"", 8], "groups"),
        (messages.TierAnswer, [0, column(0, 5), column(5), b"x"], "counts: 1 for 2"),
        (messages.TierAnswer, [0, column(0), column(0), b"x"], "counts: an item"),
        (messages.TierAnswer, [0, column(0), column(1), b""], "references: 0 bytes"),
        (messages.RowsRequest, [0, b"", 7], "nodes: empty"),
        (messages.RowsPart, [column(1, 2), True, PACKED_ROWS], "counts: they do not"),
        (messages.RowsPart, [column(2, 2), True, PACKED_ROWS], "counts: they do not"),
        (messages.RowsPart, [column(2), True, PACKED_ROWS], "counts: they do not"),
        (messages.RowsPart, [column(3, 0), True, PACKED_ROWS], "counts: an item"),
        (messages.RowsPart, [b"", True, PACKED_ROWS], "counts: they do not"),
        (messages.Items, [b"", b"", b""], "changes: expected 11"),
        (messages.Items, [b">f++++++++", b"a\0", b""], "changes: expected 11"),
        (messages.Items, [b">f++++++++\n", b"a\0", b""], "changes: expected 11"),
        (messages.Items, ["." * 11, b"a\0", b""], "changes: expected bytes"),
        (messages.Items, ["\u00e9".encode() * 11, b"a\0" * 2, b""], "changes: expected 11"),
        (messages.Items, [b"." * 11 * 4097, b"a\0" * 4097, b""], "changes: expected 11 .*4096 times"),
        (messages.Items, [b"." * 11, b"a\0" * 4097, b""], "paths: more than 4096"),
        (messages.Items, [b"." * 22, b"a\0", b""], "paths: 1 for 2"),
        (messages.Items, [b"." * 22, b"a\0b\0", b"t\0"], "targets: 1 for 2"),
        (messages.Items, [b"." * 11, b"a", b""], "paths: .*NUL"),
        (
            messages.Items,
            [b"." * 11, b"a" * (PATH_BYTES + 1) + b"\0", b""],
            "paths: a string of more than 16384",
        ),
        (messages.Items, [b"." * 66, (b"a" * 60_000 + b"\0") * 6, b""], "paths: .* the limit is 262144"),
        (messages.Refused, [0, "why"], "code"),
        (messages.Refused, [3, "why"], "code"),
        (messages.Refused, [12, b"why"], "message: expected str"),
        (messages.Refused, [12, "w" * (MESSAGE_BYTES + 1)], "not msgpack within limits"),
        (messages.Notice, [12, {}, ""], "not msgpack within limits"),
        (messages.Notice, [12, msgpack.ExtType(5, b"x"), ""], "not msgpack within limits"),
        (messages.Notice, [12, list(range(129)), ""], "not msgpack within limits"),
    ],
)
def test_a_field_refuses(kind: type[messages.Message], fields: list[Any], reason: str) -> None:
    with pytest.raises(ProtocolError, match=f"{kind.__name__}[. ].*{reason}"):
        messages.decode(kind.kind, raw_payload(kind, fields))


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"", "ends before its content"),
        (b"\x81", "ends before its content"),
        (b"\x05\x91\x00", "ends before its content"),
        (b"\x00abc", "not msgpack within limits"),
        (b"\x02\x91\x00", "payload: 0 bytes"),
        (b"\x03\x92\x00\x00abc", "expected 1 fields, found 2"),
        (b"\xff\xff\xff\x7f", "past the limit"),
    ],
)
def test_content_begins_where_the_head_ends(payload: bytes, reason: str) -> None:
    with pytest.raises(ProtocolError, match=f"Data.*{reason}"):
        messages.decode(messages.Data.kind, payload)


def test_content_is_a_view_of_what_came() -> None:
    came = memoryview(messages.encode(messages.Data(5, b"content")))
    message = messages.decode(messages.Data.kind, came)
    assert isinstance(message, messages.Data)
    assert isinstance(message.payload, memoryview)
    assert message.payload.obj is came.obj
    assert message == messages.Data(5, b"content")
