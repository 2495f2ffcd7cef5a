"""Tests of syncs and watches from one other host to another."""
