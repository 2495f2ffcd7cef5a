"""Keep a destination in sync with a source: one long session, driven by inotify events.

rdc.cli starts it; rdc.daemon follows a directory for a peer with it.
"""
