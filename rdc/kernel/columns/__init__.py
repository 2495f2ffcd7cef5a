"""Packed columns: varints, input of manifest node digests, input of root digests, differences of 32-bit
words.

rdc.kernel exports them to rdc.tree and rdc.session.
"""
