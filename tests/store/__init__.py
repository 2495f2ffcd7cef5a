"""Tests of rdc.store: packs, snapshots, and restoring them."""
