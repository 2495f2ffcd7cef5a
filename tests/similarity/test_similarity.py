"""The similarity library: formulas against the tables of their paper, saved indices against damage."""

from __future__ import annotations

import io
import random
import struct

import pytest
from blake3 import blake3
from hypothesis import given, settings
from hypothesis import strategies as st

import rdc
from rdc.chunking import SYNC_PARAMS
from rdc.kernel import _kernel
from rdc.kernel.constants import FEW_FEATURES_BELOW
from rdc.limits import SIMILAR_BATCH, SIMILAR_FILES, SIZE_LIMIT
from rdc.protocol.messages.content import COARSE_BELOW
from rdc.signature.tree import sign
from rdc.similarity.index import SimilarityIndex, SimilarityIndexError, size_code
from rdc.similarity.traits import Traits, accidents, coarse_traits, estimate_of, probability_of_matches

ROW = struct.Struct("<QH9s")
HEAD = struct.Struct("<4sBQ")

traits = st.binary(min_size=9, max_size=9).map(Traits)
keys = st.integers(0, (1 << 64) - 1)


# ---- estimates ----


@pytest.mark.parametrize(
    ("density1", "density2", "resemblance", "gain"),
    [
        (0.0145, 0.0143, 0.925, 31.0),  # KONG-HONG
        (0.570, 0.554, 0.771, 40.8),  # OF-AND
        (0.062, 0.061, 0.591, 24.8),  # UNITED-STATES
        (0.045, 0.043, 0.112, 6.8),  # LOW-PAY
        (0.596, 0.035, 0.052, 6.2),  # A-TEST
    ],
)
def test_one_bit_saves_what_the_paper_says(
    density1: float, density2: float, resemblance: float, gain: float
) -> None:
    """Li and Konig, table 1: bits times variance, of 64-bit samples over 1-bit samples."""

    def storage(bits: int) -> float:
        chance = accidents(bits, density1, density2)
        return bits * chance.standard_error(chance.agreement(resemblance), 1) ** 2

    assert storage(64) / storage(1) == pytest.approx(gain, rel=0.02)


@pytest.mark.parametrize("bits", [1, 2, 4, 6])
def test_the_agreement_is_what_sampling_gives(bits: int) -> None:
    """The formula against an experiment, with a universe of 400 in which accidents are more than 2^-b."""
    rng = random.Random(bits)
    universe, one, two = 400, set(range(120)), set(range(80, 300))
    chance = accidents(bits, len(one) / universe, len(two) / universe)
    expected = chance.agreement(len(one & two) / len(one | two))
    trials, agreed = 6000, 0
    places = list(range(universe))
    for _ in range(trials):
        rng.shuffle(places)
        agreed += (min(places[x] for x in one) ^ min(places[x] for x in two)) & (1 << bits) - 1 == 0
    assert agreed / trials == pytest.approx(expected, abs=4 * (expected * (1 - expected) / trials) ** 0.5)


def test_six_bits_of_small_sets() -> None:
    for jaccard in (0.0, 0.3, 1.0):
        assert accidents(6).agreement(jaccard) == pytest.approx((63 * jaccard + 1) / 64)
    assert accidents(6, 1e-9, 1e-9).c1 == pytest.approx(1 / 64, rel=1e-6)
    for m in range(13):
        assert estimate_of(m).jaccard == pytest.approx((64 * m / 12 - 1) / 63)


def test_chances_of_so_many_matches() -> None:
    assert probability_of_matches(0, 4) == pytest.approx(2.7e-5, rel=0.02)
    assert probability_of_matches(0, 3) == pytest.approx(7.6e-4, rel=0.02)
    assert probability_of_matches(0.4, 4) == pytest.approx(0.79, abs=0.005)
    assert probability_of_matches(0.6, 4) == pytest.approx(0.99, abs=0.005)
    assert probability_of_matches(0.4, 3) == pytest.approx(0.93, abs=0.005)
    assert probability_of_matches(0.6, 3) == pytest.approx(0.998, abs=0.001)
    assert probability_of_matches(0.5, 0) == pytest.approx(1)
    assert probability_of_matches(0.3, 4, samples=16) > probability_of_matches(0.3, 4)


