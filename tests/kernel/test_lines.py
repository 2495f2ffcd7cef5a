"""Texts of JSON lines: the C form against Python's module json."""

from __future__ import annotations

import json
import random
from array import array
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.kernel import _kernel
from tests.reference import lines as reference
from tests.support.share import examples

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.sampled_from(["text", "id", "é", ""]) | st.text(max_size=4), VALUES, max_size=4)
TEXTS = st.text(max_size=90) | st.text('ab\n"\\/\t é€😀', max_size=90)


def found(module: Any, block: bytes, field: str = "text", most: int = 1 << 20) -> list[bytes | None]:
    texts, bounds, left = module.json_texts(block, field.encode(), most)
    ends = array("q", bounds)
    assert len(ends) == len(left) + 1 == block.count(b"\n") + 2
    assert ends[0] == 0
    assert texts[ends[-1] :] == bytes(len(block) + reference.ZEROS - ends[-1])
    return [None if left[at] else texts[ends[at] : ends[at + 1]] for at in range(len(left))]


@settings(max_examples=examples(60))
@given(
    st.lists(st.tuples(OBJECTS, TEXTS, st.booleans(), st.integers(0, 2))), st.randoms(use_true_random=False)
)
def test_lines_are_read_as_json_reads_them(drawn: list[Any], chosen: random.Random) -> None:
    """Also where bytes were changed. What is taken is right, and an object of the usual kind is taken."""
    lines, usual = [], []
    for others, text, ascii_only, changes in drawn:
        line = json.dumps({**others, "text": text}, ensure_ascii=ascii_only)
        content = bytearray(line.encode("utf-8", "surrogatepass"))
        for _ in range(changes):
            content[chosen.randrange(len(content))] = chosen.choice(b'"\\{}[],: \tu0dD8c\xe2\xff\x00')
        lines.append(bytes(content).replace(b"\n", b" "))
        usual.append(not changes and not others)
    block = b"\n".join(lines)
    wanted, taken = found(reference, block), found(_kernel, block)
    for one, other, is_usual in zip(taken, wanted, usual or [False], strict=True):
        assert one == other or (one is None and not is_usual)


TAKEN = {
    b' {"text" : "a\\u00e9\\uD83D\\ude00\\/\\"\\\\\\b\\f\\n\\r\\t" , "n":[1,-0.5e+3,{"a":[]},true]}\r': True,
    b'{"id": {}, "text": "", "b": false, "c": null}': True,
    b'{"text": "a", "n": 01}': False,
    b'{"text": "a", "n": 1.}': False,
    b'{"text": "a", "n": -}': False,
    b'{"text": "a", "n": 1e}': False,
    b'{"text": "a",}': False,
    b'{"text": "a"} x': False,
    b'{"text": "a"': False,
    b'{"text": "a': False,
    b'{"text": "\\ud83dx"}': False,
    b'{"text": "\\udc00"}': False,
    b'{"text": "\\u12g4"}': False,
    b'{"text": "\\x"}': False,
    b'{"text": "\x1f"}': False,
    b'{"text": "\xc0\x80"}': False,
    b'{"text": "\xed\xa0\x80"}': False,
    b'{"text": "\xf4\x90\x80\x80"}': False,
    b'{"text": "\xe2\x82"}': False,
    b'{"text": 1}': False,
    b"{}": False,
    b"[]": False,
    b"": False,
    b'{"text": "' + b"x" * 101 + b'"}': False,
    b'{"text": "' + b"x" * 100 + b'"}': True,
}


@pytest.mark.parametrize("line", TAKEN, ids=repr)
def test_what_is_taken(line: bytes) -> None:
    for module in (_kernel, reference):
        (one,) = found(module, line, most=100)
        assert (one is not None) == TAKEN[line]
    assert found(_kernel, b"%b\n%b" % (line, line), most=100) == found(reference, line, most=100) * 2


def test_what_is_rare_is_left() -> None:
    """To Python's module, which takes it."""
    for line in (
        b'{"text": "a", "text": "b"}',
        b'{"\\u0074ext": "a"}',
        b'{"text": "a", "n": ' + b"[" * 40 + b"]" * 40 + b"}",
        b'{"text": "a", "n": ' + b"1" * 70 + b"}",
        b'{"text": "a", "n": NaN}',
    ):
        assert found(_kernel, line) == [None]
        assert found(reference, line) != [None]


def test_field() -> None:
    line = '{"text": "a", "é": "b", "": "c"}'.encode()
    for module in (_kernel, reference):
        taken = [found(module, line, field) for field in ("text", "é", "", "x")]
        assert taken == [[b"a"], [b"b"], [b"c"], [None]]
        with pytest.raises(ValueError, match="0 or more"):
            module.json_texts(b"", b"", -1)
