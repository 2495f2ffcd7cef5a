"""Computes what a disk may contain after a power failure: a model of file systems, and states drawn from it.

The model, from what ext4, XFS, btrfs and F2FS promise, and no more than that:

- Each change of names or of an inode (create, link, rename, exchange, unlink, chmod, utime, truncate) is
  there whole or not at all.
- What was written is not kept in order with anything. A write that was not synced may be there. It may be
  missing with the file as long as if it were there (zeros, or what was there before), or with the file
  shorter. Or some of its pages only are there.
- fsync of a file makes its writes, its inode and its creation last. fsync of a directory makes the changes
  of its names last. syncfs makes everything last.
- `Ordering.JOURNAL`: changes of metadata become durable in the order in which they were made, so that any
  sync makes all earlier ones last (ext4, XFS).
- `Ordering.CAUSAL`: of changes that were not synced any may be missing. Then every later change that needs it
  is missing too: of the same name, of the same inode, or in a directory that was not made or named so. That
  is more than btrfs and F2FS may lose, whose logs hold single inodes.

A prefix without losses is what a kill leaves: the kernel finishes what was begun.
"""

from __future__ import annotations

import os
import random
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from tests.support.power.power_log import Log, Op, Ordering, Snapshot
from tests.support.power.recorded_writes import Call
from tests.support.trees.trees import Directory, File, Link, Node, Tree, describe, write_tree

__all__ = ["NOW", "Cut", "Fate", "History", "State"]

NOW = 1_999_999_999_000_000_000
"""mtime, in nanoseconds, of what was written and not given a time: no test sets this one."""

PAGE = 4096


class Fate(Enum):
    """The fate of a write that was not synced."""

    SHORT = "missing, and so are the bytes that it made the file longer by"
    ZEROS = "missing, but the file is as long as with it"
    PAGES = "some of its pages are there"


@dataclass(frozen=True, slots=True)
class Cut:
    """A power failure: after which call, and what was lost of the calls before."""

    prefix: int
    """Calls that were made."""
    names: frozenset[int]
    """Numbers of lost changes of metadata."""
    data: tuple[tuple[int, Fate], ...] = ()
    """Lost writes."""


@dataclass(frozen=True, slots=True)
class State:
    """The contents of the disk after a cut."""

    tree: Tree
    files: dict[bytes, int]
    """Which file each path leads to."""

    def write(self, top: Path) -> Path:
        """Make it at `top`, hard links included."""
        write_tree(top, self.tree)
        first: dict[int, bytes] = {}
        for path, file in self.files.items():
            if isinstance(self.tree[path], File) and first.setdefault(file, path) != path:
                here, there = (os.path.join(os.fsencode(top), name) for name in (path, first[file]))
                os.unlink(here)
                os.link(there, here)
        return top


@dataclass(slots=True)
class _Inode:
    kind: str
    """C, M or L."""
    mode: int = 0
    mtime: int = NOW
    target: bytes = b""
    content: bytes = b""
    data: list[tuple[int, Fate | None]] = field(default_factory=list)
    """Writes and truncations, in order."""


