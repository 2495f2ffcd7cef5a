"""End-to-end tests of whole syncs."""
