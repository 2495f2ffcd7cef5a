"""Hypothesis strategies for every kind of message."""

from __future__ import annotations

from hypothesis import strategies as st

from rdc.limits import ORDINAL_LIMIT, RESCAN_SECONDS
from rdc.model.entries import Kind
from rdc.model.options import Alternates, AlternateUse, Backup
from rdc.model.selection import DirectoryRules, FilterRule, RuleAction, RuleModifiers, RuleSide, RuleSyntax
from rdc.protocol import messages
from rdc.protocol.messages.field_types import ALL_GROUPS
from rdc.protocol.messages.uniting import Subject
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
def owners(draw: st.DrawFn) -> messages.Owners:
    def named() -> tuple[tuple[int, ...], tuple[bytes, ...]]:
        ids = draw(st.lists(st.integers(0, 2**32 - 1), max_size=5, unique=True).map(sorted))
        return tuple(ids), tuple(draw(st.sampled_from((b"", b"root", b"\xff"))) for _ in ids)

    return messages.Owners(*named(), *named())


root_ids = st.just(b"") | st.binary(min_size=16, max_size=16)
marks = st.lists(st.binary(min_size=24, max_size=24), max_size=2).map(tuple)
generations = st.lists(st.binary(min_size=8, max_size=8), max_size=3).map(tuple)

