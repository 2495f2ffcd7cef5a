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
from rdc.limits.paths import (
    PATH_DEPTH,
)
from rdc.limits.sessions import (
    BUNDLE_CHUNKS,
)
from rdc.limits.wire import (
    DATA_BYTES,
    FILES_PER_MESSAGE,
    ITEMS_PER_MESSAGE,
    OWNERS_PER_MESSAGE,
    PACKED_BYTES,
    RULES_BYTES,
    TIER_NODES,
    TOP_NODES,
)
from rdc.model.attributes import pack_attributes
from rdc.model.entries import Kind, Listing, Metadata
from rdc.model.preserved import EVERYTHING
from rdc.model.sync import FilterRule, RuleAction, SyncOptions
from rdc.protocol.messages.claims import Claims
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
    Rules,
    Selected,
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
    decode,
    encode,
    message_kinds,
)
from rdc.protocol.messages.rows import Rows, Segment

TABLE = Path(rdc.protocol.__file__).with_name("AMPLIFICATION.md").read_text()

MOST = 64
"""Bytes allocated for a byte received, after decompression."""

FIXED = 16 << 10
"""Bytes that any message may take: its record, the columns' heads, msgpack's own."""

N = FILES_PER_MESSAGE
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

WORST: dict[type[Message], Callable[[], Message]] = {
    Hello: lambda: Hello(6, "x" * 64, DIGEST),
    Open: lambda: Open(
        Role.SOURCE,
        b"x" * 16_384,
        DIGEST[:16],
        SyncOptions(rules=(FilterRule(RuleAction.EXCLUDE, b"a"),) * (RULES_BYTES // 3)),
    ),
    Rules: lambda: Rules((FilterRule(RuleAction.EXCLUDE, b"a"),) * (RULES_BYTES // 5), True),
    Selected: lambda: Selected(b"x" * 16_384, short_names(N), True),
    Opened: Opened,
    Refused: lambda: Refused(ExitCode.STREAM, "\u00e9" * 2048),
    Describe: lambda: Describe(True, EVERYTHING),
    Follow: lambda: Follow(1, DIGEST[:16]),
    Start: lambda: Start(b"only", Kind.DIRECTORY, METADATA),
    ListingPart: lambda: ListingPart(1, DEEP, 0, True, listing(18_000)),
    ListingEnd: lambda: ListingEnd(1, 1, 1, 1, 1),
    Manifest: lambda: Manifest(DIGEST, 1, 1, 1, 1, EVERYTHING),
    MountPoints: lambda: MountPoints(short_names(ITEMS_PER_MESSAGE)),
    HardLinks: lambda: HardLinks(tuple(range(255, 255 + N)), (1,) * N),
    EntryAttributes: lambda: EntryAttributes(
        FILES, WIDE, tuple(pack_attributes(((b"%x" % i, b""),)) for i in range(N))
    ),
    Owners: lambda: Owners(
        tuple(range(255, 255 + OWNERS_PER_MESSAGE)),
        (b"",) * OWNERS_PER_MESSAGE,
        tuple(range(255, 255 + OWNERS_PER_MESSAGE)),
        (b"",) * OWNERS_PER_MESSAGE,
    ),
    TopTier: lambda: TopTier(1, bytes(4 * TOP_NODES)),
    TierRequest: lambda: TierRequest(1, NODES, 7),
    TierAnswer: lambda: TierAnswer(1, (300,) * TIER_NODES, (300,) * TIER_NODES, b"x"),
    RowsRequest: lambda: RowsRequest(1, NODES, 7),
    RowsPart: lambda: RowsPart((4,) * 1024, True, rows(4096, 1024)),
    RootRequest: lambda: RootRequest(FILES),
    RootAnswer: lambda: RootAnswer(FILES, (), DIGEST[:4] * (N // 256), 256),
    TreeRequest: lambda: TreeRequest(FILES, 4),
    TreeAnswer: lambda: TreeAnswer(1, 1, DIGEST, 1, None, bytes(1 << 19)),
    NodeRequest: lambda: NodeRequest(1, 1, FILES, 4),
    NodeAnswer: lambda: NodeAnswer(1, 1, FILES, (b"ab",) * N),
    BundleRequest: lambda: BundleRequest(N, FILES[:256], 4, 256),
    BundleAnswer: lambda: BundleAnswer(1, tuple(range(256)), DIGEST, (300,) * BUNDLE_CHUNKS, b"", b""),
    BlockRequest: lambda: BlockRequest(1, WIDE, WIDE, 65_536, 4),
    BlockAnswer: lambda: BlockAnswer(1, bytes(1 << 19)),
    RangeRequest: lambda: RangeRequest(
        1, WIDE, WIDE, claims=Claims(tuple(range(255, 255 + 1024)), bytes(2048))
    ),
    FileRequest: lambda: FileRequest(FILES),
    Data: lambda: Data(1, bytes(DATA_BYTES)),
    Code: lambda: Code(1, bytes(DATA_BYTES)),
    Table: lambda: Table(1, 4, bytes(DATA_BYTES)),
    Correction: lambda: Correction(1, tuple(range(300, 364)), bytes(8192)),
    Targets: lambda: Targets(1, bytes(8192)),
    Literals: lambda: Literals(1, bytes(2 * PACKED_BYTES)),
    FileBatch: lambda: FileBatch(FILES, (0,) * N, DIGEST, b""),
    FileEnd: lambda: FileEnd(1, 1, DIGEST),
    Holes: lambda: Holes(1, 1, WIDE, WIDE),
    Resized: lambda: Resized(1, 1 << 62),
    FileFailed: lambda: FileFailed(1, ExitCode.PARTIAL, "\u00e9" * 2048),
    DigestRequest: lambda: DigestRequest(FILES),
    DigestAnswer: lambda: DigestAnswer(DIGEST),
    TraitsRequest: lambda: TraitsRequest(FILES),
    Landed: lambda: Landed(FILES, bytes(16)),
    Removed: lambda: Removed(N),
    TraitsAnswer: lambda: TraitsAnswer(FILES, (0,) * N, bytes(8 * N), bytes(9 * N)),
    Notice: lambda: Notice(ExitCode.OK, b"x" * 16_384, "\u00e9" * 2048),
    Items: lambda: Items("x" * 11 * 4096, short_names(4096), short_names(4096)),
    Progress: lambda: Progress("compare", 1, 1),
    Plan: lambda: Plan(1, 1, 1),
    Done: lambda: Done(1, 1, 0, 1, 1, 1, ExitCode.OK),
    Watch: lambda: Watch(True, DIGEST[:16]),
    Turn: lambda: Turn(False),
    Renamed: lambda: Renamed(DEEP, b"new", Kind.FILE, 1, METADATA),
    Changed: lambda: Changed(
        DEEP,
        METADATA,
        0,
        b"".join(name + b"\0" for name in short_names(60_000)),
        listing(15_000, Kind.FILE),
        tuple(range(15_000)),
    ),
    TurnEnd: lambda: TurnEnd(1, 1, 1),
    Condition: lambda: Condition(SourceState.LIMITED, "\u00e9" * 2048, 1),
}


def table() -> dict[str, int]:
    """Bytes a byte, by message."""
    found = re.findall(r"^\| (\w+) \| (\d+) \| ([^|]+) \| ([^|]+) \|$", TABLE, re.MULTILINE)
    return {name: int(factor) for name, factor, _, _ in found}


def test_every_message_has_a_worst_case_and_a_row() -> None:
    kinds = set(message_kinds().values())
    assert set(WORST) == kinds
    assert set(table()) == {kind.__name__ for kind in kinds}


@pytest.mark.parametrize("kind", WORST)
def test_decoding_allocates_no_more_than_the_table_says(kind: type[Message]) -> None:
    stated = table()[kind.__name__]
    assert stated <= MOST
    payload = encode(WORST[kind]())
    decode(kind.kind, payload)  # what is loaded or cached once is not the message's
    tracemalloc.start()
    message = decode(kind.kind, payload)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert type(message) is kind
    assert peak <= stated * len(payload) + FIXED, f"{peak / len(payload):.1f} bytes a byte"
