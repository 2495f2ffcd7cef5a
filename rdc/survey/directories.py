"""Finds directories of equal content among those of a search for identical files, and which files they cover.

Two directories are equal if their entries have the same names and kinds, files the same content, symlinks
the same target, and subdirectories are equal. Metadata does not count. Entries that the filters exclude do
not exist here. A directory is compared only if all of it is known: a file that is in no group of identical
files, whether it has no equal, is left out by its size or cannot be read, makes it equal to none, and so does
a special file or a directory that was not entered.

Of equal directories the first in the order of the walk represents them. The others are *further* copies.
Whatever lies in a further copy is in no other group of directories, so only the topmost are listed. A file is
*covered* if all its names that were found lie in further copies. The first file of a group of identical files
is never covered: the further copy with it would follow a directory that has an equal file at the same place.
So leaving out covered files leaves at least one file of each group, and the bytes that groups of directories
and the rest of the groups waste add up to those of all groups.
"""

from __future__ import annotations

import struct
from array import array

from blake3 import blake3

from rdc.lean.records import Record
from rdc.survey.walk.directory_rows import DIGEST_BYTES, NO_PARENT, DirectoryRows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.survey.walk.file_columns import FileColumns, Groups, OtherNames

_COUNTS = struct.Struct("<QQ")
_CLASS = struct.Struct("<Q")
_NO_CLASS = 0
_NONE = -1


class EqualDirectories(Record):
    """Directories by their numbers in DirectoryRows, of equal content."""

    first: int
    further: tuple[int, ...]


class Fold(Record):
    """The files that groups of directories stand for."""

    groups: tuple[EqualDirectories, ...]
    """Each covers a file."""
    group_of: dict[int, int]
    """By row of a covered file, the number of the group that its first name lies in."""
    files: array[int]
    """Files with content in and below each directory."""
    bytes: list[int]
    """Bytes of these."""


def fold_directories(
    directories: DirectoryRows,
    files: FileColumns,
    names: OtherNames,
    groups: Groups,
    is_asked_for: Callable[[Sequence[int]], bool],
    known: int,
) -> Fold:
    """Return the groups of equal directories.

    `groups`: of identical files. `names`: other names of files, all of which are in `files`. `is_asked_for`:
    whether a group with members below PATHs of these numbers is one to list. PATHs with numbers below
    `known` are a reference, which is represented by one directory of each group.
    """
    places = array("q", [_NONE]) * len(files)
    for directory, first, listed in files.by_directory():
        for row in range(first, first + len(listed)):
            places[row] = directory.number
    counts, sizes = _totals(directories, files, places)
    classes = _classes(directories, files, _contents(len(files), names, groups))
    further, firsts = _chosen(directories, classes, sizes, is_asked_for, known)
    inside = _insides(directories, further)
    covered: dict[int, int] = {}
    for row in groups.members:
        places_of_names = [places[row], *(places[other] for other in names.of(row))]
        if all(place != _NONE and inside[place] != _NONE for place in places_of_names):
            covered[row] = inside[places[row]]
    members: dict[int, list[int]] = {}
    for number, first in enumerate(further):
        if first != _NONE:
            members.setdefault(first, []).append(number)
    worth = {further[copy] for copy in covered.values()}
    found = [EqualDirectories(first, tuple(members[first])) for first in firsts if first in worth]
    numbers = {group.first: number for number, group in enumerate(found)}
    by_row = {row: numbers[further[copy]] for row, copy in covered.items()}
    return Fold(tuple(found), by_row, counts, sizes)


def _contents(count: int, names: OtherNames, groups: Groups) -> array[int]:
    """Return a number for each row: equal for rows of equal content, _NO_CLASS where nothing is known."""
    contents = array("Q", bytes(8 * count))
    for number, rows in enumerate(groups, 1):
        for row in rows:
            contents[row] = number
    # Names of one file have one content, even if no other file has it.
    following = len(groups) + 1
    for first, other in names.pairs():
        if contents[first] == _NO_CLASS:
            contents[first] = following
            following += 1
        contents[other] = contents[first]
    return contents