BY_KIND: dict[type[messages.Message], st.SearchStrategy[messages.Message]] = {
    messages.Hello: hellos,
    messages.Open: st.builds(
        messages.Open,
        st.sampled_from(list(messages.Role)),
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
    messages.Rules: st.builds(
        messages.Rules, st.lists(st.sampled_from(RULES), max_size=4).map(tuple), st.booleans()
    ),
    messages.Selected: st.builds(
        messages.Selected,
        paths,
        st.lists(st.sampled_from((b".", b"a", b"./a/b", b"d/", b"\xff/x")), max_size=4).map(tuple),
        st.booleans(),
    ),
    messages.Opened: st.builds(messages.Opened),
    messages.Refused: st.builds(messages.Refused, failures, lines),
    messages.Describe: st.builds(messages.Describe, st.booleans(), kept),
    messages.Manifest: st.builds(
        messages.Manifest,
        roots,
        ordinals,
        sizes,
        totals,
        sizes,
        kept,
        st.just(b"") | st.binary(min_size=8, max_size=8),
    ),
    messages.TierRequest: st.builds(
        messages.TierRequest, st.integers(0, 24), files | st.just(()), st.integers(1, ALL_GROUPS)
    ),
    messages.TierAnswer: tier_answers(),
    messages.MountPoints: st.builds(messages.MountPoints, st.lists(inner_paths, max_size=5).map(tuple)),
    messages.HardLinks: hard_links(),
    messages.EntryAttributes: entry_attributes(),
    messages.Owners: owners(),
    messages.TopTier: st.builds(
        messages.TopTier,
        st.integers(0, 24),
        st.lists(st.binary(min_size=4, max_size=4), min_size=1, max_size=64).map(b"".join),
    ),
    messages.RowsRequest: st.builds(
        messages.RowsRequest, st.integers(0, 24), files, st.integers(1, ALL_GROUPS)
    ),
    messages.RowsPart: rows_parts(),
    messages.Start: st.builds(
        messages.Start,
        st.just(b"only"),
        st.sampled_from(list(Kind)),
        metadata,
        kept,
    ),
    messages.ListingPart: st.builds(
        messages.ListingPart,
        ordinals,
        inner_paths,
        st.integers(0, ORDINAL_LIMIT - 12),
        st.just(True),
        listings(),
    ),
    messages.ListingEnd: st.builds(messages.ListingEnd, sizes, sizes, sizes, totals, sizes),
    messages.RootRequest: st.builds(messages.RootRequest, files, widths, st.integers(1, 64)),
    messages.RootAnswer: root_answers(),
    messages.DigestRequest: st.builds(messages.DigestRequest, files),
    messages.DigestAnswer: st.builds(messages.DigestAnswer, roots),
    messages.TraitsRequest: st.builds(messages.TraitsRequest, files),
    messages.Landed: st.builds(messages.Landed, files, st.binary(min_size=16, max_size=16)),
    messages.Removed: st.builds(messages.Removed, st.integers(0, 16_384)),
    messages.TraitsAnswer: traits_answers(),
    messages.TreeRequest: st.builds(
        messages.TreeRequest, files, widths, st.just(0) | st.integers(64, 65_536)
    ),
    messages.TreeAnswer: st.builds(
        messages.TreeAnswer, ordinals, sizes, roots, st.integers(0, 24), mtimes, *[st.binary(max_size=99)] * 2
    ),
    messages.LikelyRequest: st.builds(
        messages.LikelyRequest, st.integers(0, 10**18), widths, st.integers(64, 65_536)
    ),
    messages.LikelyAnswer: st.builds(messages.LikelyAnswer, files.map(lambda some: some[:16]) | st.just(())),
    messages.LikelyBlocks: st.builds(
        messages.LikelyBlocks, files.map(lambda some: some[:256]), st.binary(max_size=99)
    ),
    messages.BundleRequest: st.builds(
        messages.BundleRequest,
        ordinals,
        files.map(lambda some: some[:256]),
        st.integers(256, 65_536),
    ),
    messages.BundleAnswer: st.builds(
        messages.BundleAnswer,
        ordinals,
        st.sets(st.integers(0, 255)).map(lambda some: tuple(sorted(some))),
        roots,
        st.binary(max_size=99),
    ),
    messages.NodeRequest: st.builds(messages.NodeRequest, ordinals, st.integers(0, 24), files, widths),
    messages.NodeAnswer: node_answers(),
    messages.RangeRequest: range_requests(),
    messages.Code: st.builds(messages.Code, ordinals, st.binary(min_size=1, max_size=99)),
    messages.Correction: corrections(),
    messages.Table: st.builds(
        messages.Table, ordinals, st.sampled_from([4, 24, 64]), st.binary(min_size=1, max_size=99)
    ),
    messages.Targets: st.builds(messages.Targets, ordinals, st.binary(min_size=1, max_size=99)),
    messages.Literals: st.builds(messages.Literals, ordinals, st.binary(min_size=1, max_size=99)),
    messages.BlockRequest: block_requests(),
    messages.BlockAnswer: st.builds(messages.BlockAnswer, ordinals, st.binary(min_size=3, max_size=200)),
    messages.FileRequest: st.builds(messages.FileRequest, files, st.integers(0, 2)),
    messages.Resized: st.builds(messages.Resized, ordinals, sizes),
    messages.Holes: st.lists(st.tuples(st.integers(0, 1 << 40), st.integers(1, 1 << 40)), max_size=9).flatmap(
        lambda some: st.builds(
            messages.Holes,
            ordinals,
            sizes,
            st.just(tuple(gap for gap, _ in some)),
            st.just(tuple(length for _, length in some)),
        )
    ),
    messages.Data: data(),
    messages.FileBatch: batches(),
    messages.FileEnd: st.builds(messages.FileEnd, ordinals, sizes, roots | st.just(b""), mtimes)
    | st.builds(messages.FileEnd, st.integers(0, 9), sizes, roots, mtimes, st.integers(10, 99)),
    messages.FileFailed: st.builds(messages.FileFailed, ordinals, failures, lines),
    messages.Notice: st.builds(messages.Notice, codes, paths, lines),
    messages.Items: items(),
    messages.Progress: st.builds(
        messages.Progress, st.sampled_from(["compare", "transfer", "delete"]), totals, st.none() | totals
    ),
    messages.Plan: st.builds(messages.Plan, sizes, totals, sizes),
    messages.Done: st.builds(
        messages.Done, sizes, sizes, sizes, totals, totals, sizes, codes, st.none() | sizes
    ),
    messages.Watch: st.builds(messages.Watch, st.booleans(), st.binary(min_size=16, max_size=16)),
    messages.Follow: st.builds(
        messages.Follow, st.integers(0, RESCAN_SECONDS), st.just(b"") | st.binary(min_size=16, max_size=16)
    ),
    messages.Condition: st.builds(
        messages.Condition, st.sampled_from(list(messages.SourceState)), lines, st.integers(0, RESCAN_SECONDS)
    ),
    messages.Turn: st.builds(messages.Turn, st.booleans()),
    messages.Renamed: st.builds(
        messages.Renamed,
        inner_paths.map(lambda path: b"old/" + path if path else b"old"),
        inner_paths.map(lambda path: b"new/" + path if path else b"new"),
        st.sampled_from([Kind.FILE, Kind.DIRECTORY]),
        sizes,
        metadata,
    ),
    messages.Changed: changes(),
    messages.TurnEnd: st.builds(messages.TurnEnd, sizes, sizes, sizes),
    messages.Meet: st.builds(
        messages.Meet,
        root_ids,
        root_ids,
        marks,
        generations,
        st.integers(0, 255),
        st.none() | totals,
        st.none() | st.integers(1, 36_500),
        sizes,
        paths,
        st.binary(max_size=9),
        kept,
    ),
    messages.Met: st.builds(
        messages.Met,
        root_ids,
        marks,
        generations,
        st.integers(0, 127),
        root_ids,
        sizes,
        sizes,
        st.none() | totals,
        st.none() | totals,
        paths,
        st.binary(max_size=9),
        kept,
    ),
    messages.Page: st.builds(
        messages.Page, st.sampled_from(list(Subject)), st.binary(max_size=99), st.booleans()
    ),
    messages.Exchange: st.builds(messages.Exchange, st.sampled_from(list(messages.Role))),
}


any_message: st.SearchStrategy[messages.Message] = st.one_of(*BY_KIND.values())
