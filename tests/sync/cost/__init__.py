"""Tests of what syncs cost in bytes and round trips."""
