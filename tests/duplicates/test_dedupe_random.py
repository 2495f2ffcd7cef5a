"""Random trees: dedupe changes no content and no metadata, and undo restores everything."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.running.deduping import TIME, Seen, dedupe, seen
from tests.support.share import examples

CONTENTS = (b"", b"a", b"b" * 5_000, b"c" * 5_000, bytes(70_000), b"d" * 70_000 + b"e")

files = st.tuples(
    st.sampled_from(["", "a/", "a/b/", "keep/", "keep/c/"]),
    st.sampled_from(CONTENTS),
    st.sampled_from([0o644, 0o600, 0o4755]),
    st.sampled_from([TIME, TIME + 1]),
    st.booleans(),
)
"""Directory, content, mode, mtime, and whether it has an attribute."""

trees = st.lists(files, max_size=14)
links = st.lists(st.tuples(st.integers(0, 30), st.sampled_from(["", "a/", "keep/"])), max_size=4)


def write(top: Path, tree: list[tuple[str, bytes, int, int, bool]], more: list[tuple[int, str]]) -> None:
    paths = []
    for number, (directory, content, mode, mtime, attribute) in enumerate(tree):
        path = top / f"{directory}file{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        if attribute:
            os.setxattr(path, "user.x", b"x")
        path.chmod(mode)
        os.utime(path, ns=(mtime, mtime))
        paths.append(path)
    for number, (which, directory) in enumerate(more):
        if paths:
            path = top / f"{directory}link{number}"
            path.parent.mkdir(parents=True, exist_ok=True)
            os.link(paths[which % len(paths)], path)


def kinds(found: dict[str, Seen], top: Path, *, protected: str) -> int:
    """The smallest number of files that can hold all this: one per content and metadata. Empty and protected
    files all stay."""
    own = {os.stat(top / path).st_ino for path, what in found.items() if not what.size}
    kept = {os.stat(top / path).st_ino for path in found if path.startswith(protected)} - own
    covered = {found[path] for path in found if os.stat(top / path).st_ino in kept}
    return len(own) + len(kept) + len({what for what in found.values() if what.size} - covered)


@settings(max_examples=examples(40), deadline=None)
@given(trees, links)
def test_hard_links_and_back(
    tree: list[tuple[str, bytes, int, int, bool]], more: list[tuple[int, str]]
) -> None:
    with tempfile.TemporaryDirectory() as place:
        top, journal = Path(place) / "top", Path(place) / "journal"
        (top / "keep").mkdir(parents=True)
        write(top, tree, more)
        wanted = seen(top)
        protected = {path: os.stat(top / path).st_ino for path in wanted if path.startswith("keep/")}
        fewest = kinds(wanted, top, protected="keep/")
        promised = dedupe("--hardlink", "--keep-in", top / "keep", top)
        run = dedupe("--hardlink", "--apply", "--keep-in", top / "keep", "--journal", journal, top)
        assert run.code == 0, run
        assert (run.won, run.summary["files"]) == (promised.won, promised.summary["files"])
        assert seen(top) == wanted
        assert {path: os.stat(top / path).st_ino for path in protected} == protected
        assert len({os.stat(top / path).st_ino for path in wanted}) == fewest
        assert dedupe("--hardlink", "--keep-in", top / "keep", top).summary["files"] == 0
        if journal.exists():
            undone = dedupe("--undo", journal)
            assert undone.code == 0, undone
            assert seen(top) == wanted
            names = {item["path"] for item in run.of("item")}
            assert all(os.stat(name).st_nlink == 1 for name in names)


@settings(max_examples=15, deadline=None)
@given(tree=trees, more=links)
def test_shared_blocks(
    btrfs_image: Path, tree: list[tuple[str, bytes, int, int, bool]], more: list[tuple[int, str]]
) -> None:
    with tempfile.TemporaryDirectory(dir=btrfs_image) as place:
        top = Path(place)
        write(top, tree, more)
        wanted = seen(top)
        before = {path: os.stat(top / path) for path in wanted}
        promised = dedupe("--chunks", top)
        run = dedupe("--chunks", "--apply", top)
        assert run.code == 0, run
        assert run.won >= promised.won - 8192
        assert seen(top) == wanted
        for path, then in before.items():
            now = os.stat(top / path)
            assert (now.st_ino, now.st_ctime_ns, now.st_nlink) == (
                then.st_ino,
                then.st_ctime_ns,
                then.st_nlink,
            )
        assert dedupe("--chunks", top).won == 0
