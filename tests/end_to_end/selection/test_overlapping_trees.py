"""SRC and DST of which one holds the other: refused where a run would eat its own tail or its own source."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rdc.errors import ExitCode
from tests.support.running.syncing import command
from tests.support.trees.trees import read_tree, tree, write_tree

FILES = tree({"a": b"1", "sub/b": b"2", "sub/deep/c": b"3"})


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory s, and links to it and into it, with all paths relative."""
    write_tree(tmp_path / "s", FILES)
    (tmp_path / "link").symlink_to("s")
    (tmp_path / "within").symlink_to("s/sub")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("verb", ["sync", "watch"])
@pytest.mark.parametrize(
    ("words", "pattern"),
    [
        (["s/", "s/new"], "/new/"),
        (["s/", "s/sub/deep/new/"], "/sub/deep/new/"),
        (["s", "s"], "/s/s/"),
        (["s", "s/sub"], "/s/sub/s/"),
        (["s/sub/../", "./s//new"], "/new/"),
        (["link/", "s/new"], "/new/"),
        (["s/", "within"], "/sub/"),
        (["s/.", "within/x"], "/sub/x/"),
        ([".", "s/copy"], "/s/copy/"),
        (["--exclude=x", "--exclude=/copy", "s/", "s/copy2"], "/copy2/"),
        (["--include=copy/", "--exclude=copy", "s/", "s/copy"], "/copy/"),
        (["--delete", "s/sub/", "s"], "/sub/"),
        (["--delete", "within/", "link"], "/sub/"),
    ],
)
def test_what_would_feed_on_itself_is_refused(
    verb: str, words: list[str], pattern: str, inside: Path
) -> None:
    before = read_tree(inside)
    ended = command(verb, *words)
    assert ended.code == ExitCode.USAGE, ended
    assert f"--exclude={pattern}" in ended.err
    assert read_tree(inside) == before


@pytest.mark.parametrize(
    "words",
    [
        ["s/", "s/"],
        ["s", "."],
        ["s/", "link"],
        ["--delete", "s/", "s"],
        ["s/sub/", "s/"],
        ["s/sub", "s/"],
        ["--delete", "s/sub", "s/"],
        ["s/a", "s/sub/"],
        ["link", "s/"],
        ["s/", "s2"],
        ["--exclude=/new/", "s/", "s/new"],
        ["--delete", "s/sub/deep", "s"],
        ["--exclude=/s/new", "s", "s/new"],
        ["--delete", "--exclude=/sub/", "--exclude=/a", "s/sub/", "s"],
    ],
)
def test_what_does_no_harm_is_done(words: list[str], inside: Path) -> None:
    for _ in range(2):
        ended = command("sync", *words)
        assert ended.code == ExitCode.OK, ended
    found = read_tree(inside / "s")
    assert all(path in found for path in FILES)
    assert len(found) < 3 * len(FILES)


@pytest.mark.parametrize(
    "words",
    [
        ["--exclude=/sub/", "s/sub/", "s"],
        ["--exclude=/sub/", "within/", "link"],
        ["--exclude=a", "s/", "s"],
        ["--exclude=a", "s", "."],
        ["--exclude=a", "link/", "s"],
        ["--exclude=deep", "s/sub", "s/"],
    ],
)
def test_where_rules_protect_nothing_none_is_enough(words: list[str], inside: Path) -> None:
    before = read_tree(inside)
    ended = command("sync", "--delete-excluded", *words)
    assert ended.code == ExitCode.USAGE, ended
    assert "--delete-excluded" in ended.err and "would remove" in ended.err
    assert read_tree(inside) == before


def test_a_copy_inside_of_what_is_excluded(inside: Path) -> None:
    """Whose rules are about the source."""
    os.mkdir("s/new")
    Path("s/new/old").write_bytes(b"old")
    for _ in range(2):
        assert command("sync", "--delete-excluded", "--exclude=/new/", "s/", "s/new").code == ExitCode.OK
    assert set(os.listdir("s/new")) == {"a", "sub"}
    assert set(os.listdir("s")) == {"a", "sub", "new"}


def test_a_suggested_pattern_is_enough(inside: Path) -> None:
    ended = command("sync", "s/", "s/b u/p")
    assert ended.code == ExitCode.USAGE
    suggested = ended.err.strip().rpartition(" leave it out with ")[2]
    (inside / "s" / "b u").mkdir()
    for _ in range(2):
        assert command("sync", suggested, "s/", "s/b u/p").code == ExitCode.OK
    assert set(os.listdir("s/b u/p")) == {"a", "sub", "b u"}
    assert os.listdir("s/b u/p/b u") == []


def test_a_working_directory_that_is_gone_is_not_asked(inside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (inside / "gone").mkdir()
    monkeypatch.chdir(inside / "gone")
    (inside / "gone").rmdir()
    assert command("sync", inside / "s", inside / "copy").code == ExitCode.OK
    ended = command("sync", ".", inside / "copy")
    assert "internal error" not in ended.err
    ended = command("sync", f"{inside}/s/", ".")
    assert ended.code != ExitCode.OK and "internal error" not in ended.err
