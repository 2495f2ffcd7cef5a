"""Frozen values that packages exchange, with no behaviour beyond validation and views.

Every package above uses them.
"""
