"""Tests of rdc.documents: near-duplicate texts."""
