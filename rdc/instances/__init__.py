"""Turns duplicate files into single instances, by shared blocks or hard links. All file access goes through
rdc.files.

Reading order: dedupe (one run), group (a group on disk), share, link, journal, undo, leftovers. `runs` finds
equal ranges of files that differ. INSTANCES.md states the guarantees and why they hold.
"""
