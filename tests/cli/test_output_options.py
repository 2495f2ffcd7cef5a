"""The options about what is shown are read as in rsync, or refused by name."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

from rdc.cli.options.sync_options import parse_sync, read_style
from rdc.errors import UsageError
from rdc.model.location import Location
from rdc.report.sync_terminal import TerminalStyle
from tests.cli.fake_syncer import asked
from tests.support.running.fake_environment import FakeProcess

HERE = TerminalStyle(carried="copied")


def style(*words: str) -> TerminalStyle:
    return read_style(parse_sync([*words, "a", "b"]), Location(None, b"a"), Location(None, b"b"))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], HERE),
        (["-v"], replace(HERE, names=True)),
        (["-vv"], replace(HERE, names=True, unchanged=True)),
        (["-i"], replace(HERE, itemize=True)),
        (["-iiq"], replace(HERE, itemize=True, unchanged=True, quiet=True)),
        (["-h"], replace(HERE, level=2)),
        (["-hhh"], replace(HERE, level=3)),
        (["-hh", "--no-h"], replace(HERE, level=0)),
        (["--no-h", "-h"], HERE),
        (["--info=name"], replace(HERE, names=True)),
        (["--info=NAME2,stats2"], replace(HERE, names=True, unchanged=True, stats=True)),
        (["-v", "--info=name0,del"], replace(HERE, deletions=True)),
        (["--info=progress2"], replace(HERE, progress=True)),
        (["-v", "--stats", "--info=none"], replace(HERE, summary=False)),
        (["--info=stats0", "--info=stats1"], HERE),
        (["--stderr=a"], replace(HERE, on_stderr=True)),
        (["--stderr=all", "--stderr=client"], HERE),
        (["--msgs2stderr"], replace(HERE, on_stderr=True)),
        (["-8", "--outbuf=line"], HERE),
    ],
)
def test_what_is_shown(words: list[str], expected: TerminalStyle) -> None:
    assert replace(style(*words), asked=False) == expected


@pytest.mark.parametrize(
    "word", ["-v", "-i", "-n", "-P", "--stats", "--progress", "--info=none", "--out-format=%n"]
)
def test_some_options_ask_for_a_last_line_without_a_terminal(word: str) -> None:
    assert style(word).asked and not style("--delete", "-h", "--stderr=all").asked


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("--info=skip", "--info=skip: rdc does not know skip; it knows name, del, stats"),
        ("--info=name,", "rdc does not know an empty flag"),
        ("--info=stats10", "rdc does not know stats10"),
        ("--stderr=", "--stderr=: expected errors, all or client"),
        ("--stderr=x", "--stderr=x: expected errors, all or client"),
        ("--outbuf=", "--outbuf=: expected N"),
        ("--log-file=", "--log-file needs a file"),
        ("--log-file-format=%n", "--log-file-format needs --log-file"),
    ],
)
def test_a_wrong_value_is_one_line(word: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        asked(word)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_only_what_is_shown_is_asked_for() -> None:
    assert not asked("--info=stats2").options.items
    for word in ("-v", "--info=del", "--out-format=%n", "--json"):
        assert asked(word).options.items, word
    assert asked("-vv").options.list_unchanged
    assert not asked("-vvq").options.list_unchanged


def test_stdout_is_buffered_as_asked() -> None:
    process = FakeProcess()
    stdout = io.TextIOWrapper(io.BytesIO())
    environment = replace(process.environment, stdout=stdout)
    environment.buffer("L")
    assert stdout.line_buffering
    environment.buffer(None)
    assert stdout.line_buffering
    environment.buffer("N")
    assert stdout.write_through
