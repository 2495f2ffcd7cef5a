"""Tests of `rdc check`: against a slow comparer, its cost, and what it refuses."""
