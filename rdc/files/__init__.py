"""The only package that touches user files: confined paths, reading, listing, atomic replacement, spools.

Read in this order: path (what a relative path is), directory (how it is walked), confined (what can be done
with it), source, listing and packed (reading), replace (the argument for atomic replacement), replacement,
commit, sweep.
"""
