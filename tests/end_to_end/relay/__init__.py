"""Syncs and watches between two other hosts."""
