"""Tests of many small files at once."""
