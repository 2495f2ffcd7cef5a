"""Tests of rdc, a folder for each package. Whole runs: tests/end_to_end. Shared helpers: tests/support."""
