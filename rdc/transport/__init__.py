"""Transports: they move bytes between the two ends of a session and do not interpret them.

rdc.session and rdc.daemon use them.
"""
