"""The index of traits and its pairs: C against plain Python, after any sequence of changes."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.kernel import _kernel
from rdc.kernel.constants import mix
from rdc.limits import SIMILAR_FILES, SIMILAR_MATCHES
from tests.kernel.trait_rows import ROW, drained, every_kernel, packed, random_rows, samples
from tests.reference import kernel as pure
from tests.reference.similarity import CLASS_FILES, ROW_BYTES, joins, matches
from tests.support.project_paths import KERNEL

keys = st.one_of(st.integers(0, 12), st.sampled_from([511, 512, 1 << 32, (1 << 64) - 1]))
sizes = st.one_of(st.integers(0, 5), st.sampled_from([1000, 65_535]))


rows = st.builds(lambda k, s, t: ROW.pack(k, s, packed(t)), keys, sizes, samples)


@dataclass(frozen=True)
class Put:
    row: bytes


@dataclass(frozen=True)
class Remove:
    key: int


@dataclass(frozen=True)
class Query:
    row: bytes
    limit: int
    min_matches: int


operations = st.one_of(
    st.builds(Put, rows),
    st.builds(Remove, keys),
    st.builds(Query, rows, st.integers(1, 20), st.integers(1, 12)),
)


def filler(count: int) -> bytes:
    """Files that share some traits with what the strategies draw, numbered from 100 on."""
    rng = random.Random(count)
    return b"".join(
        ROW.pack(100 + i, rng.randrange(6), packed([rng.choice((0, 1, 2, 31)) for _ in range(12)]))
        for i in range(count)
    )


@settings(deadline=None)
@given(st.sampled_from([0, 1, 255, 510, 512, 1023, 1024]), st.lists(operations, max_size=30))
def test_any_sequence_of_changes_and_queries(before: int, sequence: list[Put | Remove | Query]) -> None:
    fast, plain = _kernel.TraitIndex(), pure.TraitIndex()
    for index in (fast, plain):
        index.put(filler(before))
    for operation in sequence:
        if isinstance(operation, Put):
            fast.put(operation.row)
            plain.put(operation.row)
        elif isinstance(operation, Remove):
            assert (operation.key in fast) == (operation.key in plain)
            assert fast.remove(operation.key) == plain.remove(operation.key)
            assert operation.key not in fast
        else:
            asked = (operation.row, operation.limit, operation.min_matches)
            assert fast.query(*asked) == plain.query(*asked)
        assert len(fast) == len(plain)
    assert fast.keys() == plain.keys()
    assert fast.rows(fast.keys()) == plain.rows(plain.keys())


def all_with_all(packed_rows: bytes, min_matches: int) -> list[tuple[int, int, int]]:
    files = [(key, traits) for key, _, traits in ROW.iter_unpack(packed_rows)]
    found = []
    for i, (key, traits) in enumerate(files):
        for other, other_traits in files[i + 1 :]:
            alike = matches(traits, other_traits)
            if alike >= min_matches:
                found.append((min(key, other), max(key, other), alike))
    return sorted(found)


@settings(deadline=None)
@given(
    st.dictionaries(keys | st.integers(0, 100), samples, max_size=60),
    st.integers(0, 3),
    st.integers(2, 12),
    st.sampled_from([1, 2, 7, 1000]),
)
def test_pairs(files: dict[int, list[int]], copies: int, min_matches: int, window: int) -> None:
    held = b"".join(
        ROW.pack(key + 1000 * copy & (1 << 64) - 1, 0, packed(numbers))
        for key, numbers in files.items()
        for copy in range(copies + 1)
    )
    fast, plain = _kernel.TraitIndex(), pure.TraitIndex()
    fast.put(held)
    plain.put(held)
    searches = _kernel.TraitPairs(fast, min_matches, window), pure.TraitPairs(plain, min_matches, window)
    found = drained(searches[0])
    assert found == drained(searches[1])
    assert (searches[0].flooded, searches[0].skipped) == (searches[1].flooded, searches[1].skipped)
    wanted = all_with_all(plain.rows(plain.keys()), min_matches)
    assert set(found) <= set(wanted)
    assert len(set(found)) == len(found)
    if not searches[0].flooded and not searches[0].skipped:
        assert found == wanted


def groups(pairs: list[tuple[int, int, int]], least: int) -> set[frozenset[int]]:
    """What the pairs with so many matches connect."""
    members: dict[int, set[int]] = {}
    for first, second, alike in pairs:
        if alike >= least:
            joined = members.get(first, {first}) | members.get(second, {second})
            members.update(dict.fromkeys(joined, joined))
    return {frozenset(one) for one in members.values()}


@settings(deadline=None)
@given(
    st.dictionaries(keys | st.integers(0, 100), samples, max_size=60), st.integers(0, 17), st.integers(2, 12)
)
def test_spanning_pairs_connect_what_all_pairs_do(
    files: dict[int, list[int]], copies: int, min_matches: int
) -> None:
    held = b"".join(
        ROW.pack(key + 1000 * copy & (1 << 64) - 1, 0, packed(numbers))
        for key, numbers in files.items()
        for copy in range(copies + 1)
    )
    for module in (_kernel, pure):
        index = module.TraitIndex()
        index.put(held)
        wanted = all_with_all(index.rows(index.keys()), min_matches)
        found = drained(module.TraitPairs(index, min_matches, 1000, spanning=True))
        assert set(found) <= set(wanted)
        assert len(found) <= len(index) * (13 - min_matches)
        for least in range(min_matches, 13):
            assert groups(found, least) == groups(wanted, least)


@pytest.mark.parametrize("least", range(2, 13))
def test_any_two_with_enough_matches_agree_in_a_join(least: int) -> None:
    """The pigeonhole: however `least` matches are spread over the twelve traits, both of a join are among
    them."""
    wanted = [1 << t | 1 << u for t, u in joins(least)]
    for agreeing in range(1 << 12):
        if agreeing.bit_count() >= least:
            assert any(agreeing & join == join for join in wanted)
    assert len(wanted) == {2: 66, 3: 30, 4: 18, 5: 12, 6: 12}.get(least, 6)


def test_buckets_of_several_groups_and_steps() -> None:
    """All files agree in two traits and differ elsewhere: one bucket of 1,500, three groups of 512."""

    def near(rng: random.Random) -> bytes:
        return packed([7, 9, *(rng.randrange(3) for _ in range(10))])

    fast = _kernel.TraitIndex()
    fast.put(random_rows(1500, 1, near))
    held = fast.rows(fast.keys())
    search = _kernel.TraitPairs(fast, 9, 1 << 20)
    steps = 0
    found = []
    while (step := search.step()) is not None:
        found += step
        steps += 1
    assert sorted(found) == all_with_all(held, 9)
    assert steps > 3


def test_a_flood_costs_a_pair_a_file() -> None:
    """Ten thousand files with equal traits: each stands beside the first, and the first beside the others."""
    flood, other = bytes(9), packed([0] * 11 + [5])
    fast = _kernel.TraitIndex()
    fast.put(b"".join(ROW.pack(i, 0, flood) for i in range(10, 10_010)))
    fast.put(ROW.pack(3, 0, other))
    search = _kernel.TraitPairs(fast, 4, 100)
    found = drained(search)
    assert found == [(3, 10, 11), *((10, i, 12) for i in range(11, 10_010))]
    assert (search.flooded, search.skipped) == (9_999, 0)
    just_under = _kernel.TraitIndex()
    just_under.put(b"".join(ROW.pack(i, 0, flood) for i in range(CLASS_FILES)))
    assert len(drained(_kernel.TraitPairs(just_under, 4, 100))) == CLASS_FILES * (CLASS_FILES - 1) // 2


@pytest.mark.parametrize("order", [1, -1], ids=["ascending", "descending"])
@pytest.mark.parametrize("limit", [1, 7, 64])
def test_a_flood_is_decided_by_size_then_by_number(order: int, limit: int) -> None:
    """5,000 files alike in all traits: the nearest sizes win, then the nearest keys, wherever they lie."""
    numbers = range(5000)[::order]
    fast, plain = _kernel.TraitIndex(), pure.TraitIndex()
    for index in (fast, plain):
        index.put(b"".join(ROW.pack(i, i // 10, bytes(9)) for i in numbers))
    for near in (0, 2503, 4999, 1 << 63):
        for size in (0, 250, 65_535):
            asked = (ROW.pack(near, size, bytes(9)), limit, 4)
            assert fast.query(*asked) == plain.query(*asked)


def test_many_queries_are_answered_as_each_alone() -> None:
    fast = _kernel.TraitIndex()
    held = random_rows(3000, 5, lambda rng: packed([rng.randrange(2) for _ in range(12)]))
    fast.put(held)
    asked = [held[i * ROW_BYTES : (i + 1) * ROW_BYTES] for i in range(0, 3000, 50)]
    assert fast.query(b"".join(asked), 5, 3) == [fast.query(row, 5, 3)[0] for row in asked]
    assert fast.query(b"", 5, 3) == []


def test_a_file_takes_less_than_32_bytes() -> None:
    """Nine of traits, eight of number, two of size, and its place in the hash table."""
    fast = _kernel.TraitIndex()
    for count in (10_000, 49_000, 98_304, 98_305, 150_000):
        held = random_rows(count - len(fast), count, lambda rng: rng.randbytes(9))
        start = len(fast)
        fast.put(b"".join(ROW.pack(start + i, s, t) for i, (_, s, t) in enumerate(ROW.iter_unpack(held))))
        assert fast.memory <= 32 * len(fast)
    most = fast.memory
    for key in range(150_000):
        fast.remove(key)
    assert fast.memory < most / 2.5
    assert fast.query(bytes(ROW_BYTES), 1, 1) == [[]]


def test_colliding_keys_of_a_guessed_hash_do_not_collide() -> None:
    """Keys with one home under seed 0: were the seed known, each would be looked for along all others."""
    mask = (1 << 64) - 1

    def unmixed(x: int) -> int:
        """The inverse of rdc_mix, SplitMix64."""
        x ^= x >> 31 ^ x >> 62
        x = x * pow(0x94D049BB133111EB, -1, 1 << 64) & mask
        x ^= x >> 27 ^ x >> 54
        x = x * pow(0xBF58476D1CE4E5B9, -1, 1 << 64) & mask
        x ^= x >> 30 ^ x >> 60
        return x - 0x9E3779B97F4A7C15 & mask

    chosen = [unmixed(i << 32) for i in range(100_000)]
    assert mix(chosen[5]) == 5 << 32
    fast = _kernel.TraitIndex()
    fast.put(b"".join(ROW.pack(key, 0, bytes(9)) for key in chosen))  # minutes, if they collided
    assert len(fast) == 100_000
    assert all(key in fast for key in chosen[::1000])


@every_kernel
def test_wrong_arguments_are_refused(module: Any) -> None:
    index = module.TraitIndex()
    for bad in (b"x", bytes(ROW_BYTES + 1)):
        with pytest.raises(ValueError, match="no whole number of 19-byte rows"):
            index.put(bad)
        with pytest.raises(ValueError, match="no whole number of 19-byte rows"):
            index.query(bad, 1, 1)
    with pytest.raises(ValueError, match="no whole number of 8-byte keys"):
        index.rows(bytes(9))
    with pytest.raises(KeyError, match="7"):
        index.rows((7).to_bytes(8, "little"))
    for limit, least in ((0, 1), (SIMILAR_MATCHES + 1, 1), (1, 0), (1, 13), (-1, 1)):
        with pytest.raises(ValueError, match="a query for"):
            index.query(bytes(ROW_BYTES), limit, least)
    for key in (-1, 1 << 64):
        for call in (index.remove, index.__contains__):
            with pytest.raises(ValueError, match="64 bits"):
                call(key)
    for least, window in ((1, 5), (13, 5), (4, 0)):
        with pytest.raises(ValueError, match="pairs with"):
            module.TraitPairs(index, least, window)


def test_bounds_are_those_of_the_limits() -> None:
    header = (KERNEL / "similarity" / "similarity.h").read_text()
    assert f"#define RDC_MATCHES_MAX {SIMILAR_MATCHES}\n" in header
    assert f"#define RDC_INDEX_FILES (1 << {SIMILAR_FILES.bit_length() - 1})\n" in header
