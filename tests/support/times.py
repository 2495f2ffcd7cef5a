"""Strategies for times that file systems hold."""

from __future__ import annotations

from hypothesis import strategies as st

from rdc.model.preserved import END_NS, FIRST_NS

SECONDS = 1 << 63
TIMES = st.one_of(
    st.integers(-SECONDS * 10**9, SECONDS * 10**9 - 1),
    st.integers(-2, 2).flatmap(lambda off: st.sampled_from([FIRST_NS, END_NS, 0, 1 << 63]).map(off.__add__)),
)
