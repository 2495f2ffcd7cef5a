"""Tests of rdc.uniting: two-way sync."""
