"""Tests of rdc.watching, one part at a time. Watches as processes: tests/end_to_end/watch."""
