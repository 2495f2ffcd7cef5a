"""Reads chosen documents again after a search: for excerpts, and for a copy without near-duplicates."""
