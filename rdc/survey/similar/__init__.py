"""Finds similar files and folders, for `rdc similar`."""
