"""Tests of rdc.kernel: the C kernel and its reference implementations."""
