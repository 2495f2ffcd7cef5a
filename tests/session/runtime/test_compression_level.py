"""What is compressed hard: the first bytes of a session, and all where the link is too slow for the rest."""

from __future__ import annotations

import random

import pytest

from rdc.limits import DATA_BYTES
from rdc.protocol.connection import Connection
from rdc.protocol.messages import Data
from rdc.protocol.wire.stream import HARD, PLAIN, QUICK, QUICKEST, RAW, CompressionLevel
from rdc.session.runtime import commands as pressure_module
from rdc.session.runtime.commands import (
    FAST,
    HARD_FIRST,
    KNOWN_BYTES,
    SLOW,
    TRIED,
    CompressionPolicy,
    Content,
    Send,
    SetCompression,
)
from tests.session.runtime.plain_conversations import destination, source
from tests.support.running.driven_pairs import Talk, both_threads, pipes


def test_a_link_that_never_was_in_the_way_is_not_slow() -> None:
    policy = CompressionPolicy()
    assert policy.fast and not policy.slow
    assert policy.compression(Content.CODE, HARD_FIRST) is HARD
    assert policy.compression(Content.CODE, 1) is QUICKEST
    assert policy.compression(Content.NEW) is PLAIN
    assert policy.compression(Content.TEXT) is HARD


def test_few_bytes_are_pressed_hard_wherever_they_go() -> None:
    policy = CompressionPolicy()
    policy.note_delay(2 * SLOW, 1.0)
    pressed = [policy.compression(Content.CODE, HARD_FIRST // 4) for _ in range(5)]
    assert pressed == [HARD, HARD, HARD, HARD, QUICK]


@pytest.mark.parametrize(
    ("carried", "seconds", "code"),
    [
        (SLOW - 1, 1.0, HARD),
        (SLOW, 1.0, QUICK),
        (0, 0.1, HARD),
        (FAST - 1, 1.0, QUICK),
        (FAST, 1.0, QUICKEST),
        (3, 2.0**-60, QUICKEST),
    ],
)
def test_a_link_is_as_slow_as_it_showed(carried: int, seconds: float, code: CompressionLevel) -> None:
    policy = CompressionPolicy()
    policy.note_delay(carried // 2, seconds / 4)
    policy.note_delay(carried - carried // 2, 3 * seconds / 4)
    assert policy.compression(Content.CODE, 100 * HARD_FIRST) is code
    assert policy.compression(Content.NEW) is (HARD if code is HARD else PLAIN)
    assert policy.compression(Content.TEXT) is HARD


def test_a_limit_is_a_slow_link() -> None:
    policy = CompressionPolicy()
    for limit, slow, fast in (
        (SLOW, False, False),
        (SLOW - 1, True, False),
        (FAST - 1, False, False),
        (FAST, False, True),
        (0, False, True),
    ):
        policy.limit(limit)
        assert (policy.slow, policy.fast) == (slow, fast)


def parts_of(policy: CompressionPolicy, count: int) -> list[CompressionLevel]:
    """Ask for the levels of `count` parts of new files that take 90 MB/s with compression and 300 without."""
    now = 0.0
    policy.clock = lambda: now
    policy.compression(Content.NEW)
    levels = []
    for _ in range(count):
        levels.append(policy.compression(Content.NEW, DATA_BYTES))
        now += DATA_BYTES / (300e6 if levels[-1] is RAW else 90e6)
    return levels


def test_new_files_go_without_compression_where_that_ends_sooner() -> None:
    policy = CompressionPolicy()
    policy.limit(0, tries=True)
    assert set(parts_of(policy, 100)) == {PLAIN}  # what lies between is not known to carry as much
    policy.left = KNOWN_BYTES
    assert parts_of(policy, 200).count(RAW) > 150


@pytest.mark.parametrize("case", ["fewest bytes", "packs", "slow", "limited", "blocked", "told"])
def test_new_files_are_compressed_where_bytes_count(case: str) -> None:
    policy = CompressionPolicy()
    policy.left = KNOWN_BYTES
    packs = case == "packs"
    policy.limit(TRIED - 1 if case == "limited" else 0, tries=case != "fewest bytes", packs=packs)
    if case == "slow":
        policy.note_delay(SLOW - 1, 1.0)
    if case == "blocked":
        policy.note_delay(TRIED - 1, 1.0)
    if case == "told":
        assert policy.compression(Content.BARE) is RAW  # the destination finds it out
    assert set(parts_of(policy, 200)) == {HARD if case == "slow" else PLAIN}


NOISE = random.Random(5).randbytes(DATA_BYTES)


def pressed(conversation: Talk, set_compression: SetCompression) -> Talk:
    """Sends noise in place of its data; before the last, what comes next is to be pressed."""
    command = next(conversation)
    sent = 0
    while True:
        answer = yield command
        try:
            command = conversation.send(answer)
        except StopIteration as stop:
            return int(stop.value)
        if isinstance(command, Send) and isinstance(command.message, Data):
            sent += 1
            command = Send(Data(0, NOISE), command.round)
            if sent == 8:
                yield set_compression


@pytest.mark.parametrize(
    ("slow", "fast", "set_compression", "compression"),
    [
        (0, 0, SetCompression(Content.CODE, HARD_FIRST + 1), QUICKEST),
        (0, 10**15, SetCompression(Content.CODE, HARD_FIRST + 1), QUICK),
        (10**15, 10**15, SetCompression(Content.CODE, HARD_FIRST + 1), HARD),
        (0, 0, SetCompression(Content.CODE, 1), HARD),
        (0, 0, SetCompression(Content.TEXT), HARD),
        (0, 0, SetCompression(Content.NEW), PLAIN),
        (10**15, 10**15, SetCompression(Content.NEW), HARD),
    ],
)
def test_what_a_link_shows_says_how_hard_is_pressed(
    slow: int,
    fast: int,
    set_compression: SetCompression,
    compression: CompressionLevel,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Four megabytes through a pipe of one, so that its sender waits."""
    monkeypatch.setattr(pressure_module, "SLOW", slow)
    monkeypatch.setattr(pressure_module, "FAST", fast)
    told: list[CompressionLevel] = []
    say = Connection.set_compression

    def noted(self: Connection, compression: CompressionLevel) -> None:
        told.append(compression)
        say(self, compression)

    monkeypatch.setattr(Connection, "set_compression", noted)
    both_threads(pressed(source(9, False), set_compression), destination(9, 0), pipes())
    assert told == [PLAIN, PLAIN, compression]
