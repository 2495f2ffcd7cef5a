"""Hypothesis strategies for every kind of message."""

from __future__ import annotations

from hypothesis import strategies as st

from rdc.limits.watch import RESCAN_SECONDS
from rdc.limits.wire import (
    ORDINAL_LIMIT,
)
from rdc.model.entries import Kind
from rdc.model.filter_rules import (
    DirectoryRules,
    FilterRule,
    RuleAction,
    RuleModifiers,
    RuleSide,
    RuleSyntax,
)
from rdc.model.sync import Alternates, AlternateUse, Backup
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
)
from rdc.protocol.messages.rows import ALL_GROUPS
from rdc.protocol.wire.options import NamedValues
from tests.support.wire.wire_strategies import (
    batches,
    block_requests,
    changes,
    codes,
    corrections,
    data,
    entry_attributes,
    failures,
    files,
    hard_links,
    hellos,
    inner_paths,
    items,
    kept,
    lines,
    listings,
    metadata,
    mtimes,
    node_answers,
    options,
    ordinals,
    paths,
    range_requests,
    root_answers,
    roots,
    rows_parts,
    sizes,
    tier_answers,
    totals,
    traits_answers,
    widths,
)

RULES = (
    FilterRule(RuleAction.EXCLUDE, b"*.o"),
    FilterRule(RuleAction.INCLUDE, b"/x", RuleModifiers(RuleSide.DESTINATION, True, True, True)),
    DirectoryRules(b".rules", RuleSyntax.EXCLUDE, RuleSide.BOTH, inherited=False, words=True, above=True),
)


@st.composite
def owners(draw: st.DrawFn) -> Owners:
    def named() -> tuple[tuple[int, ...], tuple[bytes, ...]]:
        ids = draw(st.lists(st.integers(0, 2**32 - 1), max_size=5, unique=True).map(sorted))
        return tuple(ids), tuple(draw(st.sampled_from((b"", b"root", b"\xff"))) for _ in ids)

    return Owners(*named(), *named())


