"""Tests of the filters for x86 code and number tables."""
