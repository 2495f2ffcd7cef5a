"""`rdc unite`: two directories that both change are brought together; rdc.cli and rdc.library use it.

`rows` has what both sides are described in; `renames` and `plan` decide without I/O.
"""
