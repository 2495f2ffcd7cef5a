"""Paths matched against many wildcard patterns at once."""
