"""A recording with files in place of inode numbers: what each change needs, and from when on it lasts.

tests/support/power/power_cut.py has the model that this follows.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path

from tests.support.power.recorded_writes import Call
from tests.support.trees.trees import Node, Tree, read_tree

__all__ = ["Log", "Op", "Ordering", "Snapshot", "snapshot"]


class Ordering(Enum):
    JOURNAL = "metadata in order"
    CAUSAL = "metadata in any order that makes sense"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A tree with the numbers of its inodes."""

    tree: Tree
    inodes: dict[bytes, int]


def snapshot(top: Path) -> Snapshot:
    tree = read_tree(top)
    here = os.fsencode(top)
    return Snapshot(
        tree, {path: os.lstat(os.path.join(here, path) if path else here).st_ino for path in tree}
    )


@dataclass(slots=True)
class Op:
    """A call, with files by number instead of inode."""

    call: Call
    file: int = -1
    exchanged: int = -1
    """The other file of an exchange."""
    entries: tuple[tuple[int, bytes], ...] = ()
    needs: list[int] = field(default_factory=list)
    """Numbers of the calls that this one cannot be kept without."""
    durable: dict[Ordering, int] = field(default_factory=dict)
    """The number of calls after which it lasts; absent: none."""

    @property
    def is_data(self) -> bool:
        return self.call.kind == "W"

    @property
    def is_change(self) -> bool:
        return self.call.kind not in "FSG"

    def rename(self, names: dict[tuple[int, bytes], int]) -> None:
        """Change the names of files, by directory and name, as the call did."""
        kind = self.call.kind
        if kind in "UD":
            del names[self.entries[0]]
        elif kind in "CMLH":
            names[self.entries[0]] = self.file
        elif kind == "E":
            old, new = self.entries
            names[old], names[new] = names[new], names[old]
        elif kind == "R":
            old, new = self.entries
            # rename(2) makes nothing of two names of one file.
            if names.get(new) != names[old]:
                names[new] = names.pop(old)


class Log:
    """The calls of a recording. Files have numbers: first those that were there, the top directory being 0,
    then each that was made."""

    def __init__(self, before: Snapshot, calls: Sequence[Call]) -> None:
        self.ops: list[Op] = []
        self.first: list[Node] = []
        """The files that were there."""
        self.names: dict[tuple[int, bytes], int] = {}
        """Which file each name in each directory led to."""
        self._number: dict[int, int] = {}
        """The file that each inode is at the moment."""
        self._begin(before)
        self.files = len(self.first)
        """How many there are in all."""
        names = dict(self.names)
        for call in calls:
            self.ops.append(self._resolved(call, names))
        self._link_needs()
        for ordering in Ordering:
            self._mark_durable(ordering)

    def syncs(self) -> list[int]:
        """Numbers of the calls that make something last."""
        return [number for number, op in enumerate(self.ops) if op.call.kind in "FS"]

    def content_syncs(self) -> list[int]:
        """Return the syncs that make durable what was written to a file that stays."""
        removed = {op.file for op in self.ops if op.call.kind == "U"}
        found = []
        waiting: set[int] = set()
        for number, op in enumerate(self.ops):
            if op.is_data:
                waiting.add(op.file)
            elif op.call.kind == "F" and op.file in waiting - removed:
                found.append(number)
                waiting.discard(op.file)
        return found

    def open_at(self, prefix: int, ordering: Ordering) -> list[int]:
        """Numbers of the changes among the first `prefix` calls that do not last yet."""
        return [
            number
            for number, op in enumerate(self.ops[:prefix])
            if op.is_change and op.durable.get(ordering, prefix + 1) > prefix
        ]

    def _begin(self, before: Snapshot) -> None:
        numbers: dict[int, int] = {}
        for path, node in before.tree.items():
            inode = before.inodes[path]
            if inode not in numbers:
                numbers[inode] = len(self.first)
                self.first.append(node)
            if path:
                parent, _, name = path.rpartition(b"/")
                self.names[numbers[before.inodes[parent]], name] = numbers[inode]
        self._number = numbers

    def _resolved(self, call: Call, names: dict[tuple[int, bytes], int]) -> Op:
        if call.kind in "CMLO":
            self._number[call.file] = self.files
            self.files += 1
        if call.kind in "RE":
            old, new = (self._number[call.directory], call.name), (self._number[call.file], call.other)
            op = Op(call, names[old], entries=(old, new))
            op.exchanged = names[new] if call.kind == "E" else -1
        elif call.kind in "CMLHUD":
            entry = (self._number[call.directory], call.name)
            if call.kind == "U" and entry not in names:
                # A fifo that the trial of the file system made: specials are not recorded.
                return Op(replace(call, kind="A"), -1)
            file = names[entry] if call.kind in "UD" else self._number[call.file]
            op = Op(call, file, entries=(entry,))
        elif call.kind == "S":
            op = Op(call)
        else:
            # -1: the file has no name below the top.
            op = Op(call, self._number.get(call.file, -1))
        op.rename(names)
        return op

    def _link_needs(self) -> None:
        last: dict[object, int] = {}
        inside: dict[int, list[int]] = {}
        named: dict[int, int] = {}
        for number, op in enumerate(self.ops):
            if not op.is_change or op.is_data:
                continue
            files = [file for file in (op.file, op.exchanged) if file >= 0]
            keys: list[object] = [*op.entries, *files]
            op.needs = [last[key] for key in keys if key in last]
            op.needs += [named[directory] for directory, _ in op.entries if directory in named]
            if op.call.kind == "D":
                op.needs += inside.get(op.file, [])
            if op.call.kind in "CMLORE":
                named.update(dict.fromkeys(files, number))
            for key in keys:
                last[key] = number
            for directory, _ in op.entries:
                inside.setdefault(directory, []).append(number)

    def _mark_durable(self, ordering: Ordering) -> None:
        for at, op in enumerate(self.ops):
            if op.call.kind not in "FS":
                continue
            for number in range(at):
                if ordering not in self.ops[number].durable and self._is_synced_by(number, op, ordering):
                    self._keep(number, at + 1, ordering)

    def _is_synced_by(self, number: int, sync: Op, ordering: Ordering) -> bool:
        op = self.ops[number]
        if sync.call.kind == "S":
            return True
        if op.is_data:
            return op.file == sync.file
        if ordering is Ordering.JOURNAL:
            return True
        if any(directory == sync.file for directory, _ in op.entries):
            return True
        return op.file == sync.file and op.call.kind in "CMOATN"

    def _keep(self, number: int, at: int, ordering: Ordering) -> None:
        """Mark the operation as durable from `at` on, with all that it needs."""
        left = [number]
        while left:
            op = self.ops[left.pop()]
            if ordering not in op.durable:
                op.durable[ordering] = at
                left += op.needs
