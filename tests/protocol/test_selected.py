"""Who may select: the dialler behind Open, or the answerer before Opened if Open asks for its list."""

from __future__ import annotations

import pytest

from rdc.limits import SELECTED_NAMES, SELECTED_PER_MESSAGE
from rdc.model.location import FarList
from rdc.model.sync import SyncOptions
from rdc.protocol.messages import Open, Opened, Role, Selected
from rdc.protocol.sequence import SequenceRules
from rdc.protocol.wire.codec import Illegal
from tests.support.wire.dialogues import WHOLE
from tests.support.wire.wire_script import HELLO

LISTS = SyncOptions(files_from=FarList(b"list"))
PART, LAST = Selected(b"", (b"a",), False), Selected(b"", (b"b",), True)


def opened(role: Role, options: SyncOptions) -> SequenceRules:
    """The dialler's rules behind both Hellos and its Open. `role`: the answerer's."""
    rules = SequenceRules(dialler=True)
    rules.say(HELLO)
    rules.hear(HELLO)
    rules.say(Open.asking(role, b"s", bytes(16), options))
    return rules


@pytest.mark.parametrize("role", Role)
def test_the_answerer_selects_before_opened(role: Role) -> None:
    rules = opened(role, LISTS)
    if role is Role.SOURCE:
        rules.say(WHOLE)  # which may cross the list
    rules.hear(PART)
    rules.hear(LAST)
    rules.hear(Opened())


@pytest.mark.parametrize("role", Role)
def test_the_list_is_whole(role: Role) -> None:
    rules = opened(role, LISTS)
    rules.hear(PART)
    with pytest.raises(Illegal, match="not whole"):
        rules.hear(Opened())


@pytest.mark.parametrize("role", Role)
def test_nobody_else_selects(role: Role) -> None:
    for options, by_dialler in ((LISTS, True), (SyncOptions(), False)):
        rules = opened(role, options)
        with pytest.raises(Illegal, match="the dialler selects"):
            (rules.say if by_dialler else rules.hear)(LAST)


def test_nothing_comes_behind_the_last_nor_behind_opened() -> None:
    rules = opened(Role.SOURCE, LISTS)
    rules.hear(LAST)
    with pytest.raises(Illegal, match="everything is selected"):
        rules.hear(LAST)
    rules = opened(Role.SOURCE, LISTS)
    rules.hear(LAST)
    rules.hear(Opened())
    with pytest.raises(Illegal):
        rules.hear(PART)


def test_its_names_have_the_bound_of_a_run() -> None:
    rules = opened(Role.DESTINATION, LISTS)
    full = Selected(b"", tuple(b"%d" % number for number in range(SELECTED_PER_MESSAGE)), False)
    with pytest.raises(Illegal, match="are too many"):
        for _ in range(SELECTED_NAMES // SELECTED_PER_MESSAGE + 1):
            rules.hear(full)


def test_nobody_selects_before_open() -> None:
    rules = SequenceRules(dialler=False)
    rules.say(HELLO)
    rules.hear(HELLO)
    for step in (rules.say, rules.hear):
        with pytest.raises(Illegal):
            step(LAST)
