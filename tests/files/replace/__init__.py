"""Tests of atomic replacement."""
