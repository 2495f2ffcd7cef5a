"""Tests of rdc.watching: sessions that follow a source."""
