"""Options that several verbs share: rules in their order, rates, and how a job is divided."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from rdc.cli.environment import OptionGroup, Words, parse_words
from rdc.cli.options.shared_options import (
    CLUSTER,
    DEPTH,
    FILTER_GROUP,
    MAX_RATE,
    SLICE,
    SLICES,
    OneSlice,
    read_depth,
    read_max_rate,
    read_rules,
    read_slicing,
)
from rdc.cli.verbs.serve import MAX_MEMORY, read_max_memory
from rdc.errors import UsageError
from rdc.model.scan import ScanSlice
from rdc.model.selection import DirectoryRules, FilterRule, RuleAction, RuleSyntax

RESOURCES = OptionGroup("Resources", (CLUSTER, DEPTH, MAX_MEMORY, MAX_RATE, SLICE, SLICES))


def parsed(*words: str) -> Words:
    return parse_words(words, (FILTER_GROUP, RESOURCES), {}, command="rdc scan")


def rules(*words: str, files: Mapping[str, bytes] | None = None) -> list[FilterRule | DirectoryRules]:
    return [*read_rules(parsed(*words), (files or {}).__getitem__)]


def test_rules_keep_the_order_of_the_command_line() -> None:
    exclude, include = RuleAction.EXCLUDE, RuleAction.INCLUDE
    files = {"list": b"# a comment\n*.o\n\n; another\nbuild/\n"}
    assert rules("--include=a", "--exclude-from=list", "--gitignore", "--exclude", "b", files=files) == [
        FilterRule(include, b"a"),
        FilterRule(exclude, b"*.o"),
        FilterRule(exclude, b"build/"),
        DirectoryRules(b".gitignore", RuleSyntax.GIT),
        FilterRule(exclude, b"b"),
    ]
    assert rules("--include=a", "--filter=- b", "--filter=+ c") == [
        FilterRule(include, b"a"),
        FilterRule(exclude, b"b"),
        FilterRule(include, b"c"),
    ]


def test_the_second_f_leaves_the_rule_files_out() -> None:
    once, twice = rules("-F"), rules("-FF")
    assert once == twice[:1]
    assert twice[1:] == [FilterRule(RuleAction.EXCLUDE, b".rsync-filter")]


def test_the_patterns_of_cvs_come_last() -> None:
    found = rules("-C", "--exclude=mine")
    assert found[0] == FilterRule(RuleAction.EXCLUDE, b"mine")
    assert len(found) > 2


def test_what_is_absent_has_a_default() -> None:
    words = parsed()
    assert (read_max_memory(words), read_depth(words), read_max_rate(words)) == (None, 0, 0)
    assert read_slicing(words, None, "part") is None


def test_the_last_value_counts() -> None:
    words = parsed("--max-rate=2M", "--max-rate=5M", "--depth=3", "--depth=9", "--slice=1/8", "--slice=8/8")
    assert (read_max_rate(words), read_depth(words)) == (5 << 20, 9)
    assert read_slicing(words, "part", "part") == OneSlice(ScanSlice(8, 8), "part")


@pytest.mark.parametrize(
    ("words", "part", "why"),
    [
        (("--slice=1/8",), None, "--slice=1/8 needs -o, such as: -o 1.scan; rdc merge adds slices up"),
        (("--slice=9/8",), "o", "--slice=9/8: "),
        (("--slice=0/8",), "o", "--slice=0/8: "),
        (("--slice=1/\u0668",), "o", "--slice=1/\u0668: a slice and their number are expected"),
        (("--slices=8",), "o", "--slices needs --cluster; one slice of a job array is --slice=I/N"),
        (("--cluster=processes:2",), None, "--cluster needs -o, a directory for the parts"),
        (("--cluster=processes:2", "--slice=1/2"), "o", "--cluster makes all slices; leave --slice out"),
        (("--cluster=processes:2", "--slices=0"), "o", "--slices=0: a whole number from 1 to"),
        (("--cluster=dask://h:1",), "o", "o: expected an absolute path"),
    ],
)
def test_what_does_not_go_together(words: tuple[str, ...], part: str | None, why: str) -> None:
    with pytest.raises(UsageError) as raised:
        read_slicing(parsed(*words), part, "scan")
    assert str(raised.value).startswith(why)


@pytest.mark.parametrize(
    ("read", "word", "why"),
    [
        (read_max_rate, "--max-rate=1", "--max-rate=1: 1M a second at least is expected, or 0 for no bound"),
        (read_max_rate, "--max-rate=x", "--max-rate=x: "),
        (read_depth, "--depth=-1", "--depth=-1: "),
        (read_max_memory, "--max-memory=1e9", "--max-memory=1e9: "),
    ],
)
def test_values_without_a_meaning(read: Callable[[Words], object], word: str, why: str) -> None:
    with pytest.raises(UsageError) as raised:
        read(parsed(word))
    assert str(raised.value).startswith(why)
