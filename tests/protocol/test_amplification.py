"""The memory that a peer's bytes cost during decoding: the table of AMPLIFICATION.md."""

from __future__ import annotations

import re
import tracemalloc
from array import array
from collections.abc import Callable
from pathlib import Path

import pytest

import rdc.protocol
from rdc.errors import ExitCode
from rdc.limits import (
    DATA_BYTES,
    FILES_PER_MESSAGE,
    ITEMS_PER_MESSAGE,
    OWNERS_PER_MESSAGE,
    PACKED_BYTES,
    PATH_DEPTH,
    RULES_BYTES,
    TIER_NODES,
    TOP_NODES,
)
from rdc.model.entries import Kind, Listing, Metadata
from rdc.model.preserved import EVERYTHING, pack_attributes
from rdc.model.selection import FilterRule, RuleAction
from rdc.model.sync import SyncOptions
from rdc.protocol import messages
from rdc.protocol.messages.field_types import Claims, Rows, Segment
from rdc.protocol.messages.uniting import Subject

TABLE = Path(rdc.protocol.__file__).with_name("AMPLIFICATION.md").read_text()

MOST = 64
"""Bytes allocated for a byte received, after decompression."""

FIXED = 16 << 10
"""Bytes that any message may take: its record, the columns' heads, msgpack's own."""

N = FILES_PER_MESSAGE
LONGEST = b"x" * 16_384
FILES = tuple(range(255, 255 + N))
"""A byte each on the wire, and an integer object of its own each once decoded: small ones are shared."""
NODES = tuple(range(255, 255 + TIER_NODES))
WIDE = (300,) * N
"""Two bytes each on the wire, an object each once decoded."""
DIGEST = bytes(32)
METADATA = Metadata(0o755, 10**18, 1000, 1000)


def short_names(count: int) -> tuple[bytes, ...]:
    """Increasing names of two and three bytes: shorter ones are shared objects."""
    letters = [letter for letter in range(1, 256) if letter not in b"./"]
    names = [bytes((a, b)) for a in letters for b in letters]
    return tuple(sorted(names)[:count])


def listing(count: int, kind: Kind = Kind.DIRECTORY) -> Listing:
    return Listing(
        short_names(count),
        bytes((kind,)) * count,
        array("H", [0o755]) * count,
        array("Q", [0]) * count,
        array("q", [10**18]) * count,
        array("I", [1000]) * count,
        array("I", [1000]) * count,
        short_names(count) if kind is Kind.SYMLINK else (),
    )


def rows(count: int, paths: int) -> Rows:
    """So many entries, `count` // `paths` in each directory."""
    each = count // paths
    names = b"".join(name + b"\0" for name in short_names(each))
    segments = tuple(Segment(b"%04x" % i, each, names, b"") for i in range(paths))
    kinds = bytes((Kind.DIRECTORY,)) * count
    return Rows(count, segments, kinds, b"\0\0" * count, bytes(8) * count, b"", b"", bytes(8) * count)


DEEP = b"/".join([b"ab"] * PATH_DEPTH)
"""As many components as a path may have, an object each once split."""

