"""Which files are like which: traits, what their agreement says of two files, and an index of millions."""
