"""Tests of rdc, a folder for each package. End-to-end tests: tests/sync. Shared helpers: tests/support."""
