"""Cut points by winnowing, and the features from which traits are sampled.

rdc.kernel exports them to rdc.chunking and rdc.signature.
"""
