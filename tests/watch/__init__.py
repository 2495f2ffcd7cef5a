"""Tests of rdc.watch: sessions that follow a source."""
