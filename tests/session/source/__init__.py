"""Tests of rdc.session.source: how a source answers."""
