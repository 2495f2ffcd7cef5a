"""Messages that nodes and roots are the digests of: C writes what the definition in Python writes."""

from __future__ import annotations

import random
from array import array
from typing import Any

import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from rdc.chunking import ChunkParams
from rdc.kernel import _kernel
from rdc.signature.tree import NODE_KEY, ROOT_KEY, sign
from tests.reference import roots as pure

every_kernel = pytest.mark.parametrize("module", [pure, _kernel], ids=["pure", "C"])


def split(messages: bytes, lengths: bytes) -> list[bytes]:
    found, at = [], 0
    for length in array("Q", lengths):
        found.append(messages[at : at + length])
        at += length
    assert at == len(messages)
    return found


def noise(seed: int, size: int) -> list[bytes]:
    """Digests, of which some follow one another several times."""
    drawn = random.Random(seed)
    found: list[bytes] = []
    while len(found) < size:
        found += [drawn.randbytes(32)] * drawn.choice((1, 1, 1, 2, 40))
    return found[:size]


NAMES = [31 * b"d" + name for name in (b"x", b"y", b"z")]
FEW = st.lists(st.sampled_from(NAMES), max_size=9)
MANY = st.builds(noise, st.integers(0, 99), st.integers(0, 200))


def columns_of(streams: list[list[bytes]]) -> tuple[Any, Any, bytes]:
    """Numbers of items, and their lengths and digests. Equal items have equal lengths."""
    digests = [digest for stream in streams for digest in stream]
    return (
        array("I", map(len, streams)),
        array("Q", [1 + digest[-1] for digest in digests]),
        b"".join(digests),
    )


def numbers(*values: int) -> bytes:
    return b"".join([value.to_bytes(8, "little") for value in values])


@every_kernel
def test_digests_of_messages_are_those_of_a_tree(module: Any) -> None:
    """A tree of three levels, one of one level, and one that has a single record of many chunks."""
    params = ChunkParams(64, 256)
    for content, height in ((random.Random(1).randbytes(90_000), 2), (b"the rest", 0), (bytes(90_000), 0)):
        tree = sign(content, params)
        assert tree.height == height
        digests, lengths, size = b"", array("Q"), array("Q", [len(content)])
        for row, count in enumerate(tree.levels[0].counts):
            digests += tree.levels[0].digest(row) * count
            lengths += array("Q", [tree.levels[0].lengths[row]] * count)
        counts = array("I", [len(lengths)])
        for level in range(height):
            assert module.root_messages(params.id, size, counts, lengths, digests, 26, level)[0] == b""
            messages, sizes, covered, nodes = module.node_messages(level, counts, lengths, digests, 6, 26)
            digests = b"".join([blake3(one, key=NODE_KEY).digest() for one in split(messages, sizes)])
            lengths, counts = array("Q", covered), array("I", nodes)
            above = tree.levels[level + 1]
            assert (digests, lengths) == (bytes(above.digests), array("Q", above.lengths))
        (message,) = split(*module.root_messages(params.id, size, counts, lengths, digests, 26, height))
        assert blake3(message, key=ROOT_KEY).digest() == tree.root


@every_kernel
def test_what_is_no_single_node_has_no_message(module: Any) -> None:
    a, b = b"a" * 32, b"a" * 31 + b"b"
    sizes, streams = array("Q", [5, 6, 0]), [[a, a], [b, a, a, b], []]
    counts, lengths, digests = array("I", map(len, streams)), array("Q", range(6)), a + a + b + a + a + b
    found = split(*module.root_messages(b"head", sizes, counts, lengths, digests, 3, 7))
    first = b"head" + numbers(5) + b"\7" + a + numbers(0, 2)
    second = b"head" + numbers(6) + b"\7" + b + a + b + numbers(2, 3, 5, 1, 2, 1)
    assert found == [first, second, b"head" + numbers(0) + b"\7"]
    # One run more than a node has.
    found = split(*module.root_messages(b"head", sizes, counts, lengths, digests, 2, 7))
    assert found == [first, b"", b"head" + numbers(0) + b"\7"]


@every_kernel
def test_columns_that_do_not_fit_are_refused(module: Any) -> None:
    good = [b"", array("Q", [1]), array("I", [1]), array("Q", [1]), bytes(32), 26, 0]
    module.root_messages(*good)
    for at, wrong in (
        (1, bytes(7)),
        (1, b""),
        (2, bytes(3)),
        (2, array("I", [2])),
        (3, bytes(16)),
        (4, bytes(31)),
        (5, -1),
        (6, -1),
        (6, 256),
    ):
        with pytest.raises(ValueError, match="that fit together"):
            module.root_messages(*good[:at], wrong, *good[at + 1 :])
    good = [0, array("I", [1]), array("Q", [1]), bytes(32), 6, 26]
    module.node_messages(*good)
    for at, wrong in (
        (0, -1),
        (0, 256),
        (1, bytes(3)),
        (1, array("I", [2])),
        (2, bytes(16)),
        (3, bytes(31)),
        (4, 0),
        (5, 6),
    ):
        with pytest.raises(ValueError, match="that fit together"):
            module.node_messages(*good[:at], wrong, *good[at + 1 :])


@given(st.binary(max_size=40), st.lists(FEW | MANY, max_size=6), st.integers(0, 30), st.integers(0, 255))
def test_both_agree(head: bytes, streams: list[list[bytes]], most: int, level: int) -> None:
    sizes, columns = array("Q", [7 << 40] * len(streams)), columns_of(streams)
    arguments = head, sizes, *columns, most, level
    assert _kernel.root_messages(*arguments) == pure.root_messages(*arguments)


@given(st.lists(FEW | MANY, max_size=6), st.integers(0, 255), st.integers(1, 9), st.integers(1, 40))
def test_both_make_the_same_nodes(streams: list[list[bytes]], level: int, least: int, more: int) -> None:
    arguments = level, *columns_of(streams), least, least + more
    found = _kernel.node_messages(*arguments)
    assert found == pure.node_messages(*arguments)
    assert sum(array("Q", found[2])) == sum(columns_of(streams)[1])
