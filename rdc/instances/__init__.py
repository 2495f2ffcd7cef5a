"""Duplicates become single instances, by shared blocks or hard links; acts on files through rdc.files alone.

Read in this order: dedupe (one run), group (what a group is on disk), share, link, journal, undo, leftovers;
runs finds equal parts of files that differ. INSTANCES.md says what is promised, and why it holds.
"""
