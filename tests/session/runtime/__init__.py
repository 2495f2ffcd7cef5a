"""Tests of rdc.session.runtime: conversations and what performs their commands."""
