"""Names that a file system may take for one."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.plan.compare import name_clashes


@pytest.mark.parametrize(
    "names",
    [
        (b"README", b"readme"),
        ("é".encode(), "e\u0301".encode()),
        ("É".encode(), "e\u0301".encode()),
        ("straße".encode(), b"STRASSE"),
        ("\u0131".encode(), b"i"),
        ("\u017f".encode(), b"S"),
        ("a\u200db".encode(), b"ab"),
        (b"a.", b"a"),
        (b"a. .", b"A"),
        (b"b ", b"B"),
        ("\ufb01".encode(), b"fi"),
        (b"\xff\xc3A", b"\xff\xc3a"),
    ],
)
def test_names_that_may_be_one(names: tuple[bytes, bytes]) -> None:
    assert name_clashes(names) == [[0, 1]]
    assert name_clashes((b"other", *names, b"more")) == [[1, 2]]


@pytest.mark.parametrize(
    "names", [(), (b"a",), (b"a", b"b", b".c"), (b"A", b"b."), ("é".encode(), b"e"), (b"\xff", b"\xfe")]
)
def test_names_that_differ(names: tuple[bytes, ...]) -> None:
    assert name_clashes(names) == []


def test_groups_are_whole() -> None:
    assert name_clashes((b"A", b"B", b"a", b"c", b"b", b"A.")) == [[0, 2, 5], [1, 4]]


@given(st.lists(st.binary(min_size=1).filter(lambda name: b"\0" not in name), unique=True))
def test_no_pair_is_missed(names: list[bytes]) -> None:
    """All names come out of one text as each does on its own."""
    found = {(one, other) for rows in name_clashes(names) for one in rows for other in rows if one < other}
    for one, name in enumerate(names):
        for other in range(one + 1, len(names)):
            assert ((one, other) in found) == bool(name_clashes((name, names[other])))


def test_many_names_cost_little() -> None:
    rng = random.Random(1)
    names = sorted({b"Name%08x.txt" % rng.getrandbits(32) for _ in range(100_000)})
    began = time.process_time()
    assert name_clashes(names) == []
    assert time.process_time() - began < 1
