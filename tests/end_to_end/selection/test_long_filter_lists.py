"""Filter rules that have no room in an Open follow it, in every kind of session."""

from __future__ import annotations

from pathlib import Path

import pytest

from rdc.errors import ExitCode
from rdc.limits import FILTER_RULES, RULES_BYTES
from rdc.model.selection import DirectoryRules, FilterRule, RuleAction, RuleModifiers, RuleSide
from rdc.model.sync import SyncOptions
from rdc.protocol.messages import Notice, Open, Role, Rules
from rdc.protocol.sequence import SequenceRules
from rdc.protocol.wire.codec import Illegal
from tests.support.relay.two_hosts import between
from tests.support.running.syncing import Way, command, run_sync
from tests.support.trees.trees import read_tree, tree, write_tree
from tests.support.wire.dialogues import WHOLE
from tests.support.wire.wire_script import HELLO

EXCLUDE = RuleAction.EXCLUDE
MANY = tuple(FilterRule(EXCLUDE, b"/a/some/long/path/%d" % number) for number in range(20_000))
SOURCE = tree({"a/some/long/path/19999": b"out", "a/x": b"1", "b/x": b"2", "b/.f": b"- x\n", "c.o": b"3"})
FURTHER: list[tuple[FilterRule | DirectoryRules, ...]] = [
    (FilterRule(EXCLUDE, b"*.o"),),
    (FilterRule(EXCLUDE, b"*.o", RuleModifiers(RuleSide.SOURCE)), DirectoryRules(b".f")),
]


@pytest.mark.parametrize("further", FURTHER, ids=["plain", "with modifiers and files"])
@pytest.mark.parametrize("way", Way)
def test_every_rule_counts_at_both_sides(
    way: Way, further: tuple[FilterRule | DirectoryRules, ...], tmp_path: Path
) -> None:
    source, destination = tmp_path / "s", tmp_path / "d"
    write_tree(source, SOURCE)
    write_tree(destination, tree({"a/some/long/path/19998": b"protected", "gone": b"4"}))
    rules = (*MANY, *further)
    assert sum(len(rule.pattern) for rule in MANY) > RULES_BYTES
    run = run_sync(source, destination, SyncOptions(rules=rules, delete=True, fsync=False), way=way)
    assert run.done.exit is ExitCode.OK
    hidden = {b"b/x"} if len(further) > 1 else set()
    wanted = (read_tree(source).keys() | {b"a/some/long/path/19998"}) - hidden
    assert read_tree(destination).keys() == wanted - {b"a/some/long/path/19999", b"c.o"}
    assert {cost.name for cost in run.done.by_kind} >= {"Rules"}


def test_between_two_hosts_and_in_a_check(tmp_path: Path) -> None:
    source, destination = tmp_path / "s", tmp_path / "d"
    write_tree(source, SOURCE)
    rules = tmp_path / "rules"
    rules.write_bytes(b"".join(rule.pattern + b"\n" for rule in MANY))
    ended = between(f"--exclude-from={rules}", f"a:{source}/", f"b:{destination}")
    assert ended.code == ExitCode.OK
    assert b"a/x" in read_tree(destination)
    assert b"a/some/long/path/19999" not in read_tree(destination)
    words = (f"--exclude-from={rules}", f"{source}/", f"{destination}/")
    assert command("check", *words).code == ExitCode.OK


def opened(*, rules: bool) -> SequenceRules:
    """The dialler's rules after both Hellos and its Open."""
    session = SequenceRules(dialler=True)
    session.say(HELLO)
    session.hear(HELLO)
    options = SyncOptions(rules=MANY if rules else ())
    session.say(Open.asking(Role.SOURCE, b"s", bytes(16), options))
    return session


def test_rules_come_right_after_an_open_that_announces_them() -> None:
    some, last = Rules(MANY[:1], False), Rules(MANY[1:2], True)
    session = opened(rules=True)
    session.say(some)
    session.say(last)
    session.say(WHOLE)
    for rules, messages in (
        (True, (WHOLE,)),
        (True, (some, WHOLE)),
        (True, (last, last)),
        (True, (Rules((), True),)),
        (False, (last,)),
    ):
        session = opened(rules=rules)
        with pytest.raises(Illegal):
            for message in messages:
                session.say(message)
    with pytest.raises(Illegal):
        opened(rules=True).hear(last)
    session = opened(rules=True)
    with pytest.raises(Illegal, match="rules follow Open"):
        session.say(Notice(ExitCode.OK, b"a", "a"))


def test_they_have_the_bound_of_a_run() -> None:
    session = opened(rules=True)
    some = Rules(MANY[:6_000], False)
    with pytest.raises(Illegal, match="are too many"):
        for _ in range(FILTER_RULES // len(some.rules) + 1):
            session.say(some)


def test_a_short_list_stays_in_open() -> None:
    short = SyncOptions(rules=MANY[:100])
    assert Open.asking(Role.SOURCE, b"s", bytes(16), short).asked == short
    assert not Open.asking(Role.SOURCE, b"s", bytes(16), short).rules_follow
