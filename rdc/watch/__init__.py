"""Keeps a destination in step with a source: one long session, fed by what inotify tells."""
