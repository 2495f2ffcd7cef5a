"""Cuts and traits: every variant of the kernel against the definition, on every kind of stream and split."""

from __future__ import annotations

import array
import random
import struct
import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc import kernel
from rdc.errors import UsageError
from rdc.kernel import _kernel
from tests.reference import kernel as pure
from tests.support.kernel.kernel_streams import LIMITS, STREAMS, random_splits, run, streams
from tests.support.share import examples

VARIANTS = _kernel.usable()
limits = pytest.mark.parametrize("sizes", LIMITS, ids=lambda sizes: f"{sizes[0]}-{sizes[1]}")
every_variant = pytest.mark.parametrize("variant", VARIANTS)
every_kernel = pytest.mark.parametrize("module", [pure, _kernel], ids=["pure", "C"])


def brute_force(ranks: list[tuple[int, int]], min_size: int, max_size: int) -> list[int]:
    """The definition of cuts, word for word; ranks[i - 1] is rank(i)."""
    cuts, c, n = [], 0, len(ranks)
    while n - c > max_size:
        smallest = min(ranks[i - 1] for i in range(c + min_size + 1, c + max_size + 1))
        c = max(i for i in range(c + min_size + 1, c + max_size + 1) if ranks[i - 1] == smallest)
        cuts.append(c)
    return [*cuts, n] if n else cuts


@pytest.mark.sampled(4)
@limits
@pytest.mark.parametrize("kind", sorted(STREAMS))
def test_every_variant_cuts_like_the_pure_one(kind: str, sizes: tuple[int, int]) -> None:
    rng = random.Random(f"{kind} {sizes}")
    for n in (1500, 14_000) if sizes[0] < 1000 else (70_000,):
        data = STREAMS[kind](rng, n)
        expected = run(pure.Cutter(*sizes), data)
        for variant in VARIANTS:
            assert run(_kernel.Cutter(*sizes, variant=variant), data) == expected
            for _ in range(3):
                spans = random_splits(rng, len(data))
                assert run(_kernel.Cutter(*sizes, variant=variant), data, spans) == expected, (variant, spans)


@settings(deadline=None, max_examples=examples(60))
@given(streams(), st.sampled_from(LIMITS), st.lists(st.integers(0, 300), max_size=40))
def test_splits_do_not_matter(data: bytes, sizes: tuple[int, int], spans: list[int]) -> None:
    expected = run(pure.Cutter(*sizes), data)
    assert run(pure.Cutter(*sizes), data, spans) == expected
    for variant in VARIANTS:
        assert run(_kernel.Cutter(*sizes, variant=variant), data, spans) == expected


