"""Walks over several paths: everything below them is listed once, under the first name that leads to it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from rdc.errors import ExitCode
from rdc.model.selection import FilterRule, RuleAction
from rdc.progress import Event, Problem
from rdc.survey.walk.walk_paths import walk_paths


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All names are relative to this directory."""
    for name in ("d/a", "d/b", "d/deep/c", "e/a"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "to-file").symlink_to("d/a")
    (tmp_path / "to-directory").symlink_to("d")
    (tmp_path / "d" / "inside").symlink_to("a")
    os.mkfifo(tmp_path / "fifo")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def gathered(
    paths: Sequence[str], rules: Sequence[FilterRule] = (), *, one_file_system: bool = False
) -> tuple[list[str], list[Problem]]:
    """Names of the regular files as the user would type them, and the problems reported."""
    events: list[Event] = []
    files, _ = walk_paths(
        [os.fsencode(one) for one in paths], rules, events.append, one_file_system=one_file_system
    )
    for row in range(len(files)):
        # Every listed name can be opened and leads to the file that was listed.
        with files.open(row) as source:
            assert (source.identity.device, source.identity.inode) == (files.devices[row], files.inodes[row])
            assert source.size == files.sizes[row]
        assert os.path.exists(files.shown(row))
    problems = [event for event in events if isinstance(event, Problem)]
    assert len(problems) == len(events)
    return [os.fsdecode(files.shown(row)) for row in range(len(files))], problems


@pytest.mark.parametrize(
    ("paths", "found"),
    [
        (["d"], ["d/a", "d/b", "d/deep/c"]),
        (["d/"], ["d/a", "d/b", "d/deep/c"]),
        (["."], ["./d/a", "./d/b", "./d/deep/c", "./e/a"]),
        # A directory is walked once, whatever leads to it.
        (["d", "d", "d/../d", "to-directory"], ["d/a", "d/b", "d/deep/c"]),
        (["d/deep", "d"], ["d/deep/c", "d/a", "d/b"]),
        # A path that is a link is followed; a link below a path is not.
        (["to-directory"], ["to-directory/a", "to-directory/b", "to-directory/deep/c"]),
        # A file comes once, at the first path that leads to it and under that name.
        (["d", "d/b"], ["d/a", "d/b", "d/deep/c"]),
        (["d/b", "d"], ["d/b", "d/a", "d/deep/c"]),
        (["e", "d/b", "d"], ["e/a", "d/b", "d/a", "d/deep/c"]),
        (["to-directory/b", "d", "d/b"], ["to-directory/b", "d/a", "d/deep/c"]),
        (["d/a", "e/a"], ["d/a", "e/a"]),
        ([], []),
    ],
)
def test_each_file_comes_once(top: Path, paths: list[str], found: list[str]) -> None:
    assert gathered(paths) == (found, [])


def test_a_link_to_a_file_is_that_file(top: Path) -> None:
    """The file's own name is listed and not the link's."""
    assert gathered(["to-file", "d/a", "d"])[0] == [f"{top}/d/a", "d/b", "d/deep/c"]


def test_a_file_in_the_current_directory(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(top / "d")
    assert gathered(["a", "."])[0] == ["a", "./b", "./deep/c"]


def test_rules_hold_for_what_is_below_and_not_for_what_is_named(top: Path) -> None:
    rules = [FilterRule(RuleAction.EXCLUDE, b"a"), FilterRule(RuleAction.EXCLUDE, b"/deep")]
    assert gathered(["d", "e", "d/deep"], rules)[0] == ["d/b", "d/deep/c"]
    assert gathered(["e/a", "e"], rules)[0] == ["e/a"]
    assert gathered(["e", "d", "e/a"], rules)[0] == ["d/b", "e/a"]


@pytest.mark.parametrize(
    ("path", "code", "words"),
    [
        ("nowhere", ExitCode.PARTIAL, "check the spelling"),
        ("d/a/", ExitCode.PARTIAL, "d/a/"),
        ("d\0a", ExitCode.PARTIAL, "NUL"),
        ("fifo", ExitCode.PARTIAL, "special file"),
        ("x" * 300, ExitCode.PARTIAL, "xxx"),
    ],
)
def test_what_cannot_be_looked_at_is_named_and_the_rest_found(
    top: Path, path: str, code: ExitCode, words: str
) -> None:
    found, problems = gathered([path, "e", path])
    assert found == ["e/a"]
    assert [one.path_bytes for one in problems] == [os.fsencode(path)] * 2
    assert {one.code for one in problems} == {code}
    assert all(words in one.message for one in problems)
