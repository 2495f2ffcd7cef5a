"""Tests of the library: arguments, stops, streams, docstrings, and the types that a user sees."""
