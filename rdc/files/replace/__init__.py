"""Atomic replacement: files are rebuilt aside, committed in groups, and swept if a writer died.

These steps keep every path wholly old or wholly new, whatever kills the process or cuts the power:

1. A Replacement writes a temporary in the directory of its target. The target is not touched. Where the file
   system shares blocks, the temporary may begin as a clone; only what is read from it counts as verified.
2. A CommitGroup syncs content and metadata first and renames afterwards. When the new name reaches the disk,
   its content is there. Every journal makes the rename itself atomic.
3. The group syncs the directory before it reports a file as committed.
4. A failure before the rename leaves the old file and removes the temporary. A kill leaves the temporary,
   which `Root.list` hides. The next run may read it as a base, and `sweep_temporaries` removes it once its
   lock is free. Both accept only rdc's own temporaries (rdc.files.replace.commit_group).

Small new files take the same steps in C, many at a time (rdc.files.bulk.small_files). With fsync=False, steps
2 and 3 lose their order on disk: a kill still leaves each path whole, a power cut may not.
"""
