"""Texts of JSON lines."""
