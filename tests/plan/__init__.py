"""Tests of rdc.plan: decisions without I/O."""
