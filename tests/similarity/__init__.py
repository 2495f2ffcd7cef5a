"""Tests of rdc.similarity: traits and their index."""
