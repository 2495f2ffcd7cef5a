"""New files held back: each comes out once, in the order they were listed, with the bases it came with."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rdc.session.transfer.destination import DeferredFiles

files = st.lists(st.tuples(st.integers(0, 1 << 40), st.lists(st.binary(max_size=3), max_size=2)), max_size=9)


@given(files, files)
def test_first_come_first_out(
    drawn: list[tuple[int, list[bytes]]], later: list[tuple[int, list[bytes]]]
) -> None:
    """Those that are added while others are given up come behind them. What was given up leaves nothing."""
    held_back = DeferredFiles()
    given_ = [(file, tuple(bases)) for file, bases in {**dict(drawn), **dict(later)}.items()]
    first = len(dict(drawn))
    for one in given_[:first]:
        held_back.add(*one)
    assert len(held_back) == first
    out = []
    for found in held_back.drained():
        out.append(found)
        for one in given_[first:] if len(out) == 1 else ():
            held_back.add(*one)
    assert out == (given_ if first else [])
    assert not held_back
    for file, _ in out:
        held_back.add(file)
    assert list(held_back.drained()) == [(file, ()) for file, _ in out]
