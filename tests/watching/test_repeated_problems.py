"""What goes wrong in turn after turn: told once, tried again, and told again with the next comparison."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rdc.errors import ExitCode
from rdc.progress import Event, ItemChanged, PlanKnown, Problem, Progressed
from rdc.watching.listeners import Troubles

paths = st.sampled_from([b"", b"a", b"d/b", b"\xff\n"])
problems = st.builds(
    Problem,
    st.sampled_from([ExitCode.OK, ExitCode.PARTIAL, ExitCode.VANISHED, ExitCode.MAX_DELETE]),
    paths,
    st.sampled_from(["one", "other"]),
)
turns = st.lists(st.tuples(st.booleans(), st.lists(problems, max_size=6)), max_size=6)
"""Each a turn: whether it compares whole trees, and what went wrong."""


def is_unrest(problem: Problem) -> bool:
    """A file changed while it was read."""
    return problem.code is ExitCode.VANISHED and problem.path_bytes != b""


@given(turns)
def test_the_user_hears_of_each_once_between_two_comparisons(told: list[tuple[bool, list[Problem]]]) -> None:
    troubles = Troubles()
    heard: list[list[Problem]] = [[]]
    met: list[set[tuple[bytes, str]]] = [set()]
    for whole, found in told:
        troubles.begin(whole=whole)
        if whole:
            heard.append([])
            met.append(set())
        for problem in found:
            if troubles.take(problem):
                heard[-1].append(problem)
        met[-1] |= {(problem.path_bytes, problem.message) for problem in found if not is_unrest(problem)}
    for here, there in zip(heard, met, strict=True):
        # None twice, none of a file that is tried again, and of all others each.
        assert not any(map(is_unrest, here))
        keys = [(problem.path_bytes, problem.message) for problem in here]
        assert len(set(keys)) == len(keys)
        assert set(keys) == there


@given(turns)
def test_what_a_turn_is_to_try_again(told: list[tuple[bool, list[Problem]]]) -> None:
    """`failed` and `errors` are of this turn alone, whether it was told before or not."""
    troubles = Troubles()
    for whole, found in told:
        troubles.begin(whole=whole)
        assert (troubles.failed, troubles.errors) == (set(), False)
        for problem in found:
            troubles.take(problem)
        assert troubles.failed == {problem.path_bytes for problem in found if is_unrest(problem)}
        errors = [problem for problem in found if problem.code is not ExitCode.OK and not is_unrest(problem)]
        assert troubles.errors == bool(errors)


def test_other_events_are_for_the_user_each_time() -> None:
    troubles = Troubles()
    troubles.begin(whole=False)
    events: list[Event] = [
        ItemChanged(">f+++++++++", b"a"), Progressed("read", 1, 2), PlanKnown(1, 2, 0),
    ]  # fmt: skip
    for event in events:
        assert troubles.take(event)
        assert troubles.take(event)
    assert (troubles.failed, troubles.errors) == (set(), False)
