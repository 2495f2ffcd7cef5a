"""The facts that a file system tells of its entries: identities, extents, extended attributes, and what it
can keep.

rdc.session, rdc.survey and rdc.duplicates ask it.
"""
