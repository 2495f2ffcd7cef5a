"""The steps that bring one file up to date: compare trees, search blocks, fetch, rebuild, verify.

rdc.session.transfer drives them, for one file or for a bundle of many.
"""
