"""Guards of a two-way sync: what stops a run between its plan and its first step.

Nothing was done when one stops a run, and its message says so.
"""

from __future__ import annotations

import os

from rdc.errors import ExitCode, RdcError, printable
from rdc.files.base.syscalls import file_system_type
from rdc.lean.records import Record
from rdc.progress import Problem
from rdc.uniting.plan import Part, Remove, Write
from rdc.uniting.renames import MakeDirectory
from rdc.uniting.rows import FILE, LEFT, RIGHT
from rdc.uniting.steps import SIDES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.files.root.root import Root
    from rdc.progress import Reporter
    from rdc.uniting.plan import Plan

GUARDED_ENTRIES = 100
"""A side with fewer entries is not guarded: half of ten files are soon deleted."""

SHARING_TYPES = frozenset({0x9123683E, 0x58465342, 0xCA451A4E, 0x2FC12FC1})
"""File systems on which a copy may take no space: Btrfs, XFS, bcachefs and ZFS, as statfs(2) has them."""

_BLOCK_BYTES = 512


def check_share(
    plan: Plan, shown: Sequence[bytes], entries: Sequence[int], percent: int, reporter: Reporter
) -> None:
    """Raise RdcError if a run would delete or replace more than `percent` of a side.

    `shown`: the name of each side. `entries`: how many take part there. `reporter` hears which directories
    have the most.
    """
    for side in (LEFT, RIGHT):
        removed = sum(at == side and isinstance(step, Remove) for at, step in plan.steps)
        replaced = sum(
            at == side and isinstance(step, Write) and step.replaced is not None for at, step in plan.steps
        )
        replaced += sum(at == side and step.brings and step.replaced is not None for at, step in plan.links)
        total = entries[side]
        for count, doing in ((removed, "delete"), (replaced, "replace")):
            if total >= GUARDED_ENTRIES and 100 * count > percent * total:
                _show_largest(plan, side, reporter)
                raise RdcError(
                    f"{printable(shown[side])}: would {doing} {count:,} of {total:,} entries"
                    f" at the {SIDES[side]}, more than {percent}%; nothing was done: look at"
                    " it with -n, or allow it with --guard=100",
                    code=ExitCode.MAX_DELETE,
                )


def _show_largest(plan: Plan, side: int, reporter: Reporter) -> None:
    counts: dict[bytes, int] = {}
    for at, step in plan.steps:
        if at == side and isinstance(step, (Remove, Write)):
            top = step.path.split(b"/")[0]
            counts[top] = counts.get(top, 0) + 1
    for top, count in sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:10]:
        entries = "1 entry" if count == 1 else f"{count:,} entries"
        reporter(Problem(ExitCode.OK, top, f"{printable(top)}: {entries} to delete or write"))


class Room(Record):
    """The capacity of a file system. None: it does not tell."""

    bytes: int | None
    entries: int | None


def room_of(root: Root) -> Room:
    """Return what the file system of `root` says that it can take.

    Some do not answer, some say that they have no blocks, or no files, and some have many files of which none
    is free (a mount of rclone says that of 10^9). Such numbers tell nothing. If it is true that none is free,
    the first new entry fails, and the run ends with all that was there.
    """
    try:
        found = os.fstatvfs(root.fileno())
    except OSError:
        return Room(None, None)
    return Room(
        found.f_bavail * found.f_frsize if found.f_blocks else None,
        found.f_favail if found.f_files and found.f_favail else None,
    )


def check_space(plan: Plan, shown: Sequence[bytes], roots: tuple[Root, Root]) -> None:
    """Raise RdcError if a file system has no room for all that the run writes there.

    Old versions stay until the run ends, and longer if they are kept for an undo, so they free nothing. Files
    that share their content, as clones do, take no space: between two sides of one such file system nothing
    is counted.
    """
    devices = [os.fstat(root.fileno()).st_dev for root in roots]
    if devices[LEFT] == devices[RIGHT] and _shares(roots[LEFT]):
        return
    for sides in ((LEFT, RIGHT),) if devices[LEFT] == devices[RIGHT] else ((LEFT,), (RIGHT,)):
        room, name = room_of(roots[sides[0]]), " and ".join(printable(shown[side]) for side in sides)
        files = [
            (side, step)
            for side, step in plan.steps
            if side in sides and isinstance(step, (Write, Part)) and step.row.kind == FILE
        ]
        if room.bytes is not None and sum(step.row.stamp.size for _, step in files) > room.bytes:
            # Files with holes take less than their length.
            needed = sum(
                _allocated(roots[side if isinstance(step, Part) else 1 - side], step) for side, step in files
            )
            if needed > room.bytes:
                raise _full(name, f"{needed:,} bytes", f"{room.bytes:,}")
        made = sum(
            side in sides and isinstance(step, (Write, MakeDirectory, Part)) and _is_new(step)
            for side, step in plan.steps
        )
        if room.entries is not None and made > room.entries:
            raise _full(name, f"{made:,} new entries", f"{room.entries:,}")


def check_room(plan: Plan, side: int, shown: bytes, room: Room, source: Root | None) -> None:
    """Raise RdcError if one side has no room for what the run writes there from another machine.

    `source`: the root that the files come from, which says how much of them is holes; None: it is the other
    machine's, and they count with their lengths.
    """
    steps = [step for at, step in plan.steps if at == side]
    files = [step for step in steps if isinstance(step, (Write, Part)) and step.row.kind == FILE]
    needed = sum(step.row.stamp.size for step in files)
    if room.bytes is not None and needed > room.bytes and source is not None:
        # A name that gets a file of its own is copied there, and counts with its length.
        needed = sum(
            _allocated(source, step) if isinstance(step, Write) else step.row.stamp.size for step in files
        )
    if room.bytes is not None and needed > room.bytes:
        raise _full(printable(shown), f"{needed:,} bytes", f"{room.bytes:,}")
    made = sum(isinstance(step, (Write, MakeDirectory, Part)) and _is_new(step) for step in steps)
    if room.entries is not None and made > room.entries:
        raise _full(printable(shown), f"{made:,} new entries", f"{room.entries:,}")


def _shares(root: Root) -> bool:
    try:
        return file_system_type(root.fileno()) in SHARING_TYPES
    except OSError:
        return False


def _is_new(step: Write | MakeDirectory | Part) -> bool:
    return isinstance(step, (MakeDirectory, Part)) or step.replaced is None


def _allocated(source: Root, step: Write | Part) -> int:
    """Return the bytes that a file takes where it is; its length if that cannot be told."""
    size = step.row.stamp.size
    try:
        here, name = source.locate(step.path)
        found = os.stat(name, dir_fd=here.fd, follow_symlinks=False)
    except (RdcError, OSError):
        return size
    return min(size, _BLOCK_BYTES * found.st_blocks)


def _full(name: str, needed: str, free: str) -> RdcError:
    return RdcError(
        f"{name}: expected room for {needed}, found {free} free; nothing was done: make room, or leave"
        " entries out with --exclude",
        code=ExitCode.FILE_IO,
    )
