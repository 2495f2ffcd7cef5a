"""The reports of an undo: text for a terminal, and JSON events."""
