"""Min-wise samples of sets of 64-bit features, and comparison of samples that were cut to a few bits."""