def test_the_standard_error_covers_the_truth() -> None:
    """At J = 0.5, the estimates of many pairs scatter as the standard error says."""
    rng = random.Random(8)
    p = accidents(6).agreement(0.5)
    drawn = [estimate_of(sum(rng.random() < p for _ in range(12))) for _ in range(3000)]
    mean = sum(e.jaccard for e in drawn) / len(drawn)
    scatter = (sum((e.jaccard - mean) ** 2 for e in drawn) / len(drawn)) ** 0.5
    assert mean == pytest.approx(0.5, abs=0.01)
    assert estimate_of(6).standard_error == pytest.approx(scatter, rel=0.05)
    covered = sum(abs(e.jaccard - 0.5) <= 2 * e.standard_error for e in drawn)
    assert covered / len(drawn) > 0.92
    assert all(estimate_of(m).standard_error > 0.05 for m in range(13))


# ---- traits ----


@given(traits, traits)
def test_traits_are_compared_sample_by_sample(one: Traits, other: Traits) -> None:
    expected = sum(a == b for a, b in zip(one.samples, other.samples, strict=True))
    assert one.matches(other) == other.matches(one) == expected
    assert one.matches(one) == 12
    assert one.jaccard(one) == 1
    assert sum(s << 6 * t for t, s in enumerate(one.samples)).to_bytes(9, "little") == bytes(one)


@pytest.mark.parametrize("length", [0, 8, 10])
def test_traits_are_nine_bytes(length: int) -> None:
    with pytest.raises(ValueError, match="9 bytes"):
        rdc.Traits(bytes(length))


def test_edited_data_is_similar() -> None:
    rng = random.Random(2)
    base = rng.randbytes(60_000)
    params = rdc.ChunkParams.for_mean(16_384)
    signed = [Traits(rdc.sign(data, params).traits) for data in (base, base[:30_000] + base[33_000:])]
    assert abs(signed[0].jaccard(signed[1]) - 0.95) < 3 * signed[0].estimate(signed[1]).standard_error
    assert abs(signed[0].jaccard(Traits(rdc.sign(rng.randbytes(60_000), params).traits))) < 0.2


@pytest.mark.parametrize("seed", range(20))
def test_coarse_traits_are_of_the_features_of_large_files(seed: int) -> None:
    small = random.Random(seed).randbytes(50_000 + 700 * seed)
    large = small[:20_000] + random.Random(-seed - 1).randbytes(20_000) + small[20_000:]
    assert COARSE_BELOW == FEW_FEATURES_BELOW <= len(large)
    traits = Traits(sign(large, SYNC_PARAMS).traits)
    assert Traits(coarse_traits(small)).matches(traits) >= 4
    stranger = random.Random(seed + 100).randbytes(60_000)
    assert Traits(coarse_traits(stranger)).matches(traits) < 4


@pytest.mark.parametrize("size", [0, 1, 40, 24_576, 65_535])
def test_coarse_traits_of_what_is_behind_zeros_are_those_of_the_stream(size: int) -> None:
    data = random.Random(size).randbytes(size)
    assert coarse_traits(data) == sign(data + bytes(FEW_FEATURES_BELOW - size), SYNC_PARAMS).traits
    assert coarse_traits(bytes(size)) == b""


# ---- the index ----


@given(st.lists(st.integers(0, SIZE_LIMIT), min_size=2, max_size=30))
def test_size_codes_keep_the_order(sizes: list[int]) -> None:
    codes = [size_code(size) for size in sorted(sizes)]
    assert codes == sorted(codes)
    assert all(0 <= code < 1 << 16 for code in codes)
    assert [size_code(n) for n in range(2049)] == [*range(2048), 2048]
    assert size_code(1 << 40) - size_code(1 << 39) == 1024
    for wrong in (-1, SIZE_LIMIT + 1):
        with pytest.raises(ValueError, match="size"):
            size_code(wrong)


