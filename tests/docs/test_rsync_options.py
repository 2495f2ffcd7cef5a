"""The table of rsync's options: it is complete, in rsync's order, and says what the code says."""

from __future__ import annotations

import re
import subprocess

import pytest

from rdc.cli.options.sync_options import SYNC_OPTIONS, parse_sync
from rdc.errors import UsageError
from scripts.manual.notes import MissingNoteError
from scripts.manual.rsync_options import State, listed, names_of, option_table, row, rows


def shown(*words: str) -> list[str]:
    """The options in a help text of the installed rsync."""
    text = subprocess.run(["rsync", *words, "--help"], capture_output=True, text=True, check=True).stdout
    lines = re.split(r"\n(?:Options|Usage: rsync --daemon.*)\n", text)[-1].splitlines()
    found = (re.match(r"-[^ ,]+(, -[^ ,]+)*", line) for line in lines)
    return [match[0] for match in found if match]


@pytest.mark.needs("rsync")
def test_the_list_is_that_of_the_installed_rsync() -> None:
    options = shown()
    assert len(options) > 150
    assert list(listed()) == [*options, *(one for one in shown("--daemon") if one not in options)]


@pytest.mark.parametrize("spelled", listed())
def test_the_state_of_an_option_is_what_the_command_line_does(spelled: str) -> None:
    found = row(spelled)
    if spelled == "--no-OPTION":
        return
    for name in names_of(spelled):
        try:
            parse_sync([name, "a", "b", "c"])
        except UsageError as error:
            assert found.state is State.NOT_HAD, name
            assert str(error) == f"rdc has no {name}: {found.note}"
        else:
            assert found.state is not State.NOT_HAD, name


def test_an_option_without_a_state_fails() -> None:
    with pytest.raises(MissingNoteError, match="rsync has --new-one"):
        row("--new-one=X, -Ö")


def test_each_note_is_about_an_option_that_both_have() -> None:
    shown_notes = {one.note for one in rows()}
    for option in (option for group in SYNC_OPTIONS for option in group.options):
        assert not option.rsync or " ".join(option.rsync.split()) in shown_notes, option.names


def test_what_is_always_so() -> None:
    always = {names_of(one.spelled)[0] for one in rows() if one.state is State.ALWAYS}
    assert {"--archive", "--recursive", "--times", "--fsync", "--partial"} <= always
    assert not {"--checksum", "--delete", "--verbose", "--quiet", "--dry-run"} & always


def test_the_table_has_a_line_for_each_option() -> None:
    text = option_table()
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    assert len(lines) == len(listed())
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 4 for line in lines)
