"""Rows of packed listings: select, compare, join with their paths.

rdc.kernel exports them to rdc.tree and rdc.session.
"""
