"""Paths to columns of files: the walk, hard links and groups of equal values.

All searches of rdc.survey begin here.
"""
