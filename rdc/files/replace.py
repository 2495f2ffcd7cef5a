"""Atomic replacement: rebuild aside, commit in groups, sweep what was left behind.

Why no path is ever half new, whatever kills the process or the power:

1. A Replacement is written under a temporary name in the directory of its target; the target is not touched.
2. A CommitGroup syncs content and metadata first and renames after: when the new name reaches the disk, what
it names
   is already there. The rename itself is atomic in every journal.
3. It syncs the directory before it says that the file is committed.
   Small new files go through the same steps in C, a directory's run of them at a time (rdc.files.small).
4. Whatever fails before the rename leaves the old file and removes the temporary; a kill leaves the
temporary, which
   `Root.list` hides, the next run may read as a base, and `sweep` removes once its lock is free.

With fsync=False step 2 and 3 lose their order on disk: a kill still changes nothing, a power cut may.
"""

from __future__ import annotations

from rdc.files.commit import CommitGroup
from rdc.files.placing import ANYTHING, Anything
from rdc.files.replacement import Replacement
from rdc.files.sweep import sweep
from rdc.files.temporary import TEMPORARY_PATTERN, is_temporary

__all__ = ["ANYTHING", "Anything", "CommitGroup", "Replacement", "TEMPORARY_PATTERN", "is_temporary", "sweep"]
