"""Blocks below the chunk: keyed rolling fingerprints, compared at every offset of a base.

rdc.kernel and rdc.kernel.gap_search export them to rdc.session.delta.
"""
