"""Help texts at any width: only lines for copying may be too long, and no word is lost."""

from __future__ import annotations

import io
import os
import pty
import struct
import termios
from fcntl import ioctl

import pytest

from rdc.cli.help_page import WIDEST, folded, page_width
from rdc.cli.main import run
from rdc.cli.verb import load_verbs
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
