"""PatternSet: the C form against the definition, and the definition against one that is plainly right."""

from __future__ import annotations

import random
import sys
from functools import cache
from types import ModuleType

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rdc.kernel import _kernel
from tests.reference import patterns as reference
from tests.support.share import examples

TOKENS = [
    b"a", b"a", b"b", b"c", b".", b"*", b"*", b"**", b"***", b"?", b"/", b"/", b"/**/", b"/**", b"**/",
    b"[ab]", b"[!a]", b"[^b]", b"[a-b]", b"[]a]", b"\\a", b"\\*", b"[[:alpha:]]", b"[-c]", b"[a-]",
    b"[[:punct:]a]", b"[", b"[\\]b]", b"[b-a]", b"[a/b]", b"[:a]", b"[[:x:]", b"[[:]", b"[.-\\b]",
    b"[[:digit:]-z]", b"[[:^a:]]", b"\xff", b"[\x80-\xff]", b"\\", b"[!\\", b"]",
]  # fmt: skip
PATTERNS = st.lists(st.sampled_from(TOKENS), min_size=1, max_size=9).map(b"".join) | st.binary(max_size=12)
KINDS = st.integers(0, 255)
NAMES = st.lists(st.sampled_from(b"aaabc.]\xff\x00*"), min_size=1, max_size=4).map(bytes)
PATHS = st.lists(NAMES, min_size=1, max_size=5).map(b"/".join)


@settings(max_examples=examples(1500), deadline=None)
@given(
    st.lists(st.tuples(PATTERNS, KINDS), max_size=12),
    st.lists(st.tuples(PATHS, st.booleans()), min_size=1, max_size=8),
    st.lists(NAMES, max_size=3).map(lambda names: b"".join(name + b"/" for name in names)),
)
@example([(b"a/**/b", 32)], [(b"a/b", False), (b"a/c/b", False), (b"a/c/d/b", True), (b"ab", False)], b"")
@example([(b"**/**/a/**/**/b/**", 32)], [(b"a/b/c", False), (b"a/b", False), (b"x/a/y/b/c/d", True)], b"")
def test_the_first_match_is_the_definition_s(
    drawn: list[tuple[bytes, int]], paths: list[tuple[bytes, bool]], prefix: bytes
) -> None:
    """Whatever was asked before: the states of directories are remembered."""
    texts = [text for text, _ in drawn]
    # A TAIL has neither `**` nor INSIDE nor ANYWHERE.
    others = reference.INSIDE | reference.ANYWHERE
    kinds = bytes(kind & ~(reference.TAIL if b"**" in text or kind & others else 0) for text, kind in drawn)
    right = reference.PatternSet(texts, kinds, prefix)
    found = _kernel.PatternSet(texts, kinds, prefix)
    for path, is_directory in paths:
        assert found.first(path, is_directory) == right.first(path, is_directory), (path, is_directory)


def plain_match(pattern: bytes, text: bytes) -> bool:
    """'*', '**', '?' and literals by the definition, each pair of positions decided once."""

    @cache
    def match(p: int, t: int) -> bool:
        if p == len(pattern):
            return t == len(text)
        if pattern[p : p + 1] == b"*":
            end = p
            while pattern[end : end + 1] == b"*":
                end += 1
            if match(end, t):
                return True
            return t < len(text) and (end - p > 1 or text[t] != 0x2F) and match(p, t + 1)
        if t == len(text):
            return False
        one = text[t] != 0x2F if pattern[p : p + 1] == b"?" else text[t] == pattern[p]
        return one and match(p + 1, t + 1)

    return match(0, 0)


PLAIN = st.lists(st.sampled_from([b"a", b"a", b"b", b"/", b"*", b"**", b"?"]), min_size=1, max_size=14).map(
    b"".join
)
TEXTS = st.lists(st.lists(st.sampled_from(b"aab"), min_size=1, max_size=4).map(bytes), min_size=1, max_size=8)


@settings(max_examples=examples(1500), deadline=None)
@given(PLAIN, TEXTS)
def test_wildcards_match_by_definition(pattern: bytes, names: list[bytes]) -> None:
    text = b"/".join(names)
    starts = [0, *(i + 1 for i, byte in enumerate(text) if byte == 0x2F)]
    for module in (_kernel, reference):
        one = module.PatternSet((pattern,), bytes((0,)))
        assert (one.first(text, False) == 0) is plain_match(pattern, text)
        one = module.PatternSet((pattern,), bytes((reference.ANYWHERE,)))
        assert (one.first(text, False) == 0) is any(plain_match(pattern, text[start:]) for start in starts)


def test_what_is_remembered_of_directories_is_bounded() -> None:
    """A walk of a deep tree and back, and then paths in no order; more directories than are remembered."""
    rng = random.Random(1)
    patterns = [b"*a%d*b" % number for number in range(2000)] + [b"**/x/*/c?", b"/d/**/y"]
    kinds = bytes([2] * 2000 + [32, 32])
    found = _kernel.PatternSet(patterns, kinds)
    right = reference.PatternSet(patterns[-2:], kinds[-2:])
    deep = [b"x", b"d"] * 300
    directories = [b"/".join(deep[:depth]) for depth in range(1, 600)]
    before = sys.getsizeof(found)
    for directory in [*directories, *reversed(directories), *rng.sample(directories, 200)]:
        for name in (b"cc", b"y"):
            path = directory + b"/" + name
            number = right.first(path, False)
            assert found.first(path, False) == (-1 if number < 0 else number + 2000), path
    assert sys.getsizeof(found) - before < 6 << 20


@pytest.mark.parametrize("module", [_kernel, reference])
def test_wrong_arguments(module: ModuleType) -> None:
    for patterns, kinds in (([b"a"], b""), ([b"a"], b"\x00\x00")):
        with pytest.raises(ValueError, match="one kind is expected for each"):
            module.PatternSet(patterns, kinds)
    assert module.PatternSet((), b"").first(b"a", False) == -1
