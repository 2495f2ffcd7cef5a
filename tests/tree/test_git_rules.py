"""What .gitignore files leave out is what git leaves out."""

from __future__ import annotations

import os
import random
import subprocess
import time
from pathlib import Path

import pytest

from rdc.errors import UsageError
from rdc.files.root.root import Root
from rdc.limits import RULE_FILE_BYTES
from rdc.model.selection import DirectoryRules, RuleSyntax
from rdc.progress import silent
from rdc.tree import filter_list
from rdc.tree.directory_filters import GitIgnore
from rdc.tree.filters import FilteredTree
from rdc.tree.walk import Walk

DIRECTORIES = ["a", "b", "a/a", "a/b", "a/b/c", "b/a", "b/a/b"]
NAMES = ["x", "y.o", "#x", "!x", "x ", "[x]", "a*", "a\\"]
LINES = [
    "x", "*.o", "/x", "a/", "a", "a/b", "/a/b/", "**/x", "a/**", "a/**/x", "**/b/**", "!x", "!y.o",
    "!a/", "#x", "\\#x", "\\!x", "x ", "x\\ ", "", "  ", "[xy]", "[!x]", "[[:alpha:]]", "\\[x]", "a\\*",
    "?", "*", "/*", "!/a", "a**", "**", "a/**b", "*/x", "b/*/b", "**/a/**/x", "x\r", "[", "a\\", "b/",
    "c/x", "/**/c", "a/*/**/x", "!*/", "[x", "a\\\\",
]  # fmt: skip
RULES = (DirectoryRules(b".gitignore", RuleSyntax.GIT),)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", tmp_path / "tree"], check=True)
    for directory in ["", *DIRECTORIES]:
        (tmp_path / "tree" / directory).mkdir(exist_ok=True)
        for name in NAMES:
            (tmp_path / "tree" / directory / name).touch()
    return tmp_path / "tree"


def taken_by_git(tree: Path) -> set[bytes]:
    """The untracked files that are not ignored."""
    argv = [
        "git",
        "-c",
        "core.excludesFile=",
        "ls-files",
        "-z",
        "--others",
        "--exclude-per-directory=.gitignore",
    ]
    return set(subprocess.run(argv, cwd=tree, capture_output=True, check=True).stdout.split(b"\0")) - {b""}


def taken_by_rdc(tree: Path) -> set[bytes]:
    root = Root.open(os.fsencode(tree))
    found: set[bytes] = set()
    for directory in Walk(root, filter_list(RULES).at_source(FilteredTree(root)), silent):
        listing = directory.listing.unpacked()
        for name, kind in zip(listing.names, listing.kinds, strict=True):
            path = os.path.join(directory.path, name)
            if kind == 0 and not path.startswith(b".git/"):
                found.add(path)
    root.close()
    return found


@pytest.mark.needs("git")
@pytest.mark.parametrize("seed", range(3))
def test_takes_what_git_takes(seed: int, tree: Path) -> None:
    rng = random.Random(seed)
    for _ in range(40):
        for directory in ("", "a", "a/b"):
            lines = rng.choices(LINES, k=rng.randint(0, 3))
            (tree / directory / ".gitignore").write_text("\n".join(lines), newline="")
        files = [(tree / directory / ".gitignore").read_bytes() for directory in ("", "a", "a/b")]
        assert taken_by_rdc(tree) == taken_by_git(tree), files


def test_no_pattern_takes_exponential_time() -> None:
    """With backtracking each of these takes longer than the world is old."""
    hostile = [b"*a" * 60 + b"b", b"/" + b"**/*a*/" * 30 + b"b", b"**/" * 30 + b"*a*a*a*b"]
    path = b"/".join([b"a" * 200] * 60)
    began = time.process_time()
    for pattern in hostile:
        assert GitIgnore(pattern, b"").decision(path, False) is None
    assert time.process_time() - began < 60


def test_bounds() -> None:
    many = GitIgnore(b"*a\n" * (RULE_FILE_BYTES // 3), b"")
    assert many.decision(b"ba", False) and many.wild_bytes <= RULE_FILE_BYTES
    with pytest.raises(UsageError, match="line 2 has"):
        GitIgnore(b"a\n" + b"a" * 5000, b"")
