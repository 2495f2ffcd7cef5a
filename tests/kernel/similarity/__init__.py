"""Similarity in the kernel: samples, the index of traits, pairs."""
