"""A dry run tells each step that the run would do, and the directories that would stay."""

from __future__ import annotations

from contextlib import suppress
from stat import S_ISDIR

from rdc.errors import ExitCode, FileError
from rdc.files.base.metadata import stat_entry
from rdc.files.base.paths import join
from rdc.progress import Problem
from rdc.uniting.file_systems import names_in, not_empty
from rdc.uniting.plan import Remove
from rdc.uniting.records import UniteItem
from rdc.uniting.renames import Rename
from rdc.uniting.rows import DIRECTORY, is_below
from rdc.uniting.steps import SIDES, items_of, under_any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rdc.files.root.root import Root
    from rdc.tree.filters import FilterList
    from rdc.uniting.plan import Plan


def rehearse(
    plan: Plan, roots: Mapping[int, Root], filters: FilterList, report: Callable[[UniteItem | Problem], None]
) -> tuple[list[int], list[int]]:
    """Report what a plan would do. Return the number of entries that would change at each side, and the bytes
    of the files copied there.

    `roots`: the sides that this machine can look at. There a directory stays if it has an entry that
    `filters` exclude: no plan knows of these.
    """
    changed, copied = [0, 0], [0, 0]
    failed: tuple[set[bytes], set[bytes]] = (set(), set())
    moves = [[each for at, each in plan.steps if at == side and isinstance(each, Rename)] for side in (0, 1)]
    for side, step in (*plan.steps, *plan.links):
        if isinstance(step, Remove) and step.row.kind == DIRECTORY and filters and side in roots:
            staying = _staying(roots[side], _origin(step.path, moves[side]), filters)
            staying += [path.rpartition(b"/")[2] for path in failed[side] if _parent(path) == step.path]
            if staying:
                failed[side].add(step.path)
                text = not_empty(roots[side], step.path, sorted(staying))
                report(Problem(ExitCode.PARTIAL, step.path, text))
                continue
        item = items_of(step, side)
        if under_any(item.path_bytes, failed[side]):
            continue
        changed[side] += 1
        copied[side] += item.copied
        report(item)
    for side, setting in plan.attributes:
        if setting.is_told:
            changed[side] += 1
            report(UniteItem(SIDES[side], "metadata", setting.path))
    return changed, copied


def _parent(path: bytes) -> bytes:
    return path.rpartition(b"/")[0]


def _origin(path: bytes, moves: list[Rename]) -> bytes:
    """Return the path of an entry before renames, which come in their order."""
    for step in reversed(moves):
        if path == step.new or is_below(path, step.new):
            path = step.old + path[len(step.new) :]
    return path


def _staying(root: Root, path: bytes, filters: FilterList) -> list[bytes]:
    """Return the names in a directory that the rules exclude."""
    found = []
    for name in names_in(root, path):
        with suppress(FileError):
            now = root.perform(join(path, name), "look at it", stat_entry, reading=True)
            if filters.excluded(join(path, name), S_ISDIR(now.st_mode)):
                found.append(name)
    return found
