"""Finds groups of identical files for `rdc dedupe`, with the search of `rdc dupes`."""

from __future__ import annotations

import os
from array import array

from rdc.errors import ExitCode, FileError
from rdc.files.base.temporary_names import is_reserved
from rdc.library.duplicate_report import location_of
from rdc.model.instances import IdenticalFiles
from rdc.progress import Problem, Progressed
from rdc.survey.duplicates import find_duplicates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rdc.catalog.store import SignatureStore
    from rdc.duplicates.run_totals import DedupeReporter
    from rdc.library.dedupe_operands import Operands
    from rdc.model.duplicates import DuplicateOptions
    from rdc.progress import Event

__all__ = ["find_groups"]


def find_groups(
    operands: Operands,
    options: DuplicateOptions,
    catalog: SignatureStore | None,
    reporter: DedupeReporter,
    problem: Callable[[FileError], None],
) -> list[IdenticalFiles]:
    """Return the groups below `operands`, with all names of each file. Files are in the order of the PATHs.

    `options` must ask for links. Errors of single files go to `problem`.
    """

    def report(event: Event, /) -> None:
        if isinstance(event, Problem):
            if event.code is ExitCode.OK:
                # The deduper has already reported reserved names.
                if not is_reserved(os.path.basename(event.path)):
                    reporter(event)
            else:
                problem(FileError(event.path, event.message, code=event.code))
        elif isinstance(event, Progressed):
            reporter(Progressed("compare", event.done, event.total))

    groups = []
    known: dict[bytes, tuple[int, bytes]] = {}
    for group in find_duplicates(operands.searched, options, report, catalog):
        names = (name for file in group.files for name in (file.path, *file.links))
        groups.append(_located(group.size, names, operands, known))
    return [group for group in groups if len(group) > 1]


def _located(
    size: int, paths: Iterable[bytes], operands: Operands, known: dict[bytes, tuple[int, bytes]]
) -> IdenticalFiles:
    """`known`: by directory as shown, the number of its tree and the part of paths before a name in it."""
    roots, below = array("H"), []
    for path in paths:
        directory, _, name = path.rpartition(b"/")
        found = known.get(directory)
        if found is None:
            location = location_of(path, operands)
            if location is None:
                continue
            found = location[0], location[1][: len(location[1]) - len(name)]
            if operands.all[location[0]].only is not None:
                # A file given by itself says nothing about others beside it.
                roots.append(location[0])
                below.append(location[1])
                continue
            known[directory] = found
        roots.append(found[0])
        below.append(found[1] + name)
    return IdenticalFiles(size, roots, tuple(below))
