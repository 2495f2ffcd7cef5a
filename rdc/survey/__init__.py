"""Measures what deduplication would save, and finds duplicates and similar files and folders. Nothing is
changed."""
