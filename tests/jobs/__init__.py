"""Tests of rdc.jobs: named jobs, their hooks, locks and timers."""
