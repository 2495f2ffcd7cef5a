"""Hypothesis strategies for listings, options and parts of messages."""

from __future__ import annotations

from array import array
from itertools import chain
from operator import or_

from hypothesis import strategies as st

from rdc.errors import ExitCode
from rdc.limits import DATA_BYTES, ORDINAL_LIMIT, PACKED_BYTES, SIZE_LIMIT, TOTAL_LIMIT
from rdc.model.entries import Kind, Listing, Metadata
from rdc.model.preserved import (
    ACCESS_TIME,
    ALL_MODES,
    GRANULARITIES,
    UNREADABLE,
    AttributeKinds,
    Granularity,
    Preserved,
    Rounding,
    pack_attributes,
    packed_time,
)
from rdc.model.selection import FilterRule, RuleAction
from rdc.model.sync import SyncOptions
from rdc.protocol import messages
from rdc.protocol.messages.field_types import (
    ALL_GROUPS,
    ATTRIBUTES,
    CHECK_BLOCK_BYTES,
    MTIMES,
    NAMES,
    Claims,
    Rows,
    Segment,
)
from tests.support.kernel.range_rows import rows_of

ordinals = st.one_of(st.integers(0, 300), st.integers(0, ORDINAL_LIMIT))
sizes = st.one_of(st.integers(0, 300), st.integers(0, SIZE_LIMIT))
totals = sizes | st.integers(SIZE_LIMIT - 1, TOTAL_LIMIT)
files = st.sets(ordinals, min_size=1, max_size=20).map(lambda found: tuple(sorted(found)))
roots = st.binary(min_size=32, max_size=32)
widths = st.integers(4, 8) | st.just(32)
codes = st.sampled_from(list(ExitCode))
failures = codes.filter(bool)
granularities = st.builds(Granularity, st.sampled_from(GRANULARITIES), st.sampled_from([*Rounding]))
kept = st.builds(
    Preserved,
    st.booleans(),
    granularities,
    st.integers(0, ALL_MODES),
    st.builds(AttributeKinds, st.integers(0, 15)),
    st.booleans(),
    st.integers(0, ALL_MODES),
    st.frozensets(st.sampled_from((Kind.FILE, Kind.DIRECTORY, Kind.SYMLINK))),
    st.frozensets(st.sampled_from((Kind.SYMLINK, Kind.SPECIAL))),
    granularities,
)
# What arrives is printable already, so that a message can equal what comes out at the other end.
lines = st.text(max_size=60).filter(str.isprintable)
component = st.binary(min_size=1, max_size=40).filter(
    lambda name: not {0, 0x2F} & set(name) and name not in {b".", b".."}
)
paths = st.binary(max_size=60).filter(lambda path: 0 not in path)
times = st.integers(-(1 << 63) * 10**9, (1 << 63) * 10**9 - 1).map(packed_time)
"""Packed times of which many are distant."""

inner_paths = st.lists(component, max_size=4).map(b"/".join)


@st.composite
def listings(draw: st.DrawFn, min_size: int = 0, max_size: int = 12) -> Listing:
    names = tuple(sorted(draw(st.sets(component, min_size=min_size, max_size=max_size))))
    count = len(names)
    kinds = bytes(draw(st.lists(st.sampled_from(list(Kind)), min_size=count, max_size=count)))

    def column(code: str, low: int, high: int) -> array[int]:
        return array(code, draw(st.lists(st.integers(low, high), min_size=count, max_size=count)))

    lengths = column("Q", 0, SIZE_LIMIT)
    for row, kind in enumerate(kinds):
        if kind != Kind.FILE:
            lengths[row] = 0
    links = kinds.count(Kind.SYMLINK)
    target = st.binary(min_size=1, max_size=60).filter(lambda path: 0 not in path)
    return Listing(
        names,
        kinds,
        column("H", 0, 0o7777),
        lengths,
        array("q", draw(st.lists(times, min_size=count, max_size=count))),
        column("I", 0, 0xFFFF_FFFF),
        column("I", 0, 0xFFFF_FFFF),
        tuple(draw(st.lists(target, min_size=links, max_size=links))),
    )


