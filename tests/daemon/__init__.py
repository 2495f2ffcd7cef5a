"""Tests of rdc.daemon: many sessions as a service."""