def test_the_index_finds_files_by_number() -> None:
    rng = random.Random(3)
    index = SimilarityIndex()
    columns = [Traits(rng.randbytes(9)) for _ in range(300)]
    index.add_many(range(300), [bytes(t) for t in columns], [0] * 300)
    assert index.query(columns[7])[0] == rdc.Match(7, 12)
    assert index.query(columns[7], 1)[0].jaccard == 1
    assert list(index.keys()) == list(range(300))
    assert index.traits(5) == columns[5]
    index.add(5, columns[7], size=3_000)
    index.add(6, columns[7], size=900)
    assert [m.key for m in index.query(columns[7], size=1_000)[:3]] == [6, 7, 5]
    assert [m.key for m in index.query(columns[7], size=2_900)[:3]] == [5, 6, 7]
    index.remove(5)
    assert (5 in index, 7 in index, len(index)) == (False, True, 299)
    for missing in (5, 300):
        with pytest.raises(KeyError):
            index.remove(missing)
        with pytest.raises(KeyError):
            index.traits(missing)
    asked = [columns[i % 300] for i in range(2 * SIMILAR_BATCH + 5)]
    assert list(index.query_many(asked, [0] * len(asked), 3)) == [index.query(t, 3) for t in asked]


def test_equals_are_decided_by_the_nearest_number() -> None:
    index = SimilarityIndex()
    for key in (10, 20, 30):
        index.add(key, Traits(bytes(9)))
    assert [m.key for m in index.query(Traits(bytes(9)), near=21)] == [20, 30, 10]
    assert [m.key for m in index.query(Traits(bytes(9)))] == [10, 20, 30]


def test_files_without_features_are_left_out() -> None:
    index = SimilarityIndex()
    index.add_many([1, 2, 3], [bytes(9), b"", bytes(9)], [5, 6, 7])
    assert list(index.keys()) == [1, 3]
    with pytest.raises(ValueError, match="9 bytes, found 8"):
        index.add_many([4], [bytes(8)], [0])


@pytest.mark.parametrize("key", [-1, 1 << 64])
def test_numbers_have_64_bits(key: int) -> None:
    index = SimilarityIndex()
    calls = (
        lambda: index.add(key, Traits(bytes(9))),
        lambda: index.traits(key),
        lambda: index.remove(key),
        lambda: key in index,
        lambda: index.query(Traits(bytes(9)), near=key),
    )
    for call in calls:
        with pytest.raises(ValueError, match="64"):
            call()


def test_pairs_stream_and_count_what_they_leave_out() -> None:
    index = SimilarityIndex()
    for key in range(30):
        index.add(key, Traits(bytes(9)))
    index.add(99, Traits(bytes(8) + b"\x01"))
    pairs = index.pairs()
    found = sorted((p.first, p.second, p.matches) for p in pairs)
    assert found == [*((0, key, 12) for key in range(1, 30)), (0, 99, 11)]
    assert (pairs.flooded, pairs.skipped) == (29, 0)
    assert list(pairs) == []
    assert rdc.SimilarPair(1, 2, 12).jaccard == 1


# ---- saved ----


def saved(index: SimilarityIndex) -> bytes:
    stream = io.BytesIO()
    index.save(stream)
    return stream.getvalue()


class Watched(io.BytesIO):
    """Records the largest read requested."""

    largest = 0

    def read(self, size: int | None = -1, /) -> bytes:
        assert size is not None
        assert size >= 0
        self.largest = max(self.largest, size)
        return super().read(min(size, 7))  # as short as a pipe may


def sealed(head: bytes, rows: bytes = b"") -> bytes:
    """Adds a correct checksum, as an attacker would."""
    return head + rows + blake3(head + rows).digest()


@settings(deadline=None)
@given(st.dictionaries(keys, st.tuples(traits, st.integers(0, SIZE_LIMIT)), max_size=40), st.randoms())
def test_what_was_saved_is_loaded(files: dict[int, tuple[Traits, int]], rng: random.Random) -> None:
    index = SimilarityIndex()
    for key, (one, size) in files.items():
        index.add(key, one, size)
    loaded = SimilarityIndex.load(Watched(saved(index)))
    assert saved(loaded) == saved(index)
    shuffled = SimilarityIndex()
    for key in rng.sample(sorted(files), len(files)):
        shuffled.add(key, *files[key])
    assert saved(shuffled) == saved(index)
    assert len(saved(index)) == HEAD.size + 19 * len(files) + 32
    for one, size in files.values():
        assert loaded.query(one, 5, 1, size=size) == index.query(one, 5, 1, size=size)


