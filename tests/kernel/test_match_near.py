"""Blocks searched near the offsets that their neighbours predict, by every kernel."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.kernel import _kernel
from tests.kernel.block_inputs import KEY, NOWHERE, every_kernel, keys, sizes, texts, widths
from tests.reference import kernel as pure
from tests.support.share import examples

UNKNOWN = NOWHERE


def runs_of(*rows: tuple[int, int, int, int]) -> bytes:
    return array("Q", (number for row in rows for number in row)).tobytes()


def found_matches(
    module: Any, base: bytes, wanted: bytes, runs: bytes, size: int, reach: int = 0, origin: int = 0
) -> list[tuple[int, ...]]:
    """(offset, place, length) of what is found of `wanted` below `runs`, with fingerprints of 8 bytes."""
    rows = array("Q", runs)
    fingerprints = b"".join(
        module.block_fingerprints(KEY, wanted[rows[i] : rows[i] + rows[i + 1]], size, 8)
        for i in range(0, len(rows), 4)
    )
    whole = array("Q", (len(rows) // 4, origin, 0, len(base)))
    found = array("Q", module.match_runs(KEY, base, whole, size, 8, reach, runs, fingerprints))
    return [tuple(found[i : i + 3]) for i in range(0, len(found), 3)]


base_offsets = st.one_of(st.integers(0, 500), st.just(UNKNOWN))


@settings(max_examples=examples(300), deadline=None)
@given(keys, texts, st.data(), sizes, widths, st.integers(0, 40))
def test_both_find_the_same_matches(
    key: bytes, base: bytes, data: st.DataObject, size: int, width: int, reach: int
) -> None:
    rows, fingerprints = [], b""
    for _ in range(data.draw(st.integers(0, 4))):
        start = data.draw(st.integers(0, 400))
        block = base[start : start + data.draw(st.integers(0, 90))] + data.draw(texts)[:40]
        near = st.one_of(base_offsets, st.integers(start, start + 60))
        rows.append((data.draw(st.integers(0, 1000)), len(block), data.draw(near), data.draw(near)))
        fingerprints += pure.block_fingerprints(key, block, size, width)
    windows, left = [], len(rows)
    while left or data.draw(st.booleans()):
        count, start = data.draw(st.integers(0, left)), data.draw(st.integers(0, len(base)))
        length = data.draw(st.integers(0, len(base) - start))
        # The runs' bytes are where the base was cut from, or a little off.
        windows.append((count, max(0, start + data.draw(st.sampled_from((0, 0, -3, 50)))), start, length))
        left -= count
    asked = (key, base, runs_of(*windows), size, width, reach, runs_of(*rows), fingerprints)
    assert _kernel.match_runs(*asked) == pure.match_runs(*asked)


@every_kernel
def test_blocks_are_searched_where_neighbours_say(module: Any) -> None:
    old = bytes(range(200))
    new = old[:60] + b"!!!!" + old[64:100] + b"++" + old[100:]
    run = runs_of((40, 80, 40, 118))
    # On the diagonal of what precedes until 100, then on that of what follows, which is two bytes further.
    assert found_matches(module, old, new, run, 4) == [(40, 40, 20), (64, 64, 36), (104, 102, 16)]
    assert found_matches(module, old, new, runs_of((40, 80, 40, UNKNOWN)), 4) == [(40, 40, 20), (64, 64, 36)]
    assert found_matches(module, old, new, runs_of((40, 80, UNKNOWN, 118)), 4) == [(104, 102, 16)]
    assert found_matches(module, old, new, runs_of((40, 80, UNKNOWN, UNKNOWN)), 4) == []
    # Within reach it need not be on either.
    assert found_matches(module, old, new, runs_of((40, 80, 40, UNKNOWN)), 4, 2)[-1] == (104, 102, 16)
    assert found_matches(module, old, new, runs_of((40, 80, 43, UNKNOWN)), 4, 2) == []
    # Part of the base is enough; what is not given is not found.
    assert found_matches(module, old[70:], new, run, 4, 0, 70) == [(72, 72, 28), (104, 102, 16)]


@every_kernel
def test_parts_of_a_base_are_looked_through_for_their_own_runs(module: Any) -> None:
    old = bytes(range(200))
    runs = runs_of((0, 8, 20, UNKNOWN), (8, 8, 28, UNKNOWN), (16, 8, 36, UNKNOWN))
    fingerprints = module.block_fingerprints(KEY, old[20:44], 4, 8)
    base = old[36:44] + b"!!" + old[20:36]

    def found(*windows: tuple[int, int, int, int]) -> list[int]:
        asked = (KEY, base, runs_of(*windows), 4, 8, 0, runs, fingerprints)
        return list(array("Q", module.match_runs(*asked)))

    assert found((2, 20, 10, 16), (1, 36, 0, 8)) == [0, 20, 16, 16, 36, 8]
    # What goes on in another part is a piece of its own; what is in none is not found.
    assert found((1, 20, 10, 8), (0, 0, 3, 4), (1, 28, 18, 8), (1, 36, 0, 4)) == [
        0,
        20,
        8,
        8,
        28,
        8,
        16,
        36,
        4,
    ]
    assert found((3, 20, 10, 16)) == [0, 20, 16]


@every_kernel
@pytest.mark.parametrize(
    "windows",
    [
        bytes(31),
        b"",
        runs_of((2, 0, 0, 100)),
        runs_of((1, 0, 0, 101)),
        runs_of((1, 0, 101, 0)),
        runs_of((1, 0, UNKNOWN, 2)),
        runs_of((1, (1 << 63) + 1, 0, 100)),
        runs_of((UNKNOWN, 0, 0, 100), (2, 0, 0, 100)),
    ],
)
def test_windows_that_do_not_add_up_are_refused(module: Any, windows: bytes) -> None:
    with pytest.raises(ValueError, match="runs: windows"):
        module.match_runs(KEY, bytes(100), windows, 4, 4, 0, runs_of((0, 8, 0, 0)), bytes(8))


@every_kernel
@pytest.mark.parametrize(
    ("reach", "runs", "fingerprints"),
    [
        (0, bytes(31), b""),
        (-1, b"", b""),
        ((1 << 20) + 1, b"", b""),
        (0, runs_of((0, 9, 0, 0)), bytes(8)),
        (0, runs_of((0, 8, 0, 0)), bytes(12)),
        (0, runs_of((0, (1 << 32) + 1, 0, 0)), b""),
        (0, runs_of((0, 8, UNKNOWN - 1, 0)), bytes(8)),
        (0, runs_of(((1 << 63) + 1, 8, 0, 0)), bytes(8)),
    ],
)
def test_runs_that_do_not_add_up_are_refused(
    module: Any, reach: int, runs: bytes, fingerprints: bytes
) -> None:
    with pytest.raises(ValueError, match="runs"):
        module.match_runs(
            KEY, bytes(100), runs_of((len(runs) // 32, 0, 0, 100)), 4, 4, reach, runs, fingerprints
        )
