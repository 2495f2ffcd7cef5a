"""The data that a sync keeps for an undo, and the undo. UNDO.md has the format and the argument."""
