"""Sync conversations as generators, the driver that performs them, and the rebuilding of files."""
