"""Helpers that start daemons and attack them."""
