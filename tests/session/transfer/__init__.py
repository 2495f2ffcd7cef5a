"""Tests of rdc.session.transfer: the ways in which content arrives."""
