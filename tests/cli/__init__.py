"""Tests of rdc.cli: the command line."""
