"""Many small files read, written and described at once, in C.

rdc.catalog signs, rdc.session commits and rdc.survey reads small files with it.
"""
