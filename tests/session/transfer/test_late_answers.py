"""Answers for files that were given up are dropped one by one; one too many belongs to no request."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rdc.protocol.messages import BlockAnswer, Data, FileEnd, Literals, NodeAnswer
from rdc.protocol.messages.content import FileMessage
from rdc.session.transfer.delta import StaleAnswers

requests = st.lists(st.none() | st.integers(0, 9), max_size=5)


def nodes(file: int, last: int) -> NodeAnswer:
    return NodeAnswer(file, 0, (last,), (b"",))


def ends(file: int) -> st.SearchStrategy[FileMessage]:
    return st.sampled_from([BlockAnswer(file, b""), Literals(file, b""), FileEnd(file, 0, b"")])


@given(st.dictionaries(st.integers(0, 3), requests), st.data())
def test_as_many_answers_as_requests(files: dict[int, list[int | None]], data: st.DataObject) -> None:
    """Each request is answered in one message, or by nodes in several."""
    stale = StaleAnswers()
    for file, last_nodes in files.items():
        stale.expect(file, last_nodes)
    turns = data.draw(st.permutations([file for file, asked in files.items() for _ in asked]))
    left = {file: list(last_nodes) for file, last_nodes in files.items()}
    for file in turns:
        assert stale.files
        last = left[file].pop(0)
        if last is None:
            assert not stale.drop(nodes(file, 0))  # no nodes were asked for
            assert stale.drop(Data(file, b""))  # some of the answer, not its end
            assert stale.drop(data.draw(ends(file)))
        else:
            for node in range(data.draw(st.integers(0, last))):
                assert stale.drop(nodes(file, node))  # more of the same request are to come
            assert stale.drop(nodes(file, last))
    assert not stale.files
    for file in files:
        assert not any(stale.drop(message) for message in (nodes(file, 0), Data(file, b"")))


def test_the_end_of_a_whole_file_is_not_the_end_of_its_literals() -> None:
    stale = StaleAnswers()
    stale.expect(1, [None])
    assert not stale.drop(FileEnd(1, 5, bytes(32)))
    assert stale.files
