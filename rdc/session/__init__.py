"""Sync conversations as generators, the driver that has them done, the rebuilding of files: SESSION.md."""
