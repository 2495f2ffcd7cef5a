"""Digests of many inputs: BLAKE3 in vector lanes, SipHash of names.

rdc.kernel and rdc.kernel.blake3_many export them to all packages that name chunks.
"""
