"""--list-only, and a SRC without a DST: the entries of SRC, as rsync lists them."""

from __future__ import annotations

import os
import re
import subprocess
from array import array
from pathlib import Path

import pytest

from rdc.errors import ExitCode, ProtocolError
from rdc.model.entries import Kind, Listing, Metadata
from rdc.model.location import Location
from rdc.model.selection import FilterRule, RuleAction
from rdc.model.sync import SyncOptions
from rdc.progress import silent
from rdc.protocol.messages import ListingPart
from rdc.session.listing import ListedEntry, _ListRun
from tests.support.running.syncing import PSEUDO_SSH, RDC, command
from tests.support.trees.trees import Directory, File, Link, read_tree, tree, write_tree

TREE = tree(
    {
        "f": File(b"1" * 1_234, 0o4755, 10**18),
        "d/deep/g": b"",
        "d/l": Link(b"../f"),
        "empty": Directory(0o700),
        "odd\n": b"2",
        "gone.o": b"3",
    }
)


def rsync(*words: object) -> list[str]:
    argv = ["rsync", "-a", *map(str, words)]
    text = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    text = re.sub(r"\\#([0-7]{3})", lambda found: f"\\x{int(found[1], 8):02x}", text)
    # The size of a directory is its file system's, and rdc has none.
    return sorted(
        re.sub(r"^(d\S+) {1,14}[\d,.]+K?", r"\1              0", line) for line in text.splitlines()
    )


@pytest.mark.needs("rsync")
@pytest.mark.parametrize("far", [False, True], ids=["here", "far"])
@pytest.mark.parametrize("end", ["/", "", "/d/", "/f", "/empty/"])
@pytest.mark.parametrize("words", [[], ["-h"], ["--no-h"], ["--exclude=*.o"]], ids=str)
def test_the_lines_are_rsync_s(words: list[str], end: str, far: bool, tmp_path: Path) -> None:
    source = write_tree(tmp_path / "s", TREE)
    before = read_tree(tmp_path)
    shell = ("-e", PSEUDO_SSH, "--remote-path", " ".join(RDC)) if far else ()
    theirs = rsync(*(word for word in words if word != "--no-h"), f"{source}{end}")
    ended = command("sync", *words, *shell, f"{'far:' if far else ''}{source}{end}")
    assert ended.code == ExitCode.OK, ended.err
    if "--no-h" in words:
        theirs = [line.replace("         1,234", "          1234") for line in theirs]
    assert sorted(ended.out.splitlines()) == theirs
    assert ended.err == ""
    assert read_tree(tmp_path) == before


def test_a_destination_takes_no_part(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "s", TREE)
    words = ("--list-only", "--delete", "--force", f"{source}/")
    ended = command("sync", *words, tmp_path / "d")
    assert ended.out == command("sync", f"{source}/").out != ""
    assert not (tmp_path / "d").exists()


def test_each_directory_stands_before_what_is_in_it(tmp_path: Path) -> None:
    write_tree(tmp_path / "s", TREE)
    names = [line[46:] for line in command("sync", f"{tmp_path}/s/").out.splitlines()]
    assert names[0] == "."
    for number, name in enumerate(names[1:], 1):
        above = os.path.dirname(name.partition(" -> ")[0])
        assert not above or above in names[:number]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--json", "s/"], "--list-only and --json exclude each other"),
        (["--list-only"], "SRC and DST are needed"),
        (["missing"], "no such file or directory"),
        (["--list-only", "a", "b", "c"], ""),
    ],
)
def test_what_cannot_be_listed_is_one_line(words: list[str], said: str) -> None:
    ended = command("sync", *words)
    assert ended.code != ExitCode.OK and len(ended.err.splitlines()) == 1
    assert said in ended.err


@pytest.mark.parametrize(
    ("path", "names"), [(b"other", (b"a",)), (b"", (b"b", b"a")), (b"", (b"x.o",))], ids=str
)
def test_a_hostile_source_lists_nothing_that_it_may_not(path: bytes, names: tuple[bytes, ...]) -> None:
    seen: list[ListedEntry] = []
    options = SyncOptions(rules=(FilterRule(RuleAction.EXCLUDE, b"*.o"),))
    run = _ListRun(Location("far", b"s/"), options, seen.append, silent, None)
    run._waiting[b""] = ListedEntry(b".", Kind.DIRECTORY, 0, Metadata(0, 0, 0, 0), None)
    zeros = {code: array(code, [0] * len(names)) for code in "HQqI"}
    numbers = (zeros["H"], zeros["Q"], zeros["q"], zeros["I"], zeros["I"])
    with pytest.raises(ProtocolError):
        run._take(ListingPart(0, path, 0, True, Listing(names, bytes(len(names)), *numbers, ())), b"")
    assert seen == []
