"""Tests of rdc.session, one part at a time. Whole syncs: tests/end_to_end."""
