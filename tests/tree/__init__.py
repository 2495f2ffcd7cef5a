"""Tests of rdc.tree: walks, filters and manifests."""
