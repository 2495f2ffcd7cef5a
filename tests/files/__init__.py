"""Tests of rdc.files: confined access to user files."""
