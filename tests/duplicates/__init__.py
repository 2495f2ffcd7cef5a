"""Tests of rdc.duplicates: duplicates become single instances."""
