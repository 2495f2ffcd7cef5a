"""Turns duplicate files into single instances, by shared blocks or hard links, and removes duplicates. All
file access goes through rdc.files.

Reading order: group (a group on disk), dedupe (a run, and what it chooses), batch and share (what is done),
journal, undo. DUPLICATES.md states the guarantees and why they hold.
"""
