"""Tests of rdc.instances: duplicates become single instances."""
