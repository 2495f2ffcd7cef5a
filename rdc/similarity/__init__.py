"""Finds similar files: traits, the resemblance that agreeing traits suggest, and an index of millions of
files."""
