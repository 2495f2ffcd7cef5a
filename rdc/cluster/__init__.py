"""Slices of a scan, or of a search for documents, as tasks of an executor, here or on a cluster."""