def _totals(
    directories: DirectoryRows, files: FileColumns, places: array[int]
) -> tuple[array[int], list[int]]:
    """Return the numbers of files in and below each directory, and their bytes."""
    counts = array("Q", directories.files)
    # The sizes of a few sparse files already have a sum of more than 64 bits.
    sizes = [0] * len(directories)
    for row, place in enumerate(places):
        if place != _NONE:
            sizes[place] += files.sizes[row]
    for number in range(len(directories) - 1, -1, -1):
        parent = directories.parents[number]
        if parent != NO_PARENT:
            counts[parent] += counts[number]
            sizes[parent] += sizes[number]
    return counts, sizes


def _classes(directories: DirectoryRows, files: FileColumns, contents: array[int]) -> array[int]:
    """Return a number for each directory: equal for equal ones, _NO_CLASS for those that are compared with
    none."""
    own: dict[int, bytes] = {}
    found = array("Q", bytes(8 * len(directories)))
    for directory, first, listed in files.by_directory():
        number = directory.number
        if number == _NONE:
            continue
        rows = [row for row in range(first, first + len(listed)) if files.sizes[row]]
        if len(rows) == directories.files[number] and all(contents[row] for row in rows):
            named = [(listed[row - first], contents[row]) for row in rows]
            own[number] = b"".join([name + b"\0" + _CLASS.pack(content) for name, content in named])
    known: dict[bytes, int] = {}
    below: dict[int, list[tuple[bytes, int]]] = {}
    for number in range(len(directories) - 1, -1, -1):
        children = below.pop(number, [])
        has_files = bool(directories.files[number])
        if (
            directories.incomplete[number]
            or len(children) != directories.subdirectories[number]
            or (has_files and number not in own)
        ):
            continue
        hasher = blake3(_COUNTS.pack(directories.files[number], len(children)))
        hasher.update(directories.others[DIGEST_BYTES * number : DIGEST_BYTES * (number + 1)])
        hasher.update(own.pop(number, b""))
        for name, content in sorted(children):
            hasher.update(name + b"\0" + _CLASS.pack(content))
        found[number] = known.setdefault(hasher.digest(), len(known) + 1)
        parent = directories.parents[number]
        if parent != NO_PARENT:
            below.setdefault(parent, []).append((directories.name(number), found[number]))
    return found


def _chosen(
    directories: DirectoryRows,
    classes: array[int],
    sizes: list[int],
    is_asked_for: Callable[[Sequence[int]], bool],
    known: int,
) -> tuple[array[int], list[int]]:
    """Return for each further copy its first directory, _NONE for all other directories, and the first
    directories in order."""
    operands: dict[int, list[int]] = {}
    for number, content in enumerate(classes):
        if content and sizes[number]:
            operands.setdefault(content, []).append(directories.operands[number])
    wanted = {content for content, places in operands.items() if len(places) > 1 and is_asked_for(places)}
    further = array("q", [_NONE]) * len(directories)
    covered = bytearray(len(directories))
    first_of: dict[int, int] = {}
    for number, content in enumerate(classes):
        parent = directories.parents[number]
        if parent != NO_PARENT and covered[parent]:
            covered[number] = 1
        elif content in wanted:
            first = first_of.setdefault(content, number)
            if first != number and directories.operands[number] >= known:
                further[number] = first
                covered[number] = 1
    return further, list(first_of.values())


def _insides(directories: DirectoryRows, further: array[int]) -> array[int]:
    """Return for each directory the further copy that it is or lies in, or _NONE."""
    inside = array("q", [_NONE]) * len(directories)
    for number, first in enumerate(further):
        parent = directories.parents[number]
        if first != _NONE:
            inside[number] = number
        elif parent != NO_PARENT:
            inside[number] = inside[parent]
    return inside
