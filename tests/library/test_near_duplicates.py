"""Near-duplicates of a list of texts are those of all pairs, compared one by one."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rdc

WORDS = [f"w{number}" for number in range(40)]


def shingled(text: str, words: int) -> set[tuple[str, ...]]:
    split = text.lower().split()
    return {tuple(split[at : at + words]) for at in range(max(1, len(split) - words + 1))} if split else set()


def expected(texts: list[str], threshold: float, words: int) -> set[tuple[int, int]]:
    """All pairs, but those of a text that came before in equal form."""
    sets = [shingled(text, words) for text in texts]
    return {
        (a, b)
        for b in range(len(texts))
        for a in range(b)
        if texts.index(texts[a]) == a
        and (texts[a] == texts[b] or (texts.index(texts[b]) == b and sets[a] and sets[b]))
        and (texts[a] == texts[b] or len(sets[a] & sets[b]) / len(sets[a] | sets[b]) >= threshold)
    }


def edited(text: str, seed: int) -> str:
    numbers = random.Random(seed)
    words = text.split()
    for _ in range(numbers.randrange(4)):
        if words:
            words[numbers.randrange(len(words))] = numbers.choice(WORDS)
    return " ".join(words)


TEXTS = st.builds(
    lambda bases, edits: [*bases, *(edited(bases[at % len(bases)], seed) for at, seed in edits)],
    st.lists(st.lists(st.sampled_from(WORDS), max_size=60).map(" ".join), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 99)), max_size=6),
)


@given(TEXTS, st.sampled_from([0.5, 0.8, 1.0]), st.integers(1, 5))
def test_the_pairs_are_those_of_the_definition(texts: list[str], threshold: float, words: int) -> None:
    found = rdc.near_duplicates(texts, threshold, words=words)
    pairs = {(pair.first, pair.second) for pair in found.pairs}
    wanted = expected(texts, threshold, words)
    assert pairs <= wanted
    # One of a thousand pairs at the threshold may be missed; those far above it never are.
    sets = [shingled(text, words) for text in texts]
    clear = {
        (a, b)
        for a, b in wanted
        if len(sets[a] & sets[b]) >= min(1, threshold + 0.1) * len(sets[a] | sets[b])
    }
    assert clear <= pairs
    grouped = {number for group in found.groups for number in group}
    assert grouped == {number for pair in pairs for number in pair}
    assert set(found.kept) == set(range(len(texts))) - {
        number for group in found.groups for number in group[1:]
    }


def test_equal_texts_cost_one_pair_each() -> None:
    found = rdc.near_duplicates(["the same words again and again"] * 2000)
    assert len(found.pairs) == 1999
    assert found.kept == (0,)


def test_nothing_is_similar_to_nothing() -> None:
    assert rdc.near_duplicates([]).kept == ()
    assert rdc.near_duplicates(["", "...", "a b c"]).kept == (0, 1, 2)
    assert rdc.near_duplicates(["一二三四五六七八九十", b"\xe4\xb8\x80"], unit="chars").kept == (0, 1)


def test_wrong_arguments_are_named() -> None:
    wrong: Any = "one text"
    with pytest.raises(TypeError, match=r"^near_duplicates\.texts: expected a list of texts, found str$"):
        rdc.near_duplicates(wrong)
    mixed: Any = ["a", 3]
    with pytest.raises(TypeError, match=r"^near_duplicates\.texts\[1\]: expected str | bytes, found int$"):
        rdc.near_duplicates(mixed)
    with pytest.raises(ValueError, match=r"^near_duplicates\.threshold: "):
        rdc.near_duplicates([], 7)
    with pytest.raises(rdc.UsageError, match="expected words or chars"):
        rdc.near_duplicates([], unit="lines")
