"""`rdc sync --keep-undo` and `rdc undo`."""
