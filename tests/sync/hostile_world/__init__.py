"""Tests of syncs while other programs write, kill processes or cut the connection."""
