"""What messages declare of their place: complete, without contradiction, and what the types say."""

from __future__ import annotations

import re
from typing import cast

import pytest

from rdc.lean.records import field_names
from rdc.model.runs import Purpose
from rdc.protocol import messages, pending
from rdc.protocol.connection import DIALECT, purpose_of
from rdc.protocol.messages.content import FileMessage
from rdc.protocol.messages.field_types import AboutFile, AboutFiles
from rdc.protocol.wire.codec import STATES

KINDS = tuple(messages.message_kinds().values())
REQUESTS = [kind for kind in KINDS if kind.place.asks is not None]


def test_each_message_is_an_attribute_of_the_package() -> None:
    assert all(getattr(messages, kind.__name__) is kind for kind in KINDS)


def test_each_message_can_be_sent() -> None:
    for kind in KINDS:
        sent = list(kind.place.transitions())
        assert {role for role, _, _ in sent} == set(kind.place.by)
        assert {state for _, state, _ in sent} == set(kind.place.when), "a state that no sender is in"
        assert all(after in STATES[role] for role, _, after in sent)


def test_each_request_has_answers_and_names_a_field() -> None:
    assert {request for kind in KINDS for request in kind.place.answers} == set(REQUESTS)
    for request in REQUESTS:
        assert request.place.asks in field_names(request)
        assert not request.place.answers


def test_requests_and_answers_come_from_the_two_roles() -> None:
    for kind in KINDS:
        if kind.place.asks is not None:
            assert kind.place.by == (messages.Role.DESTINATION,)
        if kind.place.answers:
            assert kind.place.by == (messages.Role.SOURCE,)


def test_what_may_be_unreadable_may_fail() -> None:
    may_fail = {kind for kind in REQUESTS if issubclass(kind, (AboutFile, AboutFiles))}
    assert set(messages.FileFailed.place.answers) == may_fail
    assert set(REQUESTS) - may_fail == {
        messages.TierRequest,
        messages.RowsRequest,
        messages.LikelyRequest,
        messages.Landed,
    }


@pytest.mark.parametrize("request_", REQUESTS, ids=[kind.__name__ for kind in REQUESTS])
def test_the_types_of_answers_are_the_declared_ones(request_: type[messages.Message]) -> None:
    accept = cast(type[pending._Pending], pending._PENDING[request_]).accept
    typed = set(re.findall(r"[A-Z]\w+", accept.__annotations__["answer"]))
    assert typed == {kind.__name__ for kind in messages.answers_to(request_)}


def test_the_type_of_answers_about_a_delta_is_what_is_declared() -> None:
    kinds = messages.answers_to(
        messages.TreeRequest, messages.NodeRequest, messages.BlockRequest, messages.RangeRequest
    )
    assert set(re.findall(r"\w+", str(FileMessage))) == {kind.__name__ for kind in kinds}


def test_features_and_costs_are_those_declared() -> None:
    assert set(DIALECT.features["bundle"]) == {messages.BundleRequest, messages.BundleAnswer}
    assert set(DIALECT.features["blocks"]) == {messages.LikelyBlocks}
    assert purpose_of("TraitsAnswer") is Purpose.ROOTS
    assert purpose_of("Preamble") is Purpose.OVERHEAD
