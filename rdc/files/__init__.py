"""The only package that touches user files: confined paths, reading, listing, atomic replacement, spools.

FILES.md states the rules. Read base.relative_path and base.directory_descriptors first, then root.root,
root.source_file, replace.replacement and replace.commit_group.
"""
