"""Tests of what a file system says of its entries."""