def test_the_form_at_rest_is_the_documented_one() -> None:
    index = SimilarityIndex()
    index.add(0x0102, Traits(bytes(range(9))), 5000)
    index.add(7, Traits(bytes(9)), 2047)
    body = bytes.fromhex(
        "52444358 01 0200000000000000"
        "0700000000000000 ff07 000000000000000000"
        "0201000000000000 e20c 000102030405060708"  # 5000 has 13 bits: 2 * 1024 + (5000 >> 2)
    )
    assert saved(index) == body + blake3(body).digest()


def test_several_parts_are_loaded() -> None:
    rng = random.Random(4)
    index = SimilarityIndex()
    index.add_many(range(70_000), (rng.randbytes(9) for _ in range(70_000)), range(70_000))
    assert saved(SimilarityIndex.load(io.BytesIO(saved(index)))) == saved(index)


def small_index() -> bytes:
    index = SimilarityIndex()
    for key in (1, 5, 1 << 60):
        index.add(key, Traits(bytes(range(9))), key)
    return saved(index)


def test_every_damaged_bit_is_noticed() -> None:
    whole = small_index()
    for at in range(len(whole)):
        for bit in range(8):
            damaged = bytearray(whole)
            damaged[at] ^= 1 << bit
            with pytest.raises(SimilarityIndexError):
                SimilarityIndex.load(io.BytesIO(damaged))
    for length in range(len(whole)):
        with pytest.raises(SimilarityIndexError):
            SimilarityIndex.load(io.BytesIO(whole[:length]))
    with pytest.raises(SimilarityIndexError, match="after the index"):
        SimilarityIndex.load(io.BytesIO(whole + b"\0"))


@given(st.binary(max_size=300))
def test_garbage_is_refused(garbage: bytes) -> None:
    for data in (garbage, HEAD.pack(b"RDCX", 1, len(garbage) // 19) + garbage):
        with pytest.raises(SimilarityIndexError):
            SimilarityIndex.load(io.BytesIO(data))


@pytest.mark.parametrize("files", [1 << 20, SIMILAR_FILES, SIMILAR_FILES + 1, (1 << 64) - 1])
def test_a_claimed_size_allocates_nothing(files: int) -> None:
    stream = Watched(HEAD.pack(b"RDCX", 1, files) + bytes(100))
    with pytest.raises(SimilarityIndexError):
        SimilarityIndex.load(stream)
    assert stream.largest < 2 << 20


@pytest.mark.parametrize(
    ("head", "rows", "message"),
    [
        (HEAD.pack(b"RDCX", 2, 0), [], "version 1"),
        (HEAD.pack(b"RDCS", 1, 0), [], "version 1"),
        (HEAD.pack(b"RDCX", 1, 2), [(5, 0), (5, 0)], "file 5 .* after file 5"),
        (HEAD.pack(b"RDCX", 1, 2), [(5, 0), (4, 0)], "file 4 .* after file 5"),
        (HEAD.pack(b"RDCX", 1, 1), [(5, 65_535)], "size code 65535"),
        (HEAD.pack(b"RDCX", 1, 1), [(5, 0), (6, 0)], "checksum"),
    ],
)
def test_well_sealed_nonsense_is_refused(head: bytes, rows: list[tuple[int, int]], message: str) -> None:
    packed = b"".join(ROW.pack(key, size, bytes(9)) for key, size in rows)
    with pytest.raises(SimilarityIndexError, match=message):
        SimilarityIndex.load(io.BytesIO(sealed(head, packed)))


def test_the_index_is_the_one_in_c() -> None:
    """The budgets of memory and time apply to the C kernel. The Python kernel is for machines without a
    compiler."""
    assert isinstance(SimilarityIndex()._index, _kernel.TraitIndex)
