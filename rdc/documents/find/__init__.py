"""Finds near-duplicates among the documents of parts."""
