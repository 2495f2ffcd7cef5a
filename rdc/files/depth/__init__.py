"""How many calls to storage are in flight at a time, and the C code that makes them so.

All folders of rdc.files that make the same call for many entries use it.
"""
