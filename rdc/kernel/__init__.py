"""The kernel: cut points, similarity samples and record ranks, as fast as this machine can."""
