"""Tests of rdc's own files."""
