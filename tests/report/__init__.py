"""Tests of rdc.report: terminal output, JSON events and pages."""
