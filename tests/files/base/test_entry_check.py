"""EntryCheck against its definition: an entry is the one expected if a chain of steps leads to it."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from rdc.files.base.metadata import EntryCheck
from rdc.model.entries import ALL_FIELDS, ComparedFields, Identity, Kind, is_same_entry

SMALL = st.integers(0, 2)
FIELDS = st.sampled_from([ALL_FIELDS, ComparedFields(ctime=False), ComparedFields(inode=False, mtime=False)])


def identities(kind: Kind) -> st.SearchStrategy[Identity]:
    return st.builds(Identity, st.just(1), st.just(7), SMALL, SMALL, st.integers(0, 5), st.just(kind))


@given(st.data(), FIELDS, st.sampled_from([Kind.FILE, Kind.DIRECTORY]))
def test_an_entry_is_what_steps_made_of_it(data: st.DataObject, fields: ComparedFields, kind: Kind) -> None:
    check, chain = EntryCheck(fields), list[Identity]()
    for before, after in data.draw(st.lists(st.tuples(identities(kind), identities(kind)), max_size=8)):
        check.note(before, after)
        if before != after:
            chain = [*(chain if chain and chain[-1] == before else [before]), after]
    expected, now = data.draw(identities(kind)), data.draw(identities(kind))
    led_here = bool(chain) and is_same_entry(chain[-1], now, fields)
    wanted = is_same_entry(expected, now, fields) or (
        led_here and any(is_same_entry(expected, former, fields) for former in chain)
    )
    assert check.is_still(expected, now) == wanted


def test_a_file_with_many_names_is_compared_with_each_former_state_at_once() -> None:
    check = EntryCheck()
    compared = 0

    class Counted(Identity):
        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return super().__eq__(other)

        __hash__ = Identity.__hash__

    states = [Counted(1, 7, 3, 5, ctime) for ctime in range(400)]
    for before, after in pairwise(states):
        check.note(before, after)
    for state in states:
        assert check.is_still(state, states[-1])
    assert compared < 10 * len(states)
