"""Help texts at any width: only lines for copying may be too long, and no word is lost."""

from __future__ import annotations

import io
import os
import pty
import re
import struct
import termios
from fcntl import ioctl
from itertools import groupby

import pytest

from rdc.cli.help_page import WIDEST, folded, page_width
from rdc.cli.main import run
from rdc.cli.verb import load_verbs
from rdc.errors import ExitCode
from rdc.model.options import Option
from tests.support.running.fake_environment import FakeProcess

WIDTHS = (40, 60, 80, 100, 110, 200)


def shown(*words: str, width: int | None = None) -> str:
    process = FakeProcess(environ={} if width is None else {"COLUMNS": str(width)})
    assert run(words, process.environment) == 0
    return process.out


@pytest.mark.parametrize("verb", ["", *load_verbs()])
@pytest.mark.parametrize("width", WIDTHS)
def test_lines_fit_and_words_stay(verb: str, width: int) -> None:
    words = [verb, "--help"] if verb else ["--help"]
    text = shown(*words, width=width)
    assert text.split() == shown(*words, width=WIDEST).split()
    for line in text.splitlines():
        # A command or a setting stays whole, for copying.
        whole = line.startswith("  ") and (line[2:] in _single_rows(verb) or " #" in line)
        assert len(line) <= width or whole or len(line.split()) == 1, line


def _single_rows(verb: str) -> set[str]:
    """Returns the terms of the rows in the unfolded text."""
    text = load_verbs()[verb].help_text() if verb else shown("--help", width=WIDEST)
    return {line.strip().split("   ")[0].split("  ")[0] for line in text.splitlines() if line[:2] == "  "}


def test_the_default_is_eighty_columns() -> None:
    assert shown("sync", "--help") == shown("sync", "--help", width=80)
    for verb in load_verbs():
        # Rows for copying stay whole.
        lines = [line for line in shown(verb, "--help").splitlines() if line[2:] not in _single_rows(verb)]
        assert max(map(len, lines)) <= 80, verb


@pytest.mark.parametrize("columns", ["", "0", "wide", "-3", "٣"])
def test_invalid_columns_are_ignored(columns: str) -> None:
    assert page_width(io.StringIO(), {"COLUMNS": columns}) == 80


def test_the_terminals_width_is_used() -> None:
    near, far = pty.openpty()
    try:
        ioctl(far, termios.TIOCSWINSZ, struct.pack("4H", 24, 57, 0, 0))
        with os.fdopen(far, "w") as stdout:
            assert page_width(stdout, {}) == 57
            assert page_width(stdout, {"COLUMNS": "43"}) == 43
    finally:
        os.close(near)


TEXT = """\
Usage: rdc do [OPTIONS] WHAT

Examples:
  rdc do this          which does this, and takes a little more time than that
  rdc do 'more  of' -x=1
  [table]
  key = "value"        # a comment that stands behind what it is about

Prose that was written in
two lines.

Options:
  -x, --extra=VALUE    so much of it
  --a-long-name, --another-name
                       is explained below
"""


def test_explanations_stay_in_their_column() -> None:
    assert folded(TEXT, 56) == (
        TEXT.replace("takes a little", "takes a\n                       little").replace("in\ntwo", "in two")
    )


def test_explanations_go_below_where_there_is_no_room() -> None:
    assert folded(TEXT, 40) == (
        TEXT.replace("          which does this", "\n      which does this")
        .replace("takes a little", "takes a\n      little")
        .replace("in\ntwo", "in two")
        .replace("                       is explained", "      is explained")
    )


SCREEN = 45
"""Lines of a short help text at 100 columns: what a terminal shows without scrolling."""


def _options(verb: str) -> list[Option]:
    return [option for group in load_verbs()[verb].OPTIONS for option in group.options]


@pytest.mark.parametrize("verb", load_verbs())
def test_help_is_one_screen(verb: str) -> None:
    assert len(shown(verb, "--help", width=100).splitlines()) <= SCREEN


