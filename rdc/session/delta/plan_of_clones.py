"""Which ranges of one new version begin as clones of its bases, where the file system can."""

from __future__ import annotations

import os

from rdc.files.replace.cloning import CLONED_FILE_BYTES, may_clone
from rdc.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.files.replace.replace import Replacement
    from rdc.files.root.root import Root
    from rdc.plan.clone_plan import Clone
    from rdc.session.delta.bases import OpenBase, Recipe
    from rdc.session.delta.cloned_ranges import ClonedRanges

__all__ = ["PlannedClones", "plan_of_clones"]


class PlannedClones(NamedTuple):
    """The clones of one new version, before its temporary is made."""

    ranges: Sequence[Clone]
    block: int
    """Bytes of a block of the file system."""

    def of(self, temporary: Replacement, bases: Sequence[OpenBase]) -> ClonedRanges | None:
        """Returns what makes the clones; None if there are none."""
        if not self.ranges:
            return None
        from rdc.session.delta.cloned_ranges import ClonedRanges

        return ClonedRanges(temporary, bases, self.ranges, self.block)


NO_CLONES = PlannedClones((), 1)


def plan_of_clones(root: Root, recipe: Recipe, bases: Sequence[OpenBase]) -> PlannedClones:
    """Plans the clones of a new version, none if its file system has refused one before."""
    source = bases[0].source if bases else None
    if source is None or source.fileno() < 0 or recipe.size < CLONED_FILE_BYTES:
        return NO_CLONES
    if not may_clone(root, source.identity.device):
        return NO_CLONES
    from rdc.plan.clone_plan import plan_clones

    try:
        block = os.fstatvfs(source.fileno()).f_bsize
    except OSError:
        return NO_CLONES

    def offset(base: int, row: int) -> int:
        return bases[base].offset(row)

    return PlannedClones(plan_clones(recipe.parts, recipe.trees, offset, block), block)