rules = st.builds(
    FilterRule,
    st.sampled_from(list(RuleAction)),
    st.binary(min_size=1, max_size=20).filter(lambda pattern: 0 not in pattern),
)
options = st.builds(
    SyncOptions,
    checksum=st.booleans(),
    delete=st.booleans(),
    max_delete=st.none() | sizes,
    force_empty=st.booleans(),
    dry_run=st.booleans(),
    rules=st.lists(rules, max_size=4).map(tuple),
    fsync=st.booleans(),
    items=st.booleans(),
    compress=st.none(),
    owner=st.none() | st.booleans(),
    one_file_system=st.booleans(),
    update=st.booleans(),
    existing=st.booleans(),
    ignore_existing=st.booleans(),
    size_only=st.booleans(),
    sparse=st.booleans(),
    hard_links=st.booleans(),
    acls=st.booleans(),
    xattrs=st.booleans(),
    delete_excluded=st.booleans(),
    min_size=st.just(0) | sizes,
    max_size=st.none() | sizes,
)
hellos = st.builds(messages.Hello, st.just(1), lines.map(lambda text: text[:16]), roots)


@st.composite
def traits_answers(draw: st.DrawFn) -> messages.TraitsAnswer:
    named = draw(files)
    count = len(named)
    held = draw(st.lists(sizes | st.integers(20_000, 70_000), min_size=count, max_size=count))
    near = sum(24_576 <= size < 65_536 for size in held)
    return messages.TraitsAnswer(
        named,
        tuple(held),
        draw(st.binary(min_size=8 * count, max_size=8 * count)),
        draw(st.binary(min_size=9 * count, max_size=9 * count)),
        draw(st.binary(min_size=9 * near, max_size=9 * near)),
    )


@st.composite
def root_answers(draw: st.DrawFn) -> messages.RootAnswer:
    named = draw(files)
    count = len(named)
    group = draw(st.integers(1, 64))
    if group > 1:
        return messages.RootAnswer(
            named, (), draw(st.binary(min_size=8, max_size=8)) * -(-count // group), group
        )
    return messages.RootAnswer(
        named,
        tuple(draw(st.lists(sizes, min_size=count, max_size=count))),
        draw(st.binary(min_size=32 * count, max_size=32 * count)),
    )


@st.composite
def batches(draw: st.DrawFn) -> messages.FileBatch:
    named = draw(files)
    lengths = draw(st.lists(st.integers(0, 300), min_size=len(named), max_size=len(named)))
    return messages.FileBatch(named, tuple(lengths), draw(roots), bytes(sum(lengths)))


@st.composite
def items(draw: st.DrawFn) -> messages.Items:
    count = draw(st.integers(1, 5))
    codes = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=11, max_size=11)
    named = st.lists(paths, min_size=count, max_size=count).map(tuple)
    return messages.Items("".join(draw(codes) for _ in range(count)), draw(named), draw(st.just(()) | named))


@st.composite
def node_answers(draw: st.DrawFn) -> messages.NodeAnswer:
    nodes = draw(files)
    count = len(nodes)
    records = draw(st.lists(st.binary(max_size=50), min_size=count, max_size=count))
    return messages.NodeAnswer(draw(ordinals), draw(st.integers(0, 24)), nodes, tuple(records))


