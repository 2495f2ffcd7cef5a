"""Peers, connections and messages for tests."""
