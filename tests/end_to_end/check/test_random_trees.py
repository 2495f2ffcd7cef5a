"""A check against a slow comparer: random trees and edits of every kind. Nothing changes at either end."""

from __future__ import annotations

import os
import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.checking.records import CheckOptions
from rdc.errors import ExitCode
from rdc.model.sync import SyncOptions
from tests.support.running.checking import Checked, check_in_turns, compare_slowly, run_check, snapshot
from tests.support.running.syncing import Way
from tests.support.share import examples
from tests.support.trees.tree_strategies import pairs
from tests.support.trees.trees import Tree, write_tree


def checked_by(way: Way, one: Path, other: Path, options: CheckOptions) -> Checked:
    if way is Way.HERE:
        return run_check(one, other, options)
    return check_in_turns(one, other, options, way=way)


def plain(tree: Tree) -> Tree:
    """Without entries that no sync takes, and paths that os.walk cannot open."""
    return {path: node for path, node in tree.items() if b".rdc-" not in path and len(path) < 2000}


def without_kinds(found: dict[bytes, frozenset[str]]) -> dict[bytes, frozenset[str]]:
    """Of an entry with two kinds, the far end's is shown: with or without a slash."""
    return {path.rstrip(b"/") if "kind" in names else path: names for path, names in found.items()}


@given(
    pair=pairs(), way=st.sampled_from(Way), times=st.booleans(), modes=st.booleans(), seed=st.integers(0, 3)
)
@settings(max_examples=examples(60), deadline=None)
def test_finds_what_a_slow_comparer_finds(
    pair: tuple[Tree, Tree], way: Way, times: bool, modes: bool, seed: int
) -> None:
    with tempfile.TemporaryDirectory() as place:
        one = write_tree(Path(place) / "one", plain(pair[0]))
        other = write_tree(Path(place) / "other", plain(pair[1]))
        _edit(one, other, random.Random(seed))
        before = snapshot(one, other)
        options = CheckOptions(SyncOptions(hard_links=True), times=times, modes=modes)
        checked = checked_by(way, one, other, options)
        assert snapshot(one, other) == before
        expected = compare_slowly(one, other, times=times, modes=modes, links=True)
        assert without_kinds(checked.found) == without_kinds(expected)
        assert checked.code == (ExitCode.DIFFERENT if expected else ExitCode.OK)
        assert (checked.done.different, checked.done.errors) == (len(expected), 0)


def _edit(one: Path, other: Path, rng: random.Random) -> None:
    """What the strategy does not do: hidden changes of content, hard links, special files."""
    if os.geteuid() != 0:
        return
    for top in (one, other):
        files = sorted(path for path in top.rglob("*") if not path.is_symlink() and path.is_file())
        for path in files:
            choice = rng.randrange(6)
            kept = path.stat()
            if choice == 0 and kept.st_size:
                content = bytearray(path.read_bytes())
                content[rng.randrange(len(content))] ^= 1
                path.write_bytes(content)
                path.chmod(kept.st_mode & 0o7777)
                os.utime(path, ns=(kept.st_atime_ns, kept.st_mtime_ns))
            elif choice == 1:
                os.link(path, path.parent / f"link{rng.randrange(3)}-{path.stat().st_ino}")
            elif choice == 2:
                os.mkfifo(path.parent / f"fifo{rng.randrange(2)}{path.name[:20]}")


WAYS = pytest.mark.parametrize("way", Way)


@WAYS
@pytest.mark.parametrize("edits", [0, 1, 40])
def test_large_trees_go_by_manifest(way: Way, edits: int, tmp_path: Path) -> None:
    rng = random.Random(edits)
    one, other = tmp_path / "one", tmp_path / "other"
    for top in (one, other):
        for name in map("d{}".format, range(12)):
            (top / name / "below").mkdir(parents=True)
            for number in range(40):
                path = top / name / "below" / f"f{number}"
                path.write_bytes(b"%d" % number * (number % 7))
                os.utime(path, ns=(1, 10**18 + number))
    for path in rng.sample(sorted(path for path in other.rglob("f*")), edits):
        match rng.randrange(6):
            case 0:
                path.unlink()
            case 1:
                path.with_name(path.name + "new").write_bytes(b"new")
            case 2:
                path.chmod(0o600)
            case 3:
                path.unlink()
                path.mkdir()
                (path / "inner").write_bytes(b"inner")
            case 4:
                path.unlink()
                path.symlink_to("nowhere")
            case 5:
                kept = path.stat()
                path.write_bytes(bytes(kept.st_size))
                os.utime(path, ns=(1, kept.st_mtime_ns))
    for top in (one, other):
        for directory in [top, *top.rglob("d*"), *top.rglob("below"), *top.rglob("f*/")]:
            if not directory.is_symlink() and directory.is_dir():
                os.utime(directory, ns=(1, 10**18))
    before = snapshot(one, other)
    for source, destination in ((one, other), (other, one)):
        checked = checked_by(way, source, destination, CheckOptions(SyncOptions(hard_links=True)))
        expected = compare_slowly(source, destination, links=True)
        assert without_kinds(checked.found) == without_kinds(expected)
    assert snapshot(one, other) == before
