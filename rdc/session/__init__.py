"""Conversations of a sync, the driver that runs them, and the rebuilding of files. See ARCHITECTURE.md."""
