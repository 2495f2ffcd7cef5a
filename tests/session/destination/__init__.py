"""Tests of rdc.session.destination: comparison, deletion and what is remembered."""
