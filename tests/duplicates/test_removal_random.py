"""Random trees beside a slow, obvious model: what stays by the rules, that no content is lost, and the way
back."""

from __future__ import annotations

import os
import tempfile
from collections import defaultdict
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.running.deduping import TIME, Run, Seen, dedupe, dupes, seen
from tests.support.share import examples

CONTENTS = (b"a", b"b" * 5_000, b"c" * 5_000, bytes(70_000))
DIRECTORIES = ("", "a/", "a/b/", "keep/", "k\n\x1b[2J/")
RULES = ("newest", "oldest", "shortest-path", "longest-path", "first", "in:a", "in:keep")

files = st.tuples(
    st.sampled_from(DIRECTORIES),
    st.sampled_from(CONTENTS),
    st.sampled_from([0o644, 0o600, 0o4755]),
    st.integers(0, 2),
    st.booleans(),
)
"""Directory, content, mode, mtime, and whether it has an attribute."""

links = st.lists(st.tuples(st.integers(0, 30), st.sampled_from(DIRECTORIES)), max_size=4)


def write(top: Path, tree: list[tuple[str, bytes, int, int, bool]], more: list[tuple[int, str]]) -> None:
    for directory in DIRECTORIES:
        (top / directory).mkdir(parents=True, exist_ok=True)
    paths = []
    for number, (directory, content, mode, mtime, attribute) in enumerate(tree):
        path = top / f"{directory}file{number}"
        path.write_bytes(content)
        if attribute:
            os.setxattr(path, "user.x", b"x")
        path.chmod(mode)
        os.utime(path, ns=(TIME + mtime, TIME + mtime))
        paths.append(path)
    for number, (which, directory) in enumerate(more):
        if paths:
            os.link(paths[which % len(paths)], top / f"{directory}link{number}")
            (top / f"{directory}to{number}").symlink_to(paths[which % len(paths)])


def found_order(path: str) -> tuple[list[bytes], bytes]:
    """Entries of a directory in the order of their names, and each directory's own before those below it."""
    directory, _, name = os.fsencode(path).rpartition(b"/")
    return directory.split(b"/") if directory else [], name


def survivors(top: Path, rules: list[str], keep_in: bool, only_in: bool) -> set[str]:
    """The model: every name that must be there afterwards."""
    groups: dict[bytes, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    before = seen(top)
    for path in sorted(before, key=found_order):
        groups[(top / path).read_bytes()][os.stat(top / path).st_ino].append(path)
    stay = set()
    for inodes in groups.values():
        sets = list(inodes.values())
        protected = [
            names
            for names in sets
            if (keep_in and any(name.startswith("keep/") for name in names))
            or (only_in and not all(name.startswith("a/") for name in names))
        ]
        candidates = protected or sets
        for rule in rules:
            if rule == "first":
                break
            ranks = [rank(top, names, rule) for names in candidates]
            candidates = [names for names, own in zip(candidates, ranks, strict=True) if own == min(ranks)]
        for names in sets:
            special = before[names[0]].mode & 0o6000
            if names is candidates[0] or names in protected or special:
                stay |= set(names)
    return stay


def rank(top: Path, names: list[str], rule: str) -> int:
    if rule in ("newest", "oldest"):
        return os.stat(top / names[0]).st_mtime_ns * (-1 if rule == "newest" else 1)
    if rule.startswith("in:"):
        return -any(name.startswith(rule[3:] + "/") for name in names)
    lengths = [len(os.fsencode(name)) for name in names]
    return min(lengths) if rule == "shortest-path" else -max(lengths)


def words_of(top: Path, rules: list[str], keep_in: bool, only_in: bool) -> list[str | Path]:
    words: list[str | Path] = [
        f"--keep=in:{top}/{rule[3:]}" if ":" in rule else f"--keep={rule}" for rule in rules
    ]
    words += [f"--keep-in={top}/keep"] * keep_in + [f"--only-in={top}/a"] * only_in
    return words


def links_to(top: Path, gone: set[str], before: dict[str, Seen], stay: set[str]) -> None:
    """Each removed name is a relative link that leads to a file of its content, which stayed."""
    for path in gone:
        text = os.readlink(top / path)
        assert not text.startswith("/")
        real = os.path.relpath(os.path.realpath(top / path), os.path.realpath(top))
        assert real in stay
        assert before[real].digest == before[path].digest


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(files, max_size=12),
    links,
    st.lists(st.sampled_from(RULES), max_size=3),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["--delete", "--move", "--symlink"]),
)
def test_as_the_model_and_back(
    tree: list[tuple[str, bytes, int, int, bool]],
    more: list[tuple[int, str]],
    rules: list[str],
    keep_in: bool,
    only_in: bool,
    action: str,
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        top, journal, out = (Path(directory) / name for name in ("top", "journal", "out"))
        write(top, tree, more)
        before = seen(top)
        stay = survivors(top, rules, keep_in, only_in)
        words = words_of(top, rules, keep_in, only_in)
        words += [f"--move={out}" if action == "--move" else action, f"--journal={journal}", top]
        promised = dupes(*words)
        assert promised.code == 0, promised
        assert seen(top) == before
        assert not out.exists()
        assert not journal.exists()
        run = dupes("--apply", *words)
        assert run.code == 0, run
        check(top, out, action, before, stay, run)
        assert [(one["path"], one["won"]) for one in run.of("item")] == [
            (one["path"], one["won"]) for one in promised.of("item")
        ]
        # Nothing is left for a second run.
        assert dupes(*words).summary["files"] == 0
        if journal.exists():
            undone = dedupe("--undo", journal)
            assert undone.code == 0, undone
            assert not list(top.rglob(".rdc-*"))
            assert not [path for path in out.rglob("*") if path.is_file()]
            again = dedupe("--undo", journal)
            assert (again.code, again.summary["files"]) == (0, 0)
        assert seen(top) == before


def check(top: Path, out: Path, action: str, before: dict[str, Seen], stay: set[str], run: Run) -> None:
    now = seen(top)
    assert now == {path: before[path] for path in stay}
    assert {one.digest for one in now.values()} == {one.digest for one in before.values()}
    gone = before.keys() - stay
    assert {os.path.relpath(one["path"], top) for one in run.of("item")} == gone
    assert all((top / directory).is_dir() for directory in DIRECTORIES)
    if action == "--symlink":
        links_to(top, gone, before, stay)
    elif action == "--move":
        assert seen(out) == {path: before[path] for path in gone}