class History:
    """A recording, from which any state can be built that the power may leave."""

    def __init__(self, before: Snapshot, calls: Sequence[Call]) -> None:
        self.log = Log(before, calls)
        self._ops = self.log.ops
        self._contents: dict[tuple[int, tuple[tuple[int, Fate | None], ...]], bytes] = {}

    def __len__(self) -> int:
        return len(self._ops)

    def cuts(self, ordering: Ordering, seed: int, *, subsets: int = 20) -> Iterator[Cut]:
        """Yield the cuts after each call: nothing lost, everything lost, each single thing lost, and
        `subsets` drawn by `seed`."""
        rng = random.Random(seed)
        for prefix in range(len(self._ops) + 1):
            if 0 < prefix < len(self._ops) and not self._ops[prefix - 1].is_change:
                continue  # what can be lost is some of what could before
            yield from self.cuts_at(prefix, ordering, rng, subsets=subsets)

    def cuts_at(self, prefix: int, ordering: Ordering, rng: random.Random, *, subsets: int) -> Iterator[Cut]:
        open_ = self.log.open_at(prefix, ordering)
        data = [number for number in open_ if self._ops[number].is_data]
        names = [number for number in open_ if not self._ops[number].is_data]
        yield Cut(prefix, frozenset())
        if not open_:
            return
        for fate in (Fate.SHORT, Fate.ZEROS):
            yield Cut(prefix, frozenset(names), tuple((number, fate) for number in data))
            yield Cut(prefix, frozenset(), tuple((number, fate) for number in data))
        for number in data:
            for fate in Fate:
                yield Cut(prefix, frozenset(), ((number, fate),))
        for number in names:
            yield Cut(prefix, self._without([number], names, ordering))
        for _ in range(subsets):
            rate = rng.choice((0.05, 0.3, 0.7))
            lost = [number for number in names if rng.random() < rate]
            if ordering is Ordering.JOURNAL and names:
                lost = [rng.choice(names)]
            yield Cut(
                prefix,
                self._without(lost, names, ordering),
                tuple((number, rng.choice(list(Fate))) for number in data if rng.random() < rate),
            )

    def _without(self, lost: Sequence[int], names: Sequence[int], ordering: Ordering) -> frozenset[int]:
        """Return the changes of names that cannot be there without `lost`, including those in `lost`."""
        if ordering is Ordering.JOURNAL:
            return frozenset(names[bisect_left(names, min(lost)) :]) if lost else frozenset()
        gone = set(lost)
        for number in names:
            if any(need in gone for need in self._ops[number].needs):
                gone.add(number)
        return frozenset(gone)

    def state(self, cut: Cut) -> State:
        inodes = [_inode_of(node) for node in self.log.first]
        inodes += [_Inode("C") for _ in range(self.log.files - len(inodes))]
        names = dict(self.log.names)
        fates = dict(cut.data)
        for number in range(cut.prefix):
            op = self._ops[number]
            if op.is_change and number not in cut.names and fates.get(number) is not Fate.SHORT:
                _apply(op, number, fates.get(number), inodes, names)
        below: dict[int, list[tuple[bytes, int]]] = {}
        for (directory, name), file in names.items():
            below.setdefault(directory, []).append((name, file))
        tree: Tree = {}
        files: dict[bytes, int] = {}
        left = [(b"", 0)]
        while left:
            path, file = left.pop()
            tree[path], files[path] = self._node(file, inodes[file]), file
            left += [(path + b"/" + name if path else name, child) for name, child in below.get(file, ())]
        return State(dict(sorted(tree.items())), files)

    def _node(self, file: int, inode: _Inode) -> Node:
        if inode.kind == "M":
            return Directory(inode.mode, inode.mtime)
        if inode.kind == "L":
            return Link(inode.target, inode.mtime)
        key = (file, tuple(inode.data))
        if key not in self._contents:
            self._contents[key] = self._content(inode)
        return File(self._contents[key], inode.mode, inode.mtime)

    def _content(self, inode: _Inode) -> bytes:
        content = bytearray(inode.content)
        for number, fate in inode.data:
            call = self._ops[number].call
            end = call.value + len(call.data) if call.kind == "W" else call.value
            content += bytes(max(end - len(content), 0))
            if call.kind == "T":
                del content[end:]
            elif fate is None:
                content[call.value : end] = call.data
            elif fate is Fate.PAGES:
                _put_pages(content, call, random.Random(number))
        return bytes(content)

    def differences(self, after: Tree, *, passed_over: Collection[bytes] = ()) -> list[str]:
        """Return how the whole recording, with nothing lost, differs from what the command made: a difference
        is a call that was not recorded."""

        def comparable(tree: Tree) -> Tree:
            found: Tree = {}
            for path, node in tree.items():
                if isinstance(node, File):
                    found[path] = File(node.content, node.mode, 0)
                elif path not in passed_over:
                    found[path] = Directory(node.mode, 0) if isinstance(node, Directory) else node
            return {path: node for path, node in found.items() if path not in passed_over}

        return describe(comparable(self.state(Cut(len(self), frozenset())).tree), comparable(after))


def _inode_of(node: Node) -> _Inode:
    if isinstance(node, Directory):
        return _Inode("M", node.mode, node.mtime_ns)
    if isinstance(node, Link):
        return _Inode("L", 0o777, node.mtime_ns, node.target)
    return _Inode("C", node.mode, node.mtime_ns, content=node.content)


def _apply(
    op: Op, number: int, fate: Fate | None, inodes: list[_Inode], names: dict[tuple[int, bytes], int]
) -> None:
    call = op.call
    op.rename(names)
    for directory, _ in op.entries:
        inodes[directory].mtime = NOW
    if op.file < 0:
        return
    inode = inodes[op.file]
    if call.kind in "CMLO":
        inode.kind, inode.mode = call.kind.replace("O", "C"), call.value
        inode.target = call.data
    elif call.kind == "A":
        inode.mode = call.value
    elif call.kind == "N":
        inode.mtime = call.value
    elif call.kind in "WT":
        inode.data.append((number, fate))
        inode.mtime = NOW


def _put_pages(content: bytearray, call: Call, rng: random.Random) -> None:
    at, end = call.value, call.value + len(call.data)
    while at < end:
        stop = min((at // PAGE + 1) * PAGE, end)
        if rng.random() < 0.5:
            content[at:stop] = call.data[at - call.value : stop - call.value]
        at = stop
