"""The command line of `rdc undo`: one operand, which is on this machine, and options that go together."""

from __future__ import annotations

from pathlib import Path

import pytest

from rdc.errors import UsageError
from rdc.undoing.command import UndoRequest, parse_undo, read_undo


def request(*words: str) -> UndoRequest:
    return read_undo(parse_undo(words))


def test_options_become_a_request() -> None:
    plain = UndoRequest(b"d", False, False, fsync=True, quiet=False, verbose=False, json=False)
    assert request("d") == plain
    words = ("-n", "-qv", "--no-fsync", "--json", "d")
    assert request(*words) == UndoRequest(b"d", True, False, fsync=False, quiet=True, verbose=True, json=True)
    assert request("--list", "d").list


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "one DST or JOURNAL is needed, nothing was given"),
        (("a", "b"), "one DST or JOURNAL is needed, 2 were given"),
        (("",), "DST is empty or has a NUL character; for the current directory, write ."),
        (("a\0b",), "DST is empty or has a NUL character"),
        (("host:d",), "host:d: rdc undo works on the machine of DST; run it there, as by ssh host"),
        (("--list", "-n", "d"), "--list and --dry-run exclude each other: --list undoes nothing anyway"),
        (("--days=3", "d"), "unknown option --days"),
    ],
)
def test_other_words_are_refused(words: tuple[str, ...], why: str) -> None:
    with pytest.raises(UsageError) as raised:
        request(*words)
    assert str(raised.value).startswith(why)


def test_a_directory_that_looks_like_a_host_is_one_if_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("host:d").mkdir()
    assert request("host:d").path == b"host:d"
