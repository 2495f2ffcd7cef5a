"""Tests of hard links, renames and shared blocks."""
