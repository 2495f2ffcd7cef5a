"""The file of a pair's rules: it is read as it was written, and garbage is no rule."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.files.own.record_log import RecordError, signed
from rdc.model.selection import FilterRule, RuleAction, RuleModifiers, RuleSide
from rdc.uniting.pair_rules import KeptRules, PairRules, chosen_rules, decode_rules, encode_rules
from rdc.uniting.records import UniteOptions

names = st.binary(min_size=1, max_size=20).filter(lambda name: b"\0" not in name)
filters = st.builds(
    FilterRule,
    st.sampled_from([*RuleAction]),
    names,
    st.builds(RuleModifiers, st.sampled_from([*RuleSide]), st.booleans(), st.booleans(), st.booleans()),
)
rules = st.builds(PairRules, st.lists(filters, max_size=5).map(tuple), st.lists(names, max_size=3).map(tuple))


@given(rules, st.integers(0, 1 << 40))
def test_rules_are_read_as_they_were_written(drawn: PairRules, seconds: int) -> None:
    assert decode_rules(encode_rules(KeptRules(drawn, seconds))) == KeptRules(drawn, seconds)


def test_every_cut_and_every_flipped_bit_is_damage() -> None:
    whole = encode_rules(KeptRules(PairRules((FilterRule(RuleAction.EXCLUDE, b"*.o"),), (b"unit",)), 5))
    for size in range(len(whole) - 1):
        with pytest.raises(RecordError):
            decode_rules(whole[:size])
    for at in range(len(whole) - 1):
        flipped = bytearray(whole)
        flipped[at] ^= 1 << at % 8
        with pytest.raises(RecordError):
            decode_rules(bytes(flipped))


@given(st.binary(max_size=60) | st.recursive(st.integers() | st.text(), st.lists).map(json.dumps))
def test_garbage_is_no_rule_and_no_traceback(drawn: bytes | str) -> None:
    for data in (drawn,) if isinstance(drawn, bytes) else (drawn.encode(), signed(drawn.encode())):
        with pytest.raises(RecordError):
            decode_rules(data)


@pytest.mark.parametrize(
    "items",
    [
        ["rdc unite rules", 2, 0, "", []],
        ["rdc unite rules", 1, 0, "MDAwLg==", []],  # a rule without an end
        ["rdc unite rules", 1, 0, "", [""]],
        ["rdc unite rules", 1, 0, "", ["YQ=="] * 1_025],
        ["rdc unite rules", 1, "0", "", []],
    ],
)
def test_planted_rules_are_refused(items: list[object]) -> None:
    with pytest.raises(RecordError):
        decode_rules(signed(json.dumps(items).encode()))


def test_what_was_given_last_counts_whichever_side_has_it() -> None:
    old = KeptRules(PairRules((), (b"old",)), 5)
    new = KeptRules(PairRules((FilterRule(RuleAction.EXCLUDE, b"a"),), (b"new",)), 6)
    for kept in ((old, new), (new, old), (new, None), (None, new)):
        assert chosen_rules(UniteOptions(), kept) == (new.rules, new.rules)
    given_rules = chosen_rules(UniteOptions(rules=()), (old, new))
    assert given_rules == (PairRules((), (b"new",)), new.rules)
    assert chosen_rules(UniteOptions(), (None, None))[0] == PairRules()
