"""What the C modules of rdc.kernel compute, in plain Python: the oracle of tests/kernel, name by name."""
