"""Tests of rdc.session, one part at a time. Whole syncs are in tests/sync."""
