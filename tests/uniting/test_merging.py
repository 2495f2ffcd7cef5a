"""Three-way merges of texts: laws on random texts, and git merge-file beside them."""

from __future__ import annotations

import subprocess
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from rdc.uniting.merging import TEXT_BYTES, _certain, _lines, is_text, merge
from tests.support.share import examples

LINES = st.lists(st.sampled_from([b"a", b"b", b"c", b"d\r", b"", b"e"]), max_size=12)


@st.composite
def versions(draw: st.DrawFn) -> tuple[bytes, bytes, bytes]:
    """A text and two edits of it."""
    base = draw(LINES)
    if draw(st.booleans()):
        base = [b"%d" % number if draw(st.booleans()) else line for number, line in enumerate(base)]

    def edited() -> bytes:
        lines = list(base)
        for _ in range(draw(st.integers(0, 3))):
            start = draw(st.integers(0, len(lines)))
            lines[start : start + draw(st.integers(0, 2))] = draw(LINES)[:2]
        return b"\n".join(lines) + b"\n" * draw(st.booleans())

    return b"\n".join(base) + b"\n" * draw(st.booleans()), edited(), edited()


@hypothesis_settings(max_examples=examples(1500), deadline=None)
@given(versions())
@example((b"a\na\n\n", b"\na\na\n", b"a\na\n"))  # a line that moved at one side and went at the other
def test_the_laws_of_a_merge(texts: tuple[bytes, bytes, bytes]) -> None:
    base, left, right = texts
    assert merge(base, left, base) == left
    assert merge(base, left, left) == left
    assert merge(base, base, right) == right
    merged = merge(base, left, right)
    assert merge(base, right, left) == merged
    if merged is None:
        return
    # After a kill, when the merge was written at one side: merging again changes nothing.
    assert merge(base, merged, right) in (merged, None)
    assert merge(base, left, merged) in (merged, None)
    before, after = Counter(_lines(base)), Counter(_lines(merged))
    one, other = Counter(_lines(left)), Counter(_lines(right))
    apart = not (one - before) & (other - before) and not (before - one) & (before - other)
    if apart and not any(_moves_lines(base, edited) for edited in (left, right)):
        # Both changed other lines: the merge has all that either added, and nothing that either removed.
        assert after == before + (one - before) + (other - before) - (before - one) - (before - other)


def _moves_lines(base: bytes, edited: bytes) -> bool:
    """Return whether lines that both have are in another order: they count as removed and added."""
    before, after = _lines(base), _lines(edited)
    lengths = [0] * (len(after) + 1)
    for line in before:
        above = lengths.copy()
        for at, other in enumerate(after):
            lengths[at + 1] = above[at] + 1 if line == other else max(lengths[at], above[at + 1])
    return lengths[-1] < (Counter(before) & Counter(after)).total()


@pytest.mark.needs("git")
@hypothesis_settings(max_examples=examples(400), deadline=None)
@given(texts=versions())
@example(texts=(b"a\nb\na\na\nb", b"a\nb\na\na\nb\n", b"b\na\nb"))  # either of two lines was removed
def test_a_clean_merge_is_one_of_git_too(
    tmp_path_factory: pytest.TempPathFactory, texts: tuple[bytes, bytes, bytes]
) -> None:
    merged = merge(*texts)
    if merged is None:
        return
    top = tmp_path_factory.mktemp("merge")
    paths = [top / name for name in ("base", "left", "right")]
    for path, text in zip(paths, texts, strict=True):
        path.write_bytes(text)
    assert by_git(*paths) == merged


def by_git(base: Path, left: Path, right: Path) -> bytes | None:
    words = ["git", "merge-file", "-p", "--quiet", str(left), str(base), str(right)]
    done = subprocess.run(words, capture_output=True, check=False)
    return done.stdout if done.returncode == 0 else None


@given(st.lists(st.integers(0, 3), max_size=6), st.lists(st.integers(0, 3), max_size=6))
@hypothesis_settings(max_examples=examples(300), deadline=None)
def test_certain_lines_are_those_of_every_longest_common_subsequence(
    one: list[int], other: list[int]
) -> None:
    """By all subsequences, one after the other."""
    texts = [[b"%d\n" % number for number in text] for text in (one, other)]
    found: list[set[tuple[int, int]]] = []
    for length in range(min(len(one), len(other)), -1, -1):
        for rows in combinations(range(len(one)), length):
            for columns in combinations(range(len(other)), length):
                if all(one[row] == other[column] for row, column in zip(rows, columns, strict=True)):
                    found.append(set(zip(rows, columns, strict=True)))
        if found:
            break
    assert set(_certain(*texts)) == set.intersection(*found)


@pytest.mark.parametrize(
    ("base", "left", "right", "merged"),
    [
        (b"1\n2\n3\n", b"x\n2\n3\n", b"1\n2\ny\n", b"x\n2\ny\n"),
        (b"1\r\n2\r\n3\r\n", b"x\r\n2\r\n3\r\n", b"1\r\n2\r\ny\r\n", b"x\r\n2\r\ny\r\n"),
        (b"1\n2\n3", b"x\n2\n3", b"1\n2\ny", b"x\n2\ny"),
        (b"1\n2\n3", b"x\n2\n3", b"1\n2\n3\n", b"x\n2\n3\n"),
        (b"1\n2\n3\n", b"1\nboth\n3\n", b"1\nboth\n3\n", b"1\nboth\n3\n"),
        (b"1\n2\n3\n4\n", b"x\n2\ns\n4\n", b"1\n2\ns\n4\ny\n", b"x\n2\ns\n4\ny\n"),
        (b"1\n2\n", b"x\n2\n", b"1\ny\n", None),
        (b"1\n", b"1\nx\n", b"1\ny\n", None),
        (b"", b"x\n", b"y\n", None),
        (b"1\n1\n1\n", b"1\n1\n", b"1\n1\n1\n2\n", None),
    ],
)
def test_examples(base: bytes, left: bytes, right: bytes, merged: bytes | None) -> None:
    assert merge(base, left, right) == merged


def test_long_texts_are_merged_by_their_ends_and_what_has_too_many_pairs_is_one_change() -> None:
    lines = [b"%d\n" % number for number in range(20_000)]
    left, right = [b"x\n", *lines[1:]], [*lines[:-1], b"y\n"]
    assert merge(b"".join(lines), b"".join(left), b"".join(right)) == b"".join([b"x\n", *lines[1:-1], b"y\n"])
    both = [b"x\n", *lines[1:-1], b"y\n"]
    middle = [*lines[:9000], b"z\n", *lines[9000:]]
    assert merge(b"".join(lines), b"".join(both), b"".join(middle)) is None


@pytest.mark.parametrize(
    ("data", "is_one"),
    [(b"", True), ("é\n".encode(), True), (b"\xff\n", False), (b"a\0b", False), (b"a" * TEXT_BYTES, True)],
)
def test_what_is_a_text(data: bytes, is_one: bool) -> None:
    assert is_text(data) == is_one
    assert not is_text(data + b"a" * TEXT_BYTES) or not data
