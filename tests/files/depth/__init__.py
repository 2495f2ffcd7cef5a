"""Tests of rdc.files.depth."""
