"""Slices of a scan as tasks of an executor, on this machine or on a cluster. `rdc.scan_parts` uses it."""
