"""File systems and kernels that keep or offer less, and names that mean something there."""
