"""Syncs and watches, recorded for tests/support/power/power_cut.py."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from rdc.model.options import Backup
from rdc.model.sync import SyncOptions
from tests.support.power.power_checks import Scene, check_kept, check_landed, check_versions
from tests.support.power.power_cut import State
from tests.support.power.power_log import snapshot
from tests.support.power.recorded_writes import read_calls, record, recording_environment
from tests.support.running.syncing import run_sync
from tests.support.running.watching import HereLine, Watching
from tests.support.trees.trees import Directory, File, Link, Node, Tree, describe, read_tree, tree, write_tree

__all__ = [
    "backups",
    "bulk",
    "by_delta",
    "cloned",
    "hard_links",
    "inplace",
    "mixed",
    "removing_source_files",
    "sparse",
    "unsynced",
    "watched",
]


def _blob(seed: int, size: int) -> bytes:
    return random.Random(seed).randbytes(size)


_MOVED: dict[str, File | bytes] = {
    "big": File(_blob(5, 60_000), 0o644, 7),
    **{f"small{i}": _blob(10 + i, 3_000) for i in range(3)},
}

_MIXED_WANTED = tree(
    {
        **{f"many/{i}": _blob(20 + i, 900 if i % 6 == 0 else 1_500) for i in range(10)},
        "edited": _blob(1, 100_000) + b"edit" + _blob(2, 150_000),
        "new": _blob(4, 140_000),
        "grown": _blob(3, 90_000) + bytes(40_000),
        "d/small": b"a new file",
        "d/link": Link(b"small"),
        "d/new/deep": b"new",
        "file-now": b"was a directory",
        "directory-now/x": b"was a file",
        "link-now": Link(b"edited"),
        "was-link": b"a file now",
        "metadata": File(b"the same", 0o755),
        "untouched": b"the same again",
        "empty": b"",
        **{f"moved/{name}": content for name, content in _MOVED.items()},
    }
)
_MIXED_HELD = tree(
    {
        **{f"many/{i}": File(_blob(20 + i, 1_500)[:700], 0o600, 1) for i in range(0, 10, 2)},
        "edited": File(_blob(1, 100_000) + _blob(2, 150_000), 0o600, 1),
        "grown": File(_blob(3, 90_000), 0o600, 1),
        "d/small": File(b"an old file", 0o600, 1),
        "d/link": Link(b"elsewhere", 1),
        "file-now/was/deep": b"a directory",
        "directory-now": File(b"a file", 0o600, 1),
        "link-now/was": b"a directory",
        "was-link": Link(b"edited"),
        "metadata": File(b"the same", 0o644, 1),
        "untouched": b"the same again",
        "extra/deep/er": b"to go",
        "extra-link": Link(b"to go"),
        **{f"was/{name}": content for name, content in _MOVED.items()},
    }
)
_BULK_WANTED = tree({f"{i % 3}/new{i}": _blob(i, 20 + 50 * i) for i in range(45)} | {
    f"{i % 3}/old{i}": _blob(100 + i, 1_000) for i in range(30)
})  # fmt: skip
_BULK_HELD = tree({f"{i % 3}/old{i}": File(_blob(200 + i, 900), 0o600, 1) for i in range(30)})

_LEAVING: dict[str, bytes] = {
    "same": b"same",
    "changed": b"another content",
    "large": _blob(1, 60_000) + _blob(2, 60_000),
    "d/new": b"new",
    **{f"many/{i}": _blob(300 + i, 300) for i in range(6)},
}


def _sync_scene(
    name: str, place: Path, library: Path, held: Tree, wanted: Tree, *words: str, links: Sequence[str] = ()
) -> Scene:
    source = write_tree(place / "source", wanted)
    for link in links:
        os.unlink(source / link)
        os.link(source / links[0][:-1], source / link)
    wanted = read_tree(source)
    top = write_tree(place / "top", held)
    before = snapshot(top)
    calls = record(library, top, place / "log", "sync", "--delete", *words, f"{source}/", f"{top}/")
    assert describe(wanted, read_tree(top)) == []

    def check(state: State) -> None:
        check_versions(state.tree, (held, wanted))
        check_kept(state.tree, held, wanted)

    def converges(at: Path, state: State) -> None:
        state.write(at)
        run = run_sync(source, at, SyncOptions(delete=True, fsync=False, hard_links="-H" in words))
        assert run.problems == [], run.problems
        left = describe(wanted, read_tree(at))
        assert left == [], left

    return Scene(
        name, before, wanted, calls, check, lambda state: check_landed(state.tree, wanted), converges
    )


def mixed(place: Path, library: Path) -> Scene:
    """Changed files that come whole, small files, kinds, moves, deletions."""
    return _sync_scene("mixed", place, library, _MIXED_HELD, _MIXED_WANTED)


def by_delta(place: Path, library: Path) -> Scene:
    """The same with deltas."""
    return _sync_scene("deltas", place, library, _MIXED_HELD, _MIXED_WANTED, "--fewest-bytes")


def bulk(place: Path, library: Path) -> Scene:
    """Make a scene with so many small files that one syncfs is cheaper than their fsyncs."""
    return _sync_scene("bulk", place, library, _BULK_HELD, _BULK_WANTED)


def removing_source_files(place: Path, library: Path) -> Scene:
    """Both trees are on the disk that fails: what has left the source is at the destination."""
    files: dict[str, File | bytes] = {f"s/{path}": content for path, content in _LEAVING.items()}
    files |= {"d/same": b"same", "d/changed": File(b"old", 0o600, 1), "d/large": _blob(1, 60_000)}
    top = write_tree(place / "top", tree(files))
    tree_before, before = read_tree(top), snapshot(top)
    calls = record(
        library, top, place / "log", "sync", "--no-fsync", "--remove-source-files", f"{top}/s/", f"{top}/d/"
    )
    after = read_tree(top)
    assert not any(path.startswith(b"s/") and isinstance(node, File) for path, node in after.items())

    def converges(at: Path, state: State) -> None:
        state.write(at)
        run = run_sync(at / "s", at / "d", SyncOptions(remove_source_files=True, fsync=False))
        assert run.problems == [], run.problems
        left, wanted = ({path: node for path, node in found.items() if isinstance(node, File)} for found in
            (read_tree(at), after))  # fmt: skip
        assert left == wanted

    return Scene(
        "removing source files",
        before,
        after,
        calls,
        lambda state: check_kept(state.tree, tree_before, after),
        lambda state: check_landed(state.tree, after),
        converges,
    )


def hard_links(place: Path, library: Path) -> Scene:
    wanted = tree({"a": _blob(1, 5_000), "a1": b"", "d/a2": b"", "b": _blob(2, 3_000), "z": b"z"})
    held = tree(
        {"a": File(b"old", 0o600, 1), "d/a2": File(b"old too", 0o600, 1), "z": File(b"old as well", 0o600, 1)}
    )
    return _sync_scene("hard links", place, library, held, wanted, "-H", links=("a1", "d/a2"))


def inplace(place: Path, library: Path) -> Scene:
    """Files that are written into may be mixtures, but none that the next run would pass over."""
    scene = _sync_scene("in place", place, library, _MIXED_HELD, _MIXED_WANTED, "--inplace")
    source, wanted = place / "source", scene.after

    def check(state: State) -> None:
        mixed = {
            path
            for path, node in state.tree.items()
            if isinstance(node, File) and isinstance(wanted.get(path), File) and path in _MIXED_HELD
        }
        rest, *versions = (
            {path: node for path, node in found.items() if path not in mixed}
            for found in (state.tree, _MIXED_HELD, wanted)
        )
        check_versions(rest, versions)
        for path in mixed:
            node, new = state.tree[path], wanted[path]
            assert isinstance(node, File)
            assert isinstance(new, File)
            alike = (len(node.content), node.mtime_ns) == (len(new.content), new.mtime_ns)
            assert not alike or node.content == new.content, (path, "would be passed over")

    def converges(at: Path, state: State) -> None:
        state.write(at)
        run = run_sync(source, at, SyncOptions(delete=True, fsync=False, inplace=True))
        assert run.problems == [], run.problems
        left = describe(wanted, read_tree(at))
        assert left == [], left

    return replace(scene, check=check, converges=converges)


def backups(place: Path, library: Path) -> Scene:
    """Make a scene with backups: what is replaced or deleted keeps a name; its two names are never lost
    together."""
    source = write_tree(place / "source", _MIXED_WANTED)
    held, wanted = ({b"tree/" + path: node for path, node in found.items() if path} for found in (
        _MIXED_HELD, read_tree(source)
    ))  # fmt: skip
    top = write_tree(place / "top", tree({"tree": Directory(0o755)}) | held)
    before = snapshot(top)
    words = ("sync", "--delete", "--backup-dir=../old", f"{source}/", f"{top}/tree/")
    calls = record(library, top, place / "log", *words)
    after = read_tree(top)

    def check(state: State) -> None:
        tree_now = {path: node for path, node in state.tree.items() if path.startswith(b"tree/")}
        check_versions(tree_now, (held, wanted))
        for path, node in held.items():
            places = (state.tree.get(path), state.tree.get(b"old/" + path.removeprefix(b"tree/")))
            assert isinstance(node, Directory) or any(map(partial(_same_content, node), places)), path

    def converges(at: Path, state: State) -> None:
        state.write(at)
        options = SyncOptions(delete=True, fsync=False, backup=Backup(b"", b"../old"))
        run = run_sync(source, at / "tree", options)
        assert run.problems == [], run.problems
        left = describe(_without_directories(after), _without_directories(read_tree(at)))
        assert left == [], left

    return Scene(
        "backups", before, after, calls, check, lambda state: check_landed(state.tree, after), converges
    )


def _without_directories(found: Tree) -> Tree:
    return {path: node for path, node in found.items() if not isinstance(node, Directory)}


def _same_content(node: Node, other: Node | None) -> bool:
    if isinstance(node, File):
        return isinstance(other, File) and node.content == other.content
    return isinstance(node, Link) and isinstance(other, Link) and node.target == other.target


def sparse(place: Path, library: Path) -> Scene:
    """Files with holes, which are made by truncation."""
    hole = bytes(200_000)
    wanted = tree(
        {"image": _blob(1, 30_000) + hole + _blob(2, 30_000), "all": hole, "end": _blob(3, 100) + hole}
    )
    held = tree({"image": File(_blob(1, 30_000) + hole, 0o600, 1), "end": File(_blob(3, 100), 0o600, 1)})
    return _sync_scene("sparse", place, library, held, wanted, "-S")


def cloned(place: Path, library: Path) -> Scene:
    """Make a scene where blocks can be shared: a file edited at both ends, one with whole blocks inserted, a
    new one."""
    old = _blob(5, 300_000)
    wanted = tree(
        {
            "edited": b"edit" + old[4:-4] + b"edit",
            "inserted": old[:81_920] + _blob(6, 8_192) + old[81_920:],
            "new": _blob(7, 200_000),
        }
    )
    held = tree({"edited": File(old, 0o600, 1), "inserted": File(old, 0o600, 1)})
    return _sync_scene("clones", place, library, held, wanted)


def unsynced(place: Path, library: Path) -> Scene:
    """Make a scene with --no-fsync: a kill leaves old or new contents, which a power cut may not."""
    return _sync_scene("no fsync", place, library, _MIXED_HELD, _MIXED_WANTED, "--no-fsync")


def watched(place: Path, library: Path) -> Scene:
    """Turns of a watch: new and changed files, renames of both kinds, deletions."""
    source = write_tree(place / "source", _WATCHED)
    top = write_tree(place / "top", tree({"d/f1": File(b"older", 0o600, 1), "gone": b"to go"}))
    before = snapshot(top)
    versions = [before.tree]
    watching = Watching(source, top, "--delete", "--fsync", place=place, line=HereLine())
    with _environment(recording_environment(library, top, place / "log")):
        watching.start()
    try:
        for turn in (None, *_turns(source)):
            if turn is not None:
                turn()
            watching.wait_equal()
            versions.append(read_tree(top))
    finally:
        watching.stop()

    def check(state: State) -> None:
        check_versions(state.tree, versions)

    def converges(at: Path, state: State) -> None:
        state.write(at)
        run = run_sync(source, at, SyncOptions(delete=True, fsync=False))
        assert run.problems == [], run.problems
        left = describe(versions[-1], read_tree(at))
        assert left == [], left

    calls = read_calls(place / "log")
    return Scene(
        "watch",
        before,
        versions[-1],
        calls,
        check,
        lambda state: check_landed(state.tree, versions[-1]),
        converges,
    )


_WATCHED = tree({f"d/f{i}": _blob(i, 500) for i in range(4)} | {"big": _blob(9, 90_000), "e/x": b"x"})


def _turns(source: Path) -> Iterator[Callable[[], object]]:
    yield lambda: (source / "new").write_bytes(_blob(20, 70_000))
    yield lambda: (source / "d" / "f2").write_bytes(b"changed")
    yield lambda: (source / "big").rename(source / "e" / "bigger")
    yield lambda: (source / "e").rename(source / "moved")
    yield (source / "d" / "f0").unlink


@contextmanager
def _environment(more: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in more}
    os.environ.update(more)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
