"""Filters for content that compresses or matches badly as it is: x86 code and number tables.

rdc.session.transfer, source and transfer call them through `filters`; the other modules here stay closed.
"""
