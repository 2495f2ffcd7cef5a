"""Answers for files that were given up are dropped one by one; one too many is nobody's."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rdc.session.stale_answers import StaleAnswers

requests = st.lists(st.none() | st.integers(0, 9), max_size=5)


@given(st.dictionaries(st.integers(0, 3), requests), st.data())
def test_as_many_answers_as_requests(files: dict[int, list[int | None]], data: st.DataObject) -> None:
    """Each request is answered in one message, by nodes in several, or fails."""
    stale = StaleAnswers()
    for file, ends in files.items():
        stale.expect(file, ends)
    turns = data.draw(st.permutations([file for file, ends in files.items() for _ in ends]))
    left = {file: list(ends) for file, ends in files.items()}
    for file in turns:
        assert stale and file in stale
        last = left[file].pop(0)
        if last is None:
            assert not stale.expire_nodes(file, 0)  # no nodes were asked for
        for node in range(data.draw(st.integers(0, last)) if last else 0):
            assert stale.expire_nodes(file, node)  # more of the same request are to come
        if last is None or data.draw(st.booleans()):
            assert stale.expire(file)
        else:
            assert stale.expire_nodes(file, last)
    assert not stale
    for file in files:
        assert file not in stale
        assert not stale.expire(file)
        assert not stale.expire_nodes(file, 0)