WORST: dict[type[messages.Message], Callable[[], messages.Message]] = {
    messages.Hello: lambda: messages.Hello(6, "x" * 64, DIGEST),
    messages.Open: lambda: messages.Open(
        messages.Role.SOURCE,
        b"x" * 16_384,
        DIGEST[:16],
        SyncOptions(rules=(FilterRule(RuleAction.EXCLUDE, b"a"),) * (RULES_BYTES // 3)),
    ),
    messages.Rules: lambda: messages.Rules(
        (FilterRule(RuleAction.EXCLUDE, b"a"),) * (RULES_BYTES // 5), True
    ),
    messages.Selected: lambda: messages.Selected(b"x" * 16_384, short_names(N), True),
    messages.Opened: messages.Opened,
    messages.Refused: lambda: messages.Refused(ExitCode.STREAM, "\u00e9" * 2048),
    messages.Describe: lambda: messages.Describe(True, EVERYTHING),
    messages.Follow: lambda: messages.Follow(1, DIGEST[:16]),
    messages.Start: lambda: messages.Start(b"only", Kind.DIRECTORY, METADATA),
    messages.ListingPart: lambda: messages.ListingPart(1, DEEP, 0, True, listing(18_000)),
    messages.ListingEnd: lambda: messages.ListingEnd(1, 1, 1, 1, 1),
    messages.Manifest: lambda: messages.Manifest(DIGEST, 1, 1, 1, 1, EVERYTHING),
    messages.MountPoints: lambda: messages.MountPoints(short_names(ITEMS_PER_MESSAGE)),
    messages.HardLinks: lambda: messages.HardLinks(tuple(range(255, 255 + N)), (1,) * N),
    messages.EntryAttributes: lambda: messages.EntryAttributes(
        FILES, WIDE, tuple(pack_attributes(((b"%x" % i, b""),)) for i in range(N))
    ),
    messages.Owners: lambda: messages.Owners(
        tuple(range(255, 255 + OWNERS_PER_MESSAGE)),
        (b"",) * OWNERS_PER_MESSAGE,
        tuple(range(255, 255 + OWNERS_PER_MESSAGE)),
        (b"",) * OWNERS_PER_MESSAGE,
    ),
    messages.TopTier: lambda: messages.TopTier(1, bytes(4 * TOP_NODES)),
    messages.TierRequest: lambda: messages.TierRequest(1, NODES, 7),
    messages.TierAnswer: lambda: messages.TierAnswer(1, (300,) * TIER_NODES, (300,) * TIER_NODES, b"x"),
    messages.RowsRequest: lambda: messages.RowsRequest(1, NODES, 7),
    messages.RowsPart: lambda: messages.RowsPart((4,) * 1024, True, rows(4096, 1024)),
    messages.RootRequest: lambda: messages.RootRequest(FILES),
    messages.RootAnswer: lambda: messages.RootAnswer(FILES, (), DIGEST[:4] * (N // 256), 256),
    messages.TreeRequest: lambda: messages.TreeRequest(FILES, 4),
    messages.TreeAnswer: lambda: messages.TreeAnswer(1, 1, DIGEST, 1, None, bytes(1 << 19)),
    messages.NodeRequest: lambda: messages.NodeRequest(1, 1, FILES, 4),
    messages.NodeAnswer: lambda: messages.NodeAnswer(1, 1, FILES, (b"ab",) * N),
    messages.LikelyRequest: lambda: messages.LikelyRequest(1 << 60, 8, 1024),
    messages.LikelyAnswer: lambda: messages.LikelyAnswer(FILES[:16]),
    messages.LikelyBlocks: lambda: messages.LikelyBlocks(FILES[:256], bytes(99_840)),
    messages.BundleRequest: lambda: messages.BundleRequest(N, FILES[:256], 256),
    messages.BundleAnswer: lambda: messages.BundleAnswer(1, tuple(range(256)), DIGEST, bytes(99_840)),
    messages.BlockRequest: lambda: messages.BlockRequest(1, WIDE, WIDE, 65_536, 4),
    messages.BlockAnswer: lambda: messages.BlockAnswer(1, bytes(1 << 19)),
    messages.RangeRequest: lambda: messages.RangeRequest(
        1, WIDE, WIDE, claims=Claims(tuple(range(255, 255 + 1024)), bytes(2048))
    ),
    messages.FileRequest: lambda: messages.FileRequest(FILES),
    messages.Data: lambda: messages.Data(1, bytes(DATA_BYTES)),
    messages.Code: lambda: messages.Code(1, bytes(DATA_BYTES)),
    messages.Table: lambda: messages.Table(1, 4, bytes(DATA_BYTES)),
    messages.Correction: lambda: messages.Correction(1, tuple(range(300, 364)), bytes(8192)),
    messages.Targets: lambda: messages.Targets(1, bytes(8192)),
    messages.Literals: lambda: messages.Literals(1, bytes(2 * PACKED_BYTES)),
    messages.FileBatch: lambda: messages.FileBatch(FILES, (0,) * N, DIGEST, b""),
    messages.FileEnd: lambda: messages.FileEnd(1, 1, DIGEST),
    messages.Holes: lambda: messages.Holes(1, 1, WIDE, WIDE),
    messages.Resized: lambda: messages.Resized(1, 1 << 62),
    messages.FileFailed: lambda: messages.FileFailed(1, ExitCode.PARTIAL, "\u00e9" * 2048),
    messages.DigestRequest: lambda: messages.DigestRequest(FILES),
    messages.DigestAnswer: lambda: messages.DigestAnswer(DIGEST),
    messages.TraitsRequest: lambda: messages.TraitsRequest(FILES),
    messages.Landed: lambda: messages.Landed(FILES, bytes(16)),
    messages.Removed: lambda: messages.Removed(N),
    messages.TraitsAnswer: lambda: messages.TraitsAnswer(FILES, (0,) * N, bytes(8 * N), bytes(9 * N)),
    messages.Notice: lambda: messages.Notice(ExitCode.OK, b"x" * 16_384, "\u00e9" * 2048),
    messages.Items: lambda: messages.Items("x" * 11 * 4096, short_names(4096), short_names(4096)),
    messages.Progress: lambda: messages.Progress("compare", 1, 1),
    messages.Plan: lambda: messages.Plan(1, 1, 1),
    messages.Done: lambda: messages.Done(1, 1, 0, 1, 1, 1, ExitCode.OK),
    messages.Watch: lambda: messages.Watch(True, DIGEST[:16]),
    messages.Turn: lambda: messages.Turn(False),
    messages.Renamed: lambda: messages.Renamed(DEEP, b"new", Kind.FILE, 1, METADATA),
    messages.Changed: lambda: messages.Changed(
        DEEP,
        METADATA,
        0,
        b"".join(name + b"\0" for name in short_names(60_000)),
        listing(15_000, Kind.FILE),
        tuple(range(15_000)),
    ),
    messages.TurnEnd: lambda: messages.TurnEnd(1, 1, 1),
    messages.Meet: lambda: messages.Meet(
        bytes(16),
        bytes(16),
        (bytes(24),) * 2,
        (bytes(8),) * 64,
        255,
        1,
        1,
        1,
        LONGEST,
        bytes(512 << 10),
        EVERYTHING,
    ),
    messages.Met: lambda: messages.Met(
        bytes(16),
        (bytes(24),) * 2,
        (bytes(8),) * 64,
        127,
        bytes(16),
        1,
        1,
        1,
        1,
        LONGEST,
        bytes(512 << 10),
        EVERYTHING,
    ),
    messages.Page: lambda: messages.Page(Subject.ROWS, bytes(512 << 10), True),
    messages.Exchange: lambda: messages.Exchange(messages.Role.SOURCE),
    messages.Condition: lambda: messages.Condition(messages.SourceState.LIMITED, "\u00e9" * 2048, 1),
}


def table() -> dict[str, int]:
    """Bytes a byte, by message."""
    found = re.findall(r"^\| (\w+) \| (\d+) \| ([^|]+) \| ([^|]+) \|$", TABLE, re.MULTILINE)
    return {name: int(factor) for name, factor, _, _ in found}


def test_every_message_has_a_worst_case_and_a_row() -> None:
    kinds = set(messages.message_kinds().values())
    assert set(WORST) == kinds
    assert set(table()) == {kind.__name__ for kind in kinds}


@pytest.mark.parametrize("kind", WORST)
def test_decoding_allocates_no_more_than_the_table_says(kind: type[messages.Message]) -> None:
    stated = table()[kind.__name__]
    assert stated <= MOST
    payload = messages.encode(WORST[kind]())
    messages.decode(kind.kind, payload)  # what is loaded or cached once is not the message's
    tracemalloc.start()
    message = messages.decode(kind.kind, payload)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert type(message) is kind
    assert peak <= stated * len(payload) + FIXED, f"{peak / len(payload):.1f} bytes a byte"
