"""What a file system says of its entries: identities, extents, extended attributes, and what it can keep.

rdc.session, rdc.survey and rdc.duplicates ask it.
"""
