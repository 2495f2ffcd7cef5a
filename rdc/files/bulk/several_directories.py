"""New small files of several directories, written aside and renamed in one call of the C code.

Where directories have few files, a call for each has no more in flight than those. Where nothing waits, a
call for each costs less: the callers use this only at a depth past 1.
"""

from __future__ import annotations

import os
from array import array
from itertools import accumulate
from operator import attrgetter

from rdc.errors import FileError
from rdc.files.bulk.small_files import TEMPORARY_BYTES, StagedFiles, extension, inherits
from rdc.files.depth.calls_at_once import calls_at_once
from rdc.files.depth.depth import RowsSeen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence, Set

    from rdc.files.base.directory_descriptors import Directory
    from rdc.files.bulk.read_listed import ListedFiles
    from rdc.files.root.root import Root

__all__ = ["rename_together", "stage_together"]

COLUMNS = ("names", "sizes", "mtimes", "modes", "uids", "gids")
"""The columns of a listing that the C function takes, in this order."""

FD_BYTES = 4
"""Bytes of a descriptor in a column."""


def stage_together(
    root: Root, files: Sequence[ListedFiles], content: memoryview, *, owner: bool
) -> list[StagedFiles | None]:
    """Do what `stage_small` does for the new files of several directories, in as many runs.

    `content` holds the bytes of all. A run is None if the files of its directory must be written by
    themselves. All are None if one call is not to be made for all, as beyond the write quota of `root`.
    """
    built = extension()
    sizes = [one.listing.total_size for one in files]
    entries = sum([one.listing.count for one in files])
    runs: list[StagedFiles | None] = [None] * len(files)
    if built is None or not root.writes_in_bulk or not root.may_spend(sum(sizes), entries=entries):
        return runs
    directories = _opened(root, files)
    starts = list(accumulate(sizes, initial=0))
    fds, parts = array("i"), []
    for number, directory in directories.items():
        one = files[number]
        if root.writes.undo is not None:
            root.writes.undo.entering(one.directory, directory.fd)
        root.spend(one.directory, sizes[number], entries=one.listing.count)
        fds.extend(array("i", [directory.fd]) * one.listing.count)
        parts.append(content[starts[number] : starts[number + 1]])
    listings = [files[number].listing for number in directories]
    depth = root.depths.writing
    made, temporaries, seen = built.stage_small(
        fds,
        *(b"".join(map(attrgetter(column), listings)) for column in COLUMNS),
        owner,
        content if len(parts) == len(files) else b"".join(parts),
        root.writes.least_hole,
        os.urandom(4 * len(fds)),
        None,
        0,
        depth.now,
    )
    depth.saw(RowsSeen(*seen))
    at = 0
    for number, directory in directories.items():
        one, stop = files[number], at + files[number].listing.count
        own = made[FD_BYTES * at : FD_BYTES * stop]
        names = temporaries[TEMPORARY_BYTES * at : TEMPORARY_BYTES * stop]
        runs[number] = StagedFiles(root, one.directory, directory, one.listing.names, own, names)
        at = stop
    return runs


def _opened(root: Root, files: Sequence[ListedFiles]) -> dict[int, Directory]:
    """Open the directories together. Return, by number, those that new files can be written in in bulk."""

    def opened(one: ListedFiles) -> Directory | None:
        try:
            return root.directory(one.directory)
        except FileError:
            return None

    found = enumerate(calls_at_once(opened, files, root.depths))
    return {
        number: directory
        for number, directory in found
        if directory is not None and not inherits(root, (directory,))
    }


def rename_together(runs: Sequence[StagedFiles], passed_over: Sequence[Set[int]]) -> list[list[int]]:
    """Rename the files of each run but those of `passed_over`, one set a run. Return, for each run, the rows
    that still have their temporary names."""
    built = extension()
    columns = [run.rename_columns(rows) for run, rows in zip(runs, passed_over, strict=True)]
    if built is None or any(each.expected for each in columns):
        return [run.rename(rows) for run, rows in zip(runs, passed_over, strict=True)]
    depth = runs[0].depth
    directories, fds = array("i"), array("i")
    for each in columns:
        directories += each.directories
        fds += each.fds
    packed, seen = built.rename_small(
        directories,
        b"".join([each.temporaries for each in columns]),
        b"".join([each.names for each in columns]),
        fds,
        None,
        0,
        depth.now,
    )
    depth.saw(RowsSeen(*seen))
    errors = array("i", packed)
    failed, at = [], 0
    for run, rows in zip(runs, passed_over, strict=True):
        failed.append(run.note_renamed(errors[at : at + len(run)], rows))
        at += len(run)
    return failed
