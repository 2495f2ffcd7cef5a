"""Filters for content that compresses or matches badly as it is: x86 code and number tables.

rdc.session.source and rdc.session.transfer call them.
"""
