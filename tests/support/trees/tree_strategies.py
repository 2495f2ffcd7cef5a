"""Strategies for trees: odd names, odd metadata, contents that share chunks, and pairs that are related."""

from __future__ import annotations

import os
import random
from functools import cache

from hypothesis import strategies as st

from tests.support.trees.trees import Directory, File, Link, Node, Tree, parent_of

__all__ = ["contents", "edited", "nodes", "pairs", "plain_trees", "trees"]

# '-', '.' and '0' are the neighbours of '/': where orders by name and by path differ.
ODD_NAMES = (
    b"a", b"b", b"a-", b"a.b", b"a0", b"A", b".hidden", b"-rf", b"--delete", b" ", b"a b", b"~", b"*", b"[x]",
    b"new\nline", b"\x01\x7f\x1b[2J", b"\xff\xfe", "ü".encode(), "\N{RIGHT-TO-LEFT OVERRIDE}x".encode(),
    b"y" * 255, b"\xe4" * 255, b"h:o", b".rdc-notours.tmp", b"..."
)  # fmt: skip
"""Few, so that two trees meet in the same names."""

PLAIN_NAMES = (b"a", b"b", b"c", b"a-b", b"a.b", b"a0", b".h")

STREAM_BYTES = 200_000
"""About twelve chunks: trees of two levels."""


@cache
def _stream(kind: int) -> bytes:
    rng = random.Random(kind)
    if kind == 2:
        return bytes(STREAM_BYTES)
    if kind == 3:
        return rng.randbytes(30_000) * (STREAM_BYTES // 30_000)
    return rng.randbytes(STREAM_BYTES)


@st.composite
def contents(draw: st.DrawFn) -> bytes:
    """Short, or long with a few edits: two such share most of their chunks."""
    if draw(st.integers(0, 2)):
        return draw(st.binary(max_size=20))
    data = bytearray(_stream(draw(st.integers(0, 3))))
    del data[draw(st.sampled_from((1, 5_000, 70_000, STREAM_BYTES))) :]
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data)))
        data[at : at + draw(st.sampled_from((0, 1, 50, 20_000)))] = draw(st.binary(max_size=8))
    return bytes(data)


MTIMES = st.one_of(
    st.integers(0, 3).map(lambda s: 1_500_000_000_000_000_000 + s * 999_999_999),
    # ext4 counts from 1901 to 2446 in nanoseconds, rdc's 64 bits end in 2262.
    st.integers((1 - (1 << 31)) * 10**9, 9_000_000_000 * 10**9),
)

_root = os.geteuid() == 0
FILE_MODES = st.sampled_from((0o644, 0o600, 0o755, 0o444, 0o4755, 0o2711, 0o1644, 0o777)) | st.integers(
    0, 0o777
).map(lambda mode: mode if _root else mode | 0o600)
DIRECTORY_MODES = st.sampled_from((0o755, 0o700, 0o1777, 0o750, 0o2775)) | st.integers(0, 0o77).map(
    lambda mode: mode | 0o700
)
if _root:
    # Everybody else could not clear such a tree away.
    DIRECTORY_MODES = DIRECTORY_MODES | st.sampled_from((0o000, 0o555, 0o111))

TARGETS = st.sampled_from((b"a", b"../a", b"/", b".", b"..", b"nowhere/\n\xff", b"t" * 4000))

files = st.builds(File, contents(), FILE_MODES, MTIMES)
directories = st.builds(Directory, DIRECTORY_MODES, MTIMES)
links = st.builds(Link, TARGETS, MTIMES)
nodes: st.SearchStrategy[Node] = st.one_of(files, directories, links)

_paths = st.lists(st.sampled_from(ODD_NAMES), min_size=1, max_size=3).map(b"/".join)
_deep = st.integers(5, 20).map(lambda depth: b"/".join([b"y" * 255] * depth))
_plain_paths = st.lists(st.sampled_from(PLAIN_NAMES), min_size=1, max_size=3).map(b"/".join)


@st.composite
def trees(draw: st.DrawFn, paths: st.SearchStrategy[bytes] = _paths | _deep) -> Tree:
    found: Tree = {b"": draw(directories)}
    for path, node in draw(st.lists(st.tuples(paths, nodes), max_size=10)):
        _put(draw, found, path, node)
    return dict(sorted(found.items()))


def plain_trees() -> st.SearchStrategy[Tree]:
    """Trees whose names every program prints alike."""
    return trees(_plain_paths)


def _put(draw: st.DrawFn, found: Tree, path: bytes, node: Node) -> None:
    """`node` at `path`, whatever was there, and directories on the way to it."""
    for other in [p for p in found if p == path or p.startswith(path + b"/")]:
        del found[other]
    found[path] = node
    while path := parent_of(path):
        if not isinstance(found.get(path), Directory):
            found[path] = draw(directories)


@st.composite
def edited(draw: st.DrawFn, before: Tree) -> Tree:
    """Draw a tree that `before` could have become."""
    after = dict(before)
    for path in sorted(before):
        match draw(st.integers(0, 6)) if path else 5:
            case 0:
                _remove(after, path)
            case 1 if parent_of(path) in after:
                _put(draw, after, path, draw(nodes))
            case 2 if path in after:
                after[path] = _touched(draw, after[path])
    for path in draw(st.lists(st.sampled_from(sorted(before)), max_size=2)):
        if path in after and path:
            _move(draw, after, path, draw(_plain_paths))
    if draw(st.booleans()):
        after[b""] = draw(directories)
    return dict(sorted(after.items()))


def _move(draw: st.DrawFn, found: Tree, path: bytes, to: bytes) -> None:
    """Put the entry at `path`, and what is below it, or a copy of that, at `to`."""
    moved = {
        old[len(path) :]: node for old, node in found.items() if old == path or old.startswith(path + b"/")
    }
    if to == path or to.startswith(path + b"/"):
        return
    if draw(st.integers(0, 3)):
        _remove(found, path)
    for rest, node in moved.items():
        if len(to + rest) < 4000:
            _put(draw, found, to + rest, node)


def _remove(found: Tree, path: bytes) -> None:
    for other in [p for p in found if p == path or p.startswith(path + b"/")]:
        del found[other]


def _touched(draw: st.DrawFn, node: Node) -> Node:
    """The same content with other metadata, or a small change."""
    mtime = draw(MTIMES)
    if isinstance(node, Directory):
        return Directory(draw(DIRECTORY_MODES), mtime)
    if isinstance(node, Link):
        return Link(node.target, mtime)
    at = draw(st.integers(0, len(node.content)))
    change = draw(st.sampled_from((b"", b"changed")))
    return File(node.content[:at] + change + node.content[at:], draw(FILE_MODES), mtime)


@st.composite
def pairs(draw: st.DrawFn, source: st.SearchStrategy[Tree] = trees()) -> tuple[Tree, Tree]:  # noqa: B008 - a strategy has no state
    """Draw a source and a destination: the latter is something else, or another version of the source."""
    wanted = draw(source)
    held = draw(st.one_of(edited(wanted), source))
    return wanted, held
