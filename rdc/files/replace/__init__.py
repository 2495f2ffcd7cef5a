"""Atomic replacement: a new version is written aside, verified and renamed over the old one.

rdc.session.landing and rdc.duplicates put files in place with it.
"""