@every_variant
def test_a_run_may_be_in_any_phase_at_a_decision(variant: str) -> None:
    """In spans of 1,000 bytes no run is long enough for its own path."""
    period = random.Random(10).randbytes(240)
    for before in range(240):
        data = bytes(before) + (period * 50)[: 11_000 + before]
        cutters = (_kernel.Cutter(1_000, 8_000, variant=variant) for _ in range(2))
        assert run(next(cutters), data) == run(next(cutters), data, [1_000] * (len(data) // 1_000)), before


@every_variant
def test_byte_by_byte(variant: str) -> None:
    data = random.Random(9).randbytes(3000) + bytes(900) + b"ab" * 400
    assert run(_kernel.Cutter(64, 256, variant=variant), data, [1] * len(data)) == run(
        pure.Cutter(64, 256), data
    )


@settings(deadline=None, max_examples=examples(60))
@given(streams(), st.sampled_from(LIMITS[:5]))
def test_chunks_keep_their_bounds(data: bytes, sizes: tuple[int, int]) -> None:
    cuts, _ = run(_kernel.Cutter(*sizes), data)
    lengths = [b - a for a, b in zip([0, *cuts], cuts, strict=False)]
    assert sum(lengths) == len(data)
    assert all(sizes[0] < length <= sizes[1] for length in lengths[:-1])
    assert not lengths or 0 < lengths[-1] <= sizes[1]


@every_kernel
def test_a_cut_is_decided_only_when_its_window_lies_in_the_past(module: Any) -> None:
    cutter = module.Cutter(64, 128)
    assert cutter.feed(bytes(128)) == []
    assert cutter.feed(b"\0") == [128]
    assert cutter.finish() == [129]


@every_kernel
def test_constant_runs_are_cut_at_max(module: Any) -> None:
    for byte in range(256):
        cuts, _ = run(module.Cutter(70, 200), bytes([byte]) * 1001)
        assert cuts == [200, 400, 600, 800, 1000, 1001]


@every_kernel
def test_empty_and_short_streams(module: Any) -> None:
    assert run(module.Cutter(64, 65), b"") == ([], b"")
    cuts, traits = run(module.Cutter(64, 65), b"a")
    assert cuts == [1]
    assert traits == b""


@every_kernel
def test_a_finished_stream_takes_nothing_more(module: Any) -> None:
    cutter = module.Cutter(64, 65)
    with pytest.raises(ValueError, match="traits"):
        cutter.traits()
    cutter.finish()
    for call in (lambda: cutter.feed(b"x"), cutter.finish):
        with pytest.raises(ValueError, match="finished"):
            call()
    winnower = module.Winnower(1, 2)
    winnower.finish()
    for call in (lambda: winnower.feed(bytes(8)), winnower.finish):
        with pytest.raises(ValueError, match="finished"):
            call()


@every_kernel
@pytest.mark.parametrize(
    "sizes",
    [(63, 100), (64, 64), (100, 99), (64, 2049), (1 << 22, (1 << 24) + 1), (0, 0), (-5, 5), (64, 1 << 70)],
)
def test_sizes_outside_the_limits_are_refused(module: Any, sizes: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="chunk sizes"):
        module.Cutter(*sizes)


@every_kernel
def test_spans_are_buffers_of_any_kind(module: Any) -> None:
    data = random.Random(4).randbytes(2000)
    expected = run(module.Cutter(64, 256), data)
    for span in (bytearray(data), memoryview(data), array.array("Q", data)):
        cutter = module.Cutter(64, 256)
        assert cutter.feed(span) + cutter.finish() == expected[0]
    with pytest.raises(TypeError):
        module.Cutter(64, 256).feed("text")


@every_kernel
@settings(deadline=None)
@given(data=st.data())
def test_winnower_is_the_definition(module: Any, data: st.DataObject) -> None:
    low = data.draw(st.integers(1, 8))
    high = data.draw(st.integers(low + 1, 30))
    ranks = data.draw(st.lists(st.integers(0, 5) | st.integers(0, (1 << 64) - 1), max_size=120))
    expected = brute_force([(0, rank) for rank in ranks], low, high)
    winnower, cuts, at = module.Winnower(low, high), [], 0
    while at < len(ranks):
        step = data.draw(st.integers(1, 50))
        part = ranks[at : at + step]
        cuts += winnower.feed(struct.pack(f"<{len(part)}Q", *part))
        at += step
    assert cuts + winnower.finish() == expected


@every_kernel
def test_winnower_refuses_what_does_not_fit(module: Any) -> None:
    for sizes in ((0, 5), (5, 5), (1, 4097)):
        with pytest.raises(ValueError, match="node sizes"):
            module.Winnower(*sizes)
    with pytest.raises(ValueError, match="8-byte"):
        module.Winnower(1, 2).feed(b"seven b")


def test_sorted_ranks_are_linear_in_the_ring() -> None:
    """Ascending, descending, saw-tooth ranks: the ring is as long as the window, or empties at once."""
    for ranks in (list(range(9000)), list(range(9000, 0, -1)), [i % 700 for i in range(9000)]):
        packed = struct.pack(f"<{len(ranks)}Q", *ranks)
        results = []
        for module in (pure, _kernel):
            winnower = module.Winnower(500, 4000)
            results.append(winnower.feed(packed) + winnower.finish())
        assert results[0] == results[1] == brute_force([(0, rank) for rank in ranks], 500, 4000)


@every_kernel
def test_short_references_are_siphash(module: Any) -> None:
    # vectors_sip64[32] of the reference implementation: key 00 01 .. 0f, message 00 01 .. 1f
    key, message = bytes(range(16)), bytes(range(32))
    assert module.short_references(key, message, 32, 8).hex() == "ce7cf2722f512771"
    assert module.short_references(key, message + b"tail", 36, 3).hex() == "ce7cf2"
    assert module.short_references(key, b"", 36, 3) == b""
    for wrong in (
        (key[1:], message, 32, 8),
        (key, message, 31, 8),
        (key, message, 32, 0),
        (key, message, 32, 9),
    ):
        with pytest.raises(ValueError, match="short references"):
            module.short_references(*wrong)
    with pytest.raises(ValueError, match="without a rest"):
        module.short_references(key, message + b"x", 32, 8)


@given(
    st.binary(min_size=16, max_size=16),
    st.lists(st.binary(min_size=37, max_size=37), max_size=5),
    st.integers(1, 8),
)
def test_short_references_agree(key: bytes, records: list[bytes], width: int) -> None:
    packed = b"".join(records)
    assert _kernel.short_references(key, packed, 37, width) == pure.short_references(key, packed, 37, width)


def test_threads_do_not_share_a_stream_by_accident() -> None:
    """While one thread feeds a long span, another is refused; the first one's cuts stay right."""
    data = random.Random(2).randbytes(8 << 20)
    cutter = _kernel.Cutter(4096, 16384)
    refused = 0
    cuts: list[int] = []
    thread = threading.Thread(target=lambda: cuts.extend(cutter.feed(data)))
    thread.start()
    while thread.is_alive():
        try:
            cutter.feed(b"")
        except ValueError as error:
            refused += "another thread" in str(error)
    thread.join()
    assert cuts + cutter.finish() == run(_kernel.Cutter(4096, 16384), data)[0]


def test_demanded_kernels_are_given_or_refused_by_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    fastest = _kernel.usable()[0]
    try:
        kernel.choose_variant("c")
        assert _kernel.kernel_name() == "c"
        with pytest.raises(UsageError, match="sse9: unknown kernel"):
            kernel.choose_variant("sse9")
        not_built = next(name for name in kernel.VARIANTS if name not in _kernel.built())
        with pytest.raises(UsageError, match=f"{not_built}: not built"):
            kernel.choose_variant(not_built)
        with monkeypatch.context() as patch:
            patch.setattr(_kernel, "built", lambda: ("avx512", "c"))
            patch.setattr(_kernel, "usable", lambda: ("c",))
            with pytest.raises(UsageError, match="avx512: not on this CPU"):
                kernel.choose_variant("avx512")
        monkeypatch.setenv("RDC_KERNEL", "c")
        kernel.choose_variant()
        assert _kernel.kernel_name() == "c"
    finally:
        monkeypatch.delenv("RDC_KERNEL")
        kernel.choose_variant()
    assert _kernel.kernel_name() == fastest
