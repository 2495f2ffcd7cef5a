"""Slices of a scan as tasks of an executor."""