BY_KIND: dict[type[Message], st.SearchStrategy[Message]] = {
    Hello: hellos,
    Open: st.builds(
        Open,
        st.sampled_from(list(Role)),
        paths,
        st.binary(min_size=16, max_size=16),
        options,
        st.none() | st.just("bundles x"),
        st.none()
        | st.just(
            NamedValues(
                (
                    ("allocate", True),
                    ("alternates", Alternates(AlternateUse.LINK, (b"../a", b"b"))),
                    ("append", True),
                    ("backup", Backup(b"~", b"old")),
                    ("chmod", "D755,F644"),
                    ("delete_missing_args", True),
                    ("force", True),
                    ("groupmap", b"*:users"),
                    ("inplace", True),
                    ("list_unchanged", True),
                    ("mkpath", True),
                    ("modify_window", 2),
                    ("owner_names", True),
                    ("prune_empty_dirs", True),
                    ("rules", RULES),
                    ("rules_after", True),
                    ("safe_links", True),
                    ("usermap", b"0-99:nobody,a*:b"),
                )
            )
        ),
    ),
    Rules: st.builds(Rules, st.lists(st.sampled_from(RULES), max_size=4).map(tuple), st.booleans()),
    Selected: st.builds(
        Selected,
        paths,
        st.lists(st.sampled_from((b".", b"a", b"./a/b", b"d/", b"\xff/x")), max_size=4).map(tuple),
        st.booleans(),
    ),
    Opened: st.builds(Opened),
    Refused: st.builds(Refused, failures, lines),
    Describe: st.builds(Describe, st.booleans(), kept),
    Manifest: st.builds(
        Manifest,
        roots,
        ordinals,
        sizes,
        totals,
        sizes,
        kept,
        st.just(b"") | st.binary(min_size=8, max_size=8),
    ),
    TierRequest: st.builds(TierRequest, st.integers(0, 24), files | st.just(()), st.integers(1, ALL_GROUPS)),
    TierAnswer: tier_answers(),
    MountPoints: st.builds(MountPoints, st.lists(inner_paths, max_size=5).map(tuple)),
    HardLinks: hard_links(),
    EntryAttributes: entry_attributes(),
    Owners: owners(),
    TopTier: st.builds(
        TopTier,
        st.integers(0, 24),
        st.lists(st.binary(min_size=4, max_size=4), min_size=1, max_size=64).map(b"".join),
    ),
    RowsRequest: st.builds(RowsRequest, st.integers(0, 24), files, st.integers(1, ALL_GROUPS)),
    RowsPart: rows_parts(),
    Start: st.builds(
        Start,
        st.just(b"only"),
        st.sampled_from(list(Kind)),
        metadata,
        kept,
    ),
    ListingPart: st.builds(
        ListingPart,
        ordinals,
        inner_paths,
        st.integers(0, ORDINAL_LIMIT - 12),
        st.just(True),
        listings(),
    ),
    ListingEnd: st.builds(ListingEnd, sizes, sizes, sizes, totals, sizes),
    RootRequest: st.builds(RootRequest, files, widths, st.integers(1, 64)),
    RootAnswer: root_answers(),
    DigestRequest: st.builds(DigestRequest, files),
    DigestAnswer: st.builds(DigestAnswer, roots),
    TraitsRequest: st.builds(TraitsRequest, files),
    Landed: st.builds(Landed, files, st.binary(min_size=16, max_size=16)),
    Removed: st.builds(Removed, st.integers(0, 16_384)),
    TraitsAnswer: traits_answers(),
    TreeRequest: st.builds(TreeRequest, files, widths, st.just(0) | st.integers(64, 65_536)),
    TreeAnswer: st.builds(
        TreeAnswer, ordinals, sizes, roots, st.integers(0, 24), mtimes, *[st.binary(max_size=99)] * 2
    ),
    BundleRequest: st.builds(
        BundleRequest,
        ordinals,
        files.map(lambda some: some[:256]),
        st.integers(4, 8),
        st.integers(256, 65_536),
    ),
    BundleAnswer: st.builds(
        BundleAnswer,
        ordinals,
        st.sets(st.integers(0, 255)).map(lambda some: tuple(sorted(some))),
        roots,
        st.lists(st.integers(1, 1 << 62), max_size=9).map(tuple),
        *[st.binary(max_size=99)] * 2,
    ),
    NodeRequest: st.builds(NodeRequest, ordinals, st.integers(0, 24), files, widths),
    NodeAnswer: node_answers(),
    RangeRequest: range_requests(),
    Code: st.builds(Code, ordinals, st.binary(min_size=1, max_size=99)),
    Correction: corrections(),
    Table: st.builds(Table, ordinals, st.sampled_from([4, 24, 64]), st.binary(min_size=1, max_size=99)),
    Targets: st.builds(Targets, ordinals, st.binary(min_size=1, max_size=99)),
    Literals: st.builds(Literals, ordinals, st.binary(min_size=1, max_size=99)),
    BlockRequest: block_requests(),
    BlockAnswer: st.builds(BlockAnswer, ordinals, st.binary(min_size=3, max_size=200)),
    FileRequest: st.builds(FileRequest, files),
    Resized: st.builds(Resized, ordinals, sizes),
    Holes: st.lists(st.tuples(st.integers(0, 1 << 40), st.integers(1, 1 << 40)), max_size=9).flatmap(
        lambda some: st.builds(
            Holes,
            ordinals,
            sizes,
            st.just(tuple(gap for gap, _ in some)),
            st.just(tuple(length for _, length in some)),
        )
    ),
    Data: data(),
    FileBatch: batches(),
    FileEnd: st.builds(FileEnd, ordinals, sizes, roots | st.just(b""), mtimes)
    | st.builds(FileEnd, st.integers(0, 9), sizes, roots, mtimes, st.integers(10, 99)),
    FileFailed: st.builds(FileFailed, ordinals, failures, lines),
    Notice: st.builds(Notice, codes, paths, lines),
    Items: items(),
    Progress: st.builds(
        Progress, st.sampled_from(["compare", "transfer", "delete"]), totals, st.none() | totals
    ),
    Plan: st.builds(Plan, sizes, totals, sizes),
    Done: st.builds(Done, sizes, sizes, sizes, totals, totals, sizes, codes),
    Watch: st.builds(Watch, st.booleans(), st.binary(min_size=16, max_size=16)),
    Follow: st.builds(
        Follow, st.integers(0, RESCAN_SECONDS), st.just(b"") | st.binary(min_size=16, max_size=16)
    ),
    Condition: st.builds(
        Condition, st.sampled_from(list(SourceState)), lines, st.integers(0, RESCAN_SECONDS)
    ),
    Turn: st.builds(Turn, st.booleans()),
    Renamed: st.builds(
        Renamed,
        inner_paths.map(lambda path: b"old/" + path if path else b"old"),
        inner_paths.map(lambda path: b"new/" + path if path else b"new"),
        st.sampled_from([Kind.FILE, Kind.DIRECTORY]),
        sizes,
        metadata,
    ),
    Changed: changes(),
    TurnEnd: st.builds(TurnEnd, sizes, sizes, sizes),
}


messages: st.SearchStrategy[Message] = st.one_of(*BY_KIND.values())
