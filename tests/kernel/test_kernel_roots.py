"""Messages that roots are the digests of: C writes what the definition in Python writes."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from rdc.chunking.params import ChunkParams
from rdc.kernel import _kernel
from rdc.kernel.columns import root_reference as pure
from rdc.signature.build import sign
from rdc.signature.digests import ROOT_KEY

every_kernel = pytest.mark.parametrize("module", [pure, _kernel], ids=["pure", "C"])


def split(messages: bytes, lengths: bytes) -> list[bytes]:
    found, at = [], 0
    for length in array("Q", lengths):
        found.append(messages[at : at + length])
        at += length
    assert at == len(messages)
    return found


@every_kernel
def test_a_root_is_the_digest_of_its_message(module: Any) -> None:
    params, content = ChunkParams(64, 256), bytes(range(256)) * 2 + b"the rest"
    tree = sign(content, params)
    level = tree.levels[0]
    lengths = array("Q", level.lengths)
    sizes, counts = array("Q", [len(content)]), array("I", [len(lengths)])
    assert len(lengths) > 1
    (message,) = split(*module.root_messages(params.id, sizes, counts, lengths, bytes(level.digests), 26))
    assert blake3(message, key=ROOT_KEY).digest() == tree.root


@every_kernel
def test_what_is_no_single_node_has_no_message(module: Any) -> None:
    a, b = b"a" * 32, b"a" * 31 + b"b"
    columns = array("Q", [5, 6, 7, 0]), array("I", [2, 3, 3, 0]), array("Q", range(8))
    found = split(*module.root_messages(b"head", *columns, a + a + a + b + a + a + b + b, 3))
    number = [i.to_bytes(8, "little") for i in range(8)]
    middle = b"head" + number[6] + b"\0" + a + b + a + number[2] + number[3] + number[4] + 3 * number[1]
    assert found == [b"", middle, b"", b"head" + number[0] + b"\0"]
    # One chunk more than a node has.
    assert split(*module.root_messages(b"head", *columns, a + a + a + b + a + a + b + b, 2))[1] == b""


@every_kernel
def test_columns_that_do_not_fit_are_refused(module: Any) -> None:
    good = [b"", array("Q", [1]), array("I", [1]), array("Q", [1]), bytes(32), 26]
    module.root_messages(*good)
    for at, wrong in (
        (1, bytes(7)),
        (1, b""),
        (2, bytes(3)),
        (2, array("I", [2])),
        (3, bytes(16)),
        (4, bytes(31)),
        (5, -1),
    ):
        with pytest.raises(ValueError, match="that fit together"):
            module.root_messages(*good[:at], wrong, *good[at + 1 :])


@given(
    st.binary(max_size=40),
    st.lists(st.lists(st.sampled_from([b"x", b"y", b"z"]), max_size=6), max_size=9),
    st.integers(0, 6),
)
def test_both_agree(head: bytes, streams: list[list[bytes]], most: int) -> None:
    counts = array("I", map(len, streams))
    digests = b"".join(31 * b"d" + one for stream in streams for one in stream)
    sizes, lengths = array("Q", [7 << 40] * len(streams)), array("Q", range(sum(counts)))
    columns = head, sizes, counts, lengths, digests, most
    assert _kernel.root_messages(*columns) == pure.root_messages(*columns)
