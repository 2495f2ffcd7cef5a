"""Tests of system calls, names, limits and clocks."""