@st.composite
def range_requests(draw: st.DrawFn) -> messages.RangeRequest:
    ends = sorted(draw(st.sets(st.integers(0, SIZE_LIMIT), min_size=2, max_size=20)))
    pairs = tuple((a, b - a) for a, b in zip(ends[::2], ends[1::2], strict=False))
    pack = draw(st.booleans()) and sum(length for _, length in pairs) <= PACKED_BYTES
    cells = tuple(sorted(draw(st.sets(st.integers(0, SIZE_LIMIT // CHECK_BLOCK_BYTES), max_size=9))))
    digests = draw(st.binary(min_size=2 * len(cells), max_size=2 * len(cells)))
    blank = bool(cells) and not pack and draw(st.booleans())
    return messages.RangeRequest.of(
        draw(ordinals), rows_of(pairs), pack=pack, claims=Claims(cells, digests), blank=blank
    )


@st.composite
def corrections(draw: st.DrawFn) -> messages.Correction:
    cells = tuple(
        sorted(draw(st.sets(st.integers(0, SIZE_LIMIT // CHECK_BLOCK_BYTES), min_size=1, max_size=64)))
    )
    return messages.Correction(draw(ordinals), cells, draw(st.binary(max_size=300)))


@st.composite
def block_requests(draw: st.DrawFn) -> messages.BlockRequest:
    lengths = st.integers(1, 300_000)
    gaps = st.integers(0, SIZE_LIMIT >> 6)
    found, end = [], 0
    for gap, length in draw(st.lists(st.tuples(gaps, lengths), min_size=1, max_size=20)):
        found.append((end + gap, length))
        end += gap + length
    size = draw(st.sampled_from([16, 64, 1000, 65_536]))
    return messages.BlockRequest.of(
        draw(ordinals),
        array("Q", chain.from_iterable(found[: 3 if size == 16 else 20])),
        size,
        draw(st.integers(4, 8)),
        blank=draw(st.booleans()),
    )


@st.composite
def data(draw: st.DrawFn) -> messages.Data:
    payload = draw(st.one_of(st.binary(min_size=1, max_size=200), st.just(bytes(DATA_BYTES))))
    return messages.Data(draw(ordinals), payload)


@st.composite
def rows_parts(draw: st.DrawFn) -> messages.RowsPart:
    """Any groups of the entries of one to three directories."""
    groups = draw(st.integers(1, ALL_GROUPS))
    found = [
        (draw(inner_paths), draw(listings(min_size=1, max_size=5)).packed())
        for _ in range(draw(st.integers(1, 3)))
    ]

    def column(name: str, wanted: object) -> bytes:
        return b"".join(getattr(listing, name) for _, listing in found) if wanted else b""

    owner = groups & ATTRIBUTES and draw(st.booleans())
    segments = tuple(Segment(path, len(part), part.names, part.targets) for path, part in found)
    rows = Rows(
        sum(len(part) for _, part in found),
        segments if groups & NAMES else (),
        column("kinds", groups & NAMES),
        column("modes", groups & ATTRIBUTES),
        column("sizes", groups & ATTRIBUTES),
        column("uids", owner),
        column("gids", owner),
        column("mtimes", groups & MTIMES),
    )
    counts = tuple(len(part) for _, part in found)
    return messages.RowsPart(draw(st.sampled_from((counts, (rows.count,)))), draw(st.booleans()), rows)


@st.composite
def tier_answers(draw: st.DrawFn) -> messages.TierAnswer:
    firsts = draw(st.lists(ordinals, min_size=1, max_size=20))
    counts = draw(st.lists(st.integers(1, 300), min_size=len(firsts), max_size=len(firsts)))
    return messages.TierAnswer(
        draw(st.integers(0, 24)), tuple(firsts), tuple(counts), draw(st.binary(min_size=1, max_size=99))
    )


metadata = st.builds(
    Metadata,
    st.integers(0, 0o7777),
    times,
    st.integers(0, 0xFFFF_FFFF),
    st.integers(0, 0xFFFF_FFFF),
)
mtimes = st.none() | times


@st.composite
def changes(draw: st.DrawFn) -> messages.Changed:
    gone = b"".join(name + b"\0" for name in sorted(draw(st.sets(component, max_size=5))))
    listing = draw(listings())
    doubtful = tuple(row for row in listing.rows_of(Kind.FILE) if draw(st.booleans()))
    first = draw(st.integers(0, ORDINAL_LIMIT - 12))
    return messages.Changed(draw(inner_paths), draw(metadata), first, gone, listing, doubtful)


@st.composite
def hard_links(draw: st.DrawFn) -> messages.HardLinks:
    named = tuple(sorted(draw(st.sets(st.integers(1, 1 << 31), min_size=1, max_size=5))))
    return messages.HardLinks(named, tuple(draw(st.integers(0, file - 1)) for file in named))


@st.composite
def entry_attributes(draw: st.DrawFn) -> messages.EntryAttributes:
    names = st.binary(min_size=1, max_size=20).filter(lambda name: b"\0" not in name and name != ACCESS_TIME)
    time = st.dictionaries(st.just(ACCESS_TIME), st.binary(min_size=8, max_size=8), max_size=1)
    pairs = st.builds(or_, st.dictionaries(names, st.binary(max_size=20), min_size=1, max_size=3), time)
    packed = pairs.map(lambda given: pack_attributes(tuple(given.items())))
    sets = tuple(draw(st.lists(packed | st.just(UNREADABLE), min_size=1, max_size=3)))
    entries = tuple(sorted(draw(st.sets(st.integers(0, 1 << 31), min_size=1, max_size=5))))
    return messages.EntryAttributes(
        entries, tuple(draw(st.integers(0, len(sets) - 1)) for _ in entries), sets
    )
