"""Helpers that run rdc in this process or in others."""
