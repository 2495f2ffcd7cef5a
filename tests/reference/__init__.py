"""What the C modules of rdc.kernel compute, in plain Python: the oracle of tests/kernel, name by name.

The definition of a cut stands beside its C, in rdc/kernel/cut/reference.py.
"""
