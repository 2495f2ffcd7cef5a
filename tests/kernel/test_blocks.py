"""Keyed fingerprints of blocks and the search for them: C as Python defines it, and what they promise."""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.kernel import _kernel
from rdc.rabin import remainder, remainder_of_product
from tests.kernel.block_inputs import KEY, NOWHERE, every_kernel, keys, sizes, texts, widths
from tests.reference import kernel as pure
from tests.reference.blocks import BlockHash, block_polynomial
from tests.reference.rabin import Fingerprint, is_irreducible
from tests.support.share import examples


@pytest.fixture(params=_kernel.usable())
def variant(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each form of the kernel in turn."""
    before = _kernel.kernel_name()
    _kernel.choose(request.param)
    yield request.param
    _kernel.choose(before)


def search(module: Any, key: bytes, base: bytes, blocks: bytes, size: int, width: int = 5) -> list[int]:
    found = array("Q")
    found.frombytes(
        module.match_blocks(key, base, size, width, module.block_fingerprints(key, blocks, size, width))
    )
    return found.tolist()


@given(keys, texts, sizes, widths)
def test_both_make_the_same_fingerprints(key: bytes, data: bytes, size: int, width: int) -> None:
    made = pure.block_fingerprints(key, data, size, width)
    assert _kernel.block_fingerprints(key, memoryview(data), size, width) == made
    blocks = [data[at : at + size] for at in range(0, len(data), size)]
    assert made == b"".join(_kernel.block_fingerprints(key, block, size, width) for block in blocks)


@pytest.mark.parametrize("length", [*range(240, 340), 500, 511, 512, 513, 575, 8191, 8192])
def test_values_of_long_blocks(length: int, variant: str) -> None:
    """Those that a form may make in several chains, whatever is left beside these."""
    block = random.Random(length).randbytes(length)
    assert _kernel.block_fingerprints(KEY, block, length, 8) == pure.block_fingerprints(KEY, block, length, 8)


@given(keys, st.lists(texts, max_size=5), sizes, widths, st.integers(0, 4))
def test_parts_have_blocks_of_their_own(
    key: bytes, parts: list[bytes], size: int, width: int, wrong: int
) -> None:
    data, lengths = b"".join(parts), array("Q", map(len, parts))
    for module in (_kernel, pure):
        made = module.block_fingerprints(key, data, size, width, lengths)
        assert made == b"".join(module.block_fingerprints(key, part, size, width) for part in parts)
        false = array("Q", lengths)
        false[wrong:wrong] = array(
            "Q", [[1], [(1 << 64) - 1], [1 << 63, 1 << 63, 1], [1 << 62] * 4, [5]][wrong]
        )
        for rows in (false, lengths.tobytes() + b"?"):
            with pytest.raises(ValueError, match="add up"):
                module.block_fingerprints(key, data, size, width, rows)


@settings(max_examples=examples(300))
@given(keys, texts, st.data(), sizes, widths)
def test_both_find_the_same_offsets(
    key: bytes, base: bytes, data: st.DataObject, size: int, width: int
) -> None:
    pieces = data.draw(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 60)), max_size=6))
    blocks = b"".join(base[start : start + length] for start, length in pieces) + data.draw(texts)
    fingerprints = pure.block_fingerprints(key, blocks, size, width)
    assert _kernel.match_blocks(key, base, size, width, fingerprints) == pure.match_blocks(
        key, base, size, width, fingerprints
    )


@given(keys, texts, st.integers(0, 400), sizes)
def test_what_is_there_is_found_and_what_is_found_is_there(
    key: bytes, base: bytes, at: int, size: int
) -> None:
    wanted = base[at:]
    for row, offset in enumerate(search(_kernel, key, base, wanted, size)):
        block = wanted[row * size : (row + 1) * size]
        if len(block) == size:
            assert base[offset : offset + size] == block


@every_kernel
def test_a_match_that_goes_on_is_preferred(module: Any) -> None:
    base = b"abcd" + b"xxxx" + b"abcd" + b"yyyy" + b"abcd" + b"zzzz"
    assert search(module, KEY, base, b"abcd" + b"yyyy", 4) == [0, 12]
    assert search(module, KEY, base, b"xxxx" + b"abcd" + b"yyyy" + b"abcd" + b"!!!!" + b"abcd", 4) == [
        4, 8, 12, 16, NOWHERE, 0,
    ]  # fmt: skip
    assert search(module, KEY, bytes(40), bytes(12), 4) == [0, 4, 8]
    # Past a block that is nowhere too.
    assert search(module, KEY, base, b"yyyy" + b"!!!!" + b"zzzz" + b"abcd", 4) == [12, NOWHERE, 20, 0]
    assert search(module, KEY, b"ab.." * 3 + b"cdcd", b"cdcd" + b"ab..", 4) == [12, 0]
    assert search(module, KEY, b"xx" + b"ab.." + b"ab.." + b"ab..", b"ab.." + b"!!!!" + b"ab..", 4) == [
        2,
        NOWHERE,
        10,
    ]
    # Behind the end of the base nothing goes on: the first offset again.
    assert search(module, KEY, bytes(10), bytes(16), 4) == [0, 4, 0, 4]


@every_kernel
def test_bases_too_short_and_nothing_wanted(module: Any) -> None:
    assert search(module, KEY, b"abc", b"abcd", 4) == [NOWHERE]
    assert search(module, KEY, b"", b"abcd", 4) == [NOWHERE]
    assert search(module, KEY, b"abcd", b"", 4) == []


@every_kernel
def test_bad_arguments_are_refused(module: Any) -> None:
    for key, size, width in ((KEY[1:], 4, 4), (KEY, 0, 4), (KEY, 4, 0), (KEY, 4, 9)):
        with pytest.raises(ValueError, match="blocks: a key of 16 bytes"):
            module.block_fingerprints(key, b"data", size, width)
    with pytest.raises(ValueError, match="fingerprints without a rest"):
        module.match_blocks(KEY, b"data", 4, 4, b"12345")


def test_values_are_what_the_protocol_says() -> None:
    """By whole polynomials, not byte by byte."""
    for seed in range(8):
        rng = random.Random(seed)
        key, block = rng.randbytes(16), rng.randbytes(rng.randrange(1, 60))
        p = block_polynomial(key)
        assert p.bit_length() == 65
        assert is_irreducible(p)
        plain = remainder(int.from_bytes(block, "big"), p)
        assert plain == Fingerprint(p).window(block)
        value = BlockHash(key).values(block, len(block))[0]
        factor = BlockHash(key).values(b"\1", 1)[0]
        assert value == remainder_of_product(factor, plain, p)
        for module in (pure, _kernel):
            assert module.block_fingerprints(key, block, len(block), 8) == value.to_bytes(8, "little")


def test_both_find_the_same_polynomials() -> None:
    for seed in range(40):
        rng = random.Random(seed)
        key, data = rng.randbytes(16), rng.randbytes(27)
        assert _kernel.block_fingerprints(key, data, 9, 8) == pure.block_fingerprints(key, data, 9, 8)


def test_every_variant_makes_the_same_fingerprints(variant: str) -> None:
    data = random.Random(2).randbytes(4000)
    for size in (*range(1, 70), 127, 128, 129, 1000, 4000):
        made = _kernel.block_fingerprints(KEY, data[: 40 * size], size, 8)
        expected = BlockHash(KEY).values(data[:size], size)[0]
        assert made[:8] == expected.to_bytes(8, "little")
        _kernel.choose("c")
        assert _kernel.block_fingerprints(KEY, data[: 40 * size], size, 8) == made
        _kernel.choose(variant)


def test_every_offset_of_a_long_base_is_looked_at(variant: str) -> None:
    """About the borders of lanes, tiles and parts; by few fingerprints and by many, short and long ones."""
    rng = random.Random(1)
    for length, size in (
        (50_000, 64),
        (50_000, 1000),
        (50_000, 12_000),
        (140_001, 17),
        (70_000, 1),
        (300, 250),
    ):
        base = rng.randbytes(length)
        last = length - size
        offsets = [at for near in range(0, length, 16_384) for at in range(near - 9, near + 9, 5)]
        offsets += [*range(0, 50, 7), 2047, 2048, 2049, last // 2, *range(last - 70, last, 3), last]
        offsets = [at for at in dict.fromkeys(offsets) if 0 <= at <= last]
        first = {base[at : at + size]: at for at in reversed(range(length))} if size == 1 else {}
        for count in (1, 9, 60, len(offsets)):
            for start in range(0, len(offsets), count) if count > 1 else range(0, len(offsets), 17):
                some = offsets[start : start + count]
                # Blocks of other content between them: none is found where the last one goes on.
                blocks = b"".join(base[at : at + size] for at in some)
                found = search(_kernel, KEY, base, blocks, size, 8 if count % 2 else 4)
                if size > 1:
                    assert found == some
                else:
                    assert found[0] == first[blocks[:1]]


def test_the_values_of_every_variant_are_those_of_the_pure_one(variant: str) -> None:
    """Among all windows of a base that repeats little and hits often, at sizes about what a vector holds."""
    rng = random.Random(3)
    for size in (1, 2, 15, 16, 17, 31, 33, 63, 64, 65, 130):
        base = bytes(rng.choices(b"ab", k=3000 + size)) + bytes(200) + rng.randbytes(100)
        blocks = b"".join(base[at : at + size] for at in rng.sample(range(len(base) - size), 50)) + bytes(
            size
        )
        for width in (1, 2, 3, 5):
            fingerprints = pure.block_fingerprints(KEY, blocks, size, width)
            expected = pure.match_blocks(KEY, base, size, width, fingerprints)
            assert _kernel.match_blocks(KEY, base, size, width, fingerprints) == expected


def test_a_rest_of_the_last_part_is_looked_at(variant: str) -> None:
    """Long bases are looked through in parts; what is left over may be a single offset."""
    rng = random.Random(4)
    for part in (16_384, 32_768, 65_536):
        for more in (1, 2, 17, 1023, 1025):
            base = rng.randbytes(2 * part + more + 31)
            for at in (2 * part + more - 1, 2 * part, 2 * part - 1, part):
                assert search(_kernel, KEY, base, base[at : at + 32], 32) == [at]


def test_fingerprints_made_to_share_a_bucket_are_found_all_the_same() -> None:
    """A peer knows the key: it can choose fingerprints that the search's table takes for one."""
    golden = 0x9E37_79B9_7F4A_7C15
    inverse = pow(golden, -1, 1 << 64)
    made = array("Q", (number * inverse % (1 << 64) for number in range(50_000)))
    base = random.Random(5).randbytes(20_000)
    there = _kernel.block_fingerprints(KEY, base[77:141], 64, 8)
    found = array("Q", _kernel.match_blocks(KEY, base, 64, 8, made.tobytes() + there))
    assert found[-1] == 77
    assert set(found[:-1]) == {NOWHERE}


def pairs_alike(kind: str, rng: random.Random, size: int) -> tuple[bytes, bytes]:
    """Two different blocks as everyday data has them."""
    block = bytearray(rng.randbytes(size))
    if kind == "one bit":
        other = bytearray(block)
        other[rng.randrange(size)] ^= 1 << rng.randrange(8)
    elif kind == "rows changed places":
        other = bytearray(block)
        other[0:16], other[64:80] = block[64:80], block[0:16]
    elif kind == "a byte in zeros":
        block, other = bytearray(size), bytearray(size)
        other[rng.randrange(size)] = rng.randrange(1, 256)
    elif kind == "periods":
        period = rng.randbytes(rng.randrange(1, 9))
        block = bytearray((period * size)[:size])
        other = bytearray((period * size)[1 : size + 1])
        other[0] ^= other == block
    else:  # counters
        start = rng.randrange(1 << 20)
        block = bytearray((start).to_bytes(size, "little"))
        other = bytearray((start + 1).to_bytes(size, "little"))
    return bytes(block), bytes(other)


@pytest.mark.parametrize("kind", ["one bit", "rows changed places", "a byte in zeros", "periods", "counters"])
def test_blocks_that_are_alike_collide_no_more_than_others(kind: str) -> None:
    """In each byte of a fingerprint, over keys, one pair in 256 agrees; those of one difference together."""
    rng = random.Random(kind)
    keys_tried, pairs, size = 4000, 3, 256
    agreed = [0] * 8
    for _ in range(keys_tried):
        key = rng.randbytes(16)
        data = b"".join(b"".join(pairs_alike(kind, rng, size)) for _ in range(pairs))
        made = _kernel.block_fingerprints(key, data, size, 8)
        for at in range(0, len(made), 16):
            for byte in range(8):
                agreed[byte] += made[at + byte] == made[at + 8 + byte]
    expected = keys_tried * pairs / 256  # 47, and its root is 7
    assert all(expected - 35 < count < expected + 45 for count in agreed), agreed


def test_short_fingerprints_collide_no_more_than_random_ones() -> None:
    """Blocks of a tiny alphabet that differ in two bytes at most: on average over the keys."""
    count, size, width, keys_tried = 1024, 16, 2, 200
    data = b"".join(i.to_bytes(size, "big") for i in range(count))
    collisions = 0
    for seed in range(keys_tried):
        key = random.Random(seed).randbytes(16)
        made = _kernel.block_fingerprints(key, data, size, width)
        collisions += count - len({made[i : i + width] for i in range(0, len(made), width)})
    expected = keys_tried * count * count / 2 / 2 ** (8 * width)  # 1,600
    assert collisions < 1.5 * expected


def test_many_fingerprints_and_a_base_that_hits_at_every_offset() -> None:
    base, count = b"ab" * 100_000, 5_000
    blocks = b"ab" * 32 * count
    found = search(_kernel, KEY, base, blocks, 64)
    # The base has 3,125 such blocks in a row; then it begins again.
    assert found[:3125] == list(range(0, 200_000, 64))
    assert found[3125] == 0
