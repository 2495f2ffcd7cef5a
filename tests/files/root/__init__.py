"""Tests of confined access to one tree."""