@pytest.mark.parametrize("verb", [name for name, verb in load_verbs().items() if verb.help_text.short])
def test_the_short_help_is_one_screen_of_the_common_options(verb: str) -> None:
    text = shown(verb, "--help", width=100)
    assert len(text.splitlines()) <= SCREEN
    listed = re.findall(r"(?m)^  (-\S*?)(?:,|=| )", text)
    assert sorted(listed) == sorted(option.names[0] for option in _options(verb) if option.common)
    assert f"rdc {verb} --help=all" in text
    assert shown(verb, "-h", width=100) == shown("help", verb, width=100) == text


@pytest.mark.parametrize(
    ("what", "own"), [("put", "--heal"), ("list", ""), ("forget", "--retain"), ("gc", "--wait")]
)
def test_a_subverb_of_store_shows_its_own_options(what: str, own: str) -> None:
    text = shown("store", what, "--help", width=100)
    assert text.startswith(f"Usage: rdc store {what}") and len(text.splitlines()) <= SCREEN
    assert own in text
    assert shown("store", what, "-h", width=100) == text
    others = {"--heal", "--retain", "--wait", "--read"} - {own}
    assert not [option for option in others if option in text]


def test_twenty_options_of_a_sync_are_common() -> None:
    assert sum(option.common for option in _options("sync")) == 20


@pytest.mark.parametrize("verb", ["sync", "watch"])
def test_the_long_help_has_every_option_once(verb: str) -> None:
    text = shown(verb, "--help=all", width=WIDEST)
    rows, _, defaults = text.partition("\nAlways on")
    listed = re.findall(r"(?m)^  (-[^ =,]*)(?:[ =,].*)?$", rows.partition("\nChoosing")[2])
    names = [option.names[0] for option in _options(verb)]
    in_one_paragraph = re.findall(r"(?<=[ \n])-[-\w]+", defaults.partition("\n\n")[0].partition(":")[2])
    assert set(listed) | set(in_one_paragraph) >= set(names) - {"--rescan", "--on-sync"}
    assert len(listed) == len(set(listed)) and not set(listed) & set(in_one_paragraph)
    assert len(defaults.partition("\n\n")[0].splitlines()) <= 4


def test_options_come_in_the_order_of_use() -> None:
    """Choose, delete, keep, connect, show: in both texts."""
    short = re.findall(r"(?m)^(\w+)(?: \(.*\))?:$", shown("sync", "--help", width=WIDEST))
    assert short == ["Examples", "Choose", "Delete", "Keep", "Connect", "Show"]
    stages = [group.stage for group in load_verbs()["sync"].OPTIONS if group.stage]
    assert [stage for stage, _ in groupby(stages)] == list(dict.fromkeys(stages))


@pytest.mark.parametrize("verb", load_verbs())
def test_every_verb_shows_all_of_its_help(verb: str) -> None:
    assert shown(verb, "--help=all", width=WIDEST) == folded(load_verbs()[verb].help_text(), WIDEST)
    process = FakeProcess(environ={})
    assert run([verb, "--help=some"], process.environment) in {ExitCode.USAGE, ExitCode.CHECK_USAGE}
    assert "--help=some: expected all" in process.err


@pytest.mark.parametrize("verb", load_verbs())
def test_help_points_to_no_file_of_the_repository(verb: str) -> None:
    assert not re.search(r"\b\w+/\S+\.(md|py)\b", load_verbs()[verb].help_text())


@pytest.mark.parametrize(("verb", "word"), [("watch", "--update"), ("watch", "-n"), ("check", "--delete")])
def test_an_option_of_sync_alone_is_called_so(verb: str, word: str) -> None:
    process = FakeProcess(environ={})
    assert run([verb, word, "a", "b"], process.environment) in {ExitCode.USAGE, ExitCode.CHECK_USAGE}
    assert f"rdc {verb} has no {word}, which is an option of rdc sync" in process.err
