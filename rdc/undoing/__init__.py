"""What a sync keeps to be undone, and the undo. UNDO.md has the format and the argument."""
